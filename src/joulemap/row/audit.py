"""Rows of the queries of `queries/audit`, made from their headers by `make rows`."""

from __future__ import annotations

from joulemap.row import Row


class Finding(Row, query="audit.conservation"):
    """Every rule that the tables must keep; a healthy database returns no row; one row per broken rule and place."""

    rule: str
    """What is broken."""
    run_id: int | None
    """run; for a rule about a workload its id."""
    place: str
    """Where."""
    expected: str
    """What it should be."""
    found: str
    """What it is."""
