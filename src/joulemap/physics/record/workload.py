"""Traced models: operators, the tensors between them, and their fused subgraphs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, Literal

import attrs

from joulemap.physics.record.kind import KINDS, ROLES
from joulemap.system.record import frozen


@frozen(kw_only=True)
class WorkloadKey:
    """Inputs of a trace. Equal keys give equal workloads."""

    source: str
    """Origin of the model: `torchvision:resnet18`, `file:<digest>:<path>:<factory>`, or `module:<digest>:`."""
    input_spec: str
    """Input shapes and dtypes, e.g. `1x3x224x224:fp32`."""
    torch_version: str
    torchvision_version: str
    tracer_version: str
    """Digest of the tracing and fusion rules."""

    @property
    def digest(self) -> str:
        """Sixteen hexadecimal digits of a SHA-256 over all fields."""
        import hashlib

        text = "\n".join(f"{field.name}={getattr(self, field.name)}" for field in attrs.fields(WorkloadKey))
        return hashlib.sha256(text.encode()).hexdigest()[:16]


NO_KEY: Final = WorkloadKey(source="", input_spec="", torch_version="", torchvision_version="", tracer_version="")
"""Key of a workload that is evaluated but not stored."""

CAUSAL: Final = "causal"
"""Word in `Operator.variant` for attention with a causal mask."""

NARROW_CACHES: Final = {"fp8": "cache_fp8", "int8": "cache_int8"}
"""One-byte precision -> word in `Operator.variant` for attention with keys and values at that precision."""

WIDE_CACHE: Final = "cache_bf16"
"""Word in `Operator.variant` for attention with two-byte keys and values at any precision of a run."""

DEQUANTIZE: Final = "dequantize"
"""Word in `Operator.variant` for an operator that dequantizes the weights of the next GEMM."""

KEPT: Final = "kept"
"""Word in `Operator.variant` for a GEMM whose weights stay at 16 bits in a quantized checkpoint."""

LOOKUP: Final = "embedding"
"""Operation that reads rows of a table of weights."""

STORED_AS: Final = "="
"""Separator of two weight formats in a word of `Operator.variant`, as in `nvfp4=fp8_block`. In checkpoints whose main
format is the first one, the weights of this GEMM, or the rows of this table, have the second.
"""

APPEND: Final = "append"
"""Word in `Operator.variant` for a concatenation of earlier keys or values with new rows. An engine writes the new rows
in place.
"""

APPENDED: Final = ": runtime engine writes the new rows in place; eager, graph and fused copy all rows"
"""Last words of the note on a model that appends rows to keys and values."""

EVENLY: Final = "evenly, so that"
"""Words in every note on the assumption that choices, such as tokens among experts, are even."""

READS_DATA: Final = "Python code reads data"
"""Words in every note on data that Python code reads, so that other data may take another path."""

ROUTED: Final = ("grouped_mm", "scatter_add")
"""Operations that show a mixture of experts: one GEMM of all experts, or the sum in a loop over experts."""

DECOMPOSITION: Final = "decomposition"
"""Word in `Operator.variant` for a factorization or solver. It runs in sequential steps, in fp32 or wider at any
precision.
"""

SPREAD: Final = "spread"
"""Second word in `Operator.variant` of a decomposition whose steps update the whole matrix with GEMMs on all units."""

BATCHED: Final = "batched"
"""Second word in `Operator.variant` of a decomposition of small matrices; one unit runs all steps of a matrix."""

FEW_TOKENS: Final = 4
"""Maximum queries per sequence at which attention counts as a decode step; more than one if tokens are speculated."""

OPTIMIZER: Final = "optimizer"
"""Module path of operators that update weights, present in training only."""

Work = Literal["model", "decode", "experts", "training", "decomposition"]


@attrs.frozen(kw_only=True)
class Operator:
    """ATen-level operation with its counts. Counts are for the whole batch."""

    name: str
    """Name, unique in the workload: module path, plus the operation if the module holds several."""
    module_path: str
    operation: str
    """Operation: `conv2d`, `relu`, `add` …"""
    kind: str = attrs.field(validator=attrs.validators.in_(KINDS))
    aten: str
    """Dispatched ATen operator, e.g. `aten.conv2d.default`."""
    output_shape: tuple[int, ...]
    dtype: str
    mac_count: int = 0
    elementwise_count: int = 0
    """Additions, multiplications and comparisons of single elements."""
    special_count: int = 0
    """Special functions: exp, tanh, erf, reciprocal square root …"""
    output_element_count: int = 0
    gemm_m: int = 0
    """Rows of the GEMM view (batch x output positions); 0 without MACs."""
    gemm_n: int = 0
    gemm_k: int = 0
    gemm_groups: int = 0
    """Number of independent GEMMs of this size; for a decomposition without a GEMM view, the number of matrices."""
    tap_count: int = 1
    """Number of elements in the window of a convolution or pooling; 1 for other operators."""
    is_foldable: bool = False
    """True if no model input affects the operator, so that a compiler evaluates it once."""
    scalars: str = ""
    """Relevant scalar arguments (stride, padding, …), as text."""
    variant: str = ""
    """Words that select the kernel, separated by spaces. For attention: `causal`, `cache_fp8`, or a kernel family.
    `dequantize`: dequantizes weights for a GEMM. `append`: joins rows to earlier keys or values. `kept`: a GEMM whose
    weights quantizers leave at 16 bits. `decomposition`: a factorization or solver.
    """
    step_count: int = 1
    """Sequential steps of a recurrence or decomposition within one call; 1 for all others. Counts and rows of the GEMM
    view cover all steps.
    """
    run_count: int = 1
    """Sequential runs of the operator per inference, each with equal inputs and the same weights; 1 unless a pipeline
    repeats its stage. Counts, rows of the GEMM view and bytes of activations cover all runs.
    """

    @property
    def skipped_mac_count(self) -> int:
        """MACs in `mac_count` that a causal mask makes unnecessary; some kernels skip them.

        A query sees one key fewer than the next query. Keys are dimension N in the GEMM of the scores, and K in the
        weighted sum.
        """
        if not self.mac_count or CAUSAL not in self.variant.split():
            return 0
        keys = self.gemm_n if self.elementwise_count else self.gemm_k
        hidden = min(self.gemm_m, keys) * (min(self.gemm_m, keys) - 1) // 2
        return self.mac_count // (self.gemm_m * keys) * hidden

    @property
    def is_decomposition(self) -> bool:
        """True for a factorization or solver."""
        return DECOMPOSITION in self.variant.split()

    @property
    def is_view(self) -> bool:
        """True if the operator only returns another view of its input and moves no data."""
        return self.kind == "view"


@attrs.frozen(kw_only=True)
class Tensor:
    """Value that passes between operators, or a parameter or constant."""

    shape: tuple[int, ...]
    dtype: str
    byte_count: int
    """Bytes of storage that the tensor owns; 0 for a view."""
    role: str = attrs.field(validator=attrs.validators.in_(("activation", "parameter", "input", "constant")))
    name: str = ""
    """Name of a parameter or buffer; empty for others."""
    producer_index: int | None = None
    """Index of the operator that produces the tensor; None for inputs, parameters and constants."""
    buffer_index: int | None = None
    """Index of the buffer that holds the tensor; None for parameters and constants."""
    is_output: bool = False
    """True if the model returns the tensor."""


@attrs.frozen(kw_only=True)
class Access:
    """Traffic of one operator on one tensor."""

    operator_index: int
    tensor_index: int
    role: str = attrs.field(validator=attrs.validators.in_(ROLES))
    byte_count: int
    """Bytes at the traced dtype if the operator runs as a separate kernel."""
    fused_byte_count: int = attrs.field(default=attrs.Factory(lambda self: self.byte_count, takes_self=True))
    """Bytes if the subgraph runs as one kernel. Data that stays on chip counts as 0; data that several operators of the
    subgraph read counts once. Equals `byte_count` until operators are fused.
    """
    item_bytes: int
    """Bytes of one element at the traced dtype, from which traffic at other precisions follows. It is 0 for data whose
    size does not depend on the precision, such as integers.
    """
    is_boundary: bool = False
    """True if the tensor enters or leaves the model."""


@attrs.frozen(kw_only=True)
class Edge:
    """Data dependence between two operators."""

    producer_index: int
    consumer_index: int
    tensor_index: int


@attrs.frozen(kw_only=True)
class Buffer:
    """Activation storage, and the range of operators during which it is live."""

    birth_index: int
    death_index: int
    """Index of the last operator that reads the buffer; for model outputs, of the model's last operator."""
    release_index: int = attrs.field(default=attrs.Factory(lambda self: self.death_index, takes_self=True))
    """Index of the last operator during which an unfused program needs the storage. A tensor stays until the module
    that received it returns.
    """
    byte_count: int
    item_bytes: int
    is_hidden: bool = False
    """True if the storage never leaves its subgraph, so that a fused kernel does not allocate it."""


@attrs.frozen(kw_only=True)
class Subgraph:
    """Operators that are fused into one kernel."""

    pattern: str
    """Operations in order, e.g. `conv2d+batch_norm+relu`."""
    name: str
    """Name of the operator that leads the kernel, such as its GEMM."""
    operator_indices: tuple[int, ...]
    step_count: int = 1
    """Number of sequential steps within the kernel, of a recurrence or of a fused loop; 1 for all other subgraphs."""


READ: Final = "read"
"""Kind of `Finding`: Python read a value that depends on data, on which the model's code may branch."""

SIZED: Final = "sized"
"""Kind of `Finding`: the size of a result depends on data."""

IDLE: Final = "idle"
"""Kind of `Finding`: a module with weights of its own, or all of its parts, never ran."""


@attrs.frozen(kw_only=True)
class Finding:
    """Place where a trace depends on data, or part of a model that the trace did not reach."""

    kind: str = attrs.field(validator=attrs.validators.in_((READ, SIZED, IDLE)))
    module_path: str
    """Module that read the value, or that never ran; empty for the model itself."""
    operator: str = ""
    """Operator or method that reads the data, such as `item`; empty for a module that never ran."""
    file: str = ""
    """Name of the file of the model's code that reads the data."""
    line: int = 0
    """Line in that file; 0 if no code of the model is known."""
    assumed: str = ""
    """Value that Python got in place of the unknown one; empty if only a size is assumed."""


@attrs.frozen(kw_only=True)
class Workload:
    """Traced and fused model at one input shape."""

    key: WorkloadKey
    model: str
    """Model name as the user wrote it."""
    batch: int
    parameter_count: int
    """Elements of all parameters of the module; shared parameters count once."""
    weight_bytes: int
    """Bytes of all parameters and buffers that the forward pass reads, at the traced dtype."""
    operators: tuple[Operator, ...]
    tensors: tuple[Tensor, ...]
    accesses: tuple[Access, ...]
    edges: tuple[Edge, ...]
    buffers: tuple[Buffer, ...]
    subgraphs: tuple[Subgraph, ...] = ()
    """Subgraphs; empty until operators are fused."""
    notes: tuple[str, ...] = ()
    """Assumptions of the trace."""
    findings: tuple[Finding, ...] = ()
    """Places where the trace depends on data, in execution order, and then modules that never ran."""
    inner_batch: int = 1
    """Samples per element of the batch; above 1 only for a single operator with the argument `batch`."""

    @property
    def work(self) -> Work:
        """Kind of work. Prediction errors are grouped by it, because errors of different kinds are hardly related.

        `training`: weights are changed. `decomposition`: steps of decompositions outnumber all other operators and
        steps. `experts`: tokens choose among weights. `decode`: most attention is of a few tokens with a long cache.
        `model`: all else.
        """
        if any(one.module_path == OPTIMIZER for one in self.operators):
            return "training"
        steps = [one.step_count * (1 if one.is_decomposition else -1) for one in self.operators if not one.is_view]
        if sum(steps) > 0:
            return "decomposition"
        routed = any(one.operation in ROUTED for one in self.operators)
        if routed and any(EVENLY in note for note in self.notes):
            return "experts"
        attention = [one for one in self.operators if one.kind == "matmul"]
        few = sum(one.mac_count for one in attention if one.gemm_m <= FEW_TOKENS)
        return "decode" if 2 * few > sum(one.mac_count for one in attention) else "model"

    @property
    def mac_count(self) -> int:
        """MACs of the whole batch."""
        return sum(operator.mac_count for operator in self.operators)

    @property
    def skipped_mac_count(self) -> int:
        """MACs that causal masks skip, for the whole batch."""
        return sum(operator.skipped_mac_count for operator in self.operators)


def allocate(
    tensors: Iterable[Tensor],
    item_bytes: Sequence[int],
    makers: Mapping[int, int | None],
    uses: Iterable[tuple[int, int]],
    outputs: Collection[int],
    last: int,
) -> tuple[tuple[Tensor, ...], tuple[Buffer, ...]]:
    """Return the tensors, each with the index of its buffer, and the buffers. Parameters and constants have no buffer.

    A buffer is live from the operator that produces its tensor (`makers`) to the last access. Inputs and outputs are
    live up to the operator `last`. `item_bytes` has one number per tensor; `uses` are pairs (operator, accessed
    tensor).
    """
    deaths: dict[int, int] = {}
    for operator, tensor_index in uses:
        deaths[tensor_index] = max(deaths.get(tensor_index, 0), operator)
    placed: list[Tensor] = []
    buffers: list[Buffer] = []
    for index, tensor in enumerate(tensors):
        if tensor.role in ("parameter", "constant"):
            placed.append(tensor)
            continue
        birth = makers.get(index) or 0
        is_whole = index in outputs or tensor.role == "input"
        death = last if is_whole else max(birth, deaths.get(index, 0))
        buffers.append(
            Buffer(birth_index=birth, death_index=death, byte_count=tensor.byte_count, item_bytes=item_bytes[index])
        )
        placed.append(attrs.evolve(tensor, buffer_index=len(buffers) - 1, is_output=index in outputs))
    return tuple(placed), tuple(buffers)
