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
    rank: int | None
    miss_rank: int | None
    hardware: str
    architecture: str
    precision: str
    batch: int
    runtime: str
    objective_value: float | None
    objective_unit: str | None
    objective_ratio: float | None
    objective_half_width: float | None
    probability_best: float | None
    likely_best: bool
    probability_kept: float | None
    latency_s: float | None
    energy_j: float | None
    energy_per_inference_j: float | None
    throughput_per_s: float | None
    throughput_limit: str | None
    average_power_w: float | None
    total_power_w: float | None
    peak_memory_bytes: int | None
    edp_per_inference_js: float | None
    price_cloud_usd_per_hour: float | None
    price_purchase_usd: float | None
    pay: str
    way: str | None
    usd_per_million: float | None
    rented_usd_per_million: float | None
    bought_usd_per_million: float | None
    price_half_width: float
    told: str
    gco2_per_million: float | None
    failed_count: int
    failed: str
    worst_limit: MetricName | None
    worst_value: float | None
    worst_bound: float | None
    worst_unit: str | None
    violation_fraction: float | None
    is_available: bool
    reason: str
    run_id: int


class Violation(Row, query="recommend.violation"):
    """Which limit each configuration misses, and by how much; one row per evaluated run and limit that it does not
    keep.
    """

    hardware: str
    precision: str
    batch: int
    runtime: str
    limit_name: str
    value: float | None
    bound: float
    excess: float | None
    violation_fraction: float | None
    unit: str
    run_id: int
