"""Rows of the queries of `queries/measure`, made from their headers by `make rows`."""

from __future__ import annotations

from joulemap.row import Row


class Score(Row, query="measure.score"):
    """One measurement beside the prediction of the same configuration; one row."""

    measurement_id: int
    run_id: int
    model: str
    hardware: str
    precision: str
    batch: int
    runtime: str
    scope: str
    measured_latency_s: float
    predicted_latency_s: float | None
    latency_ratio: float | None
    measured_energy_j: float | None
    predicted_energy_j: float | None
    energy_ratio: float | None
    measured_power_w: float | None
    predicted_power_w: float | None
    power_ratio: float | None
    measured_peak_memory_bytes: int | None
    predicted_peak_memory_bytes: int | None
    memory_ratio: float | None
    refusal: str | None
    source: str
    conditions: str
