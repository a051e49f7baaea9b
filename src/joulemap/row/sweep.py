"""Rows of the queries of `queries/sweep`, made from their headers by `make rows`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from joulemap.row import Row

if TYPE_CHECKING:
    from joulemap.domain.metric import MetricName


class SweepCrossing(Row, query="sweep.crossing"):
    """From which batch on one hardware beats another that was better at smaller batches; one row per model,
    precision, runtime, metric, pair of hardware and batch where the better one changes.
    """

    model: str
    precision: str
    runtime: str
    metric: MetricName
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


class SweepPoint(Row, query="sweep.point"):
    """Every run of a sweep: what a larger batch brings and costs; one row per run asked for, refused ones included."""

    model: str
    hardware: str
    architecture: str
    precision: str
    runtime: str
    batch: int
    status: str
    latency_s: float | None
    throughput_per_s: float | None
    throughput_limit: str | None
    energy_j: float | None
    energy_per_inference_j: float | None
    inferences_per_j: float | None
    edp_js: float | None
    average_power_w: float | None
    speedup_ratio: float | None
    batch_scaling_ratio: float | None
    compute_utilization_fraction: float | None
    bandwidth_utilization_fraction: float | None
    peak_memory_bytes: int | None
    clock_fraction: float | None
    is_in_zone: bool
    is_projection: bool
    is_available: bool
    reason: str
    run_id: int


class SweepSeries(Row, query="sweep.series"):
    """The best batch of each hardware: within a latency budget, for throughput and for energy; one row per model,
    hardware, precision and runtime of the runs asked for.
    """

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
    throughput_limit: str | None
    energy_batch: int | None
    energy_per_inference_j: float | None
    energy_latency_s: float | None
    zone_low_batch: int | None
    zone_high_batch: int | None
    zone_low_power_w: float | None
    zone_high_power_w: float | None
    largest_batch: int | None
    largest_speedup_ratio: float | None
    largest_batch_scaling_ratio: float | None
    is_projection: bool
    is_available: bool
    reason: str


class SweepWinner(Row, query="sweep.winner"):
    """Which hardware is best at each batch of a sweep, and where that changes; one row per model, precision,
    runtime, metric and batch.
    """

    model: str
    precision: str
    runtime: str
    metric: MetricName
    batch: int
    winner: str
    value: float
    unit: str
    runner_up: str | None
    advantage_ratio: float | None
    probability_ahead: float | None
    candidate_count: int
    previous_batch: int | None
    previous_winner: str | None
    is_change: bool
    is_overtaking: bool
