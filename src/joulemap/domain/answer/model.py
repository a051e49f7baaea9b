"""What a workload without hardware hands out."""

from __future__ import annotations

import attrs


@attrs.frozen
class ModelProfile:
    """The row of `model.profile`: a model at one input, independent of hardware. Bytes are at the traced dtype."""

    name: str
    batch: int
    input_spec: str
    parameter_count: int
    mac_count: int
    flop_count: int
    elementwise_count: int
    special_count: int
    operator_count: int
    subgraph_count: int
    uncounted_count: int
    weight_bytes: int
    moved_bytes: int
    """When every operator is a kernel of its own."""
    fused_moved_bytes: int
    """When every subgraph is."""
    peak_activation_bytes: int
    fused_peak_activation_bytes: int
    arithmetic_intensity_ops_per_byte: float | None
    fused_arithmetic_intensity_ops_per_byte: float | None
    assumption_count: int
    is_shipped: bool
    torch_version: str
    torchvision_version: str
    tracer_version: str


@attrs.frozen
class OperationShare:
    """A row of `model.mix`: one kind of operation."""

    operation: str
    kind: str
    operator_count: int
    operator_fraction: float
    mac_count: int
    mac_fraction: float | None
    elementwise_count: int
    special_count: int
    moved_bytes: int
    moved_fraction: float | None


@attrs.frozen
class PatternShare:
    """A row of `model.pattern`: subgraphs of one fusion pattern."""

    fusion_pattern: str
    subgraph_count: int
    operator_count: int
    mac_count: int
    mac_fraction: float | None
    moved_bytes: int
    """Unfused."""
    fused_moved_bytes: int
    saved_fraction: float | None
    """The part of the bytes that fusing keeps on chip."""
