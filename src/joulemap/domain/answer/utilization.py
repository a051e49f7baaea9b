"""What asking how well hardware is used hands out."""

from __future__ import annotations

import attrs


@attrs.frozen
class Utilization:
    """A row of `utilization.summary`: how much of its hardware a run uses."""

    model: str
    batch: int
    precision: str
    runtime: str
    hardware: str
    architecture: str
    status: str
    attained_ops_per_s: float | None
    peak_ops_per_s: float | None
    compute_utilization_fraction: float | None
    attained_bytes_per_s: float | None
    memory_bandwidth_bytes_per_s: float | None
    bandwidth_utilization_fraction: float | None
    """Of the published bandwidth."""
    sustained_bandwidth_fraction: float | None
    """Of the bandwidth that the class sustains."""
    arithmetic_intensity_ops_per_byte: float | None
    dram_intensity_ops_per_byte: float | None
    ridge_ops_per_byte: float | None
    ridge_ratio: float | None
    roof: str | None
    roofline_ops_per_s: float | None
    roofline_fraction: float | None
    compute_time_fraction: float | None
    memory_time_fraction: float | None
    launch_time_fraction: float | None
    units_used_count: int | None
    units_total_count: int | None
    unit_name: str
    idle_units_fraction: float | None
    average_power_w: float | None
    tdp_w: float
    ops_per_j: float | None
    peak_ops_per_j: float | None
    clock_fraction: float | None
    flags: list[str]
    """Of low_compute, high_bandwidth and idle_units, in this order."""
    is_projection: bool
    reason: str
    run_id: int


@attrs.frozen
class UtilizationFlag:
    """A row of `utilization.flag`: what is unhealthy about a run, and which subgraphs are the reason."""

    hardware: str
    flag: str
    value_fraction: float
    limit_fraction: float
    cost: str
    bottleneck: str
    bottleneck_fraction: float | None
    subgraph_count: int
    total_count: int
    subgraph_index: int
    subgraph: str
    subgraph_fraction: float | None
    tile_count: float
    units_used_count: int
    units_total_count: int
    unit_name: str
    run_id: int


@attrs.frozen
class Pairing:
    """A row of `utilization.pairing`: which hardware wins most often for a size of model, a precision and a batch."""

    least_parameter_count: int
    precision: str
    batch: int
    goal: str
    hardware: str
    architecture: str
    won_count: int
    entered_count: int
    contest_count: int
    model_count: int
    hardware_count: int
    median_value: float
    unit: str
    median_advantage_ratio: float | None
    median_utilization_fraction: float
    runner_up: str | None
    runner_up_won_count: int | None
    is_projection: bool
