"""What comparing in depth hands out: parts, trees, several models, rankings for a deployment."""

from __future__ import annotations

import attrs


@attrs.frozen
class PartFigure:
    """A row of `compare.part`: a subgraph or operator on one hardware."""

    model: str
    part_index: int
    name: str
    kind: str
    fusion_pattern: str
    hardware: str
    metric: str
    value: float
    unit: str
    rank: int
    ratio: float | None
    winner: str
    is_winner: bool
    tied_count: int
    energy_j: float
    latency_s: float
    edp_share_js: float
    memory_bytes: float
    bottleneck: str
    units_used_count: int
    run_id: int
    workload_id: int


@attrs.frozen
class Victory:
    """A row of `compare.victory`: how many parts of a kind one hardware runs at the least cost."""

    model: str
    hardware: str
    kind: str
    part_count: int
    won_count: int
    tied_count: int
    won_fraction: float
    verdict: str
    hardware_won_count: int
    hardware_tied_count: int
    all_part_count: int
    workload_id: int


@attrs.frozen
class RunDetail:
    """A row of `compare.detail`: one run as a whole; every figure of an unsupported row is None."""

    model: str
    hardware: str
    architecture: str
    batch: int
    precision: str
    runtime: str
    status: str
    energy_fj: int | None
    energy_j: float | None
    energy_per_inference_j: float | None
    compute_energy_j: float | None
    memory_energy_j: float | None
    control_energy_j: float | None
    static_energy_j: float | None
    latency_s: float | None
    throughput_per_s: float | None
    average_power_w: float | None
    edp_js: float | None
    compute_utilization_fraction: float | None
    bandwidth_utilization_fraction: float | None
    units_used_count: int | None
    units_total_count: int | None
    unit_name: str
    peak_memory_bytes: int | None
    activation_bytes: int | None
    weight_bytes: int | None
    memory_capacity_bytes: float | None
    compute_bound_count: int | None
    memory_bound_count: int | None
    launch_bound_count: int | None
    compute_time_fraction: float | None
    memory_time_fraction: float | None
    launch_time_fraction: float | None
    clock_fraction: float | None
    is_projection: bool
    reason: str
    run_id: int


@attrs.frozen
class EnergyBranch:
    """A row of `compare.tree`: an action in its category, in one run."""

    model: str
    hardware: str
    category: str
    category_energy_fj: int
    category_energy_j: float
    category_fraction: float | None
    common_category: str
    component: str
    action: str
    part: str
    energy_fj: int
    energy_j: float
    share_fraction: float | None
    category_share_fraction: float | None
    run_id: int


@attrs.frozen
class ModelFigure:
    """A row of `compare.matrix`: one model on one hardware, and its ranks both ways; None where it was refused."""

    model: str
    batch: int
    hardware: str
    architecture: str
    status: str
    metric: str
    value: float | None
    unit: str
    hardware_rank: int | None
    hardware_ratio: float | None
    tied_count: int
    model_rank: int | None
    model_ratio: float | None
    hardware_won_count: int
    model_count: int
    energy_j: float | None
    latency_s: float | None
    throughput_per_s: float | None
    average_power_w: float | None
    edp_js: float | None
    peak_memory_bytes: int | None
    compute_utilization_fraction: float | None
    mac_count: int | None
    ops_per_j: float | None
    parameter_count: int
    is_projection: bool
    reason: str
    run_id: int
    workload_id: int


@attrs.frozen
class RankedHardware:
    """A row of `compare.ranking`: one hardware in the order that a deployment asks for; None where it was refused."""

    rank: int | None
    hardware: str
    architecture: str
    deployment: list[str]
    status: str
    sort: str
    best_ratio: float | None
    latency_s: float | None
    throughput_per_s: float | None
    average_power_w: float | None
    inferences_per_s_per_w: float | None
    energy_per_inference_j: float | None
    tdp_w: float | None
    batch: int
    precision: str
    runtime: str
    model: str
    is_projection: bool
    reason: str
    run_id: int


@attrs.frozen
class UtilizationSpread:
    """A row of `compare.spread`: how utilization spreads over the subgraphs of a run, and what bounds them."""

    hardware: str
    mean_utilization_fraction: float | None
    min_utilization_fraction: float | None
    min_kind: str | None
    min_name: str | None
    max_utilization_fraction: float | None
    max_kind: str | None
    max_name: str | None
    idle_kind: str | None
    idle_time_fraction: float | None
    subgraph_count: int
    compute_bound_count: int
    memory_bound_count: int
    launch_bound_count: int
    compute_time_fraction: float | None
    memory_time_fraction: float | None
    launch_time_fraction: float | None
    run_id: int


@attrs.frozen
class HardwareNumber:
    """A row of `compare.geometry`: a number of what the hardware of a run is made of."""

    hardware: str
    section: str
    quantity: str
    value: float
    unit: str
    basis: str
    unit_name: str
    memory_type: str
    fact_index: int
    run_id: int
