"""What running a model at many batches hands out."""

from __future__ import annotations

import attrs


@attrs.frozen
class SweepPoint:
    """A row of `sweep.point`: one run of a sweep; None in a run that was refused."""

    model: str
    hardware: str
    architecture: str
    precision: str
    runtime: str
    batch: int
    status: str
    latency_s: float | None
    throughput_per_s: float | None
    energy_j: float | None
    energy_per_inference_j: float | None
    inferences_per_j: float | None
    edp_js: float | None
    average_power_w: float | None
    speedup_ratio: float | None
    batch_efficiency_ratio: float | None
    compute_utilization_fraction: float | None
    bandwidth_utilization_fraction: float | None
    peak_memory_bytes: int | None
    clock_fraction: float | None
    is_in_zone: bool
    is_projection: bool
    reason: str
    run_id: int


@attrs.frozen
class SweepSeries:
    """A row of `sweep.series`: the best batches of one model on one hardware; None where it runs none."""

    model: str
    hardware: str
    architecture: str
    precision: str
    runtime: str
    batch_count: int
    refused_count: int
    least_latency_batch: int | None
    least_latency_s: float | None
    budget_batch: int | None
    budget_throughput_per_s: float | None
    budget_latency_s: float | None
    throughput_batch: int | None
    throughput_per_s: float | None
    throughput_latency_s: float | None
    energy_batch: int | None
    energy_per_inference_j: float | None
    energy_latency_s: float | None
    zone_low_batch: int | None
    zone_high_batch: int | None
    zone_low_power_w: float | None
    zone_high_power_w: float | None
    largest_batch: int | None
    largest_speedup_ratio: float | None
    largest_batch_efficiency_ratio: float | None
    is_projection: bool
    reason: str


@attrs.frozen
class SweepWinner:
    """A row of `sweep.winner`: the best hardware at one batch."""

    model: str
    precision: str
    runtime: str
    metric: str
    batch: int
    winner: str
    value: float
    unit: str
    runner_up: str | None
    advantage_ratio: float | None
    candidate_count: int
    previous_batch: int | None
    previous_winner: str | None
    is_change: bool
    is_overtaking: bool


@attrs.frozen
class SweepCrossing:
    """A row of `sweep.crossing`: from which batch on one hardware beats another that was better before."""

    model: str
    precision: str
    runtime: str
    metric: str
    overtaker: str
    overtaken: str
    batch: int
    overtaker_value: float
    overtaken_value: float
    unit: str
    previous_batch: int
    previous_overtaker_value: float
    previous_overtaken_value: float
    is_projection: bool
