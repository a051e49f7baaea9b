"""Rows of the queries of `queries/audit`, made from their headers by `make rows`."""

from __future__ import annotations

from joulemap.row import Row


class Finding(Row, query="audit.conservation"):
    """Every rule that the tables must keep; a healthy database returns no row; one row per broken rule and place."""

    rule: str
    run_id: int | None
    workload_id: int | None
    place: str
    expected: str
    found: str
