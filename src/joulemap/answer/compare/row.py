"""Columns that rows about runs share; a figure of a run that was refused is None."""

from __future__ import annotations

import attrs


@attrs.frozen
class OutcomeRow:
    """A run: which it is, and what it takes. Latency is per batch."""

    model: str
    batch: int
    hardware: str
    architecture: str
    status: str
    """`ok` or `unsupported`."""
    latency_s: float | None
    throughput_per_s: float | None
    average_power_w: float | None
    is_projection: bool
    reason: str
    """Why it was refused; empty where it was not."""
    run_id: int


@attrs.frozen
class FigureRow(OutcomeRow):
    """A run with its totals per batch."""

    energy_j: float | None
    edp_js: float | None
    peak_memory_bytes: int | None
    compute_utilization_fraction: float | None
