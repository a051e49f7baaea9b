"""Rows of the queries of `queries/model`, made from their headers by `make rows`."""

from __future__ import annotations

from joulemap.row import Row


class ModelCaveat(Row, query="model.assumption"):
    """What the trace of a workload had to assume, or could not count; one row per assumption, and one per ATen
    operator without a formula.
    """

    kind: str
    """uncounted: only its bytes are counted; assumed: a worst case stands for what depends on data."""
    text: str
    """ATen operator, or what was assumed and where."""
    operator_count: int | None
    """How many operators are uncounted; null for an assumption."""


class Caveat(Row, query="model.caveat"):
    """What the trace of the runs' workloads had to assume, or could not count; one row per assumption, and one per
    ATen operator without a formula.
    """

    kind: str
    """uncounted: only its bytes are counted; assumed: a worst case stands for what depends on data."""
    text: str
    """ATen operator, or what was assumed and where."""
    operator_count: int | None
    """How many operators are uncounted; null for an assumption."""


class OperationShare(Row, query="model.mix"):
    """What a workload consists of, by operation; one row per operation that depends on an input, views apart."""

    operation: str
    """conv2d, relu, add."""
    kind: str
    """What it is to a mapping model."""
    operator_count: int
    """Operators."""
    operator_fraction: float
    """Of all operators."""
    mac_count: int
    """multiply-accumulates."""
    mac_fraction: float | None
    """Of all MACs."""
    elementwise_count: int
    """additions, multiplications, comparisons."""
    special_count: int
    """exp, tanh, erf, rsqrt."""
    moved_bytes: int
    """B: read and written, unfused."""
    moved_fraction: float | None
    """Of all bytes."""


class ModulePart(Row, query="model.module"):
    """One run by the modules of its model, each with all that runs inside it; one row per module in which an
    operator runs, the model itself first; own energies, latencies and MACs sum to the run, exactly.
    """

    module_index: int
    """A module before those inside it, these in the order of their first operators."""
    module: str
    """Its path, that of its first use where several hold it; empty for the model itself."""
    depth: int
    """Modules that it is inside of."""
    output_shape: str
    """Of the last operator that runs inside it, e.g. 1x64x56x56."""
    operator_count: int
    """Operators that run inside it."""
    weight_count: int
    """Elements of the parameters and buffers that these read, each once."""
    mac_count: int
    """multiply-accumulates."""
    latency_s: float
    """s: of its operators; one that is fused has its share of the kernel's."""
    energy_j: float
    """J: of its operators, static energy included."""
    latency_fraction: float | None
    """Of the run's latency."""
    energy_fraction: float | None
    """Of the run's energy."""
    own_mac_count: int
    """Of the operators that it calls itself."""
    own_latency_fs: int
    """fs: of the operators that it calls itself, exact."""
    own_energy_fj: int
    """fJ: of the operators that it calls itself, exact."""


class ListedOperator(Row, query="model.operator"):
    """The operators of a workload in execution order; one row per operator."""

    operator_index: int
    """Execution order."""
    name: str
    """Module path, with the operation where the module holds several."""
    operation: str
    """conv2d, relu, add."""
    output_shape: str
    """e.g. 1x64x56x56."""
    dtype: str
    """Of the output."""
    mac_count: int
    """multiply-accumulates."""
    skipped_mac_count: int
    """MACs of these that a causal mask hides, which a kernel that skips them does not do."""
    elementwise_count: int
    """additions, multiplications, comparisons."""
    special_count: int
    """exp, tanh, erf, rsqrt."""
    input_bytes: int
    """B: activations read."""
    weight_bytes: int
    """B: parameters and constants read."""
    output_bytes: int
    """B: written."""
    bias_element_count: int
    """Elements of the bias that a convolution or linear layer adds as part of itself; 0 without one."""
    bias_addition_count: int
    """Additions that it makes of it, in elementwise_count."""
    subgraph_index: int
    """The one subgraph that holds it."""
    fusion_pattern: str
    """Of its subgraph."""
    aten: str
    """Dispatched ATen operator."""
    is_counted: bool
    """Whether its arithmetic has a formula."""


class PatternShare(Row, query="model.pattern"):
    """The fusion patterns of a workload; one row per pattern of what depends on an input, views apart."""

    fusion_pattern: str
    """Operations in order."""
    subgraph_count: int
    """Subgraphs."""
    operator_count: int
    """Operators in them, views included."""
    mac_count: int
    """multiply-accumulates."""
    mac_fraction: float | None
    """Of all MACs."""
    moved_bytes: int
    """B: read and written, unfused."""
    fused_moved_bytes: int
    """B: read and written, fused."""
    saved_fraction: float | None
    """Part of the bytes that fusing keeps on chip."""


class ModelProfile(Row, query="model.profile"):
    """A workload as a whole, before any hardware is chosen; one row."""

    name: str
    """Model."""
    batch: int
    """Samples in one input."""
    input_spec: str
    """Shapes and dtypes of the inputs."""
    parameter_count: int
    """Elements of all parameters, shared ones once."""
    mac_count: int
    """multiply-accumulates; of these and the next, none that depend on no input."""
    skipped_mac_count: int
    """Those that a causal mask hides: kernels that skip them do mac_count less these."""
    flop_count: int
    """Two for each multiply-accumulate."""
    elementwise_count: int
    """additions, multiplications, comparisons."""
    special_count: int
    """exp, tanh, erf, rsqrt."""
    foldable_mac_count: int
    """multiply-accumulates that depend on no input: a compiler folds them ahead, eager and graph run them."""
    foldable_elementwise_count: int
    """additions, multiplications, comparisons of that kind, as of a weight's norm."""
    operator_count: int
    """operators, views included."""
    subgraph_count: int
    """Subgraphs."""
    uncounted_count: int
    """Operators whose arithmetic has no formula."""
    weight_bytes: int
    """B: parameters and buffers read."""
    weight_read_bytes: int
    """B: of them read by operators: of experts those that are hit, of an embedding its rows."""
    moved_bytes: int
    """B: read and written when every operator is a kernel."""
    fused_moved_bytes: int
    """B: read and written when every subgraph is a kernel, and what depends on no input is folded ahead."""
    peak_activation_bytes: int
    """B: largest sum of live activations over the execution order."""
    fused_peak_activation_bytes: int
    """B: the same without what a subgraph keeps on chip."""
    arithmetic_intensity_ops_per_byte: float | None
    """Operations of all products over moved_bytes."""
    fused_arithmetic_intensity_ops_per_byte: float | None
    """FLOPs over fused_moved_bytes."""
    assumption_count: int
    """What the trace had to assume; see the view assumptions."""
    is_shipped: bool
    """Traced when joulemap was made, not here."""
    torch_version: str
    """Torch that traced it."""
    torchvision_version: str
    """Torchvision that built it."""
    tracer_version: str
    """Digest of the rules by which it was traced and fused."""
