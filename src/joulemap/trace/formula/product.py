"""Formulas of GEMMs in groups of unequal size, of sparse tensors, and of low-precision numbers with scaled results.

A grouped GEMM (mixture of experts) multiplies the rows of each group by that group's own matrix. It has MACs for the
routed rows only, and reads the matrices of the groups with at least one row. The tensor `offs` has the end of each
group, which follows from the routing that the trace assumes. If the ends are unknown, each row is assumed to choose its
group independently.

Operands are read at the width of their own dtype: int8 and fp8 take one byte, whatever the precision of a run.
"""

from __future__ import annotations

import math
from typing import Any, Final

import attrs

from joulemap.trace.formula.gemm import _matmul_cost
from joulemap.trace.formula.registry import Call, Cost, Shape, formula

PACKED_GROUPED: Final = ("packed_grouped_mm", "scaled_grouped_mm")
"""Grouped GEMMs with weights that a checkpoint stores in few bits."""

GROUPED: Final = frozenset({"_grouped_mm", "_scaled_grouped_mm", "_scaled_grouped_mm_v2", *PACKED_GROUPED})
"""Operators whose work depends on the end offsets of their groups."""

GROUP_NOTE: Final = (
    "each row is assumed to choose one of the groups independently, so that n (1 - (1 - 1 / n)^rows) are hit"
)


def hit_count(rows: int, taken: int, choices: int) -> int:
    """Return the expected number of distinct options chosen out of `choices`, if each row chooses `taken` at random."""
    if rows <= 0 or choices <= 0:
        return 0
    expected = choices * -math.expm1(rows * math.log1p(-min(taken / choices, 1.0 - 1e-16)))
    return max(min(math.ceil(expected - 1e-9), choices), min(taken, choices))


def group_sizes(call: Call, offsets: Any, total: int) -> tuple[int, int]:
    """Return (rows in all groups, number of groups with rows), if `offsets` are the group ends along `total` rows.

    If the offsets are unknown, each row is assumed to choose its group at random.
    """
    known = call.known_value(offsets)
    if known is None:
        groups = int(offsets.shape[0])
        return total, hit_count(total, 1, groups)
    ends = [min(int(end), total) for end in known.tolist()]
    sizes = [end - start for start, end in zip([0, *ends[:-1]], ends, strict=True)]
    return sum(sizes), sum(size > 0 for size in sizes)


def _grouped(call: Call, offsets: Any, bias: Any, scales: int) -> Cost:
    left, right = call.shape(0), call.shape(1)
    packed = _elements_held(call.value(0, "self"))
    inner, columns = left[-1] * packed, right[-1]
    operations = scales + (bias is not None)
    if offsets is None:
        cost = _matmul_cost((*left[:-1], inner), right, call.output_count, extra=operations * call.output_count)
        return attrs.evolve(cost, operation="grouped_mm")
    if len(right) == 3:  # rows are cut: each group has a matrix
        size, hit = group_sizes(call, offsets, left[0])
        rows, outputs = -(-size // max(hit, 1)), size * columns
        gemm, macs = (rows, columns, inner, hit), size * inner * columns
        reads = ((0, size * left[-1]), (1, hit * right[-2] * columns))
    elif len(left) == 3:  # columns are cut
        size, hit = group_sizes(call, offsets, columns)
        width, outputs = -(-size // max(hit, 1)), left[1] * size
        gemm, macs = (left[1], width, inner, hit), left[1] * inner * size
        reads = ((0, hit * left[1] * left[2]), (1, right[0] * size))
    else:  # the inner dimension is cut: each group has a result
        size, hit = group_sizes(call, offsets, inner)
        depth, outputs = -(-size // max(hit, 1)), call.output_count
        gemm, macs = (left[0], columns, depth, hit), left[0] * columns * size
        reads = ((0, left[0] * size // packed), (1, size * columns // packed))
    return Cost(
        kind="matmul",
        operation="grouped_mm",
        mac_count=macs,
        elementwise_count=operations * outputs,
        gemm=gemm,
        read_counts=reads,
    )


def _elements_held(tensor: Any) -> int:
    """Return how many numbers one element of a tensor contains: two if it packs four-bit numbers, else one."""
    return 2 if "x2" in str(tensor.dtype).rpartition("_")[2] else 1


@formula("_grouped_mm")
def grouped_matmul(call: Call) -> Cost:
    """MACs = rows routed to any group x inner dimension x columns (plus one addition per output for a bias)."""
    return _grouped(call, call.value(2, "offs"), call.value(3, "bias"), scales=0)


@formula("_scaled_grouped_mm")
def scaled_grouped_matmul(call: Call) -> Cost:
    """Counts of _grouped_mm, plus two multiplications per output for the scales of both operands."""
    return _grouped(call, call.value(4, "offs"), call.value(5, "bias"), scales=2)


@formula("_scaled_grouped_mm_v2")
def scaled_grouped_matmul_v2(call: Call) -> Cost:
    """Counts of _scaled_grouped_mm; the ends of the groups are the ninth argument."""
    return _grouped(call, call.value(8, "offs"), call.value(9, "bias"), scales=2)


@formula("_int_mm")
def integer_matmul(call: Call) -> Cost:
    """Counts of matmul, for int8 operands that are summed in int32."""
    return _matmul_cost(call.shape(0), call.shape(1), call.output_count)


def _scaled(call: Call, bias: Any, result_scale: Any = None) -> Cost:
    left: Shape = call.shape(0)
    inner = left[-1] * _elements_held(call.value(0, "self"))
    operations = 2 + (bias is not None) + (result_scale is not None)
    return _matmul_cost((*left[:-1], inner), call.shape(1), call.output_count, extra=operations * call.output_count)


@formula("_scaled_mm")
def scaled_matmul(call: Call) -> Cost:
    """Counts of matmul for fp8 or fp4 operands, plus two multiplications per output for scales, one for a bias."""
    return _scaled(call, call.value(4, "bias"), call.value(5, "scale_result"))


@formula("_scaled_mm_v2")
def scaled_matmul_v2(call: Call) -> Cost:
    """Counts of _scaled_mm, whose second version has other arguments."""
    return _scaled(call, call.value(8, "bias"))


@formula("_scaled_addmm")
def scaled_added_matmul(call: Call) -> Cost:
    """Counts of _scaled_mm for the second and third argument, plus one addition per output."""
    return _scaled(Call(call.args[1:], call.kwargs, call.outputs), bias=call.value(0, "self"))


def _packed(call: Call, *, per_weight: int = 0, per_output: int = 0, share: int = 1) -> Cost:
    """Return the cost of a linear layer whose weight is packed, with its shape taken from input and output.

    `per_weight` and `per_output` are elementwise operations; one of `share` MACs is computed (2 for 2:4 sparsity).
    """
    left, output = call.shape(0), call.output_shape
    inner, columns = left[-1], output[-1]
    rows = call.output_count // columns
    return Cost(
        kind="linear",
        operation="linear",
        mac_count=call.output_count * inner // share,
        elementwise_count=per_weight * inner * columns + per_output * call.output_count,
        gemm=(rows, columns, inner // share, 1),
    )


@formula("_weight_int8pack_mm", "fbgemm_linear_int8_weight", "fbgemm_linear_int8_weight_fp32_activation")
def int8_weight_matmul(call: Call) -> Cost:
    """MACs = rows x input features x output features, plus one multiplication per output for its column's scale."""
    return _packed(call, per_output=1)


@formula(
    "_weight_int4pack_mm",
    "_weight_int4pack_mm_for_cpu",
    "_weight_int4pack_mm_with_scales_and_zeros",
    "_dyn_quant_matmul_4bit",
)
def int4_weight_matmul(call: Call) -> Cost:
    """Counts of _weight_int8pack_mm; each weight is shifted and multiplied by the scale of its group before use."""
    return _packed(call, per_weight=2)


@formula("_mixed_dtypes_linear")
def mixed_linear(call: Call) -> Cost:
    """Counts of _weight_int8pack_mm, plus one addition per output for a bias."""
    return _packed(call, per_output=1 + (call.value(3, "bias") is not None))


@formula("mkldnn_linear", "fbgemm_linear_fp16_weight", "fbgemm_linear_fp16_weight_fp32_activation")
def packed_linear(call: Call) -> Cost:
    """Counts of linear, for a packed weight."""
    return _packed(call, per_output=int(call.value(2, "bias") is not None))


@formula("_sparse_semi_structured_linear")
def sparse_linear(call: Call) -> Cost:
    """Half the MACs of linear: two of four weights are zero and are not multiplied."""
    return _packed(call, per_output=int(call.value(3, "bias") is not None), share=2)


@formula("sparse_mm")
def sparse_dense_matmul(call: Call) -> Cost:
    """MACs = stored numbers x columns of the dense operand (plus one addition per output for an added term).

    Each number takes a row of the dense operand: multiplications without a sum, which no matrix unit speeds up.
    """
    stored, columns = call.input_count, call.value(1, "columns")
    return Cost(
        kind="matmul",
        operation="sparse_mm",
        mac_count=stored * columns,
        elementwise_count=call.output_count if call.value(2, "is_added") else 0,
        gemm=(stored, columns, 1, 1),
    )


@formula("_addmm_activation")
def activated_matmul(call: Call) -> Cost:
    """Counts of addmm, plus one comparison per output (ReLU), or four operations and one special function (GELU)."""
    gelu = bool(call.kwargs.get("use_gelu", False))
    cost = _matmul_cost(call.shape(1), call.shape(2), call.output_count, extra=(5 if gelu else 2) * call.output_count)
    return attrs.evolve(cost, special_count=call.output_count * gelu)
