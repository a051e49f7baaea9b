"""Rows of the queries of `queries/recommend`, made from their headers by `make rows`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from joulemap.row import Row

if TYPE_CHECKING:
    from joulemap.domain.metric import MetricName


class RankedConfiguration(Row, query="recommend.configuration"):
    """Configurations within limits, best first, then those that miss one, nearest first; one row per run asked for,
    refused ones included.
    """

    status: str
    """feasible; unranked: within the limits, but the objective is not known; infeasible; unsupported."""
    rank: int | None
    """1 for the best of the feasible; null for others, and for what can be neither bought nor rented beside what
    can.
    """
    miss_rank: int | None
    """1 for the infeasible one with the smallest violation_fraction; null for others, and for what cannot be had
    beside what can.
    """
    hardware: str
    """Catalogue id, with @MODE where the power mode is not the default."""
    architecture: str
    """Architecture class."""
    precision: str
    """precision; bf16/int4 where weights of products are stored at another."""
    batch: int
    """Samples in one input."""
    runtime: str
    """eager, graph, fused or engine."""
    objective_value: float | None
    """Of the objective, in objective_unit; null where it is not known."""
    objective_unit: str | None
    """Unit of objective_value."""
    objective_ratio: float | None
    """How many times worse it is than the first of the feasible; null without one."""
    objective_half_width: float | None
    """Of the 80 % interval of the objective's natural logarithm; null for memory and prices of chips."""
    probability_best: float | None
    """That it is the best of those that keep the limits; null as before."""
    likely_best: bool
    """It is predicted to be the best, or cannot be told apart from the one that is."""
    probability_kept: float | None
    """That it keeps the limit that is in most doubt, of latency, energy, power and throughput; null without such a
    limit.
    """
    latency_s: float | None
    """s: per batch."""
    energy_per_inference_j: float | None
    """J: energy over batch."""
    throughput_per_s: float | None
    """1/s: inferences per second."""
    throughput_limit: str | None
    """Latency where a batch starts after another has ended; cores, devices or pipeline stage that always have work;
    memory bandwidth; power cap.
    """
    average_power_w: float | None
    """W: energy over the time from one batch to the next."""
    peak_memory_bytes: int | None
    """B: weights and peak activations."""
    edp_per_inference_js: float | None
    """Js: energy of one inference x latency of its batch."""
    price_cloud_usd_per_hour: float | None
    """USD/h: of one chip in a cloud; null where none is known."""
    price_purchase_usd: float | None
    """USD: purchase price; null where none is known."""
    pay: str
    """rented, bought or both: how chips are paid for, the same in every row."""
    way: str | None
    """Rented or bought: what usd_per_million pays for; null where that has no price."""
    usd_per_million: float | None
    """USD: of a million inferences in that way."""
    rented_usd_per_million: float | None
    """USD: of a million inferences, rented."""
    bought_usd_per_million: float | None
    """USD: of a million inferences, bought: the three together."""
    price_half_width: float
    """What the price leaves open of usd_per_million: of the 80 % interval of its natural logarithm; 0 for a given
    one.
    """
    gco2_per_million: float | None
    """g: CO2 of a million inferences."""
    failed_count: int
    """Limits that it does not keep."""
    failed: str
    """Their names."""
    worst_limit: MetricName | None
    """The limit that it misses most; null where it keeps all."""
    worst_value: float | None
    """What it has there, in worst_unit; null where it is not known."""
    worst_bound: float | None
    """What is allowed there."""
    worst_unit: str | None
    """Unit of both."""
    violation_fraction: float | None
    """How far it misses that limit: value / bound - 1, for throughput bound / value - 1; null where it keeps all or
    a price is not known.
    """
    is_available: bool
    """It can be bought or rented, at a price that is no guess."""
    reason: str
    """Why it is unranked or unsupported, or which price is not known; empty otherwise."""
    run_id: int
    """Number of the run."""


class Violation(Row, query="recommend.violation"):
    """Which limit each configuration misses, and by how much; one row per evaluated run and limit that it does not
    keep.
    """

    hardware: str
    """Catalogue id, with @MODE where the power mode is not the default."""
    precision: str
    """precision; bf16/int4 where weights of products are stored at another."""
    batch: int
    """Samples in one input."""
    runtime: str
    """eager, graph, fused or engine."""
    limit_name: str
    """latency, energy, energy_per_inference, memory, power, throughput, price or purchase."""
    value: float | None
    """What it has, in unit; null where no price is known."""
    bound: float
    """What is allowed, in unit."""
    excess: float | None
    """Value - bound, for throughput bound - value, in unit."""
    violation_fraction: float | None
    """Value / bound - 1, for throughput bound / value - 1; null where no price is known."""
    unit: str
    """Unit of value, bound and excess."""
    run_id: int
    """Number of the run."""
