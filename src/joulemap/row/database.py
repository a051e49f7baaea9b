"""Rows of the queries of `queries/database`, made from their headers by `make rows`."""

from __future__ import annotations

from joulemap.row import Row


class StoredTable(Row, query="database.content"):
    """What the database holds; one row per table."""

    table_name: str
    row_count: int
    column_count: int
    meaning: str


class StoredView(Row, query="database.view"):
    """The promised views of the database; one row per view."""

    view_name: str
    column_count: int
    meaning: str
