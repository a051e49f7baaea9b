"""ATen call of each ONNX operator, so that the formulas of the tracer apply to it.

A rule returns the call, with `is_view` for an operator that moves no data. It returns None for an operator that leaves
its input unchanged.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

from joulemap.system import ModelError, frozen
from joulemap.trace.formula.pooling import CANDIDATES
from joulemap.wing.file.value import Node, Value, list_present


@frozen
class AtenCall:
    """ATen call that is equivalent to an operator of a file, with positional arguments."""

    aten: str
    args: tuple[Any, ...]
    is_view: bool = False
    output_shape: tuple[int, ...] = ()
    """Shape of the output in ATen's layout; empty if the file uses the same layout."""


Rule = Callable[[Node], AtenCall | None]


def _pairs(node: Node, name: str, rank: int, default: int) -> list[int]:
    return node.integers(name, [], least=None) or [default] * rank


def _window(node: Node, rank: int) -> tuple[list[int], list[int], list[int]]:
    """Return (strides, padding, dilations) of a convolution or pooling; padding is that at the start of each axis."""
    strides, dilations = (node.integers(name, [], least=1) or [1] * rank for name in ("strides", "dilations"))
    pads = _pairs(node, "pads", 2 * rank, 0)
    if not rank == len(strides) == len(dilations) == len(pads) / 2:
        raise ModelError(f"{node.title} has strides, dilations or pads of other than its {rank} axes")
    return strides, pads[:rank], dilations


def _convolution(node: Node) -> AtenCall:
    offset = {"QLinearConv": (0, 3, 8), "ConvInteger": (0, 1, 9)}.get(node.op, (0, 1, 2))
    x, weight, bias = node.given(offset[0]), node.given(offset[1]), node.value(offset[2])
    rank = len(weight.shape) - 2
    strides, pads, dilations = _window(node, rank)
    return AtenCall(f"conv{rank}d", (x, weight, bias, strides, pads, dilations, node.integer("group", 1, least=1)))


def _transposed(node: Node) -> AtenCall:
    x, weight, bias = node.given(0), node.given(1), node.value(2)
    rank = len(weight.shape) - 2
    strides, pads, dilations = _window(node, rank)
    extra = _pairs(node, "output_padding", rank, 0)
    group = node.integer("group", 1, least=1)
    return AtenCall(f"conv_transpose{rank}d", (x, weight, bias, strides, pads, extra, group, dilations))


class Turned:
    """View of an operand with the shape that ATen expects."""

    def __init__(self, value: Value, *, turns: bool = False, shape: tuple[int, ...] = ()) -> None:
        self.value = value
        self.shape = shape or (value.shape[::-1] if turns else value.shape)


def _linear(node: Node) -> AtenCall:
    return AtenCall("linear", (node.given(0), Turned(node.given(1), turns=True), node.value(2)))


def _gemm(node: Node) -> AtenCall:
    a, b, c = node.given(0), node.given(1), node.value(2)
    if node.attributes.get("transA") or len(b.shape) != 2 or not b.is_weight:
        right = Turned(b, turns=bool(node.attributes.get("transB")))
        left = Turned(a, turns=bool(node.attributes.get("transA")))
        return AtenCall("addmm", (c, left, right)) if c is not None else AtenCall("mm", (left, right))
    return AtenCall("linear", (a, Turned(b, turns=not node.attributes.get("transB")), c))


def _matmul(node: Node) -> AtenCall:
    return AtenCall("matmul", (node.given(0), node.given(3 if node.op == "QLinearMatMul" else 1)))


def _einsum(node: Node) -> AtenCall:
    """Return the call of an einsum over two tensors, as a batched GEMM.

    Indices of both tensors are batch axes if the result has them, else they are summed. Sums over an index of one
    tensor, and other numbers of tensors, have no rule.
    """
    equation = str(node.attributes.get("equation", "")).replace(" ", "")
    left, _, result = equation.partition("->")
    terms = left.split(",")
    sizes = {
        letter: size
        for term, value in zip(terms, node.inputs, strict=False)
        if value is not None
        for letter, size in zip(term, value.shape, strict=False)
    }
    letters = [set(term) for term in terms]
    is_product = len(terms) == 2 and not set(left) - {","} - {*result} - (letters[0] & letters[-1])
    if "." in equation or not result or not is_product:
        raise ModelError(f"{node.op} {node.name!r} has the equation {equation[:60]}, which has no formula")

    def extent(chosen: set[str]) -> int:
        return math.prod(sizes[letter] for letter in chosen)

    shared = letters[0] & letters[1]
    groups, summed = extent(shared & {*result}), extent(shared - {*result})
    rows, columns = extent(letters[0] - shared), extent(letters[1] - shared)
    operands = (
        Turned(node.given(0), shape=(groups, rows, summed)),
        Turned(node.given(1), shape=(groups, summed, columns)),
    )
    return AtenCall("bmm", operands)


def plain(aten: str, *positions: int) -> Rule:
    """Return a rule for operators whose ATen call takes the inputs at these positions, by default the first input."""
    return lambda node: AtenCall(aten, tuple(node.value(one) for one in positions or (0,)))


def _number(value: Value | None) -> Any:
    """Return the number if a value is a known scalar, else the value itself."""
    if value is not None and value.known is not None and value.known.size == 1 and value.is_weight:
        number = value.known.reshape(-1)[0].item()
        is_whole = isinstance(number, float) and number.is_integer() and abs(number) < 2**31  # neither infinite nor NaN
        return int(number) if is_whole else number
    return value


def _clip(node: Node) -> AtenCall:
    low, high = node.numbers(1), node.numbers(2)
    bounds = (node.attributes.get("min"), node.attributes.get("max"))
    least = low[0] if low else (bounds[0] if node.value(1) is None else 0.0)
    most = high[0] if high else (bounds[1] if node.value(2) is None else 0.0)
    return AtenCall("clamp", (node.given(0), least, most))


def _layer_norm(aten: str) -> Rule:
    def rule(node: Node) -> AtenCall:
        x = node.given(0)
        axis = node.axis(len(x.shape), -1)
        return AtenCall(aten, (x, list(x.shape[axis:]), *node.inputs[1:3]))

    return rule


def _skip_norm(aten: str) -> Rule:
    def rule(node: Node) -> AtenCall:
        x = node.given(0)
        return AtenCall(aten, (x, [x.shape[-1]], *node.inputs[1:]))

    return rule


def _pool(aten: str) -> Rule:
    def rule(node: Node) -> AtenCall:
        kernel = node.integers("kernel_shape", least=1)
        strides, pads, _ = _window(node, len(kernel))
        return AtenCall(f"{aten}{len(kernel)}d", (node.given(0), kernel, strides, pads))

    return rule


def _global_pool(aten: str) -> Rule:
    def rule(node: Node) -> AtenCall:
        rank = len(node.given(0).shape) - 2
        return AtenCall(f"{aten}{rank}d", (node.given(0), [1] * rank))

    return rule


def _softmax(aten: str) -> Rule:
    return lambda node: AtenCall(aten, (node.given(0), node.axis(len(node.given(0).shape), -1)))


def concatenate(node: Node) -> AtenCall:
    """Return the call of a concatenation along an axis of the output."""
    axis = node.axis(len(node.outputs[0].shape), 0)
    return AtenCall("cat", (list_present(node.inputs), axis))


def _gather(node: Node) -> AtenCall:
    x, index = node.given(0), node.given(1)
    axis = node.axis(len(x.shape), 0)
    if index.known is not None and index.count == 1:
        return AtenCall("select", (x,), is_view=True)
    if axis == 0 and x.is_weight and len(x.shape) == 2:
        return AtenCall("embedding", (x, index))
    return AtenCall("index_select", (x, axis, index))


def _resize(node: Node) -> AtenCall:
    rank = len(node.given(0).shape) - 2
    mode = str(node.attributes.get("mode", "nearest"))
    names = {
        "nearest": {1: "upsample_nearest1d", 2: "upsample_nearest2d", 3: "upsample_nearest3d"},
        "linear": {1: "upsample_linear1d", 2: "upsample_bilinear2d", 3: "upsample_trilinear3d"},
        "cubic": {2: "upsample_bicubic2d"},
    }
    aten_name = names.get(mode, {}).get(rank)
    if aten_name is None:
        raise ModelError(f"{node.op} {node.name!r} resizes {rank} axes by {mode[:40]!r}, which has no formula")
    return AtenCall(aten_name, (node.given(0), list(node.outputs[0].shape[2:])))


def _transpose(node: Node) -> AtenCall:
    rank = len(node.given(0).shape)
    order = node.integers("perm", range(rank)[::-1])
    if sorted(order) != list(range(rank)):
        raise ModelError(f"{node.title} has perm={order!r:.40}, expected a permutation of {rank} axes")
    return AtenCall("permute", (node.given(0), order), is_view=True)


def _cast(node: Node) -> AtenCall | None:
    return None if node.given(0).dtype == node.outputs[0].dtype else AtenCall("_to_copy", (node.given(0),))


def _view(aten: str) -> Rule:
    return lambda node: AtenCall(aten, (node.given(0),), is_view=True)


def _group_norm(node: Node) -> AtenCall:
    return AtenCall("group_norm", (node.given(0), node.integer("num_groups", least=1), *node.inputs[1:3]))


def _top(node: Node) -> AtenCall:
    return AtenCall("topk", (node.given(0), node.numbers(1, "k"), node.axis(len(node.given(0).shape), -1)))


def _scatter(node: Node) -> AtenCall:
    return AtenCall("index_copy", (node.given(0), 0, node.given(1), node.given(2)))


def suppress(node: Node) -> AtenCall:
    """Return the call of a non-maximum suppression; a score threshold keeps the assumed number of boxes."""
    has_threshold = any(node.numbers(4) or ())
    return AtenCall(
        "nms", (node.given(0), node.given(1), None, node.numbers(2), *((CANDIDATES,) if has_threshold else ()))
    )


def _variadic(aten: str) -> Rule:
    return lambda node: AtenCall(aten, tuple(_number(one) for one in node.inputs))


UNARY: Final[Mapping[str, str]] = {
    "Relu": "relu", "LeakyRelu": "leaky_relu", "Sigmoid": "sigmoid", "HardSigmoid": "hardsigmoid",
    "HardSwish": "hardswish", "Silu": "silu", "Swish": "silu", "Mish": "mish", "Gelu": "gelu", "FastGelu": "gelu",
    "QuickGelu": "gelu", "Tanh": "tanh", "Erf": "erf", "Exp": "exp", "Log": "log", "Sqrt": "sqrt",
    "Reciprocal": "reciprocal", "Neg": "neg", "Abs": "abs", "Floor": "floor", "Ceil": "ceil", "Round": "round",
    "Sign": "sign", "Elu": "elu", "Selu": "selu", "Celu": "celu", "Softplus": "softplus", "Sin": "sin", "Cos": "cos",
    "Tan": "tan", "Atan": "atan", "Asin": "asin", "Acos": "acos", "Sinh": "sinh", "Cosh": "cosh", "Not": "logical_not",
    "IsNaN": "isnan", "IsInf": "isinf", "ThresholdedRelu": "threshold", "BitwiseNot": "bitwise_not",
    "ReduceMean": "mean", "ReduceSum": "sum", "ReduceMax": "amax", "ReduceMin": "amin", "ReduceProd": "prod",
    "ArgMax": "argmax", "ArgMin": "argmin", "CumSum": "cumsum", "ReduceL2": "norm", "ReduceL1": "norm",
    "ReduceLogSumExp": "logsumexp", "ReduceSumSquare": "norm", "LRN": "local_response_norm", "Tile": "repeat",
    "Pad": "constant_pad_nd", "DepthToSpace": "pixel_shuffle", "SpaceToDepth": "pixel_unshuffle",
    "QuantizeLinear": "_to_copy", "DequantizeLinear": "_to_copy", "DynamicQuantizeLinear": "_to_copy",
    "ConstantOfShape": "zeros", "Range": "arange", "NonZero": "nonzero", "Compress": "nonzero", "OneHot": "one_hot",
    "Trilu": "tril", "RSQRT": "rsqrt", "SQUARE": "square", "REVERSE_V2": "flip", "REVERSE_SEQUENCE": "flip",
    "SPACE_TO_BATCH_ND": "constant_pad_nd", "BATCH_TO_SPACE_ND": "clone", "ASSIGN_VARIABLE": "clone",
    "MIRROR_PAD": "reflection_pad2d",
}  # fmt: skip
"""Operator of ONNX or TFLite whose ATen call takes only its first input -> that call."""

VARIADIC: Final[Mapping[str, str]] = {
    "Add": "add", "Sub": "sub", "Mul": "mul", "Div": "div", "Pow": "pow", "Mod": "remainder", "Equal": "eq",
    "Less": "lt", "LessOrEqual": "le", "Greater": "gt", "GreaterOrEqual": "ge", "And": "logical_and",
    "Or": "logical_or", "Xor": "logical_xor", "PRelu": "prelu", "BitwiseAnd": "bitwise_and", "BitwiseOr": "bitwise_or",
    "Max": "maximum", "Min": "minimum", "Sum": "add", "Mean": "add",
}  # fmt: skip

VIEWED: Final[Mapping[str, str]] = {
    "Reshape": "view", "Flatten": "view", "Squeeze": "squeeze", "Unsqueeze": "unsqueeze", "Split": "split",
    "Expand": "expand", "Slice": "slice", "UNPACK": "split",
}  # fmt: skip
"""Operator that is a view if the memory layout permits, else a copy -> its ATen call."""

RULES: Final[Mapping[str, Rule]] = {
    **{op: plain(aten) for op, aten in UNARY.items()},
    **{op: _variadic(aten) for op, aten in VARIADIC.items()},
    **{op: _view(aten) for op, aten in VIEWED.items()},
    "Conv": _convolution, "ConvInteger": _convolution, "QLinearConv": _convolution, "ConvTranspose": _transposed,
    "Linear": _linear, "Gemm": _gemm, "QGemm": _gemm, "MatMul": _matmul, "MatMulInteger": _matmul,
    "QLinearMatMul": _matmul, "FusedMatMul": _matmul, "MatMulIntegerToFloat": _matmul,
    "MatMulNBits": plain("linear", 0, 1, 5), "Einsum": _einsum,
    "BatchNormalization": plain("batch_norm", 0, 1, 2, 3, 4), "Clip": _clip,
    "LayerNormalization": _layer_norm("layer_norm"), "RMSNormalization": _layer_norm("rms_norm"),
    "SimplifiedLayerNormalization": _layer_norm("rms_norm"), "SkipLayerNormalization": _skip_norm("layer_norm"),
    "SkipSimplifiedLayerNormalization": _skip_norm("rms_norm"), "GroupNormalization": _group_norm,
    "InstanceNormalization": plain("instance_norm", 0, 1, 2), "MaxPool": _pool("max_pool"),
    "AveragePool": _pool("avg_pool"), "GlobalAveragePool": _global_pool("adaptive_avg_pool"),
    "GlobalMaxPool": _global_pool("adaptive_max_pool"), "Softmax": _softmax("softmax"),
    "LogSoftmax": _softmax("log_softmax"), "Concat": concatenate, "Gather": _gather,
    "GatherElements": plain("gather", 0, 1), "GatherND": plain("index", 0, 1), "Where": plain("where", 0, 1, 2),
    "Resize": _resize, "Upsample": _resize, "Transpose": _transpose, "Cast": _cast, "CastLike": _cast,
    "Identity": lambda _: None, "Dropout": lambda _: None, "TopK": _top, "NonMaxSuppression": suppress,
    "ScatterND": _scatter, "ScatterElements": plain("scatter", 0, 1, 2), "GridSample": plain("grid_sampler_2d", 0, 1),
    "BiasGelu": plain("gelu", 0, 1),
}  # fmt: skip
"""ONNX operator -> rule of its ATen call. Source: operators of ONNX, opsets 7 to 27, and of ONNX Runtime."""
