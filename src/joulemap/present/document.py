"""A document: what an answer says, before it is known how it is written.

Whatever people are to read is made visible here, when it becomes part of a document; data and table stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

import attrs

from joulemap.domain.name import PROJECTED
from joulemap.domain.table import HARDWARE_COLUMNS, Table
from joulemap.present.cell import PROJECTION_NOTE, heading, mark_projected, show, show_count, show_in, show_quantity
from joulemap.present.text import make_all_visible, make_visible
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.present.sketch import Sketch

Row = TypeVar("Row")

Shown = tuple[str, "str | Callable[[Row], str]"]
"""Heading, and the field that is shown or what makes a cell of the row."""


STAR: Final = "★"
"""What marks the best of a column; a word where a terminal has no colour."""

BEST: Final = "best"

MOST_INSIGHTS: Final = 3
"""Sentences on what decides that a terminal shows."""

NUMBER: Final = re.compile(
    rf"(({STAR}|{BEST}) )?"
    r"[+-]?\d[\d,]*(\.\d+)?(e[+-]?\d+)?(x|[kMGTPmµnpf]?(/\w+)?)( (%|[^\W\d_]\S*))?"
)
"""A number as people read it: 10.2 mJ, 31.4k/s, 1.03x, 5.0 %, 1,092 USD."""


def _make_rows_visible(rows: Iterable[Iterable[str]]) -> tuple[tuple[str, ...], ...]:
    return tuple(map(make_all_visible, rows))


@frozen(kw_only=True)
class Grid:
    """Cells under headings, as people read them."""

    headings: tuple[str, ...] = attrs.field(converter=make_all_visible)
    rows: tuple[tuple[str, ...], ...] = attrs.field(converter=_make_rows_visible)
    keep: tuple[str, ...] = attrs.field(default=(), converter=make_all_visible)
    """Headings that stay longest where a terminal is narrow, the most important first; the first column always does.
    The others fold from the right."""
    keeps_headings: bool = False
    """Whether the headings are shown where there are no rows."""
    is_tree: bool = False
    """Whether the first cells begin with spaces that show what belongs to what."""
    best: frozenset[tuple[int, int]] = frozenset()
    """Row and column of the cells that are the best of their columns."""

    def marked(self, mark: str = STAR) -> Grid:
        """Return it with a mark before each best cell."""
        rows = (
            tuple(f"{mark} {cell}" if (row, column) in self.best else cell for column, cell in enumerate(cells))
            for row, cells in enumerate(self.rows)
        )
        return attrs.evolve(self, rows=rows, best=frozenset()) if self.best else self

    def column(self, index: int) -> list[str]:
        """Return the cells under a heading."""
        return [cells[index] for cells in self.rows]

    @cached_property
    def numbers(self) -> frozenset[int]:
        """The columns of numbers with their units, which are read from the right."""
        return frozenset(index for index in range(len(self.headings)) if _are_numbers(self.column(index)))

    @property
    def is_marked(self) -> bool:
        """Whether a hardware has the mark of projections."""
        return any(text.startswith(PROJECTED) for text in self.texts)

    @property
    def texts(self) -> tuple[str, ...]:
        """Everything to read, where there is anything."""
        cells = tuple(cell for row in self.rows for cell in row)
        return (*self.headings, *cells) if self.rows or self.keeps_headings else ()


@frozen
class Lines:
    """Sentences under each other."""

    texts: tuple[str, ...] = attrs.field(converter=make_all_visible)
    is_numbered: bool = False


@frozen
class Steps:
    """Commands ready to paste into a shell."""

    texts: tuple[str, ...] = attrs.field(converter=make_all_visible)
    label: str = ""
    """What a terminal says before each; the others give it a line of its own."""


@frozen
class Text:
    """A sentence that belongs to what stands above it."""

    text: str = attrs.field(converter=make_visible)

    @property
    def texts(self) -> tuple[str, ...]:
        """The sentence, where there is one."""
        return (self.text,) if self.text else ()


Block: TypeAlias = "Grid | Lines | Steps | Text | Sketch"


def _blocks(blocks: Block | Iterable[Block]) -> tuple[Block, ...]:
    return tuple(blocks) if isinstance(blocks, Iterable) else (blocks,)


@frozen
class Section:
    """Blocks under a title."""

    title: str = attrs.field(converter=make_visible)
    blocks: tuple[Block, ...] = attrs.field(converter=_blocks)
    is_tight: bool = False
    """Whether its blocks are lines without room between them."""

    @property
    def texts(self) -> tuple[str, ...]:
        """Everything to read below the title."""
        return tuple(text for block in self.blocks for text in block.texts)


@frozen(kw_only=True)
class Document:
    """An answer as it is handed to a writer: the same for every format.

    A terminal shows what decides, on one screen; what is told besides is shown where it is asked for.
    """

    title: str = attrs.field(converter=make_visible)
    """What was asked about."""
    answer: str = attrs.field(default="", converter=make_visible)
    """The answer in a sentence."""
    sections: tuple[Section, ...]
    """What it rests on; empty ones are left out."""
    insights: tuple[str, ...] = attrs.field(default=(), converter=make_all_visible)
    """What decides, in sentences."""
    heading: str = ""
    """Title of the insights."""
    sure: str = attrs.field(default="", converter=make_visible)
    """How sure it is, in a sentence."""
    details: tuple[Section, ...] = ()
    """What else can be read of it."""
    notes: tuple[str, ...] = attrs.field(default=(), converter=make_all_visible)
    """What its words mean, what it assumes and what it leaves out."""
    steps: tuple[str, ...] = attrs.field(default=(), converter=make_all_visible)
    """Commands that lead on from it, the best first."""
    is_screen: bool = False
    """Whether it is for a terminal, which shows what decides."""
    rest: str = ""
    """What a terminal does not show, and how to see it."""
    data: Mapping[str, Any] | Sequence[Any]
    """For programs: everything, in full precision."""
    table: Table[Any]
    """The one table of the answer where a format holds no more than one."""
    tables: tuple[Table[Any], ...] = ()
    """The queries behind it, with their SQL, where they are more than that one."""

    @property
    def shown(self) -> tuple[Section, ...]:
        """Everything to read in its order, in sections that have something to read."""
        sure = Text(f"How sure: {self.sure}") if self.sure else None
        steps = Steps(self.steps, "Next" if self.is_screen else "") if self.steps else None
        rest = Text(self.rest) if self.rest else None
        found = [Section("", Text(self.answer))] if self.answer else []
        found += self.sections
        found += [Section(self.heading, Lines(self.insights))] if self.insights else []
        found += [Section("", sure)] if sure and not self.is_screen else []
        found += self.details
        found += [Section("Notes", Lines(self.notes, is_numbered=True))] if self.notes else []
        if self.is_screen:
            last = tuple(block for block in (sure, steps, rest) if block)
            found += [Section("", last, is_tight=True)] if last else []
        elif steps:
            found.append(Section("Next steps", steps))
        return tuple(section for section in found if section.texts)

    def on_screen(self, *, notes: bool, details: bool, hints: tuple[str, str] = ("--notes", "--details")) -> Document:
        """Return what a terminal shows: what decides, one step, and by `hints` how to see what is left out."""
        kept = [section for section in self.details if section.texts]
        more = ((len(kept), "more table"), (max(0, len(self.insights) - MOST_INSIGHTS), "more insight"))
        hidden = (
            ([show_count(len(self.notes), "note")] if not notes and self.notes else [], hints[0]),
            ([show_count(count, noun) for count, noun in more if count and not details], hints[1]),
        )
        return attrs.evolve(
            self,
            insights=self.insights if details else self.insights[:MOST_INSIGHTS],
            details=tuple(kept) if details else (),
            notes=self.notes if notes else (),
            steps=self.steps if details else self.steps[:1],
            is_screen=True,
            rest="; ".join(f"{' and '.join(told)}: {hint}" for told, hint in hidden if told),
        )

    def after(self, sections: Iterable[Section]) -> Document:
        """Return it with other sections first."""
        return attrs.evolve(self, sections=(*sections, *self.sections))


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
    places = {column.name: index for index, column in enumerate(rows.columns)}
    has_units = {"value", "unit"} <= places.keys()
    chosen = tuple(columns)

    def read(row: Row, name: str) -> Any:
        return row[places[name]] if isinstance(row, tuple) else getattr(row, name)

    def cell(row: Row, what: str | Callable[[Row], str]) -> str:
        if not isinstance(what, str):
            return what(row)
        value = read(row, what)
        if what in HARDWARE_COLUMNS and value:
            return mark_projected(value, projected or rows.projected)
        if what.endswith("value") and has_units and isinstance(value, float):
            return show_quantity(value, read(row, "unit"))
        return show_in(rows.columns[places[what]], value) if what in places else show(value, what)

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
    rest = "one more" if count == limit + 1 else f"{count - limit} more {noun}"
    return (Text(f"{rest}; --limit {count} shows all"),) if count > limit else ()


def show_under(title: str, drawn: Grid, *below: Text) -> Section:
    """Return a table under a title, with what it lacks right below it."""
    return Section(title, (drawn, *below), is_tight=True)


def draw_columns(
    table: Table[Any],
    *,
    columns: Sequence[str] = (),
    keep: Sequence[str] = (),
    limit: int | None = None,
    is_bare: bool = False,
    projected: frozenset[str] = frozenset(),
) -> Grid:
    """Return `limit` rows of a table as people read them: headings without units, a `value` with its `unit`.

    `columns` are those that are shown, all for none; `keep` those of them that stay longest. Without rows there are
    headings, unless it is bare.
    """
    merged = "unit" if "value" in table.names else ""
    shown = {
        column.name: heading(column)
        for column in table.columns
        if (not columns or column.name in columns) and column.name != merged
    }
    kept = [shown[name] for name in keep if name in shown]
    drawn = grid(table, [(text, name) for name, text in shown.items()], limit=limit, keep=kept, projected=projected)
    return attrs.evolve(drawn, keeps_headings=not is_bare)


def table_document(
    table: Table[Any], columns: Sequence[str] = (), *, keep: Sequence[str] = (), rest: str = "", answer: str = ""
) -> Document:
    """Return a table as a document; `columns` are those that people see, `keep` those of them that stay longest.

    `rest` says what is not shown, `answer` what the table says.
    """
    shown = draw_columns(table, columns=columns, keep=keep)
    below = [Text(text) for text in (rest, *table.notes, PROJECTION_NOTE if shown.is_marked else "") if text]
    return Document(
        title="", answer=answer, sections=(Section("", (shown, *below)),), data=table.records(), table=table
    )
