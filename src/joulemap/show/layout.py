"""Build tables for display: a text names the columns of a table, and templates define the cells of a row."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import attrs

from joulemap.ask.fact import Entry, Facts
from joulemap.domain.table import HARDWARE_COLUMNS, Column, Table
from joulemap.show.present.cell import (
    mark_projected,
    name_words,
    show_ends,
    show_interval,
    show_quantity,
    show_share,
    show_signed,
)
from joulemap.show.present.document import (
    SHARE_HEADING,
    FieldCell,
    Grid,
    choose_rows,
    grid,
)
from joulemap.show.present.template import Template, format_value

if TYPE_CHECKING:
    from joulemap.domain.assumed import AssumedEnergy
    from joulemap.show.present.picture import Picture, PictureKind

LEAST_STATED: Final = 1.0 / 3.0
"""Assumed share of an energy above which answers show it."""

SHARE_FIELD: Final = "assumed_energy_fraction"
"""Field with the assumed share in rows that hold their own share rather than that of a run."""

Cell = Callable[[Any], str]
"""Function that formats a cell from a row."""

HARDWARE: Final = "hardware"
"""Format of a column with names of hardware, which are marked if nobody can have it."""

SIGNED: Final = "+"
"""Format of a difference in the unit of its column, or of its row."""

IN: Final = "in "
"""Prefix of a format that names the column with the unit, such as `in price_unit`."""

SPEAKING: Final = frozenset({"precision", "runtime"})
"""Fields whose values say in a subject line what they are of."""

MORE: Final = Template("{count} more[ {noun}]")


def shorten(names: Sequence[str], most: int, noun: str = "") -> list[str]:
    """Return at most the first `most` names and a count of the others; a single further name is listed, too."""
    rest = len(names) - most
    return [*names[:most], MORE(count=rest, noun=noun)] if rest > 1 else list(names)


def fill(template: Template, row: object, projected: frozenset[str], /, **values: Any) -> str:
    """Return the text of a template, with projected hardware in its fields marked."""
    names = HARDWARE_COLUMNS.intersection(name for name, _ in template.slots)
    marked = {name: mark_projected(value, projected) for name in names if (value := getattr(row, name, None))}
    return template(row, **{**marked, **values})


def lay(
    table: Table[Any],
    columns: str,
    *,
    keep: str = "",
    ranked: str = "",
    limit: int | None = None,
    noun: str = "rows",
    stays: Callable[[Any], bool] | None = None,
    projected: frozenset[str] = frozenset(),
    pictures: str = "",
    **cells: Cell,
) -> Grid:
    """Return rows of a table as a grid: the first `limit` rows, and those that `stays` selects.

    `columns` names fields, separated by `|`. How a column is headed and shown is declared in the header of its query or
    in `table.toml` (`Column`); words before the field are another heading. A `?` after the field drops a column without
    any value, a `!` drops a column of equal values, and a `=` makes equal values of several rows one text of the grid's
    `common`. `field:half_width` shows a value with its interval, `-field:half_width` only the ends of the interval, as
    the column of the half-width, which is in natural logarithms. `cells` maps fields to functions of a row; each may be
    a template or a `FieldCell`.

    Narrow terminals keep the columns with a leading `*` longest, unless `keep` names fields, most important first.
    `ranked` names the fields that rank the rows; they never fold. `pictures` names those beside which a terminal draws
    their values, most important first: intervals of `field:half_width`, bars around zero of a difference, and bars from
    zero of any other field. `hardware | *latency_s:latency_half_width | all of it energy_j | precision!` has four
    columns: a latency with its interval, which folds late, an energy under another heading, and a precision if rows
    differ in it. Other pictures, such as a trend by batch, are a `Picture` in the grid's `pictures`, set by
    `attrs.evolve`. Omitted rows are counted as `noun`.
    """
    known = {column.name: column for column in table.columns}
    shown: list[tuple[str, FieldCell | str]] = []
    kept: list[str] = []
    named: dict[str, tuple[str, str]] = {}
    common: list[str] = []
    for column in filter(None, map(str.strip, columns.split("|"))):
        other, _, name = column.strip("*").rpartition(" ")
        field, _, half_width = name.strip("?!=-").partition(":")
        own = half_width if name[0] == "-" else field
        heading = other or (own in known and known[own].heading) or name_words(own)
        made = None if own != field else cells.get(field)
        made = made or _find_cell(known, name, field, half_width, projected)
        cell = made if isinstance(made, FieldCell) else FieldCell(own, _mark(made, projected)) if made else field
        if name[-1] in "?!" and _lacks(table, cell, name[-1]):
            continue
        if name[-1] == "=" and len(table) > 1 and _lacks(table, cell, "!"):
            (value,) = grid(table, [(heading, cell)], limit=1, projected=projected, is_plain=True).rows[0]
            common += [value if field in SPEAKING else f"{heading} {value}"] if value else []
            continue
        kept += [own] if column[0] == "*" else []
        shown.append((heading, cell))
        named[own] = heading, name

    def head(fields: Iterable[str]) -> list[str]:
        return [named[field][0] for field in fields if field in named]

    laid = grid(
        table,
        shown,
        limit=limit,
        keep=head([*keep.split(), *kept]),
        ranked=head(ranked.split()),
        projected=projected,
        noun=noun,
        stays=stays,
    )
    rows = choose_rows(table.rows, limit, stays)
    drawn = tuple(_draw(rows, *named[field], known, named) for field in pictures.split() if field in named)
    return attrs.evolve(laid, pictures=drawn, common=tuple(common)) if pictures or common else laid


def _find_cell(
    known: Mapping[str, Column], name: str, field: str, half_width: str, projected: frozenset[str]
) -> Cell | None:
    """Return a function that formats the cell of a column; None for the value with the unit of the column."""
    column = known.get(field)
    if column is None or not (half_width or column.shown):
        return None
    unit, shown = column.unit, column.shown
    if half_width:
        show = show_ends if name[0] == "-" else show_interval
        return lambda row: show(getattr(row, field), unit, getattr(row, half_width))
    if "{" in shown:
        return Template(shown)
    if shown == HARDWARE:
        return lambda row: mark_projected(getattr(row, field), projected)
    if shown.startswith(IN):
        return lambda row: show_quantity(getattr(row, field), getattr(row, shown.removeprefix(IN)) or "")
    if shown == SIGNED:
        return lambda row: show_signed(getattr(row, field), unit or row.unit)
    return lambda row: format_value(getattr(row, field), shown)


def _draw(
    rows: Sequence[Any],
    heading: str,
    name: str,
    known: Mapping[str, Column],
    named: Mapping[str, tuple[str, str]],
) -> Picture:
    """Return the picture of a column; `named` has heading and text of all shown columns by field."""
    from joulemap.show.present.picture import Picture, make_intervals

    field, _, half_width = name.strip("?!=-").partition(":")
    values = [getattr(row, field) for row in rows]
    if half_width:
        widths = [getattr(row, half_width) for row in rows]
        marks = make_intervals(list(zip(values, widths, strict=True)))
        own, _ = named.get(field, ("", ""))
        own = "" if own == heading else own
        return Picture(kind="interval", after=heading, of=own, rows=marks, unit=known[field].unit)
    is_signed = known[field].shown == SIGNED or min((one for one in values if one is not None), default=0.0) < 0.0
    kind: PictureKind = "difference" if is_signed else "share"
    return Picture(kind=kind, after=heading, rows=tuple(() if one is None else (one,) for one in values))


def draw_ranges(facts: Facts, metric: str, ids: Iterable[int | None], after: str, **more: Any) -> Picture:
    """Return a picture of the intervals of a metric of runs; `after` is the heading before it, `more` sets fields."""
    from joulemap.show.present.picture import Picture, make_intervals

    values = {one.run: one.values[metric] for one in facts.of(Entry)}
    ends = [values.get(run_id or 0) for run_id in ids]
    marks = make_intervals([(one.value, one.half_width) if one is not None else (None, None) for one in ends])
    return Picture(kind="interval", after=after, rows=marks, **more)


def fill_cells(line: str, row: object = None, /, **values: Any) -> tuple[str, ...]:
    """Fill a line of templates separated by `|`; return its cells. Leading spaces of the first cell are kept."""
    first, *others = line.split("|")
    return tuple(Template(cell)(row, **values) for cell in (first.rstrip(), *map(str.strip, others)))


def lay_lines(
    headings: str, lines: Iterable[Sequence[str]], *, keep: str = "", is_tree: bool = False, **more: Any
) -> Grid:
    """Return lines of cells as a grid; short lines get empty cells. `more` sets further fields of the grid."""
    names = _split(headings)
    rows = tuple((*cells, *[""] * (len(names) - len(cells))) for cells in lines)
    return Grid(headings=tuple(names), rows=rows, keep=tuple(_split(keep)), is_tree=is_tree, **more)


def lay_facts(headings: str, lines: Iterable[str], row: Any, /, **values: Any) -> Grid:
    """Return a grid with one fact of a run per line."""
    return lay_lines(headings, (fill_cells(line, row, **values) for line in lines))


def _mark(made: Cell, projected: frozenset[str]) -> Cell:
    """Return a cell function that marks projected hardware; only templates are changed."""
    return (lambda row: fill(made, row, projected)) if isinstance(made, Template) else made


def _split(headings: str) -> list[str]:
    return [heading.strip() for heading in headings.split("|")] if headings else []


def _lacks(table: Table[Any], cell: FieldCell | str, sign: str) -> bool:
    values = {getattr(row, cell) if isinstance(cell, str) else cell(row) for row in table}
    return values <= {None, ""} if sign == "?" else len(values) < 2


def show_assumed(one: AssumedEnergy | None) -> str:
    """Return an assumed share for a table cell; empty for a share up to a third."""
    return "" if one is None or one.fraction <= LEAST_STATED else show_share(one.fraction)


def head_assumed(shares: Iterable[AssumedEnergy | None]) -> str:
    """Return the column of assumed shares in the syntax of `lay`; empty if no share is above a third."""
    return f"*{SHARE_HEADING} {SHARE_FIELD} | " if any(map(show_assumed, shares)) else ""


def is_whole(one: AssumedEnergy, energy_j: float | None) -> bool:
    """Return whether `energy_j` is the energy of the whole run rather than of a part."""
    return energy_j is not None and math.isclose(energy_j * 1e15, one.energy_fj, rel_tol=1e-9)
