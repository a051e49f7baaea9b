"""Rows of the queries of `queries/database`, made from their headers by `make rows`."""

from __future__ import annotations

from joulemap.row import Row


class StoredTable(Row, query="database.content"):
    """What the database holds; one row per table."""

    table_name: str
    """Table."""
    row_count: int
    """rows, as the engine estimates them."""
    column_count: int
    """Columns."""
    meaning: str
    """What a row is."""
