"""An answer that is one table: every column for programs, those that matter for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from joulemap.domain.table import HARDWARE_COLUMNS, Column, Table
from joulemap.present.cell import PROJECTED, PROJECTION_NOTE, heading, mark_projected, show_in, show_quantity
from joulemap.present.document import Document, Grid, Section, Text, say_rest


def table_document(
    table: Table[Any], columns: Sequence[str] = (), *, keep: Sequence[str] = (), title: str = ""
) -> Document:
    """Return a table as a document; `columns` are those that people see, `keep` those of them that stay longest."""
    shown = draw_columns(table, columns=columns, keep=keep)
    is_marked = any(text.startswith(PROJECTED) for text in shown.texts)
    below = (Text(PROJECTION_NOTE),) if is_marked else ()
    return Document(title=title, sections=(Section("", (shown, *below)),), data=table.records(), table=table)


def draw_columns(
    table: Table[Any], *, columns: Sequence[str] = (), keep: Sequence[str] = (), limit: int | None = None
) -> Grid:
    """Return `limit` rows of a table as people read them: headings without units, a `value` with its `unit`.

    `columns` are those that are shown, all for none; `keep` those of them that stay longest.
    """
    names = table.names
    unit = names.index("unit") if {"value", "unit"} <= set(names) else None
    chosen = [
        (index, column)
        for index, column in enumerate(table.columns)
        if (not columns or column.name in columns) and index != unit
    ]

    def cell(cells: Sequence[Any], index: int, column: Column) -> str:
        value = cells[index]
        if column.name in HARDWARE_COLUMNS and value:
            return mark_projected(value, table.projected)
        if column.name == "value" and unit is not None and isinstance(value, float):
            return show_quantity(value, cells[unit])
        return show_in(column, value)

    return Grid(
        headings=tuple(heading(column) for _, column in chosen),
        rows=tuple(tuple(cell(cells, *one) for one in chosen) for cells in table.cells[:limit]),
        keep=tuple(heading(column) for name in keep for _, column in chosen if column.name == name),
        keeps_headings=True,
    )


def draw_limited(table: Table[Any], limit: int, noun: str, *, keep: Sequence[str] = ()) -> tuple[Grid | Text, ...]:
    """Return `limit` rows of a table with all columns, and how many more `noun` there are."""
    return (draw_columns(table, keep=keep, limit=limit), *say_rest(len(table), limit, noun))
