"""Formulas of normalizations and softmax, which need a whole row or channel at a time."""

from __future__ import annotations

import math

from joulemap.trace.formula.registry import Call, Cost, formula


@formula(
    "batch_norm",
    "native_batch_norm",
    "_native_batch_norm_legit_no_training",
    "_native_batch_norm_legit",
    "_batch_norm_with_update",
)
def batch_norm(call: Call) -> Cost:
    """Inference form y = a x + b with a and b folded per channel: two operations per element."""
    return Cost(kind="batch_norm", operation="batch_norm", elementwise_count=2 * call.output_count)


def _normalization(operation: str, rows: int, call: Call, per_element: int = 8) -> Cost:
    return Cost(
        kind="normalization",
        operation=operation,
        elementwise_count=per_element * call.output_count,
        special_count=rows,
    )


@formula("layer_norm", "native_layer_norm")
def layer_norm(call: Call) -> Cost:
    """Mean, variance and y = (x - m) r g + b: eight operations per element, one rsqrt per normalized row.

    1 add for the mean; subtract, multiply, add for the variance; subtract, multiply, multiply, add to apply.
    """
    rows = call.output_count // math.prod(call.value(1, "normalized_shape"))
    return _normalization("layer_norm", rows, call)


@formula("rms_norm", "_fused_rms_norm")
def rms_norm(call: Call) -> Cost:
    """Mean square and y = x r g: multiply and add, multiply and multiply; one rsqrt per normalized row."""
    rows = call.output_count // math.prod(call.value(1, "normalized_shape"))
    return _normalization("rms_norm", rows, call, per_element=4)


@formula("group_norm")
def group_norm(call: Call) -> Cost:
    """Counts of layer_norm, over each group of channels of each sample."""
    return _normalization("group_norm", call.shape(0)[0] * int(call.value(1, "num_groups")), call)


@formula("native_group_norm")
def native_group_norm(call: Call) -> Cost:
    """Counts of group_norm; the groups are the seventh argument."""
    return _normalization("group_norm", call.shape(0)[0] * int(call.value(6, "group")), call)


@formula("instance_norm")
def instance_norm(call: Call) -> Cost:
    """Counts of layer_norm, over each channel of each sample."""
    return _normalization("instance_norm", math.prod(call.shape(0)[:2]), call)


@formula("softmax", "_softmax", "_safe_softmax", "log_softmax", "_log_softmax")
def softmax(call: Call) -> Cost:
    """Per element: maximum, subtraction, exp, sum, division (as a multiplication): four operations and one exp."""
    return Cost(
        kind="softmax",
        operation="softmax",
        elementwise_count=4 * call.output_count,
        special_count=call.output_count,
    )


@formula("_weight_norm_interface")
def weight_norm(call: Call) -> Cost:
    """Counts of v g / |v|: multiply and add for the norm, multiply to apply; one rsqrt per norm."""
    return Cost(
        kind="normalization",
        operation="weight_norm",
        elementwise_count=3 * call.output_count,
        special_count=math.prod(tuple(call.outputs[1].shape)),
    )
