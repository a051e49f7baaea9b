"""Rows of the queries of `queries/explore`, made from their headers by `make rows`."""

from __future__ import annotations

from joulemap.row import Row


class DesignDoubt(Row, query="explore.doubt"):
    """How far apart two designs must be to be told apart: one like the chip of a run, the other like that of
    another, or another one of the same; one row per ordered pair of evaluated runs, each with itself too.
    """

    run_id: int
    """Number of the run."""
    other_run_id: int
    """Of the run whose chip the other design is like."""
    latency_half_width: float
    """Of the 80 % interval of the logarithm of the run's latency."""
    energy_half_width: float
    """Of the same of its energy."""
    latency_square: float
    """Of the half-width of what the logarithms of the two designs' latencies differ by."""
    energy_square: float
    """Of the same of their energies."""
    joint_square: float
    """What the two differences have in common."""
