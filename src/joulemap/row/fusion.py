"""Rows of the queries of `queries/fusion`, made from their headers by `make rows`."""

from __future__ import annotations

from joulemap.row import Row


class FusionOperator(Row, query="fusion.operator"):
    """What fusing saves, operator by operator; one row per operator; energies, latencies, shares and bytes add up
    to the run.
    """

    operator_index: int
    subgraph_index: int
    name: str
    operation: str
    kind: str
    fusion_pattern: str
    is_folded: bool
    bias_addition_count: int
    bias_element_count: int
    kernel_count: int
    separate_kernel_count: int
    energy_fj: int
    energy_j: float
    separate_energy_fj: int
    separate_energy_j: float
    saved_energy_fj: int
    saved_energy_j: float
    saved_energy_fraction: float | None
    saved_energy_share_fraction: float | None
    latency_fs: int
    latency_s: float
    separate_latency_fs: int
    separate_latency_s: float
    saved_latency_fs: int
    saved_latency_s: float
    saved_latency_fraction: float | None
    saved_latency_share_fraction: float | None
    edp_share_js: float
    separate_edp_share_js: float
    saved_edp_share_js: float
    saved_edp_fraction: float | None
    saved_edp_share_fraction: float | None
    dram_bytes: float
    separate_dram_bytes: float
    saved_dram_bytes: float
    saved_dram_fraction: float | None
    moved_bytes: float
    separate_moved_bytes: float
    saved_moved_bytes: float
    saved_moved_fraction: float | None
    pass_bytes: float
    separate_pass_bytes: float


class FusionPattern(Row, query="fusion.pattern"):
    """What fusing saves, by fusion pattern; one row per fusion pattern; energies, latencies, shares and bytes add
    up to the run.
    """

    fusion_pattern: str
    subgraph_count: int
    operator_count: int
    biased_count: int
    bias_addition_count: int
    bias_element_count: int
    kernel_count: int
    separate_kernel_count: int
    energy_fj: int
    energy_j: float
    separate_energy_fj: int
    separate_energy_j: float
    saved_energy_fj: int
    saved_energy_j: float
    saved_energy_fraction: float | None
    saved_energy_share_fraction: float | None
    latency_fs: int
    latency_s: float
    separate_latency_fs: int
    separate_latency_s: float
    saved_latency_fs: int
    saved_latency_s: float
    saved_latency_fraction: float | None
    saved_latency_share_fraction: float | None
    edp_share_js: float
    separate_edp_share_js: float
    saved_edp_share_js: float
    saved_edp_fraction: float | None
    saved_edp_share_fraction: float | None
    dram_bytes: float
    separate_dram_bytes: float
    saved_dram_bytes: float
    saved_dram_fraction: float | None
    moved_bytes: float
    separate_moved_bytes: float
    saved_moved_bytes: float
    saved_moved_fraction: float | None
    pass_bytes: float
    separate_pass_bytes: float


class FusionSubgraph(Row, query="fusion.subgraph"):
    """What fusing saves, subgraph by subgraph; one row per subgraph; energies, latencies, shares and bytes add up
    to the run.
    """

    subgraph_index: int
    name: str
    fusion_pattern: str
    operations: str
    operator_count: int
    biased_count: int
    bias_addition_count: int
    bias_element_count: int
    kernel_count: int
    separate_kernel_count: int
    energy_fj: int
    energy_j: float
    separate_energy_fj: int
    separate_energy_j: float
    saved_energy_fj: int
    saved_energy_j: float
    saved_energy_fraction: float | None
    saved_energy_share_fraction: float | None
    latency_fs: int
    latency_s: float
    separate_latency_fs: int
    separate_latency_s: float
    saved_latency_fs: int
    saved_latency_s: float
    saved_latency_fraction: float | None
    saved_latency_share_fraction: float | None
    edp_share_js: float
    separate_edp_share_js: float
    saved_edp_share_js: float
    saved_edp_fraction: float | None
    saved_edp_share_fraction: float | None
    dram_bytes: float
    separate_dram_bytes: float
    saved_dram_bytes: float
    saved_dram_fraction: float | None
    moved_bytes: float
    separate_moved_bytes: float
    saved_moved_bytes: float
    saved_moved_fraction: float | None
    pass_bytes: float
    separate_pass_bytes: float


class FusionTotal(Row, query="fusion.total"):
    """What fusing saves of a run: energy, latency, energy x delay, bytes, kernels; one row."""

    model: str
    hardware: str
    architecture: str
    batch: int
    precision: str
    runtime: str
    separate_runtime: str
    is_projection: bool
    subgraph_count: int
    fused_subgraph_count: int
    operator_count: int
    folded_count: int
    passed_count: int
    clock_fraction: float
    separate_clock_fraction: float
    biased_count: int
    bias_addition_count: int
    bias_element_count: int
    kernel_count: int
    separate_kernel_count: int
    energy_fj: int
    energy_j: float
    separate_energy_fj: int
    separate_energy_j: float
    saved_energy_fj: int
    saved_energy_j: float
    saved_energy_fraction: float | None
    latency_fs: int
    latency_s: float
    separate_latency_fs: int
    separate_latency_s: float
    saved_latency_fs: int
    saved_latency_s: float
    saved_latency_fraction: float | None
    edp_js: float
    separate_edp_js: float
    saved_edp_js: float
    saved_edp_fraction: float | None
    dram_bytes: float
    separate_dram_bytes: float
    saved_dram_bytes: float
    saved_dram_fraction: float | None
    moved_bytes: float
    separate_moved_bytes: float
    saved_moved_bytes: float
    saved_moved_fraction: float | None
    pass_bytes: float
    separate_pass_bytes: float
    run_id: int
    separate_run_id: int
