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
    """precision; bf16/int4 where weights of products are stored at another."""
    runtime: str
    """eager, graph, fused or engine."""
    metric: MetricName
    """edp: energy x latency of a batch; energy_per_inference; latency: of a batch."""
    overtaker: str
    """Hardware with the smaller metric from batch on."""
    overtaken: str
    """Hardware with the smaller metric at previous_batch."""
    batch: int
    """The smallest batch of the sweep where the order is turned round."""
    overtaker_value: float
    """At batch, in unit."""
    overtaken_value: float
    """At batch, in unit."""
    unit: str
    """J, s or Js."""
    previous_batch: int
    """The largest smaller batch where they were not equal."""
    previous_overtaker_value: float
    """At previous_batch, in unit."""
    previous_overtaken_value: float
    """At previous_batch, in unit."""
    is_projection: bool
    """Key numbers of one of the two are projections or estimates."""


class SweepPoint(Row, query="sweep.point"):
    """Every run of a sweep: what a larger batch brings and costs; one row per run asked for, refused ones included."""

    model: str
    hardware: str
    """Catalogue id, with @MODE where the power mode is not the default."""
    architecture: str
    """Architecture class."""
    precision: str
    """precision; bf16/int4 where weights of products are stored at another."""
    runtime: str
    """eager, graph, fused or engine."""
    batch: int
    """Samples in one input."""
    status: str
    """Ok or unsupported."""
    latency_s: float | None
    """s: per batch."""
    throughput_per_s: float | None
    """1/s: inferences per second."""
    throughput_limit: str | None
    """Latency where a batch starts after another has ended; cores, devices or pipeline stage that always have work;
    memory bandwidth; power cap.
    """
    energy_j: float | None
    """J: per batch, static energy included."""
    energy_per_inference_j: float | None
    """J: energy over batch."""
    inferences_per_j: float | None
    """1/J: inferences per second and watt, which is per joule: efficiency."""
    edp_js: float | None
    """Js: energy x latency."""
    average_power_w: float | None
    """W: energy over the time from one batch to the next."""
    speedup_ratio: float | None
    """Throughput over that at batch 1; null without a run at batch 1."""
    batch_scaling_ratio: float | None
    """throughput(N) / (N x throughput(1)); null without a run at batch 1."""
    compute_utilization_fraction: float | None
    """Operations computed over what the peak allows, in steady state."""
    bandwidth_utilization_fraction: float | None
    """Attained over published off-chip bandwidth."""
    peak_memory_bytes: int | None
    """B: weights and peak activations."""
    clock_fraction: float | None
    """Of the full clock; below 1 where the power cap gives way."""
    is_in_zone: bool
    """In the power-efficiency zone of its model, hardware, precision and runtime."""
    is_projection: bool
    """Key numbers of the hardware are projections or estimates."""
    is_available: bool
    """It can be bought or rented, at a price that is no guess."""
    reason: str
    """Why it is unsupported."""
    run_id: int
    """Number of the run."""


class SweepSeries(Row, query="sweep.series"):
    """The best batch of each hardware: within a latency budget, for throughput and for energy; one row per model,
    hardware, precision and runtime of the runs asked for.
    """

    model: str
    hardware: str
    """Catalogue id, with @MODE where the power mode is not the default."""
    architecture: str
    """Architecture class."""
    precision: str
    """precision; bf16/int4 where weights of products are stored at another."""
    runtime: str
    """eager, graph, fused or engine."""
    batch_count: int
    """Batches that it runs."""
    refused_count: int
    """Batches that it cannot run."""
    least_latency_batch: int | None
    """Batch with the least latency; ties go to the smaller batch, here and below."""
    least_latency_s: float | None
    """s: its latency."""
    budget_batch: int | None
    """Batch of the highest throughput within the budget; null without a budget or where none keeps it."""
    budget_throughput_per_s: float | None
    """1/s: its inferences per second."""
    budget_latency_s: float | None
    """s: its latency."""
    throughput_batch: int | None
    """Batch of the highest throughput."""
    throughput_per_s: float | None
    """1/s: its inferences per second."""
    throughput_latency_s: float | None
    """s: its latency."""
    throughput_limit: str | None
    """Latency where a batch starts after another has ended; cores, devices or pipeline stage that always have work;
    memory bandwidth; power cap.
    """
    energy_batch: int | None
    """Batch of the least energy per inference."""
    energy_per_inference_j: float | None
    """J: its energy per inference."""
    energy_latency_s: float | None
    """s: its latency."""
    zone_low_batch: int | None
    """The power-efficiency zone begins here: batches next to energy_batch with nearly as many inferences per joule."""
    zone_high_batch: int | None
    """And ends here."""
    zone_low_power_w: float | None
    """W: least average power in the zone."""
    zone_high_power_w: float | None
    """W: largest average power in the zone."""
    largest_batch: int | None
    """Largest batch that it runs."""
    largest_speedup_ratio: float | None
    """Throughput there over that at batch 1; null without a run at batch 1."""
    largest_batch_scaling_ratio: float | None
    """throughput(N) / (N x throughput(1)) there; null without a run at batch 1."""
    is_projection: bool
    """Key numbers of the hardware are projections or estimates."""
    is_available: bool
    """It can be bought or rented, at a price that is no guess."""
    reason: str
    """Why it cannot run the smallest batch that it cannot run."""


class SweepWinner(Row, query="sweep.winner"):
    """Which hardware is best at each batch of a sweep, and where that changes; one row per model, precision,
    runtime, metric and batch.
    """

    model: str
    precision: str
    """precision; bf16/int4 where weights of products are stored at another."""
    runtime: str
    """eager, graph, fused or engine."""
    metric: MetricName
    """edp: energy x latency of a batch; energy_per_inference; latency: of a batch."""
    batch: int
    """Samples in one input."""
    winner: str
    """Hardware with the least metric; ties go to the first name."""
    value: float
    """The winner's, in unit."""
    unit: str
    """J, s or Js."""
    runner_up: str | None
    """Second best; null without one."""
    advantage_ratio: float | None
    """runner-up over winner."""
    probability_ahead: float | None
    """That the winner is better than the runner-up; null without one."""
    candidate_count: int
    """Hardware that run this batch."""
    previous_batch: int | None
    """The next smaller batch of the sweep; null for the first."""
    previous_winner: str | None
    """Winner at the next smaller batch."""
    is_change: bool
    """Whether the winner is another than at the next smaller batch."""
    is_overtaking: bool
    """Whether the previous winner runs this batch too and is beaten; false where it cannot run it."""
