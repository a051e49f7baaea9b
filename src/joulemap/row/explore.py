"""Rows of the queries of `queries/explore`, made from their headers by `make rows`."""

from __future__ import annotations

from joulemap.row import Row


class DesignDoubt(Row, query="explore.doubt"):
    """How far apart two designs must be to be told apart: one like the chip of a run, the other like that of
    another, or another one of the same; one row per ordered pair of evaluated runs, each with itself too.
    """

    run_id: int
    other_run_id: int
    latency_half_width: float
    energy_half_width: float
    latency_square: float
    energy_square: float
    joint_square: float
