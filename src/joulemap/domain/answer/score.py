"""A prediction beside its measurement."""

from __future__ import annotations

import attrs


@attrs.frozen
class Score:
    """A row of `measure.score`: a measurement and the prediction of the same configuration, per batch."""

    measurement_id: int
    run_id: int
    model: str
    hardware: str
    precision: str
    batch: int
    runtime: str
    scope: str
    """What measured energy and power cover."""
    measured_latency_s: float
    predicted_latency_s: float | None
    latency_ratio: float | None
    """Predicted over measured, like every ratio here."""
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
    """Why there is no prediction."""
    source: str
    conditions: str
