"""Rows of the queries of `queries/export`, made from their headers by `make rows`."""

from __future__ import annotations

from joulemap.row import Row


class Step(Row, query="export.operator"):
    """The operators of one run as they follow each other, with the kernel that runs each; one row per operator that
    runs; energies and latencies sum to the run, exactly.
    """

    place: int
    """What orders kernels: the last operator of a subgraph where it is one kernel, else the operator."""
    operator_index: int
    """Execution order."""
    subgraph_index: int
    """Of the subgraph, in the order of first operators."""
    name: str
    """Of the operator: module path, with the operation where the module holds several; of a subgraph that of the
    operator that leads it.
    """
    module_path: str
    """Module that calls it; empty for the model itself."""
    operation: str
    """Of the operator, or of that which leads the subgraph: conv2d, linear, add."""
    kind: str
    """What it is to a mapping model."""
    aten: str
    """Dispatched ATen operator."""
    output_shape: str
    """e.g. 1x64x56x56."""
    subgraph: str
    """Name of the operator that leads the subgraph."""
    fusion_pattern: str
    """Operations of the subgraph, in order."""
    is_fused: bool
    """Its subgraph is one kernel."""
    kernel_count: int
    """Kernels launched; of an operator 1 where it leads a kernel, else 0."""
    bottleneck: str
    """The largest of compute, memory and launch time of its subgraph."""
    units_used_count: int
    """Of those, with work in the fullest wave of its subgraph."""
    units_total_count: int
    """Of those, that there are at this precision."""
    unit_name: str
    """What one of the units is called that do the work of its subgraph: of the hardware, or others that take what
    these leave.
    """
    mac_count: int
    """multiply-accumulates."""
    moved_bytes: float
    """B: across the borders of its kernels; of an operator its part of it."""
    dram_bytes: float
    """B: read and written off chip."""
    latency_fs: int
    """fs: exact."""
    energy_fj: int
    """fJ: exact."""
    compute_fj: int
    """fJ: of arithmetic and its registers, exact."""
    memory_fj: int
    """fJ: of moving and keeping data, exact."""
    control_fj: int
    """fJ: of deciding what happens next, and of what regulators lose, exact."""
    static_fj: int
    """fJ: static power x the time from one batch to the next, exact."""
    energy_j: float
    """J: energy, static energy included."""
    latency_s: float
    """s: of its kernels; of an operator its share of its kernel's."""
    edp_share_js: float
    """Js: (E_i T + E t_i) / 2; adds up to E T."""


class Sample(Row, query="export.sample"):
    """What one run takes where: time, bytes and MACs of each operator, energy of each of its actions; one row per
    operator, without an action, and one per operator and action; every amount sums to the run.
    """

    operator_index: int
    """Order in which the model calls it."""
    name: str
    """Of the operator: module path, with the operation where the module holds several."""
    module_path: str
    """Module that calls it; empty for the model itself."""
    operation: str
    """conv2d, relu, add."""
    subgraph: str
    """Name of the operator that leads its subgraph."""
    component: str
    """What acts; empty for the operator itself."""
    action: str
    """What it does."""
    category: str
    """The architecture's own."""
    common_category: str
    """Of all architectures."""
    basis: str
    """Where the price comes from."""
    energy_fj: int
    """fJ: exact; 0 for the operator itself."""
    latency_fs: int
    """fs: exact; 0 for an action."""
    moved_bytes: float
    """B: across the borders of its kernel; 0 for an action."""
    dram_bytes: float
    """B: read and written off chip; 0 for an action."""
    mac_count: int
    """multiply-accumulates; 0 for an action."""
