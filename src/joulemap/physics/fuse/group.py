"""Groups of operators that one kernel runs: which operators may join a group, and which groups may merge.

A kernel without a GEMM iterates over elements. Their number is the extent of the kernel. A reduction divides the
elements into rows; all elements of a row can use the row's result.
"""

from __future__ import annotations

from itertools import accumulate
from operator import mul
from typing import Final

import attrs

from joulemap.physics.record.workload import Operator

ANCHORS: Final = frozenset({"conv", "depthwise_conv", "grouped_conv", "linear", "matmul"})
"""Kinds of operators that compute GEMMs. A subgraph usually has at most one; attention has two matmuls around a
softmax.
"""

POINTWISE: Final = frozenset({"batch_norm", "elementwise"})
"""Kinds of operators that need only the current element. They can run in the epilogue of any kernel."""

ROWWISE: Final = frozenset({"softmax", "normalization"})
"""Kinds of operators that need a whole row. They fuse with pointwise operators, but not with a GEMM, except the softmax
of attention.
"""

JOINING: Final = frozenset({"append", "cat", "constant_pad_nd", "pad", "repeat", "slice_scatter", "stack"})
"""Data movements whose result may be larger than each operand. A kernel computes each operand at its place in the
result.
"""

MOVING: Final = JOINING | {
    "channel_shuffle", "clone", "contiguous", "copy", "dropout", "flip", "one_hot", "pixel_shuffle", "pixel_unshuffle",
    "repeat_interleave", "reshape", "roll", "rot90", "to", "to_copy", "tril", "triu", "type_as", "unsafe_view",
    "upsample_nearest",
}  # fmt: skip
"""Data movements that place each element by its index. A kernel computes the moved value itself."""

GATHERING: Final = frozenset({"embedding", "gather", "index", "index_select", "take", "unsafe_index"})
"""Data movements that read at a computed index. A kernel computes the index, but reads the value from memory."""

FILLING: Final = frozenset({
    "arange", "eye", "fill", "full", "full_like", "lift_fresh", "linspace", "new_full", "new_ones", "new_zeros", "ones",
    "ones_like", "scalar_tensor", "zero", "zeros", "zeros_like",
})  # fmt: skip
"""Data movements without an input."""

PARTIAL: Final = frozenset({"copy", "fill", "zero"})
"""Data movements that may write only a part of their destination."""

STENCILS: Final = frozenset(
    {"grid_sample", *(f"upsample_{mode}" for mode in ("linear", "bilinear", "trilinear", "bicubic"))}
)
"""Operations that read neighbouring elements, so that another kernel must complete their input first."""

REDUCING: Final = frozenset({"adaptive_avg_pool", "logsumexp", "moment", "reduce"})
"""Operations that reduce rows within a fused kernel; sorting and searching are separate kernels."""

MOST: Final = 64
"""Maximum operators of a kernel without a GEMM; a compiler's limit (`max_fusion_size` of Inductor)."""

UNROLLED: Final = 8
"""Maximum elements of a row that a kernel reduces in sequence, again for each result
(`unroll_reductions_threshold`).
"""

LONGEST_ROW: Final = 2**18
"""Maximum elements of a row that one block reads twice; several blocks reduce a longer one."""


def reduced_extent(operator: Operator) -> int:
    """Return the number of elements that a reduction reads."""
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
    """Operators of one kernel so far. For views, only their index is stored."""

    indices: list[int] = attrs.field(factory=list)
    size: int = 0
    """Number of operators, without views."""
    kinds: set[str] = attrs.field(factory=set)
    anchors: list[Operator] = attrs.field(factory=list)
    last: Operator | None = None
    """Last operator that is not a view; None if there is none."""
    extent: int = 0
    """Elements that the kernel iterates over."""
    rows: int | None = None
    """Number of rows that the kernel reduces, each to one value; None without a reduction."""
    is_foldable: bool = False
    """True if a compiler computes the group once, because no model input affects it."""
    is_cheap: bool = True
    """True if a larger kernel may compute the group again for each element: no special function, reduction or
    window.
    """
    is_closed: bool = False
    """True if no operator may join the group."""

    def take(self, operator: Operator) -> None:
        """Add an operator that is not a view, without its index."""
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
        """Add the operators of another group."""
        self.indices.extend(other.indices)
        self.size += other.size
        self.kinds |= other.kinds
        self.extent = max(self.extent, other.extent)
        self.rows = other.rows if self.rows is None else self.rows
        self.is_cheap &= other.is_cheap


def begin(operator: Operator) -> Group:
    """Return an empty group whose first operator will be `operator`; it is closed if no other operator may join."""
    begins = is_elementwise(operator) or reduces(operator) or operator.kind in ANCHORS | ROWWISE | {"pool"}
    return Group(is_closed=not begins and operator.operation not in GATHERING | FILLING)


def is_elementwise(operator: Operator) -> bool:
    """Return whether each result of an operator depends on at most one element of an input, at the same or another
    place.
    """
    return operator.kind in POINTWISE or (operator.kind == "data_movement" and operator.operation in MOVING)


def reduces(operator: Operator) -> bool:
    """Return whether an operator reduces rows to one value each. A pooling that enlarges its input does not."""
    is_reduction = operator.kind == "reduction" and operator.operation in REDUCING
    return is_reduction and reduced_extent(operator) >= operator.output_element_count


def is_unrolled(operator: Operator) -> bool:
    """Return whether the rows of a reduction are so short that a kernel may reduce them again for each result."""
    return reduces(operator) and reduced_extent(operator) <= UNROLLED * operator.output_element_count


def may_end(group: Group, operator: Operator) -> bool:
    """Return whether a kernel with a GEMM can also compute `operator`, directly after the last operator of its
    group.
    """
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
    """Return whether a kernel without a GEMM can also compute `operator`, which reads a value of its group."""
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
    """Return whether a kernel can reduce `extent` elements in `rows` rows: it must have no other rows and no
    pooling.
    """
    return extent == group.extent and group.rows in (None, rows) and "pool" not in group.kinds


def _spans(group: Group, operator: Operator) -> bool:
    """Return whether a kernel can iterate over the elements of an operator, if need be with a larger extent."""
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
    """Return whether one kernel can run two groups without GEMMs, before an operator that reads values of both."""
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
