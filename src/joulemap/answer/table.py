"""One table as an answer: of a statement, a query, or a listing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from joulemap.domain.table import HARDWARE_COLUMNS, Column, Table
from joulemap.present.cell import PROJECTED, PROJECTION_NOTE, heading, mark_projected, show_in, show_quantity
from joulemap.present.document import Document, Grid, Section, Text

PAIR: Final = ("value", "unit")
"""Columns that people read as one."""


def table_document(table: Table[Any], columns: Sequence[str] = (), *, keep: Sequence[str] = ()) -> Document:
    """Return a table for people and programs; people see `columns` alone, and `keep` longest. Raises nothing."""
    shown = _grid(table, columns, keep)
    is_marked = any(cell.startswith(PROJECTED) for row in shown.rows for cell in row)
    notes = (Text(PROJECTION_NOTE),) if is_marked else ()
    return Document(title="", sections=(Section("", (shown, *notes)),), data=table.records(), table=table)


def _grid(table: Table[Any], columns: Sequence[str], keep: Sequence[str]) -> Grid:
    """Return a table as people read it; one without rows keeps its headings."""
    is_paired = set(PAIR) <= set(table.names)
    chosen = [
        (index, column)
        for index, column in enumerate(table.columns)
        if (not columns or column.name in columns) and not (is_paired and column.name == PAIR[1])
    ]
    unit = table.names.index(PAIR[1]) if is_paired else 0

    def cell(column: Column, value: Any, cells: tuple[Any, ...]) -> str:
        if column.name in HARDWARE_COLUMNS and value:
            return mark_projected(str(value), table.projected)
        if is_paired and column.name == PAIR[0] and isinstance(value, float):
            return show_quantity(value, cells[unit])
        return show_in(column, value)

    return Grid(
        headings=tuple(heading(column) for _, column in chosen),
        rows=tuple(tuple(cell(column, cells[index], cells) for index, column in chosen) for cells in table.cells),
        keep=tuple(heading(column) for _, column in chosen if column.name in keep),
        keeps_headings=True,
    )
