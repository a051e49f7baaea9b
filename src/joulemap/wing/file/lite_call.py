"""ATen calls of TFLite operators with channels as the last axis, and of operators that ONNX lacks.

CONV_2D: input N H W C, weights O kh kw I ─► conv2d: input N C H W, weights O I kh kw; it is the same memory
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from joulemap.system import ModelError
from joulemap.wing.file.call import AtenCall, Rule, Turned, concatenate, plain, suppress
from joulemap.wing.file.value import Node, Value, list_present

SAME: Final = 0
"""TFLite's padding mode `SAME`, which makes the output as large as the input divided by the stride."""

AXES: Final = ("d", "h", "w")
"""Prefixes of the spatial axes in option names; images use the last two."""


def _turn(value: Value) -> Turned:
    """Return a value seen with its channels before its spatial axes, as in ATen; ModelError if it has no channels."""
    if len(value.shape) < 3:
        raise ModelError(f"{value.name[:80]!r} has the shape {value.shape}, expected a batch, axes and channels")
    batch, *spatial, channels = value.shape
    return Turned(value, shape=(batch, channels, *spatial))


def _window(node: Node, x: Value, kernel: Sequence[int]) -> tuple[list[int], list[int], list[int]]:
    """Return (strides, padding, dilations) of a convolution or pooling; padding is that at the start of each axis."""
    axes = AXES[-len(kernel) :]
    if not 0 < len(kernel) == len(x.shape) - 2:
        raise ModelError(f"{node.title} has a window of {len(kernel)} axes, and an input of the shape {x.shape}")
    strides = [max(node.integer(f"stride_{one}", 1), 1) for one in axes]
    dilations = [max(node.integer(f"dilation_{one}", 1), 1) for one in axes]
    given = node.attributes.get("pads")
    if given is not None:
        return strides, list(given), dilations
    if node.attributes.get("padding") != SAME:
        return strides, [0] * len(kernel), dilations
    pads = []
    for size, stride, taps, gap in zip(x.shape[1:-1], strides, kernel, dilations, strict=True):
        whole = (-(-size // stride) - 1) * stride + (taps - 1) * gap + 1 - size
        pads.append(max(whole, 0) // 2)
    return strides, pads, dilations


def _convolve(node: Node) -> AtenCall:
    """Return the call of a convolution; the weights of CONV_3D end with (inputs, outputs), those of DEPTHWISE_CONV_2D
    are (1, height, width, channels).
    """
    x, weight = node.given(0), node.given(1)
    outputs, *kernel, width = weight.shape
    if node.op == "CONV_3D":
        *kernel, width, outputs = weight.shape
    elif node.op == "DEPTHWISE_CONV_2D":
        outputs, width = width, outputs
    strides, pads, dilations = _window(node, x, kernel)
    turned = Turned(weight, shape=(outputs, width, *kernel))
    args = (_turn(x), turned, node.value(2), strides, pads, dilations, x.shape[-1] // width)
    return AtenCall(f"conv{len(kernel)}d", args, output_shape=_turn(node.outputs[0]).shape)


def _transpose_convolve(node: Node) -> AtenCall:
    """Return the call of a transposed convolution: inputs are the weights O kh kw I, the input and the bias."""
    x, weight = node.given(1), node.given(0)
    outputs, *kernel, width = weight.shape
    strides, pads, _ = _window(node, x, kernel)
    turned = Turned(weight, shape=(width, outputs, *kernel))
    args = (_turn(x), turned, node.value(2), strides, pads)
    return AtenCall(f"conv_transpose{len(kernel)}d", args, output_shape=_turn(node.outputs[0]).shape)


def _pool(aten: str) -> Rule:
    def rule(node: Node) -> AtenCall:
        x = node.given(0)
        kernel = [node.integer(f"filter_{one}", least=1) for one in ("h", "w")]
        strides, pads, _ = _window(node, x, kernel)
        return AtenCall(aten, (_turn(x), kernel, strides, pads), output_shape=_turn(node.outputs[0]).shape)

    return rule


def _resize(aten: str) -> Rule:
    def rule(node: Node) -> AtenCall:
        output = _turn(node.outputs[0]).shape
        return AtenCall(aten, (_turn(node.given(0)), list(output[2:])), output_shape=output)

    return rule


def _product(node: Node) -> AtenCall:
    """Return the call of a GEMM of two tensors; each may be stored transposed."""
    operands = (node.given(0), node.given(1))
    flags = [node.attributes.get(one) for one in ("adj_x", "adj_y")]
    shapes = [
        (*one.shape[:-2], one.shape[-1], one.shape[-2]) if is_turned else one.shape
        for one, is_turned in zip(operands, flags, strict=True)
    ]
    return AtenCall("matmul", tuple(Turned(one, shape=shape) for one, shape in zip(operands, shapes, strict=True)))


def _suppress(node: Node) -> AtenCall:
    boxes = node.given(0)
    if len(boxes.shape) < 2:
        raise ModelError(f"{node.op} {node.name!r} has no boxes")
    scores = node.given(1)
    if len(boxes.shape) == 2:
        return suppress(node)
    # a detection postprocess takes the best class of each box, and returns as many boxes as it may detect
    shape = node.outputs[0].shape if node.outputs else ()
    best = Turned(scores, shape=(*boxes.shape[:-2], 1, boxes.shape[-2]))
    return AtenCall("nms", (boxes, best, None, shape[1] if len(shape) > 1 else None))


def _concatenate(node: Node) -> AtenCall:
    """Return the call of a concatenation; the channel axis of an image is renumbered as in ATen."""
    rank = len(node.outputs[0].shape)
    axis = node.axis(rank, 0)
    return AtenCall("cat", (list_present(node.inputs), 2 if (rank, axis) == (4, 1) else axis))


def _fill(node: Node) -> AtenCall:
    return AtenCall("full", (list(node.outputs[0].shape),))


LITE_RULES: Final[Mapping[str, Rule]] = {
    "CONV_2D": _convolve, "DEPTHWISE_CONV_2D": _convolve, "CONV_3D": _convolve, "TRANSPOSE_CONV": _transpose_convolve,
    "AVERAGE_POOL_2D": _pool("avg_pool2d"), "MAX_POOL_2D": _pool("max_pool2d"),
    "RESIZE_BILINEAR": _resize("upsample_bilinear2d"), "RESIZE_NEAREST_NEIGHBOR": _resize("upsample_nearest2d"),
    "FULLY_CONNECTED": plain("linear", 0, 1, 2), "BATCH_MATMUL": _product, "NOT_EQUAL": plain("ne", 0, 1),
    "FLOOR_DIV": plain("floor_divide", 0, 1), "ATAN2": plain("atan2", 0, 1), "BITWISE_XOR": plain("bitwise_xor", 0, 1),
    "RIGHT_SHIFT": plain("bitwise_right_shift", 0, 1), "CONCATENATION": _concatenate, "PACK": concatenate,
    "EMBEDDING_LOOKUP": plain("embedding", 1, 0), "FILL": _fill, "ZEROS_LIKE": _fill,
    "TFLite_Detection_PostProcess": _suppress,
}  # fmt: skip
"""TFLite operator, or name of a custom operator -> rule of its ATen call."""
