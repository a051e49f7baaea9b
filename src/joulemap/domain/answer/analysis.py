"""What taking one run apart hands out."""

from __future__ import annotations

import attrs


@attrs.frozen
class RunTotal:
    """The row of `analyze.total`: one run as a whole. Energy and latency are per batch."""

    model: str
    hardware: str
    architecture: str
    batch: int
    precision: str
    runtime: str
    is_projection: bool
    energy_fj: int
    energy_j: float
    compute_energy_j: float
    memory_energy_j: float
    control_energy_j: float
    static_energy_j: float
    energy_per_inference_j: float
    assumed_energy_fraction: float | None
    recalled_energy_fraction: float | None
    latency_fs: int
    latency_s: float
    throughput_per_s: float
    edp_js: float
    average_power_w: float
    static_power_w: float
    tdp_w: float
    clock_fraction: float
    nominal_power_w: float
    """At the nominal clock: above the cap where that lowers the clock."""
    mac_count: int
    attained_ops_per_s: float
    peak_ops_per_s: float
    compute_utilization_fraction: float
    dram_bytes: float
    memory_bandwidth_bytes_per_s: float
    bandwidth_utilization_fraction: float
    peak_memory_bytes: int
    weight_bytes: int
    activation_bytes: int
    memory_capacity_bytes: float
    memory_fraction: float
    unit_name: str
    units_used_count: int
    units_total_count: int
    tile_count: float
    wave_count: float
    wave_fill_fraction: float | None
    """Tiles over waves x units; None where nothing has a tile."""
    executed_mac_count: float | None
    """MAC slots of the tiles, padding included; None for a run stored before schema 5."""
    padding_fraction: float | None
    subgraph_count: int
    operator_count: int
    kernel_count: int
    run_id: int


@attrs.frozen
class CategoryShare:
    """A row of `analyze.category`: one category of a run's energy."""

    category: str
    common_categories: str
    """Those of all architectures that its actions belong to, most energy first."""
    parts: str
    kind_count: int
    energy_fj: int
    energy_j: float
    share_fraction: float | None
    largest_action: str
    """`component.action` that takes most of it."""
    largest_action_fraction: float | None


@attrs.frozen
class ActionShare:
    """A row of `analyze.action`: one action of a run, count x energy per action."""

    category: str
    common_category: str
    component: str
    action: str
    part: str
    per: str
    action_count: float
    energy_per_action_j: float
    energy_fj: int
    energy_j: float
    share_fraction: float | None
    category_fraction: float | None
    basis: str
    source: str


@attrs.frozen
class SubgraphShare:
    """A row of `analyze.subgraph`: one subgraph's part of a run, and its allocation."""

    subgraph_index: int
    name: str
    fusion_pattern: str
    operator_count: int
    kernel_count: int
    mac_count: int
    energy_fj: int
    energy_j: float
    compute_energy_j: float
    memory_energy_j: float
    control_energy_j: float
    static_energy_j: float
    share_fraction: float | None
    latency_fs: int
    latency_s: float
    latency_fraction: float | None
    edp_share_js: float
    edp_share_fraction: float | None
    bottleneck: str
    compute_s: float
    memory_s: float
    launch_s: float
    dram_bytes: float
    units_used_count: int
    units_total_count: int
    tile_count: float
    wave_count: float
    wave_fill_fraction: float | None
    """Tiles over waves x units; None without tiles."""
    executed_mac_count: float | None
    padding_fraction: float | None
    """The part of the tiles' MAC slots without a MAC."""
    compute_utilization_fraction: float | None
    bandwidth_utilization_fraction: float | None


@attrs.frozen
class OperatorShare:
    """A row of `analyze.operator`: one operator's part of a run, and what fusing it saves."""

    operator_index: int
    subgraph_index: int
    name: str
    operation: str
    kind: str
    mac_count: int
    energy_fj: int
    energy_j: float
    compute_energy_j: float
    memory_energy_j: float
    control_energy_j: float
    static_energy_j: float
    share_fraction: float | None
    latency_fs: int
    latency_s: float
    latency_fraction: float | None
    edp_share_js: float
    edp_share_fraction: float | None
    is_fused: bool
    separate_energy_j: float
    separate_latency_s: float
    saved_energy_j: float | None
    """Separate minus own; None where it is not fused."""
    saved_latency_s: float | None


@attrs.frozen
class BottleneckShare:
    """A row of `analyze.bottleneck`: what is bound by compute, memory or launch."""

    bottleneck: str
    subgraph_count: int
    latency_fs: int
    latency_s: float
    latency_fraction: float | None
    energy_fj: int
    energy_j: float
    energy_fraction: float | None
    busy_s: float
    """Its own time in all subgraphs; compute and memory overlap."""
