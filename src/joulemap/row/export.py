"""Rows of the queries of `queries/export`, made from their headers by `make rows`."""

from __future__ import annotations

from joulemap.row import Row


class Step(Row, query="export.operator"):
    """The operators of one run as they follow each other, with the kernel that runs each; one row per operator that
    runs; energies and latencies sum to the run, exactly.
    """

    place: int
    operator_index: int
    subgraph_index: int
    name: str
    module_path: str
    operation: str
    kind: str
    aten: str
    output_shape: str
    subgraph: str
    fusion_pattern: str
    is_fused: bool
    kernel_count: int
    bottleneck: str
    units_used_count: int
    units_total_count: int
    unit_name: str
    mac_count: int
    moved_bytes: float
    dram_bytes: float
    latency_fs: int
    energy_fj: int
    compute_fj: int
    memory_fj: int
    control_fj: int
    static_fj: int
    energy_j: float
    latency_s: float
    edp_share_js: float


class Sample(Row, query="export.sample"):
    """What one run takes where: time, bytes and MACs of each operator, energy of each of its actions; one row per
    operator, without an action, and one per operator and action; every amount sums to the run.
    """

    operator_index: int
    name: str
    module_path: str
    operation: str
    subgraph: str
    component: str
    action: str
    category: str
    common_category: str
    basis: str
    energy_fj: int
    latency_fs: int
    moved_bytes: float
    dram_bytes: float
    mac_count: int
