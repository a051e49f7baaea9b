"""Layouts: a table as people see it, its columns written in a line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from joulemap.domain.table import Table
from joulemap.present.cell import mark_projected, show_doubt, show_plain, show_quantity
from joulemap.present.document import Grid, Made, grid

Cell = Callable[[Any], str]
"""What makes a cell of a row."""

SIGNS: Final[Mapping[str, Callable[[Any], str]]] = {
    "±": show_doubt,
    "#": show_plain,
    "~": lambda value: show_quantity(value, "").strip(),
}
"""Sign before a field -> how its values are shown: as what they may be off by, in full, or without a unit."""

NO_CELLS: Final[Mapping[str, Cell]] = {}


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
    cells: Mapping[str, Cell] = NO_CELLS,
) -> Grid:
    """Return rows of a table as people read them, `limit` at most beside those that `stays` names.

    `columns` has `|` between columns; the last word of each is its field, the words before it the heading, which is the
    field where there are none. A sign before the field is one of `SIGNS`, or `@` for hardware with its mark. A column
    is left out where a `?` follows and no row has a value, or a `!` and all rows have the same. `cells` are those that
    are made of a row and not of a field. Columns with a `*` before them stay longest where a terminal is narrow, in
    their order, unless `keep` names the headings of those, with `|` between, the most important first. `ranked` names
    the headings that the rows are ranked by alike; they never fold. Rows that are cut are counted as `noun`.
    """
    shown: list[tuple[str, str | Cell]] = []
    kept = _split(keep)
    for column in map(str.strip, columns.split("|")):
        heading, _, name = column.strip("*").rpartition(" ")
        field = name.strip("?!@±#~")
        if name[-1] in "?!" and _lacks(table, field, name[-1]):
            continue
        kept += [heading or field] if column[0] == "*" else []
        made = cells.get(field)
        shown.append((heading or field, Made(field, made) if made else _show(name[0], field, projected)))
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


def _split(headings: str) -> list[str]:
    return [heading.strip() for heading in headings.split("|")] if headings else []


def _lacks(table: Table[Any], field: str, sign: str) -> bool:
    values = {getattr(row, field) for row in table}
    return values <= {None, ""} if sign == "?" else len(values) < 2


def _show(sign: str, field: str, projected: frozenset[str]) -> str | Cell:
    if sign == "@":
        return Made(field, lambda row: mark_projected(getattr(row, field), projected))
    return Made(field, lambda row: SIGNS[sign](getattr(row, field))) if sign in SIGNS else field
