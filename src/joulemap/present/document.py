"""A document: what an answer says, before it is known how it is written."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, TypeVar

import attrs

from joulemap.domain.table import HARDWARE_COLUMNS, Table
from joulemap.present.cell import mark_projected, show

Row = TypeVar("Row")

Shown = tuple[str, "str | Callable[[Row], str]"]
"""Heading, and the field that is shown or what makes a cell of the row."""


NUMBER: Final = re.compile(r"[+-]?\d[\d,]*(\.\d+)?(e[+-]?\d+)?(x|[kMGTPmµnpf]?(/\w+)?)( (%|[^\W\d_]\S*))?")
"""A number as people read it: 10.2 mJ, 31.4k/s, 1.03x, 5.0 %, 1,092 USD."""


@attrs.frozen(kw_only=True)
class Grid:
    """Cells under headings, as people read them."""

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    keep: tuple[str, ...] = ()
    """Headings that stay longest where a terminal is narrow, the most important first; the first column always does.
    The others fold from the right."""
    keeps_headings: bool = False
    """Whether the headings are shown where there are no rows."""
    is_tree: bool = False
    """Whether the first cells begin with spaces that show what belongs to what."""

    def column(self, index: int) -> list[str]:
        """Return the cells under a heading."""
        return [cells[index] for cells in self.rows]

    @cached_property
    def numbers(self) -> frozenset[int]:
        """The columns of numbers with their units, which are read from the right."""
        return frozenset(index for index in range(len(self.headings)) if _are_numbers(self.column(index)))


@attrs.frozen
class Lines:
    """Sentences under each other."""

    lines: tuple[str, ...]


@attrs.frozen
class Steps:
    """Commands ready to paste into a shell."""

    commands: tuple[str, ...]


@attrs.frozen
class Text:
    """A sentence that belongs to what stands above it."""

    text: str


Block = Grid | Lines | Steps | Text


@attrs.frozen
class Section:
    """Blocks under a title."""

    title: str
    blocks: tuple[Block, ...]

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to read."""
        return not any(
            block.rows or block.keeps_headings if isinstance(block, Grid)
            else block.lines if isinstance(block, Lines)
            else block.commands if isinstance(block, Steps)
            else block.text
            for block in self.blocks
        )  # fmt: skip


@attrs.frozen(kw_only=True)
class Document:
    """An answer as it is handed to a writer: the same for every format."""

    title: str
    sections: tuple[Section, ...]
    """For people; empty ones are left out."""
    data: Mapping[str, Any] | Sequence[Any]
    """For programs: everything, in full precision."""
    table: Table[Any]
    """The one table of the answer where a format holds no more than one."""

    @property
    def shown(self) -> tuple[Section, ...]:
        """The sections that have something to read."""
        return tuple(section for section in self.sections if not section.is_empty)


def _are_numbers(cells: Sequence[str]) -> bool:
    """Return whether cells are numbers, but for words where there is none."""
    filled = [cell.strip() for cell in cells if cell.strip()]
    others = [cell for cell in filled if not NUMBER.fullmatch(cell)]
    return len(others) * 2 < len(filled) and all(cell.replace(" ", "").isalpha() for cell in others)


def grid(
    rows: Table[Row],
    columns: Iterable[Shown[Row]],
    *,
    limit: int | None = None,
    keep: Sequence[str] = (),
    projected: frozenset[str] = frozenset(),
    first: Sequence[Sequence[str]] = (),
) -> Grid:
    """Return rows of a table as people read them; numbers get the unit of their column, hardware its mark.

    `first` are rows above them, `projected` the hardware to mark, `limit` how many rows are shown at most.
    """
    units = {column.name: column.unit for column in rows.columns}
    chosen = tuple(columns)

    def cell(row: Row, what: str | Callable[[Row], str]) -> str:
        if not isinstance(what, str):
            return what(row)
        value = getattr(row, what)
        if what in HARDWARE_COLUMNS and value:
            return mark_projected(value, projected or rows.projected)
        return show(value, what, units.get(what, ""))

    return Grid(
        headings=tuple(heading for heading, _ in chosen),
        rows=(
            *(tuple(cells) for cells in first),
            *(tuple(cell(row, what) for _, what in chosen) for row in rows.rows[:limit]),
        ),
        keep=tuple(keep),
    )


def say_rest(count: int, limit: int, noun: str) -> tuple[Text, ...]:
    """Return what stands below a table that shows `limit` of `count` rows; nothing where it shows all."""
    return (Text(f"{count - limit} more {noun}; --limit {count} shows all"),) if count > limit else ()
