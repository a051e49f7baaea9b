"""Rows of the queries of `queries/pareto`, made from their headers by `make rows`."""

from __future__ import annotations

from joulemap.row import Row


class ParetoPoint(Row, query="pareto.front"):
    """Which configurations no other one beats in two metrics at once, and who beats the rest; one row per run asked
    for, refused ones included.
    """

    status: str
    """front; projection: it would be on the front if it could be had; dominated: another is at least as good in
    both and better in one; unplaced: a price is not known; unsupported.
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
    x_value: float | None
    """Of the metric x, in x_unit."""
    x_unit: str | None
    """Unit of x_value."""
    y_value: float | None
    """Of the metric y, in y_unit."""
    y_unit: str | None
    """Unit of y_value."""
    dominated_by: str | None
    """The configuration of the front that beats it by the largest x_ratio x y_ratio; null on the front."""
    dominated_by_run_id: int | None
    """Its run."""
    x_ratio: float | None
    """How many times better that one is in x."""
    y_ratio: float | None
    """How many times better that one is in y."""
    dominator_count: int
    """Configurations of the front that beat it."""
    probability_front: float | None
    """That no other configuration beats it in both; null for what others beat by more than three times, and beyond
    the 200 nearest.
    """
    x_half_width: float | None
    """Of the 80 % interval of the natural logarithm of x_value; null as before."""
    y_half_width: float | None
    """Of the same of y_value."""
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
    pay: str
    """rented, bought or both: how chips are paid for, the same in every row."""
    way: str | None
    """Rented or bought: what usd_per_million pays for; null where that has no price."""
    is_available: bool
    """It can be bought or rented, at a price that is no guess."""
    reason: str
    """Why it is unplaced or unsupported; empty otherwise."""
    run_id: int
    """Number of the run."""
