"""A traced model: operators, the tensors between them, and the subgraphs they fuse to."""

from __future__ import annotations

from typing import Final, Literal

import attrs

from joulemap.domain.key import WorkloadKey
from joulemap.domain.kind import KINDS, ROLES

CAUSAL: Final = "causal"
"""Word of `Operator.variant` for attention whose tokens see none that come behind them."""

NARROW_CACHES: Final = {"fp8": "cache_fp8", "int8": "cache_int8"}
"""Precision of one byte -> word of it for attention whose keys and values are stored so."""

WIDE_CACHE: Final = "cache_bf16"
"""Word of it for attention whose keys and values are stored in two bytes each, whatever the precision of a run."""

DEQUANTIZE: Final = "dequantize"
"""Word of it for what makes weights wide for the product that reads them."""

KEPT: Final = "kept"
"""Word of it for products whose weights quantizers leave at 16 bits."""

STORED_AS: Final = "="
"""Between two formats in a word of it: where weights are stored in the first, those of this product are in the second,
as `nvfp4=fp8_block`."""

APPEND: Final = "append"
"""Word of it for what joins new rows to a past that is given, which an engine writes beside it; the past is what it
reads first."""

APPENDED: Final = ": engine writes them beside it, eager, graph and fused copy it all"
"""End of the note on such a past."""

EVENLY: Final = "evenly, so that"
"""Words of the note that rows are taken to choose so, as tokens choose experts."""

ROUTED: Final = ("grouped_mm", "scatter_add")
"""Operations of what was chosen: one product of all experts, or a sum of what each of a loop over them gives."""

DECOMPOSITION: Final = "decomposition"
"""Word of it for a factorization or solver: steps that wait for one another, in fp32 or wider at any precision."""

SPREAD: Final = "spread"
"""Second word of a decomposition whose steps update the whole matrix with products, which all units share."""

BATCHED: Final = "batched"
"""Second word of a decomposition of small matrices: one unit takes all steps of one, other units take others."""

FEW_TOKENS: Final = 4
"""Queries of a sequence up to which attention is that of a step behind a cache, guesses of a few tokens included."""

OPTIMIZER: Final = "optimizer"
"""Module path of what changes weights, which training alone does."""

Work = Literal["model", "decode", "experts", "training", "decomposition"]


@attrs.frozen(kw_only=True)
class Operator:
    """One ATen-level operation with its counts. Counts are for the whole batch."""

    name: str
    """Unique in the workload: module path, with the operation where the module holds several."""
    module_path: str
    operation: str
    """`conv2d`, `relu`, `add` …"""
    kind: str = attrs.field(validator=attrs.validators.in_(KINDS))
    aten: str
    """The dispatched ATen operator, e.g. `aten.conv2d.default`."""
    output_shape: tuple[int, ...]
    dtype: str
    mac_count: int = 0
    elementwise_count: int = 0
    """Additions, multiplications, comparisons on single elements."""
    special_count: int = 0
    """exp, tanh, erf, reciprocal square root …"""
    output_element_count: int = 0
    gemm_m: int = 0
    """Rows of the GEMM view (batch x output positions); 0 where there are no MACs."""
    gemm_n: int = 0
    gemm_k: int = 0
    gemm_groups: int = 0
    """Independent GEMMs of this size; of a decomposition without a GEMM view, its matrices."""
    tap_count: int = 1
    """Taps of a convolution or pooling window."""
    is_foldable: bool = False
    """Whether it depends on no model input, so that a compiler computes it once."""
    scalars: str = ""
    """Scalar arguments that matter (stride, padding, …), as text."""
    variant: str = ""
    """What of an attention decides which kernel runs it: `causal`, `cache_fp8`, the name of a family of kernels;
    `dequantize` of what makes weights wide for the product that reads them; `append` of what joins rows to a past;
    `kept` of products whose weights quantizers leave at 16 bits; `decomposition` of factorizations and solvers."""
    step_count: int = 1
    """Steps of a recurrence or decomposition that wait for one another inside the one call; 1 for all else. Counts are
    of all steps, and so are the rows of its GEMM view."""

    @property
    def skipped_mac_count(self) -> int:
        """MACs of `mac_count` that a causal mask hides: of S queries each sees one key less than the next.

        A kernel that skips them does not do them; scores, which scale each element, have their keys in N, the weighted
        sum in K.
        """
        if not self.mac_count or CAUSAL not in self.variant.split():
            return 0
        keys = self.gemm_n if self.elementwise_count else self.gemm_k
        hidden = min(self.gemm_m, keys) * (min(self.gemm_m, keys) - 1) // 2
        return self.mac_count // (self.gemm_m * keys) * hidden

    @property
    def is_decomposition(self) -> bool:
        """Whether it is a factorization or solver."""
        return DECOMPOSITION in self.variant.split()

    @property
    def is_view(self) -> bool:
        """Whether the operator only renames memory."""
        return self.kind == "view"


@attrs.frozen(kw_only=True)
class Tensor:
    """One value that flows between operators, or a parameter."""

    shape: tuple[int, ...]
    dtype: str
    byte_count: int
    """Of the storage that the tensor owns, 0 for a view."""
    role: str = attrs.field(validator=attrs.validators.in_(("activation", "parameter", "input", "constant")))
    name: str = ""
    """Of a parameter or buffer."""
    producer_index: int | None = None
    """Operator that made it; None for inputs, parameters and constants."""
    buffer_index: int | None = None
    """The activation storage that holds it; None for parameters and constants."""
    is_output: bool = False
    """Whether the model returns it."""


@attrs.frozen(kw_only=True)
class Access:
    """One operator's traffic on one tensor."""

    operator_index: int
    tensor_index: int
    role: str = attrs.field(validator=attrs.validators.in_(ROLES))
    byte_count: int
    """When the operator is a kernel of its own, at the traced dtype."""
    fused_byte_count: int
    """When its subgraph is one kernel: 0 for what stays on chip, once for what several members read."""
    item_bytes: int
    """Of one element if floating point of 16 bits or more, else 0: such traffic does not scale with precision."""
    is_boundary: bool
    """Whether the tensor enters or leaves the model."""


@attrs.frozen(kw_only=True)
class Edge:
    """A data dependence between two operators."""

    producer_index: int
    consumer_index: int
    tensor_index: int


@attrs.frozen(kw_only=True)
class Buffer:
    """Storage of activations, with the operators between which it is alive."""

    birth_index: int
    death_index: int
    """The last operator that reads it, or the last of all for what the model returns."""
    release_index: int
    """The last operator during which a program that runs operator by operator holds it: at least until the module
    call that it was passed to returns."""
    byte_count: int
    item_bytes: int
    is_hidden: bool
    """Whether it never leaves its subgraph, so that a fused kernel does not allocate it."""


@attrs.frozen(kw_only=True)
class Subgraph:
    """Operators fused together, with the name of their pattern."""

    pattern: str
    """Operations in order, e.g. `conv2d+batch_norm+relu`."""
    name: str
    """Of the operator that leads it."""
    operator_indices: tuple[int, ...]
    step_count: int = 1
    """Steps that wait for one another inside its one kernel: of a recurrence, or of a loop whose members are those of
    all its repetitions; 1 for all else."""


@attrs.frozen(kw_only=True)
class Workload:
    """A traced and fused model at one input shape."""

    key: WorkloadKey
    model: str
    """The name that it was asked for by."""
    batch: int
    parameter_count: int
    """Elements of all parameters of the module, shared ones once."""
    weight_bytes: int
    """Of all parameters and buffers that the forward pass reads, at the traced dtype."""
    operators: tuple[Operator, ...]
    tensors: tuple[Tensor, ...]
    accesses: tuple[Access, ...]
    edges: tuple[Edge, ...]
    buffers: tuple[Buffer, ...]
    subgraphs: tuple[Subgraph, ...]
    notes: tuple[str, ...] = ()
    """What the trace had to assume."""
    inner_batch: int = 1
    """Samples in each of the batch: the batch that a single operator states of itself."""

    @property
    def work(self) -> Work:
        """Sort of work, by which errors of predictions are told apart: what was measured of one says little of another.

        `training`: weights are changed. `decomposition`: steps of decompositions outnumber all other operators and
        steps. `experts`: tokens choose among weights. `decode`: most attention is of a few tokens behind a cache.
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
        """MACs of these that causal masks hide."""
        return sum(operator.skipped_mac_count for operator in self.operators)
