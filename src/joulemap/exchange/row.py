"""Rows that files of other programs are made of."""

from __future__ import annotations

from typing import ClassVar

from joulemap.record import frozen


@frozen(kw_only=True)
class Subject:
    """The run that a file is about."""

    model: str
    hardware: str
    title: str
    """Model, hardware and configuration in a line."""
    energy_fj: int
    latency_fs: int
    weight_bytes: int


@frozen
class Sample:
    """An operator with its time, bytes and MACs, or one of its actions with its energy."""

    query: ClassVar[str] = "export.sample"

    operator_index: int
    name: str
    module_path: str
    """Module that calls it; empty for the model itself."""
    operation: str
    subgraph: str
    """Name of the operator that leads it."""
    component: str
    """Empty for the operator itself."""
    action: str
    category: str
    """The architecture's own."""
    common_category: str
    basis: str
    energy_fj: int
    latency_fs: int
    moved_bytes: float
    """Across the borders of its kernel."""
    dram_bytes: float
    mac_count: int


@frozen
class Step:
    """An operator as it runs."""

    query: ClassVar[str] = "export.operator"

    place: int
    """What orders kernels."""
    operator_index: int
    subgraph_index: int
    name: str
    module_path: str
    operation: str
    kind: str
    aten: str
    output_shape: str
    subgraph: str
    """Name of the operator that leads it."""
    fusion_pattern: str
    is_fused: bool
    """Whether its subgraph is one kernel."""
    kernel_count: int
    bottleneck: str
    """Of its subgraph, as are the units used."""
    units_used_count: int
    units_total_count: int
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
