"""Rows of the queries of `queries/audit`, made from their headers by `make rows`."""

from __future__ import annotations

from joulemap.row import Row


class Finding(Row, query="audit.conservation"):
    """Every rule that the tables must keep; a healthy database returns no row; one row per broken rule and place."""

    rule: str
    """What is broken."""
    run_id: int | None
    """run; null for a rule about anything else."""
    workload_id: int | None
    """workload; null for a rule about anything else."""
    place: str
    """Where."""
    expected: str
    """What it should be."""
    found: str
    """What it is."""
