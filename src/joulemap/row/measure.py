"""Rows of the queries of `queries/measure`, made from their headers by `make rows`."""

from __future__ import annotations

from joulemap.row import Row


class Score(Row, query="measure.score"):
    """One measurement beside the prediction of the same configuration; one row."""

    measurement_id: int
    """Number of the measurement."""
    run_id: int
    """Number of the run."""
    model: str
    """As the measurement is stored."""
    hardware: str
    """Id of the description that predicts."""
    precision: str
    batch: int
    """Samples in one input."""
    runtime: str
    """eager, graph, fused or engine."""
    scope: str
    """What measured energy and power cover."""
    measured_latency_s: float
    """s: median, per batch."""
    predicted_latency_s: float | None
    """s: per batch; null where the hardware cannot run it."""
    latency_ratio: float | None
    """Predicted over measured."""
    measured_energy_j: float | None
    """J: per batch; null without a counter."""
    predicted_energy_j: float | None
    """J: per batch."""
    energy_ratio: float | None
    """Predicted over measured."""
    measured_power_w: float | None
    """W: mean; null without a counter."""
    predicted_power_w: float | None
    """W: mean."""
    power_ratio: float | None
    """Predicted over measured."""
    measured_peak_memory_bytes: int | None
    """B: as the framework reports it; null where it does not."""
    predicted_peak_memory_bytes: int | None
    """B: what the framework would report of weights and activations; null where its workspaces are not known."""
    memory_ratio: float | None
    """Predicted over measured."""
    refusal: str | None
    """Why there is no prediction; null where there is one."""
    source: str
    """Where the measurement comes from."""
    conditions: str
    """What the measurement depends on."""
