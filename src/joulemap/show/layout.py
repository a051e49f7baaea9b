"""Build tables for display: a text names the columns of a table, and templates define the cells of a row."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import attrs

from joulemap.ask.fact import Entry, Facts
from joulemap.domain.table import HARDWARE_COLUMNS, Table
from joulemap.show.present.cell import (
    mark_projected,
    show_doubt,
    show_ends,
    show_interval,
    show_plain,
    show_quantity,
    show_share,
    show_signed,
)
from joulemap.show.present.document import (
    SHARE_HEADING,
    EnergyCell,
    FieldCell,
    Grid,
    choose_rows,
    find_energy_runs,
    grid,
)
from joulemap.show.present.template import Template

if TYPE_CHECKING:
    from joulemap.domain.assumed import AssumedEnergy
    from joulemap.show.present.picture import Picture, PictureKind

LEAST_STATED: Final = 1.0 / 3.0
"""Assumed share of an energy above which answers show it."""

SHARE_FIELD: Final = "assumed_energy_fraction"
"""Field with the assumed share in rows that hold their own share rather than that of a run."""

Cell = Callable[[Any], str]
"""Function that formats a cell from a row."""

SIGNS: Final[Mapping[str, Callable[[Any], str]]] = {
    "±": show_doubt,
    "#": show_plain,
    "~": lambda value: show_quantity(value, ""),
}
"""Sign before a field -> function that formats it: as an uncertainty, in full, or without a unit."""


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

    `columns` is a text that separates columns by `|`. The last word of a column is a field; the words before it are the
    heading, by default the field. A sign before the field is one of `SIGNS`, `+` for a difference, or `@` for hardware
    with its mark. A `?` after the field drops a column without any value, a `!` drops a column of equal values, and a
    `=` makes equal values of several rows one text of the grid's `common`.
    `field:half_width` shows a value with its interval, `-field:half_width` only the ends of the interval; the second
    field holds the half-width in natural logarithms. `pictures` names the columns beside which a terminal draws their
    values, separated by `|`, most important first: intervals of `field:half_width`, bars around zero of `+field`, and
    bars from zero of any other field. Other pictures, such as a trend by batch, are a `Picture` in the grid's
    `pictures`, set by `attrs.evolve`.
    `cells` maps columns to functions of a row; each may be a template or a `FieldCell`. Narrow terminals keep the
    columns with a leading `*` longest, unless `keep` names headings separated by `|`, most important first. `ranked`
    names the headings that rank the rows; they never fold. Omitted rows are counted as `noun`.
    """
    shown: list[tuple[str, str | Cell]] = []
    kept = _split(keep)
    named: dict[str, str] = {}
    common: list[str] = []
    for column in map(str.strip, columns.split("|")):
        if not column:
            continue
        heading, _, name = column.strip("*").rpartition(" ")
        field, _, half_width = name.strip("?!=@±#~+-").partition(":")
        made: Cell | None = cells.get(field) or (_show_interval(table, field, half_width) if half_width else None)
        if name[0] == "-":
            made = FieldCell(half_width, _show_ends(table, field, half_width))
        cell = made if isinstance(made, FieldCell) else FieldCell(field, _mark(made, projected)) if made else None
        if name[-1] in "?!" and _lacks(table, cell or field, name[-1]):
            continue
        drawn = heading or field, cell or _show(name[0], field, table, projected)
        if name[-1] == "=" and len(table) > 1 and _lacks(table, cell or field, "!"):
            (value,) = grid(table, [drawn], limit=1, projected=projected, is_plain=True).rows[0]
            common += [value if field in SPEAKING else f"{heading or field} {value}"] if value else []
            continue
        kept += [heading or field] if column[0] == "*" else []
        shown.append(drawn)
        named[heading or field] = name
    laid = grid(
        table,
        shown,
        limit=limit,
        keep=kept,
        ranked=_split(ranked),
        projected=projected,
        noun=noun,
        stays=stays,
    )
    rows = choose_rows(table.rows, limit, stays)
    drawings = (_draw(table, rows, heading, named) for heading in _split(pictures) if heading in named)
    return attrs.evolve(laid, pictures=tuple(drawings), common=tuple(common)) if pictures or common else laid


def _draw(table: Table[Any], rows: Sequence[Any], heading: str, named: Mapping[str, str]) -> Picture:
    """Return the picture of a column; `named` holds all columns by heading, as in the text of `lay`."""
    from joulemap.show.present.picture import Picture, make_intervals

    name = named[heading]
    field, _, half_width = name.strip("?!=@±#~+-").partition(":")
    values = [getattr(row, field) for row in rows]
    unit = next(column.unit for column in table.columns if column.name == field)
    if half_width:
        widths = [getattr(row, half_width) for row in rows]
        marks = make_intervals(list(zip(values, widths, strict=True)))
        own = next((one for one, column in named.items() if column.strip("?!=") == field), "")
        return Picture(kind="interval", after=heading, of=own, rows=marks, unit=unit)
    is_signed = name[0] == "+" or min((one for one in values if one is not None), default=0.0) < 0.0
    kind: PictureKind = "difference" if is_signed else "share"
    return Picture(kind=kind, after=heading, rows=tuple(() if one is None else (one,) for one in values))


def mark_best(drawn: Grid, heading: str, keys: Sequence[Any], best: Collection[Any], tied: Collection[Any]) -> Grid:
    """Return the grid with the best cell of a column and those tied with it marked; `keys` identify the rows."""
    column = drawn.headings.index(heading)
    own, alike = (frozenset((index, column) for index, key in enumerate(keys) if key in some) for some in (best, tied))
    return attrs.evolve(drawn, best=drawn.best | own, tied=drawn.tied | alike - own)


def draw_ranges(facts: Facts, metric: str, ids: Iterable[int | None], after: str, **more: Any) -> Picture:
    """Return a picture of the intervals of a metric of runs; `after` is the heading before it, `more` sets fields."""
    from joulemap.show.present.picture import Picture, make_intervals

    values = {one.runs[0]: one.values[metric] for one in facts.of(Entry)}
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


def lay_facts(headings: str, lines: Sequence[str], row: Any, /, **values: Any) -> Grid:
    """Return a grid with one fact of a run per line. An energy in the second cell is linked to its run."""
    drawn = lay_lines(headings, (fill_cells(line, row, **values) for line in lines))
    shown = {number: name for number, line in enumerate(lines) for name, _ in Template(line.split("|")[1]).slots}
    energies = {
        (number, 1): EnergyCell(name, row.run_id, getattr(row, name))
        for number, name in shown.items()
        if name in find_energy_runs() and name not in values
    }
    return attrs.evolve(drawn, energies=energies)


def lay_beside(
    headings: Sequence[str], lines: Iterable[str], rows: Sequence[Any], *, keep: Sequence[str] = (), **values: Any
) -> Grid:
    """Return a grid with one column per row of `rows`; each line holds a label and a template for the cells."""
    parts = [line.split("|") for line in lines]
    return Grid(
        headings=tuple(headings),
        rows=tuple((label.strip(), *(Template(cell.strip())(row, **values) for row in rows)) for label, cell in parts),
        keep=tuple(keep),
    )


def lay_across(
    headings: Sequence[str], lines: Iterable[Sequence[str]], count: int, noun: str, keep: Sequence[str]
) -> Grid:
    """Return a grid of parts with a column per run; `count` is the number of parts including those not in `lines`."""
    shown = tuple(map(tuple, lines))
    return Grid(headings=tuple(headings), rows=shown, keep=tuple(keep)).out_of(count, len(shown), noun)


def _mark(made: Cell, projected: frozenset[str]) -> Cell:
    """Return a cell function that marks projected hardware; only templates are changed."""
    return (lambda row: fill(made, row, projected)) if isinstance(made, Template) else made


def _split(headings: str) -> list[str]:
    return [heading.strip() for heading in headings.split("|")] if headings else []


def _lacks(table: Table[Any], cell: FieldCell | str, sign: str) -> bool:
    values = {getattr(row, cell) if isinstance(cell, str) else cell(row) for row in table}
    return values <= {None, ""} if sign == "?" else len(values) < 2


def _show(sign: str, field: str, table: Table[Any], projected: frozenset[str]) -> str | Cell:
    if sign == "+":
        unit = next((column.unit for column in table.columns if column.name == field), "")
        return FieldCell(field, lambda row: show_signed(getattr(row, field), unit or row.unit))
    if sign == "@":
        return FieldCell(field, lambda row: mark_projected(getattr(row, field), projected))
    return FieldCell(field, lambda row: SIGNS[sign](getattr(row, field))) if sign in SIGNS else field


def _show_ends(table: Table[Any], field: str, half_width: str) -> Cell:
    """Return a function that formats the ends of a field's interval, in the unit of the field's column."""
    unit = next(column.unit for column in table.columns if column.name == field)
    return lambda row: show_ends(getattr(row, field), unit, getattr(row, half_width))


def _show_interval(table: Table[Any], field: str, half_width: str) -> Cell:
    """Return a function that formats a field of a row with its interval, in the unit of the field's column."""
    unit = next(column.unit for column in table.columns if column.name == field)
    return lambda row: show_interval(getattr(row, field), unit, getattr(row, half_width))


def show_assumed(one: AssumedEnergy | None) -> str:
    """Return an assumed share for a table cell; empty for a share up to a third."""
    return "" if one is None or one.fraction <= LEAST_STATED else show_share(one.fraction)


def head_assumed(shares: Iterable[AssumedEnergy | None]) -> str:
    """Return the column of assumed shares in the syntax of `lay`; empty if no share is above a third."""
    return f"*{SHARE_HEADING} {SHARE_FIELD} | " if any(map(show_assumed, shares)) else ""


def is_whole(one: AssumedEnergy, energy_j: float | None) -> bool:
    """Return whether `energy_j` is the energy of the whole run rather than of a part."""
    return energy_j is not None and math.isclose(energy_j * 1e15, one.energy_fj, rel_tol=1e-9)
