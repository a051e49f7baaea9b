"""Rows of the queries of `queries/pareto`, made from their headers by `make rows`."""

from __future__ import annotations

from joulemap.row import Row


class ParetoPoint(Row, query="pareto.front"):
    """Which configurations no other one beats in two metrics at once, and who beats the rest; one row per run asked
    for, refused ones included.
    """

    status: str
    hardware: str
    architecture: str
    precision: str
    batch: int
    runtime: str
    x_value: float | None
    x_unit: str | None
    y_value: float | None
    y_unit: str | None
    dominated_by: str | None
    dominated_by_run_id: int | None
    x_ratio: float | None
    y_ratio: float | None
    dominator_count: int
    probability_front: float | None
    x_half_width: float | None
    y_half_width: float | None
    latency_s: float | None
    energy_per_inference_j: float | None
    throughput_per_s: float | None
    throughput_limit: str | None
    average_power_w: float | None
    peak_memory_bytes: int | None
    edp_per_inference_js: float | None
    pay: str
    way: str | None
    is_available: bool
    reason: str
    run_id: int
