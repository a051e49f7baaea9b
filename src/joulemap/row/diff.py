"""Rows of the queries of `queries/diff`, made from their headers by `make rows`."""

from __future__ import annotations

from joulemap.row import Row


class VersionFigure(Row, query="diff.figure"):
    """Two versions of a model on each hardware: what changed, and how sure that is; one row per pair of runs and
    metric; pairs of which one was refused have no figures.
    """

    hardware: str
    """hardware, with its power mode."""
    metric: str
    """latency, energy or memory, of a batch."""
    value_a: float | None
    """before, in unit; null where it was refused."""
    value_b: float | None
    """After."""
    unit: str
    """s, J or B."""
    change_fraction: float | None
    """After over before, less 1."""
    low_fraction: float | None
    """Low end of the 80 % interval of the change; of memory, which has none, the change."""
    high_fraction: float | None
    """High end of it."""
    half_width: float | None
    """Of the 80 % interval of the logarithm of after over before: what both share of their errors is not in it."""
    same_fraction: float | None
    """Part of the version before whose errors the version after has too: of kernels with the same operations, MACs,
    bytes and tiles, and of those of one name as far as MACs and bytes are alike, each at the less of both; null of
    memory.
    """
    reason: str
    """Why one of the runs was refused; empty where none was."""
    basis: str | None
    """What the errors of the version after follow from; null of memory."""
    run_a: int
    """Number of the run before."""
    run_b: int
    """Number of the run after."""
