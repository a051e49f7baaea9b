"""Rows of the queries of `queries/diff`, made from their headers by `make rows`."""

from __future__ import annotations

from joulemap.row import Row


class VersionFigure(Row, query="diff.figure"):
    """Two versions of a model on each hardware: what changed, and how sure that is; one row per pair of runs and
    metric; pairs of which one was refused have no figures.
    """

    hardware: str
    metric: str
    value_a: float | None
    value_b: float | None
    unit: str
    change_fraction: float | None
    low_fraction: float | None
    high_fraction: float | None
    half_width: float | None
    same_fraction: float | None
    reason: str
    basis: str | None
    run_a: int
    run_b: int
