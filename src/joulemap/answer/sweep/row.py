"""Rows of a sweep over batches."""

from __future__ import annotations

from typing import ClassVar

from joulemap.answer.run import FigureOutcome
from joulemap.domain.metric import MetricName
from joulemap.record import frozen


@frozen
class Series:
    """What is swept over, beside batches and hardware."""

    model: str
    precision: str
    runtime: str


@frozen
class SweepPoint(FigureOutcome):
    """One run of a sweep."""

    query: ClassVar[str] = "sweep.point"

    precision: str
    runtime: str
    throughput_limit: str | None
    energy_per_inference_j: float | None
    inferences_per_j: float | None
    speedup_ratio: float | None
    batch_efficiency_ratio: float | None
    bandwidth_utilization_fraction: float | None
    clock_fraction: float | None
    is_in_zone: bool


@frozen
class SweepSeries(Series):
    """The best batches of one model on one hardware; None where it runs none."""

    query: ClassVar[str] = "sweep.series"

    hardware: str
    architecture: str
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
    """Of `throughput_batch`."""
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


@frozen
class SweepWinner(Series):
    """The best hardware at one batch."""

    query: ClassVar[str] = "sweep.winner"

    metric: MetricName
    batch: int
    winner: str
    value: float
    unit: str
    runner_up: str | None
    advantage_ratio: float | None
    probability_ahead: float | None
    """That the winner is better than the runner-up; None without one."""
    candidate_count: int
    previous_batch: int | None
    previous_winner: str | None
    is_change: bool
    is_overtaking: bool


@frozen
class SweepCrossing(Series):
    """From which batch on one hardware beats another that was better before."""

    query: ClassVar[str] = "sweep.crossing"

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
