"""The error tree. Each error carries the exit code that the command line ends with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum


class ExitCode(IntEnum):
    """What a finished `joulemap` command tells the shell."""

    OK = 0
    INTERNAL = 1
    """An error inside joulemap or its database engine: please report it."""
    USAGE = 2
    """An option or argument that cannot be read."""
    UNKNOWN_NAME = 3
    """A model, hardware, query, run or measurement that does not exist."""
    UNSUPPORTED = 4
    """A valid question that no chosen hardware can answer: it lacks a precision, say, or misses a limit."""
    DATABASE = 5
    """The database is missing, locked, damaged, not a joulemap database, too new, too old or not writable."""
    CHECK_FAILED = 6
    """A check found rows that were changed, or that break conservation or referential rules."""
    MODEL = 7
    """The model could not be built or traced."""
    SQL = 8
    """A query that does not parse, does not run, or may not run."""
    CATALOGUE = 9
    """A hardware or energy data file that breaks its rules."""
    BEYOND = 10
    """A change that was measured against a limit is beyond it."""
    OUTSIDE = 11
    """A measured number is outside the 80 % interval of its prediction."""
    UNSCORED = 12
    """No measured number could be scored against a prediction."""
    INTERRUPTED = 130
    """Ctrl-C."""


class Interrupted(SystemExit):
    """Ctrl-C, as told to code that may have been asked to catch everything else."""

    def __init__(self) -> None:
        super().__init__(int(ExitCode.INTERRUPTED))


class JoulemapError(Exception):
    """Base of every error that joulemap raises on purpose; its text is one line for a person."""

    exit_code = ExitCode.INTERNAL


class UsageError(JoulemapError):
    """An argument that is out of range or malformed."""

    exit_code = ExitCode.USAGE


class MissingPackageError(UsageError, ImportError):
    """A package that is wanted and not installed; the text says how to install it."""

    def __init__(self, package: str, extra: str = "frames") -> None:
        super().__init__(f"{package} is not installed: pip install {package}, or 'joulemap[{extra}]'")


class UnknownNameError(JoulemapError):
    """A name that does not exist; the text offers the nearest ones."""

    exit_code = ExitCode.UNKNOWN_NAME

    def __init__(self, noun: str, name: str, known: Iterable[str], hint: str = "", *, near: Sequence[str] = ()) -> None:
        """Say what is unknown; `near` are the names to offer where the caller knows better than by their letters."""
        import difflib

        candidates = sorted(known)
        near = near or difflib.get_close_matches(name.lower(), candidates, n=3, cutoff=0.5)
        if near:
            advice = f"did you mean {' or '.join(near)}?"
        elif candidates and len(candidates) <= 12:
            advice = f"known: {', '.join(candidates)}"
        else:
            advice = ""
        text = "; ".join(part for part in (f"unknown {noun} {name!r}", advice) if part)
        if hint:
            text += f" {_begin_sentence(hint)}" if near else f"; {hint}"
        super().__init__(text)
        self.noun = noun
        self.name = name
        self.near = tuple(near)


def _begin_sentence(text: str) -> str:
    """Return a text with a capital letter, unless it begins with a path, a command or an option."""
    is_word = text.partition(" ")[0].strip(",").isalpha()
    return text[:1].upper() + text[1:] if is_word else text


class AmbiguousNameError(UnknownNameError):
    """A name that several things have; the text lists them."""

    def __init__(self, noun: str, name: str, candidates: Sequence[str], most: int, hint: str) -> None:
        """Say which it may be, `most` of them at most."""
        super().__init__(noun, name, (), hint, near=candidates)
        rest = len(candidates) - most
        more = f" and {rest} more" if rest > 0 else ""
        self.args = (f"{noun} {name!r} may be {', '.join(candidates[:most])}{more}: name one; {hint}",)


class NoMeasurementError(JoulemapError):
    """Nothing was measured of what was asked about; the text says how to."""

    exit_code = ExitCode.UNKNOWN_NAME


class UnsupportedError(JoulemapError):
    """A configuration that a hardware cannot run."""

    exit_code = ExitCode.UNSUPPORTED


class DatabaseError(JoulemapError):
    """The database cannot be used."""

    exit_code = ExitCode.DATABASE


class EngineError(JoulemapError):
    """The database's engine failed by a fault of its own, whatever was asked."""


class LockedDatabaseError(DatabaseError):
    """Another process holds the database; the text names it."""


class OlderDatabaseError(DatabaseError):
    """The database lacks migrations that this code needs."""


class ThresholdError(JoulemapError):
    """A change is beyond the limit that was set for it."""

    exit_code = ExitCode.BEYOND


class OutsideError(JoulemapError):
    """A measured number is outside the interval of its prediction."""

    exit_code = ExitCode.OUTSIDE


class UnscoredError(JoulemapError):
    """No measured number could be scored; the answer names each reason."""

    exit_code = ExitCode.UNSCORED


class ConservationError(JoulemapError):
    """Parts that do not add up to their whole."""

    exit_code = ExitCode.CHECK_FAILED


class ModelError(JoulemapError):
    """A model that cannot be built or traced."""

    exit_code = ExitCode.MODEL


class UnknownFamilyError(ModelError):
    """A configuration of a language model whose sizes nobody here knows how to read; its own library does."""


class UntrustedError(ModelError):
    """A model whose code nobody who asks has named."""


class SqlError(JoulemapError):
    """A statement that the database refused."""

    exit_code = ExitCode.SQL


class CatalogueError(JoulemapError):
    """A data file that breaks its rules; the text names file, key and reason."""

    exit_code = ExitCode.CATALOGUE


class UnpricedActionError(JoulemapError):
    """An action was counted that the energy reference table has no price for."""

    exit_code = ExitCode.CATALOGUE

    def __init__(self, hardware: str, action: str, action_count: float) -> None:
        super().__init__(
            f"{hardware} has no energy per action for {action} (counted {action_count:.6g} times): "
            "add it to the energy reference table of its architecture"
        )
        self.hardware = hardware
        self.action = action
        self.action_count = action_count
