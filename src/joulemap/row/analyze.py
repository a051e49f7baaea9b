"""Rows of the queries of `queries/analyze`, made from their headers by `make rows`."""

from __future__ import annotations

from joulemap.row import Row


class ActionShare(Row, query="analyze.action"):
    """Where a run's energy goes, action by action: count x energy per action; one row per action; actions sum to
    their category and to the run, exactly.
    """

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


class BottleneckShare(Row, query="analyze.bottleneck"):
    """What bounds a run: subgraphs, time and energy by bottleneck; one row per bottleneck, three in all; latencies
    and energies sum to the run, exactly.
    """

    bottleneck: str
    subgraph_count: int
    latency_fs: int
    latency_s: float
    latency_fraction: float | None
    energy_fj: int
    energy_j: float
    energy_fraction: float | None
    busy_s: float


class CategoryShare(Row, query="analyze.category"):
    """Where a run's energy goes, by category of its architecture; one row per category; categories sum to the run,
    exactly.
    """

    category: str
    common_categories: str
    parts: str
    kind_count: int
    energy_fj: int
    energy_j: float
    share_fraction: float | None
    largest_action: str
    largest_action_fraction: float | None


class EventCount(Row, query="analyze.event"):
    """What a run does, in events: instructions, cache lines with hits and misses, branches, warps, tokens, tiles,
    padding; one row per event; those that no operator causes are left out.
    """

    component: str
    event: str
    per: str
    event_count: float
    part_of: str
    share_fraction: float | None
    energy_fj: int | None
    energy_j: float | None
    energy_per_event_j: float | None
    run_fraction: float | None
    meaning: str
    formula: str
    event_index: int


class OperatorShare(Row, query="analyze.operator"):
    """A run operator by operator: energy by part, latency, share, and what fusing it saves; one row per operator;
    energies and latencies sum to the run, exactly.
    """

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
    share_fraction: float
    latency_fs: int
    latency_s: float
    latency_fraction: float
    edp_share_js: float
    edp_share_fraction: float
    is_fused: bool
    separate_energy_j: float
    separate_latency_s: float
    saved_energy_j: float | None
    saved_latency_s: float | None
    dram_bytes: float
    pass_bytes: float
    bias_addition_count: int
    bias_element_count: int


class SubgraphRoof(Row, query="analyze.roofline"):
    """The subgraphs of a run under the roof of its hardware: operations per byte off chip, and operations per
    second; one row per subgraph.
    """

    subgraph_index: int
    name: str
    kind: str
    fusion_pattern: str
    energy_j: float
    latency_s: float
    latency_fraction: float
    bottleneck: str
    dram_bytes: float
    dram_intensity_ops_per_byte: float | None
    attained_ops_per_s: float
    peak_ops_per_s: float
    memory_bandwidth_bytes_per_s: float
    ridge_ops_per_byte: float
    roofline_ops_per_s: float
    roofline_fraction: float | None


class SubgraphShare(Row, query="analyze.subgraph"):
    """A run subgraph by subgraph: energy by part, latency, bottleneck, allocation; one row per subgraph; energies
    and latencies sum to the run, exactly.
    """

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
    share_fraction: float
    latency_fs: int
    latency_s: float
    latency_fraction: float
    edp_share_js: float
    edp_share_fraction: float
    bottleneck: str
    compute_s: float
    memory_s: float
    launch_s: float
    dram_bytes: float
    units_used_count: int
    units_total_count: int
    unit_name: str
    tile_count: float
    wave_count: float
    wave_fill_fraction: float | None
    executed_mac_count: float
    padding_fraction: float | None
    compute_utilization_fraction: float | None
    bandwidth_utilization_fraction: float | None
    pass_bytes: float


class RunTotal(Row, query="analyze.total"):
    """One run as a whole: energy by part, time, utilization, power cap, memory, allocation; one row."""

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
    overhead_energy_j: float
    overhead_fraction: float | None
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
    clock_hz: float
    voltage_factor: float
    uncapped_power_w: float
    interval_s: float
    throughput_limit: str
    mac_count: int
    attained_ops_per_s: float
    peak_ops_per_s: float
    compute_utilization_fraction: float
    dram_bytes: float
    pass_bytes: float
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
    executed_mac_count: float | None
    padding_fraction: float | None
    subgraph_count: int
    operator_count: int
    kernel_count: int
    run_id: int
