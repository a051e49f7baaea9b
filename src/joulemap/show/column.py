"""Tables of typed columns: rows of a table under the columns of their type, as `joulemap.domain.column` says them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Generic, TypedDict, TypeVar, Unpack

import attrs

from joulemap.domain.column import Col
from joulemap.domain.table import HARDWARE_COLUMNS, Column, Table
from joulemap.show.present.cell import (
    mark_projected,
    name_words,
    show_ends,
    show_interval,
    show_quantity,
    show_signed,
)
from joulemap.show.present.document import Block, FieldCell, Grid, Section, choose_rows, grid
from joulemap.show.present.template import Template, format_value

if TYPE_CHECKING:
    from joulemap.ask.answer import Answer
    from joulemap.show.present.picture import Picture, PictureKind

Row = TypeVar("Row")

HARDWARE: Final = "hardware"
"""Format of a column with names of hardware, which are marked if nobody can have it."""

SIGNED: Final = "+"
"""Format of a difference in the unit of its column, or of its row."""

IN: Final = "in "
"""Prefix of a format that names the column with the unit, such as `in price_unit`."""

SPEAKING: Final = frozenset({"precision", "runtime"})
"""Fields whose values say in a subject line what they are of."""


class Laid(TypedDict, Generic[Row], total=False):
    """Options of a table, as for `lay_columns`."""

    keep: Sequence[Col[Row]]
    limit: int | None
    noun: str
    stays: Callable[[Row], bool] | None


def derived(heading: str, make: Callable[[Row], str]) -> Col[Row]:
    """Return a column that no row has, with cells made from the rows."""
    return Col(heading, heading=heading, make=make)


def find_column(row: type[Row], field: str) -> Col[Row]:
    """Return the column of a type of rows by its name, such as that of a metric."""
    column: Col[Row] = getattr(row, field)
    return column


def alter(columns: Iterable[Col[Row]], *others: Col[Row]) -> list[Col[Row]]:
    """Return columns with others in the places of those of the same fields."""
    instead = {one.field: one for one in others}
    return [instead.get(one.field, one) for one in columns]


def lay_columns(
    answer: Answer,
    table: Table[Row],
    columns: Iterable[Col[Row] | None],
    *,
    keep: Sequence[Col[Row]] = (),
    limit: int | None = None,
    noun: str = "rows",
    stays: Callable[[Row], bool] | None = None,
) -> Grid:
    """Return rows of a table as a grid: the first `limit` rows, and those that `stays` selects; None is no column.

    How a column is headed and shown is declared in the header of its query or in `table.toml` (`Column`), unless the
    `Col` says another. Narrow terminals fold the columns in `keep`, most important first, and then those that are
    `kept`, last. Omitted rows are counted as `noun`.
    """
    known, projected = {column.name: column for column in table.columns}, answer.projected
    shown: list[tuple[str, FieldCell | str]] = []
    named: dict[str, tuple[str, Col[Row]]] = {}
    common: list[str] = []
    for one in filter(None, columns):
        declared = known[one.field].heading if one.field in known else ""
        heading = one.heading or declared or name_words(one.field)
        made = _mark(one.make, projected) or _find_cell(known, one, projected)
        cell = FieldCell(one.shows or one.field, made, one.find_run) if made else one.field
        values = set() if one.when == "always" else {made(row) if made else getattr(row, one.field) for row in table}
        if (one.when == "any" and values <= {None, ""}) or (one.when == "varied" and len(values) < 2):
            continue
        if one.when == "uncommon" and len(values) < 2 <= len(table):
            (value,) = grid(table, [(heading, cell)], limit=1, projected=projected, is_plain=True).rows[0]
            common += [value if one.field in SPEAKING else f"{heading} {value}"] if value else []
            continue
        shown.append((heading, cell))
        named[one.field] = heading, one
    kept = [*(one.field for one in keep), *(field for field, (_, one) in named.items() if one.is_kept)]
    laid = grid(
        table,
        shown,
        limit=limit,
        keep=[named[field][0] for field in kept if field in named],
        ranked=[heading for heading, one in named.values() if one.is_ranking],
        projected=projected,
        noun=noun,
        stays=stays,
    )
    rows = choose_rows(table.rows, limit, stays)
    pictures = tuple(_draw(rows, heading, one, known, named) for heading, one in named.values() if one.is_drawn)
    return attrs.evolve(laid, pictures=pictures, common=tuple(common))


def show_table(
    answer: Answer,
    title: str,
    table: Table[Row] | None,
    columns: Iterable[Col[Row] | None],
    *more: Block,
    change: Callable[[Grid], Grid] = lambda drawn: drawn,
    **told: Unpack[Laid[Row]],
) -> list[Section]:
    """Return the section of a table, as `lay_columns` tells it, and of further blocks; none without rows."""
    return [Section(title, (change(lay_columns(answer, table, columns, **told)), *more))] if table else []


def _fill(template: Template, row: object, projected: frozenset[str], /, **values: Any) -> str:
    """Return the text of a template, with projected hardware in its fields marked."""
    names = HARDWARE_COLUMNS.intersection(name for name, _ in template.slots)
    marked = {name: mark_projected(value, projected) for name in names if (value := getattr(row, name, None))}
    return template(row, **{**marked, **values})


def _mark(make: Callable[[Any], str] | None, projected: frozenset[str]) -> Callable[[Any], str] | None:
    """Return a function of a cell that marks projected hardware; only templates are changed."""
    return (lambda row: _fill(make, row, projected)) if isinstance(make, Template) else make


def _find_cell(known: Mapping[str, Column], one: Col[Any], projected: frozenset[str]) -> Callable[[Any], str] | None:
    """Return a function that formats the cell of a column; None for the value with the unit of the column."""
    field, column = one.field, known.get(one.field)
    if one.of:
        unit = known[one.of].unit
        return lambda row: show_ends(getattr(row, one.of), unit, getattr(row, field))
    if column is None or not (one.half_width or column.shown):
        return None
    unit, shown = column.unit, column.shown
    if one.half_width:
        return lambda row: show_interval(getattr(row, field), unit, getattr(row, one.half_width))
    if "{" in shown:
        return _mark(Template(shown), projected)
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
    one: Col[Any],
    known: Mapping[str, Column],
    named: Mapping[str, tuple[str, Col[Any]]],
) -> Picture:
    """Return the picture of a column; `named` has heading and column of all shown ones by field."""
    from joulemap.show.present.picture import Picture, make_intervals

    field, width = (one.of, one.field) if one.of else (one.field, one.half_width)
    values = [getattr(row, field) for row in rows]
    if width:
        marks = make_intervals(list(zip(values, [getattr(row, width) for row in rows], strict=True)))
        beside = named[field][0] if one.of and field in named else ""
        return Picture(kind="interval", after=heading, of=beside, rows=marks, unit=known[field].unit)
    is_signed = known[field].shown == SIGNED or min((one for one in values if one is not None), default=0.0) < 0.0
    kind: PictureKind = "difference" if is_signed else "share"
    return Picture(kind=kind, after=heading, rows=tuple(() if value is None else (value,) for value in values))
