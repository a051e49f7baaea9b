"""Documents: the content of an answer, independent of its output format.

Control characters are escaped in texts for people when they enter a document; data and tables stay unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

import attrs

from joulemap.domain.dimension import DISTINGUISHING
from joulemap.domain.table import HARDWARE_COLUMNS, Table, group
from joulemap.show.present.cell import (
    PROJECTION_NOTE,
    Number,
    Remark,
    heading,
    mark_projected,
    separate_alike,
    show,
    show_count,
    show_in,
    show_quantity,
)
from joulemap.show.present.text import make_all_visible, make_visible
from joulemap.system.name import PROJECTED
from joulemap.system.record import frozen
from joulemap.system.wing import find_parts

if TYPE_CHECKING:
    from joulemap.show.present.picture import Picture
    from joulemap.show.present.sketch import Sketch

Row = TypeVar("Row")

Shown = tuple[str, "str | Callable[[Row], str]"]
"""Heading of a column, and the field that it shows or a function that formats the cell from a row."""


@frozen
class FieldCell:
    """Function that formats a cell from a row, and the field that the cell shows."""

    field: str
    make: Callable[[Any], str]
    find_run: Callable[[Any], int | None] | None = None
    """Function that returns the id of the run whose energy the cell shows; None if the row has a column with the id."""

    def __call__(self, row: Any) -> str:
        """Return the formatted cell of a row."""
        return self.make(row)


STAR: Final = "★"
"""Mark of the best cell of a column; terminals without colour show a word instead."""

BEST: Final = "best"

TIED: Final = "tied"
"""Mark of a cell that is statistically tied with the best of its column."""

SHORT_TEXT: Final = 24
"""Maximum characters of a short cell, which stays on one line and can identify its row."""

WHY, TRUST, NEXT = "Why", "Trust", "Next"
"""Labels of the last lines of a screen."""

HINTS: Final = ("--show notes", "--show details")
"""Options that show the notes, and the rest of an answer."""

MOST_INSIGHTS: Final = 3
"""Maximum insights shown in a terminal."""

PLURAL: Final = "s"
"""End of a noun in the plural."""

NAMED: Final = 2
"""Maximum tables that the last line of a screen names; others are counted."""

SHARE_HEADING: Final = "assumed"
"""Heading of a column with the share of energy that rests on assumed numbers."""


def _make_rows_visible(rows: Iterable[Iterable[str]]) -> tuple[tuple[str, ...], ...]:
    return tuple(map(make_all_visible, rows))


ENERGY_RUNS: Final = {"energy_j": "run_id", "energy_per_inference_j": "run_id", "kwh_per_million": "run_id"}
"""Field with the energy of a run, or with a value derived from it -> field of the same row with the run id."""


@cache
def find_energy_runs() -> Mapping[str, str]:
    """Return `ENERGY_RUNS` with the fields that wings register at the port `energies`."""
    by_field = dict(ENERGY_RUNS)
    for fields in find_parts("energies"):
        by_field |= fields
    return by_field


@frozen
class EnergyCell:
    """Energy of a run that a cell shows."""

    field: str
    run_id: int
    value: float | None
    """Unformatted value of the cell."""


def _check_pictures(grid: Grid, _attribute: object, pictures: tuple[Picture, ...]) -> None:
    for one in pictures:
        if len(one.rows) != len(grid.rows):
            raise ValueError(f"the picture after {one.after!r} has {len(one.rows)} rows, its table {len(grid.rows)}")


@frozen(kw_only=True)
class Grid:
    """Table for display: formatted cells under headings."""

    headings: tuple[str, ...] = attrs.field(converter=make_all_visible)
    rows: tuple[tuple[str, ...], ...] = attrs.field(converter=_make_rows_visible)
    keep: tuple[str, ...] = attrs.field(default=(), converter=make_all_visible)
    """Headings of the columns that a narrow terminal hides last, most important first; other columns fold from the
    right.
    """
    distinguishing: tuple[str, ...] = attrs.field(default=(), converter=make_all_visible)
    """Headings of the columns that distinguish rows. These columns and the first column are never folded."""
    ranked: tuple[str, ...] = attrs.field(default=(), converter=make_all_visible)
    """Headings of the columns that rank the rows. These columns are never folded."""
    cut: int = attrs.field(default=0, validator=attrs.validators.ge(0))
    """Number of rows that the grid omits."""
    cut_of: int = 0
    """Number of rows of the whole table; unused unless rows are omitted."""
    noun: str = "rows"
    """Noun for rows in the sentence that counts omitted rows."""
    in_all: str = ""
    """Total over the omitted rows, as text after their count."""
    way: str = ""
    """Option that shows all rows; empty for `--limit` with the number of rows."""
    keeps_headings: bool = False
    """True if headings are shown even without rows."""
    is_tree: bool = False
    """True if leading spaces of the first cells show nesting."""
    best: frozenset[tuple[int, int]] = frozenset()
    """Row and column of each cell that is the best of its column."""
    tied: frozenset[tuple[int, int]] = frozenset()
    """Row and column of each cell that is statistically tied with the best of its column."""
    pictures: tuple[Picture, ...] = attrs.field(default=(), validator=_check_pictures)
    """Drawings of the rows, most important first; a terminal shows those that have room."""
    common: tuple[str, ...] = ()
    """Values that all rows share, as texts for the subject of the answer instead of columns."""
    energies: Mapping[tuple[int, int], EnergyCell] = {}
    """(row, column) of a cell -> energy of a run that the cell shows."""

    def with_stack(self, parts: Mapping[str, Sequence[float | None]], after: str) -> Grid:
        """Return the grid with a picture of the parts of each row alone."""
        from joulemap.show.present.picture import make_stack

        return attrs.evolve(self, pictures=(make_stack(parts, after),))

    def mark_best(self, heading: str, keys: Sequence[Any], best: Collection[Any], tied: Collection[Any]) -> Grid:
        """Return the grid with the best cell of a column and those tied with it known; `keys` identify the rows."""
        column = self.headings.index(heading)
        own, alike = (
            frozenset((index, column) for index, key in enumerate(keys) if key in some) for some in (best, tied)
        )
        return attrs.evolve(self, best=self.best | own, tied=self.tied | alike - own)

    def marked(self, mark: str = STAR) -> Grid:
        """Return the grid with a mark before each best cell and a word before each tied cell."""
        marks = dict.fromkeys(self.tied, TIED) | dict.fromkeys(self.best, mark)
        rows = [list(cells) for cells in self.rows]
        for (row, column), word in marks.items():
            cell = rows[row][column]
            rows[row][column] = type(cell)(f"{word} {cell}")
        return attrs.evolve(self, rows=rows, best=frozenset(), tied=frozenset()) if marks else self

    def find_best(self, picture: Picture) -> frozenset[int]:
        """Return the rows that are best, or tied with the best, in the column that a picture is of."""
        own = picture.of or picture.after
        column = self.headings.index(own) if own in self.headings else -1
        return frozenset(row for row, index in (*self.best, *self.tied) if index == column)

    def with_shares(self, show_share_of: Callable[[EnergyCell], str]) -> Grid:
        """Return the grid with the assumed share of each energy, as formatted by `show_share_of`.

        The shares of a column get their own column next to it.
        """
        shares = {position: text for position, energy in self.energies.items() if (text := show_share_of(energy))}
        bare = attrs.evolve(self, energies={})
        energy_columns = {column for _, column in shares}
        for column in sorted(energy_columns, reverse=True):
            texts = [shares.get((row, column), "") for row in range(len(self.rows))]
            heading = SHARE_HEADING if len(energy_columns) == 1 else f"{self.headings[column]}, {SHARE_HEADING}"
            bare = bare._with_column(column, heading, texts)
        return bare

    def _with_column(self, column: int, heading: str, texts: Sequence[str]) -> Grid:
        """Return the grid with a new column after an existing one; narrow terminals fold both together.

        The shares of the only energy fold alone, before a column that ranks the rows or is kept.
        """
        after = column + 1
        beside = self.headings[column]
        is_apart = heading == SHARE_HEADING and beside in self.ranked

        def widen(headings: Iterable[str]) -> tuple[str, ...]:
            return tuple(one for own in headings for one in ((own, heading) if own == beside else (own,)))

        return attrs.evolve(
            self,
            keep=(*self.keep, heading) if is_apart and beside not in self.keep else widen(self.keep),
            distinguishing=widen(self.distinguishing),
            ranked=self.ranked if is_apart else widen(self.ranked),
            headings=(*self.headings[:after], heading, *self.headings[after:]),
            rows=[(*cells[:after], text, *cells[after:]) for cells, text in zip(self.rows, texts, strict=True)],
            best=frozenset((row, index + (index > column)) for row, index in self.best),
            tied=frozenset((row, index + (index > column)) for row, index in self.tied),
        )

    def column(self, index: int) -> list[str]:
        """Return the cells of a column."""
        return [cells[index] for cells in self.rows]

    @cached_property
    def numbers(self) -> frozenset[int]:
        """Indices of columns with numbers and units, which are right-aligned."""
        return frozenset(index for index in range(len(self.headings)) if _are_numbers(self.column(index)))

    @property
    def fixed(self) -> list[int]:
        """Indices of the columns that are never folded, from the left."""
        names = {*self.distinguishing, *self.ranked}
        return [index for index, name in enumerate(self.headings) if not index or name in names]

    @property
    def cut_text(self) -> str:
        """Sentence that counts the omitted rows; empty if none are omitted."""
        if not self.cut:
            return ""
        amount = f", {self.in_all}" if self.in_all else ""
        return f"{self.cut:,} of {self.cut_of:,} {self.noun} not shown{amount}; {self.show_all} shows all"

    @property
    def show_all(self) -> str:
        """Option that shows all rows."""
        return self.way or f"--limit {self.cut_of}"

    @property
    def more_text(self) -> str:
        """Count of the omitted rows."""
        return f"{self.cut:,} more {self.noun if self.cut > 1 else self.noun.removesuffix(PLURAL)}"

    def out_of(self, count: int, shown: int, noun: str, way: str = "") -> Grid:
        """Return the grid as the first `shown` rows of a table with `count` rows; the option `way` shows all rows."""
        return attrs.evolve(self, cut=max(0, count - shown), cut_of=count, noun=noun, way=way)

    @property
    def is_marked(self) -> bool:
        """True if a chip in the grid is marked as projected."""
        return any(text.startswith(PROJECTED) for text in self.texts)

    @property
    def texts(self) -> tuple[str, ...]:
        """All texts of the grid; empty if nothing is shown."""
        cells = tuple(cell for row in self.rows for cell in row)
        return (*self.headings, *cells) if self.rows or self.keeps_headings else ()


@frozen
class Lines:
    """List of sentences."""

    texts: tuple[str, ...] = attrs.field(converter=make_all_visible)
    is_numbered: bool = False
    label: str = ""
    """Label before the first sentence in a terminal, below which the others align."""


@frozen
class Steps:
    """Commands ready to paste into a shell."""

    texts: tuple[str, ...] = attrs.field(converter=make_all_visible)
    label: str = ""
    """Label before each command in a terminal; other formats put it on its own line."""


@frozen
class Text:
    """Sentence that comments on the block above it."""

    text: str = attrs.field(converter=make_visible)

    @property
    def texts(self) -> tuple[str, ...]:
        """The sentence as a tuple; empty without one."""
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
    """True if the blocks are lines without space between them."""

    @property
    def texts(self) -> tuple[str, ...]:
        """All texts below the title."""
        return tuple(text for block in self.blocks for text in block.texts)

    @property
    def grids(self) -> tuple[Grid, ...]:
        """Tables of the section."""
        return tuple(one for one in self.blocks if isinstance(one, Grid))

    def uncut(self) -> Section:
        """Return the section with tables that do not count the rows that they omit."""
        blocks = (attrs.evolve(one, cut=0) if isinstance(one, Grid) else one for one in self.blocks)
        return attrs.evolve(self, blocks=tuple(blocks))

    def with_shares(self, show_share_of: Callable[[EnergyCell], str]) -> Section:
        """Return the section with the assumed share of each energy next to its cell."""
        blocks = (one.with_shares(show_share_of) if isinstance(one, Grid) else one for one in self.blocks)
        return attrs.evolve(self, blocks=tuple(blocks))


@frozen(kw_only=True)
class Document:
    """Content of an answer, independent of the output format.

    A terminal shows the decisive parts on one screen; options show the rest.
    """

    title: str = attrs.field(converter=make_visible)
    """Subject of the question."""
    answer: str = attrs.field(default="", converter=make_visible)
    """Answer in one sentence."""
    sections: tuple[Section, ...]
    """Sections that support the answer; empty ones are omitted."""
    insights: tuple[str, ...] = attrs.field(default=(), converter=make_all_visible)
    """Main reasons, as sentences."""
    sure: str = attrs.field(default="", converter=make_visible)
    """Confidence in the answer, as a sentence."""
    details: tuple[Section, ...] = ()
    """Sections that a terminal shows only on request."""
    notes: tuple[str, ...] = attrs.field(default=(), converter=make_all_visible)
    """Definitions, assumptions and omissions."""
    steps: tuple[str, ...] = attrs.field(default=(), converter=make_all_visible)
    """Follow-up commands, best first."""
    is_decision: bool = False
    """True if the insights are the reasons of a decision that the answer states."""
    is_screen: bool = False
    """True if the document is for a terminal, which shows only the decisive parts."""
    rest: str = ""
    """Content that a terminal omits, and the options that show it."""
    picture: Callable[[], Sketch | None] = lambda: None
    """Function that returns a drawing of the choice, which a terminal shows above the sections."""
    data: Mapping[str, Any] | Sequence[Any]
    """Data for programs: everything, in full precision."""
    table: Table[Any]
    """Main table of the answer, for formats that hold only one."""
    tables: tuple[Table[Any], ...] = ()
    """All queries behind the answer with their SQL, if there are several."""

    @property
    def shown(self) -> tuple[Section, ...]:
        """All sections with text, in reading order, from the answer on."""
        return (*([Section("", Text(self.answer))] if self.answer else ()), *self.supporting)

    @property
    def reason_label(self) -> str:
        """Label of the insights."""
        return WHY if self.is_decision else ""

    @property
    def supporting(self) -> tuple[Section, ...]:
        """All sections with text below the answer, in reading order."""
        sections = list(self.sections)
        why = self.insights if self.is_screen and self.is_decision else ()
        label = "" if self.is_screen else self.reason_label
        sections += [Section(label, Lines(self.insights))] if self.insights and not why else []
        sections += [Section(TRUST, Text(self.sure))] if self.sure and not self.is_screen else []
        sections += self.details
        sections += [Section("Notes", Lines(self.notes, is_numbered=True))] if self.notes else []
        if self.is_screen:
            labelled = ((why, WHY), ((self.sure,) if self.sure else (), TRUST))
            last: list[Block] = [Lines(texts, label=label) for texts, label in labelled if texts]
            last += [Steps(self.steps, NEXT)] if self.steps else []
            last += [Lines((self.rest,), label=" ")] if self.rest else []
            sections += [Section("", tuple(last), is_tight=True)] if last else []
        elif self.steps:
            sections.append(Section(NEXT, Steps(self.steps)))
        return tuple(section for section in sections if section.texts)

    def on_screen(self, *, notes: bool, details: bool, hints: tuple[str, str] = HINTS) -> Document:
        """Return the document for a terminal: main reasons, one step, and `hints` on how to show the rest."""
        kept = [section for section in self.details if section.texts]
        sections = self.sections
        cuts: list[tuple[list[str], str]] = []
        if self.is_decision:  # its last line has room for what its tables omit
            cuts = [([one.more_text], one.show_all) for section in sections for one in section.grids if one.cut]
            sections = tuple(map(Section.uncut, sections))
        drawn = self.picture()
        insights = max(0, len(self.insights) - MOST_INSIGHTS)
        more = [*_name_tables(kept), *([show_count(insights, "more insight")] if insights else [])]
        hidden: dict[str, list[str]] = {}
        for parts, hint in (
            *cuts,
            ([show_count(len(self.notes), "note")] if not notes and self.notes else [], hints[0]),
            ([] if details else more, hints[1]),
        ):
            known = hidden.setdefault(hint, [])
            known += [part for part in parts if part not in known]
        return attrs.evolve(
            self,
            sections=(Section("", drawn), *sections) if drawn is not None else sections,
            insights=self.insights if details else self.insights[:MOST_INSIGHTS],
            details=tuple(kept) if details else (),
            notes=self.notes if notes else (),
            steps=self.steps if details else self.steps[:1],
            is_screen=True,
            rest="; ".join(f"{hint}: {', '.join(parts)}" for hint, parts in hidden.items() if parts),
        )

    def after(self, sections: Iterable[Section]) -> Document:
        """Return the document with `sections` before its own sections, in place of its picture."""
        return attrs.evolve(self, sections=(*sections, *self.sections), picture=lambda: None)


def _name_tables(sections: Sequence[Section]) -> list[str]:
    """Return the titles of the first tables, up to a comma or bracket, and a count of the others."""
    names = [one.title.partition(" (")[0].partition(",")[0] for one in sections if one.title]
    rest = len(sections) - len(names[:NAMED])
    return [*names[:NAMED], *([show_count(rest, "more table")] if rest else [])]


def _are_numbers(cells: Sequence[str]) -> bool:
    """Return True if most cells that are not empty are numbers, and none is a remark."""
    if any(isinstance(cell, Remark) for cell in cells):
        return False
    return sum(isinstance(cell, Number) for cell in cells) * 2 > sum(bool(cell) for cell in cells)


def grid(
    rows: Table[Row],
    columns: Iterable[Shown[Row]],
    *,
    limit: int | None = None,
    keep: Sequence[str] = (),
    ranked: Sequence[str] = (),
    projected: frozenset[str] = frozenset(),
    noun: str = "rows",
    stays: Callable[[Row], bool] | None = None,
    is_plain: bool = False,
) -> Grid:
    """Format rows of a table as a grid; numbers get the unit of their column, projected hardware its mark.

    At most `limit` rows are shown, plus those that `stays`
    selects; the rest are counted as `noun`. `ranked` are the headings that rank the rows. If the cells do not
    distinguish rows, each dimension that does gets a column, unless the table `is_plain`.
    """
    places = {column.name: index for index, column in enumerate(rows.columns)}
    has_units = {"value", "unit"} <= places.keys()
    chosen = list(columns)
    shown = choose_rows(rows.rows, limit, stays)

    def read(row: Row, name: str) -> Any:
        return row[places[name]] if name in places and isinstance(row, tuple) else getattr(row, name)

    def cell(row: Row, what: str | Callable[[Row], str]) -> str:
        if not isinstance(what, str):
            return what(row)
        value = read(row, what)
        if what in HARDWARE_COLUMNS and value:
            return mark_projected(value, projected or rows.projected)
        if what.endswith("value") and has_units and isinstance(value, float):
            return show_quantity(value, read(row, "unit"))
        return show_in(rows.columns[places[what]], value) if what in places else show(value, what)

    cells = [separate_alike([cell(row, what) for row in shown]) for _, what in chosen]
    values = {name: [read(row, name) for row in shown] for name in DISTINGUISHING if name in places and not is_plain}
    for name in _find_lacking(chosen, cells, values) if values else ():
        insertion = 1 + max((at for at, (_, what) in enumerate(chosen) if _field(what) in DISTINGUISHING), default=0)
        chosen.insert(insertion, (name.replace("_", " "), name))
        cells.insert(insertion, [cell(row, name) for row in shown])
    energies = {
        (at, column): energy
        for column, (_, what) in enumerate(chosen)
        if _field(what) in find_energy_runs()
        for at, row in enumerate(shown)
        if cells[column][at] and (energy := _find_energy(row, what, places)) is not None
    }
    headings = tuple(heading for heading, _ in chosen)
    return Grid(
        energies=energies,
        headings=headings,
        rows=tuple(zip(*cells, strict=True)),
        keep=tuple(keep),
        distinguishing=() if is_plain else tuple(headings[index] for index in _find_distinguishing(chosen, cells)),
        ranked=tuple(ranked),
        cut=len(rows.rows) - len(shown),
        cut_of=len(rows.rows),
        noun=noun,
    )


def choose_rows(rows: Sequence[Row], limit: int | None, stays: Callable[[Row], bool] | None = None) -> tuple[Row, ...]:
    """Return the first `limit` rows, and later rows that `stays` selects, in order; None means all rows."""
    if limit is None:
        return tuple(rows)
    return (*rows[:limit], *(row for row in rows[limit:] if stays is not None and stays(row)))


def _find_energy(row: Any, what: object, places: Mapping[str, int]) -> EnergyCell | None:
    """Return the energy that a cell shows, with its run; None if the cell shows no energy of a run."""
    field = _field(what)

    def read(name: str) -> Any:
        return row[places[name]] if name in places and isinstance(row, tuple) else getattr(row, name, None)

    run_id = what.find_run(row) if isinstance(what, FieldCell) and what.find_run else read(find_energy_runs()[field])
    return None if run_id is None else EnergyCell(field, run_id, read(field))


def _field(what: object) -> str:
    """Return the name of the field that a column shows; empty for a column derived from several fields."""
    return what if isinstance(what, str) else getattr(what, "field", "")


def _group(columns: Sequence[Sequence[str]], count: int) -> list[list[int]]:
    """Return groups of rows that have equal values in all of these columns; rows without an equal are omitted."""
    by_cells = group(range(count), lambda index: tuple(column[index] for column in columns))
    return [rows for rows in by_cells.values() if len(rows) > 1]


def _find_lacking(
    chosen: Sequence[Shown[Any]], cells: Sequence[Sequence[str]], values: Mapping[str, Sequence[Any]]
) -> list[str]:
    """Return the fewest further dimensions, such as batch, that are needed to distinguish the rows."""
    shown = {_field(what) for _, what in chosen}
    count = len(cells[0]) if cells else 0
    known = [
        list(column)
        for (_, what), column in zip(chosen, cells, strict=True)
        if _field(what) in DISTINGUISHING or not _are_numbers(column)
    ]
    lacking: list[str] = []
    for name in DISTINGUISHING:
        if name in values and name not in shown:
            texts = list(map(str, values[name]))
            if any(len({texts[row] for row in rows}) > 1 for rows in _group(known, count)):
                lacking.append(name)
                known.append(texts)
    return lacking


def _find_distinguishing(chosen: Sequence[Shown[Any]], cells: Sequence[Sequence[str]]) -> list[int]:
    """Return the columns that distinguish rows: dimensions that differ, and further columns if these do not suffice.

    Short texts are tried before numbers, and at most one column of numbers is used; long texts come last.
    """
    if not cells:
        return []
    count = len(cells[0])
    indices = [
        index for index, (_, what) in enumerate(chosen) if _field(what) in DISTINGUISHING and len(set(cells[index])) > 1
    ]
    are_numbers = [_are_numbers(column) for column in cells]
    is_short = [max(map(len, column), default=0) <= SHORT_TEXT for column in cells]
    texts = [index for index in range(len(cells)) if not are_numbers[index] and is_short[index]]
    numbers = [index for index in range(len(cells)) if are_numbers[index]]
    longer = [index for index in range(len(cells)) if index not in (*texts, *numbers)]
    for index in [*texts, *numbers, *longer]:
        if are_numbers[index] and any(are_numbers[one] for one in indices):
            continue
        alike = _group([cells[one] for one in {0, *indices}], count)
        if any(len({cells[index][row] for row in rows}) > 1 for rows in alike):
            indices.append(index)
    return sorted(indices)


def draw_columns(
    table: Table[Any],
    *,
    columns: str = "",
    keep: str = "",
    is_list: bool = False,
) -> Grid:
    """Format the rows of a table as a grid: headings without units, each `value` with its `unit`.

    `columns` are the columns to show, as `name | heading name`; empty means all. The columns of a list (`is_list`) have
    the headings that their query declares, others their names. `keep` names the columns that a narrow terminal hides
    last. An empty table shows its headings.
    """
    merged = "unit" if "value" in table.names else ""
    shown: dict[str, str] = {}
    headings = {name: text for text, _, name in (column.strip().rpartition(" ") for column in columns.split("|"))}
    for column in table.columns:
        if (not columns or column.name in headings) and column.name != merged:
            text = headings.get(column.name) or (is_list and column.heading) or heading(column)
            other = f"{text} ({column.unit})" if column.unit else column.name.replace("_", " ")
            shown[column.name] = text if text not in shown.values() else other
    drawn = grid(
        table,
        [(text, name) for name, text in shown.items()],
        keep=[shown[name] for name in keep.split() if name in shown],
        # columns of a user's SQL statement have no meaning, so it is unknown which of them name its rows
        is_plain=not any(column.meaning for column in table.columns),
    )
    return attrs.evolve(drawn, keeps_headings=True)


def table_document(
    table: Table[Any], columns: str = "", *, keep: str = "", rest: str = "", answer: str = ""
) -> Document:
    """Return a table as a document that shows `columns`; narrow terminals fold the columns in `keep` last.

    `rest` describes what is not shown, `answer` the content of the table.
    """
    shown = draw_columns(table, columns=columns, keep=keep, is_list=bool(columns))
    below = [Text(text) for text in (rest, *table.notes, PROJECTION_NOTE if shown.is_marked else "") if text]
    return Document(
        title="", answer=answer, sections=(Section("", (shown, *below)),), data=table.records(), table=table
    )
