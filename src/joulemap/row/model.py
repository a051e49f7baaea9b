"""Rows of the queries of `queries/model`, made from their headers by `make rows`."""

from __future__ import annotations

from joulemap.row import Row


class ModelCaveat(Row, query="model.assumption"):
    """What the trace of a workload had to assume, or could not count; one row per assumption, and one per ATen
    operator without a formula.
    """

    kind: str
    text: str
    operator_count: int | None


class Caveat(Row, query="model.caveat"):
    """What the trace of the runs' workloads had to assume, or could not count; one row per assumption, and one per
    ATen operator without a formula.
    """

    kind: str
    text: str
    operator_count: int | None


class OperationShare(Row, query="model.mix"):
    """What a workload consists of, by operation; one row per operation that depends on an input, views apart."""

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


class ModulePart(Row, query="model.module"):
    """One run by the modules of its model, each with all that runs inside it; one row per module in which an
    operator runs, the model itself first; own energies, latencies and MACs sum to the run, exactly.
    """

    module_index: int
    module: str
    depth: int
    output_shape: str
    operator_count: int
    weight_count: int
    mac_count: int
    latency_s: float
    energy_j: float
    latency_fraction: float | None
    energy_fraction: float | None
    own_mac_count: int
    own_latency_fs: int
    own_energy_fj: int


class ListedOperator(Row, query="model.operator"):
    """The operators of a workload in execution order; one row per operator."""

    operator_index: int
    name: str
    operation: str
    output_shape: str
    dtype: str
    mac_count: int
    skipped_mac_count: int
    elementwise_count: int
    special_count: int
    input_bytes: int
    weight_bytes: int
    output_bytes: int
    bias_element_count: int
    bias_addition_count: int
    subgraph_index: int
    fusion_pattern: str
    aten: str
    is_counted: bool


class PatternShare(Row, query="model.pattern"):
    """The fusion patterns of a workload; one row per pattern of what depends on an input, views apart."""

    fusion_pattern: str
    subgraph_count: int
    operator_count: int
    mac_count: int
    mac_fraction: float | None
    moved_bytes: int
    fused_moved_bytes: int
    saved_fraction: float | None


class ModelProfile(Row, query="model.profile"):
    """A workload as a whole, before any hardware is chosen; one row."""

    name: str
    batch: int
    input_spec: str
    parameter_count: int
    mac_count: int
    skipped_mac_count: int
    flop_count: int
    elementwise_count: int
    special_count: int
    foldable_mac_count: int
    foldable_elementwise_count: int
    operator_count: int
    subgraph_count: int
    uncounted_count: int
    weight_bytes: int
    weight_read_bytes: int
    moved_bytes: int
    fused_moved_bytes: int
    peak_activation_bytes: int
    fused_peak_activation_bytes: int
    arithmetic_intensity_ops_per_byte: float | None
    fused_arithmetic_intensity_ops_per_byte: float | None
    assumption_count: int
    is_shipped: bool
    torch_version: str
    torchvision_version: str
    tracer_version: str
