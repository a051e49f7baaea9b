"""Formulas of gradients, which a forward pass computes if it differentiates by its input."""

from __future__ import annotations

import math
from collections.abc import Sequence

from joulemap.trace.formula.gemm import convolution
from joulemap.trace.formula.registry import Call, Cost, formula


@formula("convolution_backward")
def convolution_gradient(call: Call) -> Cost:
    """Counts of the convolution, for the requested gradients of its input and its weight."""
    wanted = call.value(10, "output_mask", (True, True, True))
    upstream, source, weight = call.args[:3]
    stride, padding, dilation, is_transposed, output_padding, groups = call.args[4:10]
    forward = convolution(
        Call((source, weight, None, stride, padding, dilation, is_transposed, output_padding, groups), {}, (upstream,))
    )
    times = int(bool(wanted[0])) + int(bool(wanted[1]))
    m, n, k, parts = forward.gemm
    return Cost(
        kind=forward.kind,
        operation=forward.operation,
        mac_count=times * forward.mac_count,
        elementwise_count=math.prod(tuple(upstream.shape)) if wanted[2] else 0,
        gemm=(m, n, k, parts * max(times, 1)),
        tap_count=forward.tap_count,
        scalars=forward.scalars,
    )


def _gradient(names: Sequence[str], per_element: int, special: int, description: str) -> None:
    def cost(call: Call) -> Cost:
        return Cost(
            kind="elementwise",
            operation="gradient",
            elementwise_count=per_element * call.output_count,
            special_count=special * call.output_count,
        )

    cost.__doc__ = description
    formula(*names)(cost)


_gradient(
    ["threshold_backward", "hardtanh_backward", "leaky_relu_backward", "native_dropout_backward", "hardswish_backward"],
    2,
    0,
    "A comparison and a product for each element.",
)
_gradient(
    ["sigmoid_backward", "tanh_backward", "hardsigmoid_backward"],
    3,
    0,
    "Three operations for each element, from the output.",
)
_gradient(
    ["gelu_backward", "silu_backward", "elu_backward", "softplus_backward", "mish_backward", "log_sigmoid_backward"],
    8,
    1,
    "Eight operations and a special function for each element.",
)
_gradient(
    [
        "native_layer_norm_backward",
        "native_group_norm_backward",
        "native_batch_norm_backward",
        "_fused_rms_norm_backward",
    ],
    12,
    0,
    "Two sums over each row, the gradient, and those of weight and bias: twelve operations for each element.",
)
_gradient(
    ["_softmax_backward_data", "_log_softmax_backward_data"],
    4,
    0,
    "A product, its sum over the row, a subtraction and a product for each element.",
)
_gradient(
    ["max_pool2d_with_indices_backward", "embedding_dense_backward", "unfold_backward", "index_backward"],
    1,
    0,
    "One addition for each element.",
)
_gradient(
    ["avg_pool2d_backward", "_adaptive_avg_pool2d_backward", "upsample_nearest2d_backward"],
    2,
    0,
    "A product and an addition for each element.",
)
