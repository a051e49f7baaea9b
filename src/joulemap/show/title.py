"""Subject lines: what an answer is about, and the conditions of its runs.

A title keeps its values apart until it is written, so that a precision or a model gets its explanation by value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from joulemap.domain.table import group
from joulemap.physics.record.configuration import NO_HOST
from joulemap.show.present.template import Template
from joulemap.system.record import frozen

RUNS: Final = Template("{models:list}, batch {batches:and}, {precisions:list}[, {runtimes:list}]")

BOUND: Final = Template(
    "{subject}[, {beside:list}][, {fp32}], {boundaries:and}[, {modes:list}][, {hosts:list}]"
    "[, {changes:list}][: {about}]"
)
WALL_ELSE_BOARD: Final = "energy at the wall where known, else at the board"
WITH_HOST: Final = Template("with host {host}")
IN_MODE: Final = Template("{chip} in its mode {mode}")
CHANGED: Final = Template("{hardware:and} with {numbers:and}")
MORE_CHANGED: Final = Template("{count} more changed")
MORE_NUMBERS: Final = Template("{count} more numbers")
EXPLAINED: Final = Template("{name} ({meaning})")

FP32: Final = "fp32"

MOST_CHANGES: Final = 3
"""Maximum groups of chips with changed numbers in a subject line; the notes name the others."""

MOST_NUMBERS: Final = 6
"""Maximum changed numbers named per chip; a design from a file has dozens."""


@frozen(kw_only=True)
class Title:
    """Subject line in parts."""

    form: Template
    row: object = None
    """Row whose fields fill slots of the form."""
    values: Mapping[str, Any] = {}
    """Values of other slots: texts, and lists of texts."""
    beside: tuple[str, ...] = ()
    """Further parts after the form."""
    about: str | Title = ""
    """Description of the answer's values; it follows the conditions, after a colon."""

    def __str__(self) -> str:
        return self.form(self.row, **self.values)

    def explain(self, meanings: Mapping[str, str], used: set[str]) -> str:
        """Return the text with the explanation of each value that has one; `used` collects the explained values."""
        values = {name: _explain(value, meanings, used) for name, value in self.values.items()}
        return self.form(self.row, **values)


@frozen(kw_only=True)
class Conditions:
    """Conditions of the runs of an answer, which its subject line states."""

    boundaries: tuple[str, ...]
    is_wall_else_board: bool = False
    """True if hardware without a known power at the wall is at the board instead."""
    modes: Mapping[str, str] = {}
    """Hardware with several named power modes -> the one that is its default, for chips that run in it."""
    hosts: tuple[str, ...] = ()
    """Hosts that runs include; `NO_HOST` for devices alone."""
    changes: Mapping[str, tuple[str, ...]] = {}
    """Hardware at its power mode, with its mark -> changed numbers, with their former values."""
    products: str = ""
    """Meaning of fp32 in the runs; empty if every chip computes in fp32."""
    is_fp32: bool = False
    """True if all runs are at fp32."""


def bind(title: Title, conditions: Conditions, beside: str = "", meanings: Mapping[str, str] | None = None) -> str:
    """Return a subject line with the conditions before what the values are.

    `beside` follows each boundary. `meanings` has the explanation of a model. fp32 is explained where the title names
    it, else at the end if all runs are at fp32.
    """
    explained = dict(meanings or {})
    if conditions.products:
        explained[FP32] = conditions.products
    used: set[str] = set()
    subject = title.explain(explained, used)
    about = title.about if isinstance(title.about, str) else title.about.explain(explained, used)
    rest = conditions.products and conditions.is_fp32 and FP32 not in used
    changes = describe_changes(conditions.changes)
    hidden = len(changes) - MOST_CHANGES
    return BOUND(
        subject=subject,
        beside=[str(_explain(one, explained, used)) for one in title.beside],
        fp32=EXPLAINED(name=FP32, meaning=conditions.products) if rest else "",
        boundaries=[
            f"{one}{beside}" for one in ([WALL_ELSE_BOARD] if conditions.is_wall_else_board else conditions.boundaries)
        ],
        modes=[IN_MODE(chip=chip, mode=mode) for chip, mode in conditions.modes.items()],
        hosts=["device only" if one == NO_HOST else WITH_HOST(host=one) for one in conditions.hosts],
        changes=[*changes[:MOST_CHANGES], *([MORE_CHANGED(count=hidden)] if hidden > 0 else [])],
        about=about,
    )


def describe_changes(changes: Mapping[str, Sequence[str]]) -> list[str]:
    """Return one text per group of hardware with the same changed numbers."""
    groups = group(changes, lambda hardware: tuple(changes[hardware]))
    return [CHANGED(hardware=names, numbers=_shorten(numbers)) for numbers, names in groups.items()]


def _explain(value: Any, meanings: Mapping[str, str], used: set[str]) -> Any:
    """Return a value or list with the explanation of each text that has one and has not had it yet."""
    if isinstance(value, list | tuple):
        return [_explain(one, meanings, used) for one in value]
    if isinstance(value, str) and value in meanings and value not in used:
        used.add(value)
        return EXPLAINED(name=value, meaning=meanings[value])
    return value


def _shorten(numbers: Sequence[str]) -> tuple[str, ...]:
    """Return the first changed numbers of one chip, and a count of the others."""
    hidden = len(numbers) - MOST_NUMBERS
    return (*numbers[:MOST_NUMBERS], MORE_NUMBERS(count=hidden)) if hidden > 1 else tuple(numbers)
