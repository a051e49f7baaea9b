"""Build tables for display: a string names a table's columns, templates define a row's cells."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import attrs

from joulemap.domain.table import HARDWARE_COLUMNS, Table
from joulemap.present.cell import mark_projected, show_doubt, show_interval, show_plain, show_quantity, show_signed
from joulemap.present.document import ENERGY_RUNS, EnergyCell, FieldCell, Grid, grid
from joulemap.present.template import Template

Cell = Callable[[Any], str]
"""Function that formats a cell from a row."""

SIGNS: Final[Mapping[str, Callable[[Any], str]]] = {
    "±": show_doubt,
    "#": show_plain,
    "~": lambda value: show_quantity(value, "").strip(),
}
"""Sign before a field -> format of the value: as uncertainty, in full, or without a unit."""


MORE: Final = Template("{count} more[ {noun}]")


def shorten(names: Sequence[str], most: int, noun: str = "") -> list[str]:
    """Return the first names, and the count of the rest, as `noun`, if it is above one."""
    rest = len(names) - most
    return [*names[:most], MORE(count=rest, noun=noun)] if rest > 1 else list(names)


def fill(template: Template, row: object, projected: frozenset[str], /, **values: Any) -> str:
    """Return the text of a template, with projected hardware in its fields marked."""
    names = HARDWARE_COLUMNS.intersection(name for name, _ in template.places)
    marked = {name: mark_projected(found, projected) for name in names if (found := getattr(row, name, None))}
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
    **cells: Cell,
) -> Grid:
    """Return rows of a table as a grid: the first `limit`, and those that `stays` selects.

    `columns` separates columns by `|`. The last word of a column is its field, the words before it the heading, which
    defaults to the field. A sign before the field is one of `SIGNS`, `+` for a difference, or `@` for hardware with its
    mark. A `?` after it drops a column without any value, a `!` one whose values are all equal. `field:half_width`
    shows a value with its interval, from the field that holds the half-width of its logarithm. `cells` holds functions
    for columns made from a whole row; each may be a template or a `FieldCell`. Narrow terminals keep the columns with a
    leading `*` longest, in order, unless `keep` names headings separated by `|`, most important first. `ranked` names
    the headings that rank the rows; they never fold. Omitted rows are counted as `noun`.
    """
    shown: list[tuple[str, str | Cell]] = []
    kept = _split(keep)
    for column in map(str.strip, columns.split("|")):
        if not column:
            continue
        heading, _, name = column.strip("*").rpartition(" ")
        field, _, half_width = name.strip("?!@±#~+").partition(":")
        made = cells.get(field) or (_show_interval(table, field, half_width) if half_width else None)
        cell = made if isinstance(made, FieldCell) else FieldCell(field, _mark(made, projected)) if made else None
        if name[-1] in "?!" and _lacks(table, cell or field, name[-1]):
            continue
        kept += [heading or field] if column[0] == "*" else []
        shown.append((heading or field, cell or _show(name[0], field, table, projected)))
    return grid(
        table,
        shown,
        limit=limit,
        keep=kept,
        ranked=_split(ranked),
        projected=projected,
        noun=noun,
        stays=stays,
    )


def fill_cells(line: str, row: object = None, /, **values: Any) -> tuple[str, ...]:
    """Return the cells of a line; `|` separates their templates, and leading spaces of the first one are kept."""
    first, *others = line.split("|")
    return tuple(Template(cell)(row, **values) for cell in (first.rstrip(), *map(str.strip, others)))


def lay_lines(
    headings: str, lines: Iterable[Sequence[str]], *, keep: str = "", is_tree: bool = False, **more: Any
) -> Grid:
    """Return lines of cells as a grid, with empty cells at the end of short lines; `more` are fields of the grid."""
    names = _split(headings)
    rows = tuple((*cells, *[""] * (len(names) - len(cells))) for cells in lines)
    return Grid(headings=tuple(names), rows=rows, keep=tuple(_split(keep)), is_tree=is_tree, **more)


def lay_facts(headings: str, lines: Sequence[str], row: Any, /, **values: Any) -> Grid:
    """Return facts of one run as a grid with a row per line; the second cell of a line may show an energy."""
    drawn = lay_lines(headings, (fill_cells(line, row, **values) for line in lines))
    shown = {place: name for place, line in enumerate(lines) for name, _ in Template(line.split("|")[1]).places}
    energies = {
        (place, 1): EnergyCell(name, row.run_id, getattr(row, name))
        for place, name in shown.items()
        if name in ENERGY_RUNS and name not in values
    }
    return attrs.evolve(drawn, energies=energies)


def lay_beside(
    headings: Sequence[str], lines: Iterable[str], rows: Sequence[Any], *, keep: Sequence[str] = (), **values: Any
) -> Grid:
    """Return rows as adjacent columns: each line holds a label and the template of its cells."""
    parts = [line.split("|") for line in lines]
    return Grid(
        headings=tuple(headings),
        rows=tuple((label.strip(), *(Template(cell.strip())(row, **values) for row in rows)) for label, cell in parts),
        keep=tuple(keep),
    )


def _mark(made: Cell, projected: frozenset[str]) -> Cell:
    """Return the function of a cell; if a template formats the cell, projected hardware in it is marked."""
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


def _show_interval(table: Table[Any], field: str, half_width: str) -> Cell:
    """Return the function that formats a value with its interval, in the unit of its column."""
    unit = next(column.unit for column in table.columns if column.name == field)
    return lambda row: show_interval(getattr(row, field), unit, getattr(row, half_width))
