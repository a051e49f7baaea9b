"""Exception hierarchy. Each error carries the exit code of the command line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import Any, Final

from joulemap.system.record import frozen

MOST_NAME: Final = 120
"""Maximum characters of a name in a message; longer ones are no known name."""

OTHER: Final = "other"
"""Code of a reason that no code groups or shortens."""


class ExitCode(IntEnum):
    """Exit codes of `joulemap` commands."""

    OK = 0
    INTERNAL = 1
    """Error inside joulemap or its database engine: please report it."""
    USAGE = 2
    """Option or argument that cannot be parsed."""
    UNKNOWN_NAME = 3
    """Unknown model, hardware, query, run or measurement."""
    UNSUPPORTED = 4
    """Valid question that no chosen hardware can answer, e.g. because it lacks a precision or misses a limit."""
    DATABASE = 5
    """Database that is missing, locked, damaged, of another program, too new, too old or not writable."""
    CHECK_FAILED = 6
    """Check that found changed rows, rows that break conservation or referential rules, or faults of a package."""
    MODEL = 7
    """Model that could not be built or traced."""
    SQL = 8
    """SQL query that does not parse, does not run or is not allowed."""
    CATALOGUE = 9
    """Invalid hardware or energy data file."""
    BEYOND = 10
    """Change of a metric that exceeds its limit."""
    OUTSIDE = 11
    """Measurement outside the 80 % interval of its prediction."""
    UNSCORED = 12
    """Measurements that could not be scored against predictions, without exception."""
    INTERRUPTED = 130
    """Interruption by Ctrl-C."""


class Interrupted(SystemExit):
    """Interruption by Ctrl-C, which `except Exception` does not catch."""

    def __init__(self) -> None:
        super().__init__(int(ExitCode.INTERRUPTED))


@frozen(kw_only=True)
class Reason:
    """Reason why something has no result: a code and values for programs, and the sentence of the code that found it.

    Nothing reads the sentence: what groups or shortens reasons uses the code and the values.
    """

    text: str
    """Sentence for people, without a final period."""
    code: str = OTHER
    values: Mapping[str, Any] = {}
    """Numbers in SI units, with the unit in the name, names, and tuples of names."""


def cut_middle(text: str, most: int) -> str:
    """Return a text; one longer than `most` without its middle."""
    return text if len(text) <= most else f"{text[: most * 2 // 3]} … {text[-(most // 3) :]}"


class JoulemapError(Exception):
    """Base of all deliberate joulemap errors; its text is one line for the user."""

    exit_code = ExitCode.INTERNAL

    @property
    def reason(self) -> Reason:
        """Reason for which it was raised."""
        return Reason(text=str(self))


class UsageError(JoulemapError):
    """Argument that is out of range or malformed."""

    exit_code = ExitCode.USAGE


class MissingPackageError(UsageError, ImportError):
    """Required package that is not installed; the text says how to install it."""

    def __init__(self, package: str, extra: str = "frames") -> None:
        super().__init__(f"{package} is not installed: pip install {package}, or 'joulemap[{extra}]'")


class UnknownNameError(JoulemapError):
    """Unknown name; the text suggests the nearest known names."""

    exit_code = ExitCode.UNKNOWN_NAME

    def __init__(self, noun: str, name: str, known: Iterable[str], hint: str = "", *, near: Sequence[str] = ()) -> None:
        """Make a message that suggests names: `near` if given, else those of `known` with similar spelling."""
        import difflib

        candidates = sorted(known)
        near = near or difflib.get_close_matches(name.lower(), candidates, n=3, cutoff=0.5)
        if near:
            *first, last = near
            advice = f"did you mean {' or '.join((', '.join(first), last)) if first else last}?"
        elif candidates and len(candidates) <= 16:
            advice = f"known: {', '.join(candidates)}"
        else:
            advice = ""
        text = "; ".join(part for part in (f"unknown {noun} {cut_middle(name, MOST_NAME)!r}", advice) if part)
        if hint:
            text += f" {_begin_sentence(hint)}" if near else f"; {hint}"
        super().__init__(text)
        self.noun = noun
        self.name = name
        self.near = tuple(near)


def _begin_sentence(text: str) -> str:
    """Capitalize the first letter of a text, unless it begins with a path, a command or an option."""
    is_word = text.partition(" ")[0].strip(",").isalpha()
    return text[:1].upper() + text[1:] if is_word else text


class AmbiguousNameError(UnknownNameError):
    """Name that several things share; the text lists them."""

    def __init__(self, noun: str, name: str, candidates: Sequence[str], most: int, hint: str) -> None:
        """Make a message that lists at most `most` candidates."""
        super().__init__(noun, name, (), hint, near=candidates)
        rest = len(candidates) - most
        more = f" and {rest} more" if rest > 0 else ""
        self.args = (f"{noun} {name!r} may be {', '.join(candidates[:most])}{more}: name one; {hint}",)


class NoMeasurementError(JoulemapError):
    """Missing measurement; the text says how to take one."""

    exit_code = ExitCode.UNKNOWN_NAME


class UnsupportedError(JoulemapError):
    """Configuration that a chip cannot run."""

    exit_code = ExitCode.UNSUPPORTED

    def __init__(self, text: str, *, code: str = OTHER, **values: Any) -> None:
        super().__init__(text)
        self.code = code
        self.values = values

    @classmethod
    def of(cls, reason: Reason) -> UnsupportedError:
        """Return the error for a reason that was found without one."""
        return cls(reason.text, code=reason.code, **reason.values)

    @property
    def reason(self) -> Reason:
        """Reason for which it was raised."""
        return Reason(text=str(self), code=self.code, values=self.values)


class DatabaseError(JoulemapError):
    """Database that cannot be used."""

    exit_code = ExitCode.DATABASE


class EngineError(JoulemapError):
    """Internal failure of the database engine, unrelated to the query."""


class LockedDatabaseError(DatabaseError):
    """Database locked by another process; the text names that process."""


class OlderDatabaseError(DatabaseError):
    """Database without migrations that this code needs."""


class ThresholdError(JoulemapError):
    """Change of a metric that exceeds its limit."""

    exit_code = ExitCode.BEYOND


class OutsideError(JoulemapError):
    """Measurement outside the interval of its prediction."""

    exit_code = ExitCode.OUTSIDE


class UnscoredError(JoulemapError):
    """Measurements of which none could be scored; the answer states the reasons."""

    exit_code = ExitCode.UNSCORED


class ConservationError(JoulemapError):
    """Parts that do not add up to their whole."""

    exit_code = ExitCode.CHECK_FAILED


class LawError(JoulemapError):
    """Evaluation whose numbers physics or arithmetic forbids."""

    exit_code = ExitCode.CHECK_FAILED


class UnsoundPackageError(JoulemapError):
    """Package with hardware that does not pass its check."""

    exit_code = ExitCode.CHECK_FAILED


class ModelError(JoulemapError):
    """Model that cannot be built or traced."""

    exit_code = ExitCode.MODEL


class UnknownFamilyError(ModelError):
    """Language-model configuration whose sizes joulemap cannot read; its own library can."""


class UnbatchedError(ModelError):
    """Model that cannot take the requested batch: its inputs have no batch, or their sizes are fixed."""


class UntrustedError(ModelError):
    """Model whose code may not run, because only a row of a file names it."""


class SqlError(JoulemapError):
    """Statement that the database rejected."""

    exit_code = ExitCode.SQL


class CatalogueError(JoulemapError):
    """Invalid data file; the text names file, key and reason."""

    exit_code = ExitCode.CATALOGUE


class UnpricedActionError(JoulemapError):
    """Counted action without an energy in the reference table."""

    exit_code = ExitCode.CATALOGUE

    def __init__(self, hardware: str, action: str, action_count: float) -> None:
        super().__init__(
            f"{hardware} has no energy per action for {action} (counted {action_count:.6g} times): "
            "add it to the energy reference table of its architecture"
        )
        self.hardware = hardware
        self.action = action
        self.action_count = action_count
