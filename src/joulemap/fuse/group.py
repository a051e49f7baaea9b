"""Groups of operators for one kernel: which operator may join, and which groups may merge.

A kernel without a GEMM iterates over elements. The extent of the kernel is the number of elements. A reduction takes
rows of them, and the value of a row is available to all elements of that row.
"""

from __future__ import annotations

from itertools import accumulate
from operator import mul
from typing import Final

import attrs

from joulemap.domain.workload import Operator

ANCHORS: Final = frozenset({"conv", "depthwise_conv", "grouped_conv", "linear", "matmul"})
"""Kinds that lead a kernel; a subgraph has one, or two matmuls around a softmax (attention)."""

POINTWISE: Final = frozenset({"batch_norm", "elementwise"})
"""Kinds that need only the current element, so that they run in the epilogue of any kernel."""

ROWWISE: Final = frozenset({"softmax", "normalization"})
"""Kinds that need a whole row; they fuse with pointwise operators around them, not with a GEMM's epilogue."""

JOINING: Final = frozenset({"append", "cat", "constant_pad_nd", "pad", "repeat", "slice_scatter", "stack"})
"""Movements whose result may be larger than each operand; a kernel computes each operand at its place in the result."""

MOVING: Final = JOINING | {
    "channel_shuffle", "clone", "contiguous", "copy", "dropout", "flip", "one_hot", "pixel_shuffle", "pixel_unshuffle",
    "repeat_interleave", "reshape", "roll", "rot90", "to", "to_copy", "tril", "triu", "type_as", "unsafe_view",
    "upsample_nearest",
}  # fmt: skip
"""Movements that place each element by its index, so that a kernel computes the moved value itself."""

GATHERING: Final = frozenset({"embedding", "gather", "index", "index_select", "take", "unsafe_index"})
"""Movements that read at a computed index: a kernel computes the index, but not the value read there."""

FILLING: Final = frozenset({
    "arange", "eye", "fill", "full", "full_like", "lift_fresh", "linspace", "new_full", "new_ones", "new_zeros", "ones",
    "ones_like", "scalar_tensor", "zero", "zeros", "zeros_like",
})  # fmt: skip
"""Movements that read nothing."""

PARTIAL: Final = frozenset({"copy", "fill", "zero"})
"""Movements that may write only a part of their destination."""

STENCILS: Final = frozenset(
    {"grid_sample", *(f"upsample_{mode}" for mode in ("linear", "bilinear", "trilinear", "bicubic"))}
)
"""Operations that read the neighbours of an element, so that their input must be complete."""

REDUCING: Final = frozenset({"adaptive_avg_pool", "logsumexp", "moment", "reduce"})
"""Reductions of rows; sorting and searching are separate kernels."""

MOST: Final = 64
"""Maximum operators of a kernel without a GEMM; a compiler's limit (`max_fusion_size` of Inductor)."""

UNROLLED: Final = 8
"""Maximum elements of a row that a kernel reduces in sequence for each result (`unroll_reductions_threshold`)."""

LONGEST_ROW: Final = 2**18
"""Maximum elements of a row that one block reads twice; several blocks reduce a longer one."""


def reduced_extent(operator: Operator) -> int:
    """Return the number of elements that a reduction reads, from its counts."""
    if operator.operation == "moment":
        return operator.elementwise_count // 4
    if operator.operation == "logsumexp":
        return operator.special_count - operator.output_element_count
    return operator.elementwise_count - operator.output_element_count


def row_count(operator: Operator) -> int:
    """Return the number of rows of a softmax or a normalization."""
    if operator.kind == "normalization" and operator.special_count:
        return operator.special_count
    length = operator.output_shape[-1] if operator.output_shape else 1
    return operator.output_element_count // max(length, 1)


@attrs.define
class Group:
    """Operators of one kernel, collected so far; views have only an index."""

    indices: list[int] = attrs.field(factory=list)
    size: int = 0
    """Number of operators other than views."""
    kinds: set[str] = attrs.field(factory=set)
    anchors: list[Operator] = attrs.field(factory=list)
    last: Operator | None = None
    """Last operator other than views; None if there is none."""
    extent: int = 0
    """Elements that the kernel iterates over."""
    rows: int | None = None
    """Rows that the kernel reduces to; None if nothing is reduced."""
    is_foldable: bool = False
    """True if a compiler folds the operator."""
    is_cheap: bool = True
    """True if a larger kernel may recompute the operator per element: no special function, reduction or window."""
    is_closed: bool = False
    """True if no operator may join the group."""

    def take(self, operator: Operator) -> None:
        """Add an operator that computes."""
        self.size += 1
        self.kinds.add(operator.kind)
        self.last = operator
        self.is_foldable = operator.is_foldable
        if operator.kind in ANCHORS:
            self.anchors.append(operator)
        if is_unrolled(operator):
            self.extent = 0
        elif reduces(operator):
            self.rows = operator.output_element_count
            self.extent = max(self.extent, reduced_extent(operator))
        elif operator.kind in ROWWISE:
            self.rows = row_count(operator)
        self.extent = max(self.extent, operator.output_element_count)
        is_special = operator.special_count > 0 and not operator.dtype.startswith("int")
        self.is_cheap &= self.rows is None and not is_special and operator.kind != "pool"

    def absorb(self, other: Group) -> None:
        """Add the operators of another group, in any order."""
        self.indices.extend(other.indices)
        self.size += other.size
        self.kinds |= other.kinds
        self.extent = max(self.extent, other.extent)
        self.rows = other.rows if self.rows is None else self.rows
        self.is_cheap &= other.is_cheap


def begin(operator: Operator) -> Group:
    """Return an empty group for an operator that computes."""
    begins = is_elementwise(operator) or reduces(operator) or operator.kind in ANCHORS | ROWWISE | {"pool"}
    return Group(is_closed=not begins and operator.operation not in GATHERING | FILLING)


def is_elementwise(operator: Operator) -> bool:
    """Return whether an operator needs only the current elements, wherever it writes them."""
    return operator.kind in POINTWISE or (operator.kind == "data_movement" and operator.operation in MOVING)


def reduces(operator: Operator) -> bool:
    """Return whether an operator reduces rows to one value each; one that writes as much as it reads is a scan."""
    is_reduction = operator.kind == "reduction" and operator.operation in REDUCING
    return is_reduction and reduced_extent(operator) > operator.output_element_count


def is_unrolled(operator: Operator) -> bool:
    """Return whether a reduction is small enough for a kernel to repeat it for each result."""
    return reduces(operator) and reduced_extent(operator) <= UNROLLED * operator.output_element_count


def may_end(group: Group, operator: Operator) -> bool:
    """Return whether a kernel with a GEMM can compute an operator right after its last one."""
    if group.last is None or group.is_closed:
        return False
    if operator.kind == "matmul":
        (anchor, *others) = group.anchors
        return (
            not others
            and anchor.kind == "matmul"
            and "softmax" in group.kinds
            and group.kinds <= {"matmul", "softmax"} | POINTWISE
            and operator.gemm_groups == anchor.gemm_groups
            and operator.gemm_k == anchor.gemm_n
        )
    if group.last.output_element_count != operator.output_element_count:
        return False
    if operator.kind in POINTWISE:
        # Resizing to the same size copies; a sampled position may lie in any tile of the GEMM.
        return operator.operation != "grid_sample" and group.kinds <= ANCHORS | POINTWISE | ROWWISE
    return operator.kind == "softmax" and "matmul" in group.kinds and group.kinds <= {"matmul"} | POINTWISE


def may_take(group: Group, operator: Operator) -> bool:
    """Return whether a kernel without a GEMM can also compute an operator that reads one of its values."""
    if group.is_closed or group.anchors or group.size >= MOST:
        return False
    if operator.operation in PARTIAL and operator.kind == "data_movement":
        return group.rows is None and operator.output_element_count <= group.extent
    if is_unrolled(operator):
        return group.is_cheap and reduced_extent(operator) == group.extent
    if reduces(operator):
        return _has_rows(group, reduced_extent(operator), operator.output_element_count)
    if operator.kind in ROWWISE:
        return _has_rows(group, operator.output_element_count, row_count(operator))
    is_gathering = operator.kind == "data_movement" and operator.operation in GATHERING
    if not (is_elementwise(operator) or is_gathering) or operator.operation in STENCILS:
        return False
    return _spans(group, operator)


def _has_rows(group: Group, extent: int, rows: int) -> bool:
    """Return whether a kernel can reduce these rows: it has no other rows, and no windows, which would be read
    twice.
    """
    return extent == group.extent and group.rows in (None, rows) and "pool" not in group.kinds


def _spans(group: Group, operator: Operator) -> bool:
    """Return whether a kernel of this extent, or a larger one if it may grow, iterates over the operator's elements."""
    count, extent, rows = operator.output_element_count, group.extent, group.rows
    if rows is None:
        if count <= extent:
            return count == extent
        return group.is_cheap and (operator.operation in JOINING or count % max(extent, 1) == 0)
    if count == rows:
        return True
    if extent > rows * LONGEST_ROW:
        return False
    return count == extent or (count < extent and rows in accumulate(operator.output_shape, mul, initial=1))


def may_unite(first: Group, second: Group) -> bool:
    """Return whether two kernels without GEMMs can be one, for a third operator that reads values of both."""
    if first.is_closed or second.is_closed or first.anchors or second.anchors or first.size + second.size > MOST:
        return False
    if None not in (first.rows, second.rows) and first.rows != second.rows:
        return False
    small, large = sorted((first, second), key=lambda group: group.extent)
    if small.extent == large.extent:
        return True
    if small.rows is not None or not small.is_cheap:
        return False
    return large.extent % max(small.extent, 1) == 0 if large.rows is None else small.extent == large.rows
