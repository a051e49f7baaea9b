"""Rows of the queries of `queries/fusion`, made from their headers by `make rows`."""

from __future__ import annotations

from joulemap.row import Row


class FusionOperator(Row, query="fusion.operator"):
    """What fusing saves, operator by operator; one row per operator; energies, latencies, shares and bytes add up
    to the run.
    """

    operator_index: int
    """Execution order."""
    subgraph_index: int
    """In the order of first operators."""
    name: str
    """Of the operator, or of that which leads the subgraph."""
    operation: str
    """What its kernel does, in order, and where a bias is part of it."""
    kind: str
    """What it is to a mapping model."""
    fusion_pattern: str
    """Operations of its subgraph in order."""
    is_folded: bool
    """Depends on no input, so that a compiler computes it once and the fused run not at all."""
    bias_addition_count: int
    """Additions of its bias; 0 without one."""
    bias_element_count: int
    """Elements of its bias."""
    kernel_count: int
    """1 where it leads a kernel."""
    separate_kernel_count: int
    """1 where it leads a kernel of one ATen call."""
    energy_fj: int
    """fJ: fused, exact."""
    energy_j: float
    """J: fused."""
    separate_energy_fj: int
    """fJ: as a kernel of its own, exact."""
    separate_energy_j: float
    """J: as a kernel of its own."""
    saved_energy_fj: int
    """fJ: separate minus fused, exact; below 0 where fusing costs."""
    saved_energy_j: float
    """J: separate minus fused; below 0 where fusing costs."""
    saved_energy_fraction: float | None
    """Of what it takes separately."""
    saved_energy_share_fraction: float | None
    """Of the energy that the run saves."""
    latency_fs: int
    """fs: fused, exact."""
    latency_s: float
    """s: fused."""
    separate_latency_fs: int
    """fs: as a kernel of its own, exact."""
    separate_latency_s: float
    """s: as a kernel of its own."""
    saved_latency_fs: int
    """fs: separate minus fused, exact; below 0 where fusing costs."""
    saved_latency_s: float
    """s: separate minus fused; below 0 where fusing costs."""
    saved_latency_fraction: float | None
    """Of what it takes separately."""
    saved_latency_share_fraction: float | None
    """Of the latency that the run saves."""
    edp_share_js: float
    """Js: fused: (E_i T + E t_i) / 2; adds up to E T of the fused run."""
    separate_edp_share_js: float
    """Js: separate: the same of the separate energies and latencies."""
    saved_edp_share_js: float
    """Js: (dE_i (T + T') + (E + E') dt_i) / 2 of what is saved; adds up to E T separate minus E T fused, and is 0
    where nothing changes.
    """
    saved_edp_fraction: float | None
    """Of the run's separate energy-delay product."""
    saved_edp_share_fraction: float | None
    """Of the energy-delay product that the run saves."""
    dram_bytes: float
    """B: fused: read and written off chip."""
    separate_dram_bytes: float
    """B: as a kernel of its own: read and written off chip."""
    saved_dram_bytes: float
    """B: separate minus fused."""
    saved_dram_fraction: float | None
    """Of what moves off chip separately."""
    moved_bytes: float
    """B: fused: crossing kernel boundaries at any level."""
    separate_moved_bytes: float
    """B: as a kernel of its own: crossing its boundary."""
    saved_moved_bytes: float
    """B: separate minus fused."""
    saved_moved_fraction: float | None
    """Of what crosses separately."""
    pass_bytes: float
    """B: fused: written and read again by passes that the runtime adds, an epilogue of a library's product."""
    separate_pass_bytes: float
    """B: as a kernel of its own: of such passes, a bias in a kernel of its own, a batch norm alone."""


class FusionPattern(Row, query="fusion.pattern"):
    """What fusing saves, by fusion pattern; one row per fusion pattern; energies, latencies, shares and bytes add
    up to the run.
    """

    fusion_pattern: str
    """Operations of its subgraph in order."""
    subgraph_count: int
    """Subgraphs in it."""
    operator_count: int
    """Operators in it."""
    biased_count: int
    """Convolutions and linear layers that add a bias as part of themselves."""
    bias_addition_count: int
    """Additions of its bias; 0 without one."""
    bias_element_count: int
    """Elements of its bias."""
    kernel_count: int
    """1 where it leads a kernel."""
    separate_kernel_count: int
    """1 where it leads a kernel of one ATen call."""
    energy_fj: int
    """fJ: fused, exact."""
    energy_j: float
    """J: fused."""
    separate_energy_fj: int
    """fJ: as a kernel of its own, exact."""
    separate_energy_j: float
    """J: as a kernel of its own."""
    saved_energy_fj: int
    """fJ: separate minus fused, exact; below 0 where fusing costs."""
    saved_energy_j: float
    """J: separate minus fused; below 0 where fusing costs."""
    saved_energy_fraction: float | None
    """Of what it takes separately."""
    saved_energy_share_fraction: float | None
    """Of the energy that the run saves."""
    latency_fs: int
    """fs: fused, exact."""
    latency_s: float
    """s: fused."""
    separate_latency_fs: int
    """fs: as a kernel of its own, exact."""
    separate_latency_s: float
    """s: as a kernel of its own."""
    saved_latency_fs: int
    """fs: separate minus fused, exact; below 0 where fusing costs."""
    saved_latency_s: float
    """s: separate minus fused; below 0 where fusing costs."""
    saved_latency_fraction: float | None
    """Of what it takes separately."""
    saved_latency_share_fraction: float | None
    """Of the latency that the run saves."""
    edp_share_js: float
    """Js: fused: (E_i T + E t_i) / 2; adds up to E T of the fused run."""
    separate_edp_share_js: float
    """Js: separate: the same of the separate energies and latencies."""
    saved_edp_share_js: float
    """Js: (dE_i (T + T') + (E + E') dt_i) / 2 of what is saved; adds up to E T separate minus E T fused, and is 0
    where nothing changes.
    """
    saved_edp_fraction: float | None
    """Of the run's separate energy-delay product."""
    saved_edp_share_fraction: float | None
    """Of the energy-delay product that the run saves."""
    dram_bytes: float
    """B: fused: read and written off chip."""
    separate_dram_bytes: float
    """B: as a kernel of its own: read and written off chip."""
    saved_dram_bytes: float
    """B: separate minus fused."""
    saved_dram_fraction: float | None
    """Of what moves off chip separately."""
    moved_bytes: float
    """B: fused: crossing kernel boundaries at any level."""
    separate_moved_bytes: float
    """B: as a kernel of its own: crossing its boundary."""
    saved_moved_bytes: float
    """B: separate minus fused."""
    saved_moved_fraction: float | None
    """Of what crosses separately."""
    pass_bytes: float
    """B: fused: written and read again by passes that the runtime adds, an epilogue of a library's product."""
    separate_pass_bytes: float
    """B: as a kernel of its own: of such passes, a bias in a kernel of its own, a batch norm alone."""


class FusionSubgraph(Row, query="fusion.subgraph"):
    """What fusing saves, subgraph by subgraph; one row per subgraph; energies, latencies, shares and bytes add up
    to the run.
    """

    subgraph_index: int
    """In the order of first operators."""
    name: str
    """Of the operator, or of that which leads the subgraph."""
    fusion_pattern: str
    """Operations of its subgraph in order."""
    operations: str
    """What its kernel does, in order, and where a bias is part of it."""
    operator_count: int
    """Operators in it."""
    biased_count: int
    """Convolutions and linear layers that add a bias as part of themselves."""
    bias_addition_count: int
    """Additions of its bias; 0 without one."""
    bias_element_count: int
    """Elements of its bias."""
    kernel_count: int
    """1 where it leads a kernel."""
    separate_kernel_count: int
    """1 where it leads a kernel of one ATen call."""
    energy_fj: int
    """fJ: fused, exact."""
    energy_j: float
    """J: fused."""
    separate_energy_fj: int
    """fJ: as a kernel of its own, exact."""
    separate_energy_j: float
    """J: as a kernel of its own."""
    saved_energy_fj: int
    """fJ: separate minus fused, exact; below 0 where fusing costs."""
    saved_energy_j: float
    """J: separate minus fused; below 0 where fusing costs."""
    saved_energy_fraction: float | None
    """Of what it takes separately."""
    saved_energy_share_fraction: float | None
    """Of the energy that the run saves."""
    latency_fs: int
    """fs: fused, exact."""
    latency_s: float
    """s: fused."""
    separate_latency_fs: int
    """fs: as a kernel of its own, exact."""
    separate_latency_s: float
    """s: as a kernel of its own."""
    saved_latency_fs: int
    """fs: separate minus fused, exact; below 0 where fusing costs."""
    saved_latency_s: float
    """s: separate minus fused; below 0 where fusing costs."""
    saved_latency_fraction: float | None
    """Of what it takes separately."""
    saved_latency_share_fraction: float | None
    """Of the latency that the run saves."""
    edp_share_js: float
    """Js: fused: (E_i T + E t_i) / 2; adds up to E T of the fused run."""
    separate_edp_share_js: float
    """Js: separate: the same of the separate energies and latencies."""
    saved_edp_share_js: float
    """Js: (dE_i (T + T') + (E + E') dt_i) / 2 of what is saved; adds up to E T separate minus E T fused, and is 0
    where nothing changes.
    """
    saved_edp_fraction: float | None
    """Of the run's separate energy-delay product."""
    saved_edp_share_fraction: float | None
    """Of the energy-delay product that the run saves."""
    dram_bytes: float
    """B: fused: read and written off chip."""
    separate_dram_bytes: float
    """B: as a kernel of its own: read and written off chip."""
    saved_dram_bytes: float
    """B: separate minus fused."""
    saved_dram_fraction: float | None
    """Of what moves off chip separately."""
    moved_bytes: float
    """B: fused: crossing kernel boundaries at any level."""
    separate_moved_bytes: float
    """B: as a kernel of its own: crossing its boundary."""
    saved_moved_bytes: float
    """B: separate minus fused."""
    saved_moved_fraction: float | None
    """Of what crosses separately."""
    pass_bytes: float
    """B: fused: written and read again by passes that the runtime adds, an epilogue of a library's product."""
    separate_pass_bytes: float
    """B: as a kernel of its own: of such passes, a bias in a kernel of its own, a batch norm alone."""


class FusionTotal(Row, query="fusion.total"):
    """What fusing saves of a run: energy, latency, energy x delay, bytes, kernels; one row."""

    model: str
    hardware: str
    """Catalogue id, with @MODE where the power mode is not the default."""
    architecture: str
    """Architecture class."""
    batch: int
    """Samples in one input."""
    precision: str
    """precision; bf16/int4 where weights of products are stored at another."""
    runtime: str
    """Of the fused run."""
    separate_runtime: str
    """How the operators run separately: graph, without host cost, or eager."""
    is_projection: bool
    """Key numbers of the hardware are projections or estimates."""
    subgraph_count: int
    """Subgraphs that run fused."""
    fused_subgraph_count: int
    """Of them, those that take fewer kernels fused than separate."""
    operator_count: int
    """Operators that run fused."""
    folded_count: int
    """Operators that depend on no input and are computed once: they run separately, and not fused."""
    passed_count: int
    """Subgraphs whose fused kernel has a pass that the runtime adds."""
    clock_fraction: float
    """Of the full clock, fused; below 1 where the power cap gives way."""
    separate_clock_fraction: float
    """Of the full clock, separate."""
    biased_count: int
    """Convolutions and linear layers that add a bias as part of themselves."""
    bias_addition_count: int
    """Additions that they make of it."""
    bias_element_count: int
    """Elements of their biases."""
    kernel_count: int
    """Kernels that run."""
    separate_kernel_count: int
    """Kernels where every ATen call is one."""
    energy_fj: int
    """fJ: fused, exact."""
    energy_j: float
    """J: fused."""
    separate_energy_fj: int
    """fJ: as kernels of their own, exact."""
    separate_energy_j: float
    """J: as kernels of their own."""
    saved_energy_fj: int
    """fJ: separate minus fused, exact; below 0 where fusing costs."""
    saved_energy_j: float
    """J: separate minus fused; below 0 where fusing costs."""
    saved_energy_fraction: float | None
    """Of what it takes separately."""
    latency_fs: int
    """fs: fused, exact."""
    latency_s: float
    """s: fused."""
    separate_latency_fs: int
    """fs: as kernels of their own, exact."""
    separate_latency_s: float
    """s: as kernels of their own."""
    saved_latency_fs: int
    """fs: separate minus fused, exact; below 0 where fusing costs."""
    saved_latency_s: float
    """s: separate minus fused; below 0 where fusing costs."""
    saved_latency_fraction: float | None
    """Of what it takes separately."""
    edp_js: float
    """Js: E T, fused."""
    separate_edp_js: float
    """Js: E T of the separate energies and latencies."""
    saved_edp_js: float
    """Js: separate minus fused; below 0 where fusing costs."""
    saved_edp_fraction: float | None
    """Of the separate one."""
    dram_bytes: float
    """B: fused: read and written off chip."""
    separate_dram_bytes: float
    """B: as kernels of their own: read and written off chip."""
    saved_dram_bytes: float
    """B: separate minus fused."""
    saved_dram_fraction: float | None
    """Of what moves off chip separately."""
    moved_bytes: float
    """B: fused: crossing kernel boundaries at any level."""
    separate_moved_bytes: float
    """B: as kernels of their own: crossing their boundaries."""
    saved_moved_bytes: float
    """B: separate minus fused."""
    saved_moved_fraction: float | None
    """Of what crosses separately."""
    pass_bytes: float
    """B: fused: written and read again by passes that the runtime adds, an epilogue of a library's product."""
    separate_pass_bytes: float
    """B: as kernels of their own: of such passes, a bias in a kernel of its own."""
    run_id: int
    """Number of the fused run."""
    separate_run_id: int
    """Number of the run whose operators are separate."""
