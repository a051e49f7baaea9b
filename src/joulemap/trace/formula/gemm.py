"""Formulas of convolutions and matrix multiplications, which have MACs."""

from __future__ import annotations

import math
from typing import Final

import attrs

from joulemap.trace.formula.registry import Call, Cost, Shape, formula, write_scalars


def _pixels(shape: Shape) -> int:
    return math.prod(shape[2:])


@formula("conv1d", "conv2d", "conv3d", "convolution", "_convolution")
def convolution(call: Call) -> Cost:
    """MACs = output elements x input channels per group x taps (plus one addition per output for a bias)."""
    weight = call.shape(1, "weight")
    output = call.output_shape
    if len(call.args) > 8 and call.args[6]:
        return transposed_convolution(Call((*call.args[:5], call.args[7], call.args[8]), {}, call.outputs))
    position = 8 if len(call.args) > 8 else 6
    groups = int(call.value(position, "groups", 1))
    batch = output[0] if len(output) == len(weight) else 1
    spatial = output[2:] if len(output) == len(weight) else output[1:]
    taps = math.prod(weight[2:])
    per_group_in = weight[1]
    macs = call.output_count * per_group_in * taps
    if groups == 1:
        kind = "conv"
    elif per_group_in == 1:
        kind = "depthwise_conv"
    else:
        kind = "grouped_conv"
    bias = call.value(2, "bias")
    return Cost(
        kind=kind,
        operation=f"conv{len(weight) - 2}d",
        mac_count=macs,
        elementwise_count=call.output_count if bias is not None else 0,
        gemm=(batch * math.prod(spatial), weight[0] // groups, per_group_in * taps, groups),
        tap_count=taps,
        scalars=write_scalars(
            kernel=list(weight[2:]),
            stride=call.value(3, "stride", 1),
            padding=call.value(4, "padding", 0),
            groups=groups,
        ),
    )


_SAMPLE: Final = 17
"""Operations of a bilinear sample: two for its position, eight for the weights of four taps, seven for their sum."""


@formula("deform_conv2d")
def deformable_convolution(call: Call) -> Cost:
    """Counts of conv2d, on inputs that are sampled at the offsets: 17 operations per sample, and one for a mask.

    Source: torchvision/csrc/ops/cuda/deform_conv2d_kernel.cu: `deformable_im2col` samples each tap of each channel for
    each position of the output, and a GEMM with the weights follows; the bias is always added.
    """
    weight, output = call.shape(1), call.output_shape
    groups, has_mask = int(call.value(11, "groups")), bool(call.value(13, "use_mask"))
    cost = convolution(Call((*call.args[:3], call.args[5:7], call.args[7:9], 1, groups), {}, call.outputs))
    samples = output[0] * math.prod(output[2:]) * weight[1] * groups * math.prod(weight[2:])
    return attrs.evolve(
        cost,
        operation="deform_conv2d",
        elementwise_count=(_SAMPLE + has_mask) * samples + call.output_count,
        tap_count=1,  # samples of one position are not a window of the input
    )


@formula("conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
def transposed_convolution(call: Call) -> Cost:
    """MACs = input elements x output channels per group x taps."""
    weight = call.shape(1, "weight")
    source = call.shape(0) if len(call.shape(0)) == len(weight) else (1, *call.shape(0))
    groups = int(call.value(6, "groups", 1))
    taps = math.prod(weight[2:])
    pixels = source[0] * _pixels(source)
    return Cost(
        kind="conv" if groups == 1 else "grouped_conv",
        operation=f"conv_transpose{len(weight) - 2}d",
        mac_count=math.prod(source) * weight[1] * taps,
        elementwise_count=call.output_count if call.value(2, "bias") is not None else 0,
        gemm=(pixels, weight[1] * taps, source[1] // groups, groups),
        tap_count=taps,
        scalars=write_scalars(kernel=list(weight[2:]), stride=call.value(3, "stride", 1), groups=groups),
    )


@formula("linear")
def linear(call: Call) -> Cost:
    """MACs = rows x input features x output features (plus one addition per output for a bias)."""
    weight = call.shape(1, "weight")
    rows = call.output_count // max(weight[0], 1)
    return Cost(
        kind="linear",
        operation="linear",
        mac_count=call.output_count * weight[1],
        elementwise_count=call.output_count if call.value(2, "bias") is not None else 0,
        gemm=(rows, weight[0], weight[1], 1),
    )


def _matmul_cost(left: Shape, right: Shape, output_count: int, extra: int = 0) -> Cost:
    inner = left[-1]
    macs = output_count * inner
    columns = right[-1] if len(right) > 1 else 1
    if len(right) <= 2:
        rows, groups = output_count // max(columns, 1), 1
    else:
        rows = left[-2] if len(left) > 1 else 1
        groups = output_count // max(rows * columns, 1)
    return Cost(
        kind="matmul",
        operation="matmul",
        mac_count=macs,
        elementwise_count=extra,
        gemm=(rows, columns, inner, groups),
    )


@formula("matmul", "mm", "bmm", "mv", "dot", "vdot")
def matmul(call: Call) -> Cost:
    """MACs = output elements x inner dimension; 0 for an empty GEMM."""
    return _matmul_cost(call.shape(0), call.shape(1), call.output_count)


@formula("addmm", "baddbmm", "addmv")
def added_matmul(call: Call) -> Cost:
    """Counts of matmul for the second and third argument, plus one addition per output."""
    return _matmul_cost(call.shape(1), call.shape(2), call.output_count, extra=call.output_count)


@formula("addbmm")
def summed_matmul(call: Call) -> Cost:
    """Counts of matmul with the batch as part of the inner dimension; one addition per output."""
    (groups, rows, inner), columns = call.shape(1), call.shape(2)[2]
    return Cost(
        kind="matmul",
        operation="matmul",
        mac_count=groups * rows * inner * columns,
        elementwise_count=call.output_count,
        gemm=(rows, columns, groups * inner, 1),
    )


@formula("_trilinear")
def bilinear_form(call: Call) -> Cost:
    """GEMM of x1 with W (`torch.nn.Bilinear`), then a multiplication by x2 and an addition for each element."""
    outputs, inner, columns = call.shape(1)
    rows = call.input_count // max(inner, 1)
    return Cost(
        kind="matmul",
        operation="bilinear",
        mac_count=rows * outputs * columns * inner,
        elementwise_count=2 * rows * outputs * columns,
        gemm=(rows, outputs * columns, inner, 1),
    )


@formula("affine_grid_generator")
def affine_grid(call: Call) -> Cost:
    """GEMM of each point, extended by a one, with the matrix of its sample."""
    batch, rows, width = call.shape(0)
    return Cost(
        kind="matmul",
        operation="matmul",
        mac_count=call.output_count * width,
        gemm=(call.output_count // (batch * rows), rows, width, batch),
    )
