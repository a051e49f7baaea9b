"""Rows of the queries of `queries/architectures`, made from their headers by `make rows`."""

from __future__ import annotations

from joulemap.row import Row


class ArchitectureAction(Row, query="architectures.action"):
    """What one MAC takes on each architecture, action by action: count for a MAC x energy per action; one row per
    evaluated run and action; those of a run sum to its energy, exactly.
    """

    architecture: str
    hardware: str
    rank: int
    category_rank: int
    common_category: str
    category: str
    component: str
    action: str
    per: str
    action_count: float
    count_per_mac: float | None
    energy_per_action_j: float
    energy_fj: int
    energy_j: float
    energy_per_mac_j: float | None
    share_fraction: float | None
    basis: str
    source: str
    run_id: int


class ArchitectureCategory(Row, query="architectures.category"):
    """Energy by the categories that all architectures share, of the run and of one MAC, and which is architectural
    overhead; one row per evaluated run and common category, all nine of them; those of a run sum to its energy,
    exactly.
    """

    architecture: str
    hardware: str
    category_index: int
    common_category: str
    is_overhead: bool
    categories: str
    kind_count: int
    energy_fj: int
    energy_j: float
    energy_per_mac_j: float | None
    share_fraction: float | None
    run_id: int


class ArchitectureSummary(Row, query="architectures.summary"):
    """What each architecture spends a model's joules on: energy by common category, of the run and of one MAC, and
    what a MAC takes; one row per run asked for, refused ones included with null figures.
    """

    architecture: str
    hardware: str
    status: str
    model: str
    batch: int
    precision: str
    runtime: str
    latency_s: float | None
    energy_fj: int | None
    energy_j: float | None
    mac_count: int | None
    energy_per_mac_j: float | None
    dynamic_per_mac_j: float | None
    compute_fj: int | None
    register_fj: int | None
    on_chip_memory_fj: int | None
    interconnect_fj: int | None
    off_chip_memory_fj: int | None
    control_fj: int | None
    board_fj: int | None
    static_fj: int | None
    compute_fraction: float | None
    register_fraction: float | None
    on_chip_memory_fraction: float | None
    interconnect_fraction: float | None
    off_chip_memory_fraction: float | None
    control_fraction: float | None
    board_fraction: float | None
    static_fraction: float | None
    compute_per_mac_j: float | None
    register_per_mac_j: float | None
    on_chip_memory_per_mac_j: float | None
    interconnect_per_mac_j: float | None
    off_chip_memory_per_mac_j: float | None
    control_per_mac_j: float | None
    board_per_mac_j: float | None
    static_per_mac_j: float | None
    overhead_fj: int | None
    overhead_fraction: float | None
    overhead_ratio: float | None
    order_name: str | None
    order_count: float | None
    macs_per_order: float | None
    unit_memory_bytes_per_mac: float | None
    chip_memory_bytes_per_mac: float | None
    off_chip_bytes_per_mac: float | None
    compute_utilization_fraction: float | None
    compute_time_fraction: float | None
    memory_time_fraction: float | None
    launch_time_fraction: float | None
    units_used_count: int | None
    units_total_count: int | None
    unit_name: str
    static_power_w: float
    average_power_w: float | None
    process_node_nm: float | None
    clock_fraction: float | None
    assumed_energy_fraction: float | None
    recalled_energy_fraction: float | None
    is_projection: bool
    is_available: bool
    reason: str
    run_id: int
