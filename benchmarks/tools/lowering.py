"""Eager kernels that an operator of a trace is expected to run.

A profile lists ATen operators with the shapes of their arguments; a trace has operators as a model calls them. One
operator may be several kernels (a convolution and the addition of its bias), and kernels of several operators may be in
one row (all biases of one shape). Each rule names the expected kernels as keys: the ATen operator, and the part of its
shapes that a trace knows too.

Source of the rules: ATen's composite implementations (`aten/src/ATen/native` of PyTorch 2.11).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from joulemap.domain.measurement import Shape, TracedOperator
from joulemap.system.record import frozen

Key = tuple[object, ...]
"""ATen operator without the underscore of its in-place form, and the part of its shapes that a trace knows too."""

ROLL_CALLS: Final = 3
"""Calls in a profile for a roll over two dimensions: one for the roll, and a kernel for each dimension."""

REDUCED: Final = ("fp16", "bf16")
"""Precisions at which batch normalization converts its parameters by one more kernel each."""


@frozen(kw_only=True)
class ProfiledKernel:
    """Row of a profile: an ATen operator at its input shapes, over one pass of a model."""

    model: str
    precision: str
    batch: int
    aten: str
    """Dispatched operator, e.g. `cudnn_convolution`."""
    shapes: tuple[Shape, ...]
    """Argument shapes; empty for an argument that is not a tensor or is a list of tensors."""
    call_count: int
    device_time_us: float
    """Device time of all calls, gaps between kernels excluded."""


@frozen
class Expected:
    """Kernel that an operator is expected to run."""

    key: Key
    call_count: int = 1
    is_certain: bool = True
    """False if the kernel depends on the layout of an operand, which a trace does not state."""


def _elements(shape: Shape) -> int:
    return math.prod(shape)


def _broadcast(first: Shape, second: Shape) -> Shape:
    width = max(len(first), len(second))
    padded = [(1,) * (width - len(shape)) + shape for shape in (first, second)]
    return tuple(max(pair) for pair in zip(*padded, strict=True))


def _join(aten: str, shapes: Sequence[Shape]) -> Key:
    """Return the key of an operator on two tensors, or on a tensor and a number."""
    tensors = [shape for shape in shapes[:2] if shape]
    return (aten, _broadcast(tensors[0], tensors[-1]), frozenset(map(_elements, tensors)))


def _pool(aten: str, shapes: Sequence[Shape]) -> Key:
    return (aten, shapes[0][:2], _elements(shapes[0]))


def find_key(kernel: ProfiledKernel) -> Key:
    """Return the key by which a row of a profile is matched."""
    shapes = kernel.shapes
    aten = kernel.aten.rstrip("_")
    if aten == "cudnn_convolution":
        return ("convolution", shapes[1], _elements(shapes[0]))
    if aten in ("cudnn_batch_norm", "native_batch_norm"):
        return ("batch_norm", shapes[0])
    if aten in ("add", "sub", "mul", "div"):
        return _join(aten, shapes)
    if aten == "addmm":
        return ("product", 1, shapes[1][0], shapes[2][1], shapes[1][1])
    if aten == "mm":
        return ("product", 1, shapes[0][0], shapes[1][1], shapes[0][1])
    if aten == "bmm":
        return ("product", shapes[0][0], shapes[0][1], shapes[1][2], shapes[0][2])
    if aten in ("mean", "_adaptive_avg_pool2d"):
        return _pool("adaptive_avg_pool", shapes)
    if aten == "avg_pool2d":
        return _pool("avg_pool", shapes)
    if aten == "max_pool2d_with_indices":
        return _pool("max_pool", shapes)
    if aten == "_cudnn_attention_forward":
        return ("attention", shapes[0][:3])
    if aten == "_efficient_attention_forward":
        batch, rows, heads, _ = shapes[0]
        return ("attention", (batch, heads, rows))
    if aten == "cat":
        return ("cat",)
    return (aten, shapes[0])


def _expect_convolution(operator: TracedOperator, _precision: str) -> list[Expected]:
    weight, *bias = operator.weight_shapes
    kernels = [Expected(("convolution", weight, operator.input_elements[0]))]
    if bias:
        out = operator.output_shape
        kernels.append(Expected(_join("add", [out, (1, out[1], *(1 for _ in out[2:]))])))
    return kernels


def _expect_batch_norm(operator: TracedOperator, precision: str) -> list[Expected]:
    kernels = [Expected(("batch_norm", operator.output_shape))]
    if precision in REDUCED:
        kernels.append(Expected(("copy", operator.weight_shapes[0])))
    return kernels


def _expect_layer_norm(operator: TracedOperator, _precision: str) -> list[Expected]:
    copy = Expected(("copy", operator.output_shape), is_certain=False)
    return [Expected(("native_layer_norm", operator.output_shape)), copy]


def _expect_product(operator: TracedOperator, _precision: str) -> list[Expected]:
    groups, rows, columns, depth = operator.gemm
    kernels = [Expected(("product", groups, rows, columns, depth))]
    if operator.aten == "aten.matmul.default":
        outer = operator.output_shape[:-2]
        kernels += [
            Expected(("copy", (*outer, *shape)), is_certain=False) for shape in ((rows, depth), (depth, columns))
        ]
    return kernels


def _expect_attention(operator: TracedOperator, _precision: str) -> list[Expected]:
    """Return the kernel of an attention, which a trace splits into three operators; only the softmax gets it."""
    return [Expected(("attention", operator.output_shape[:-1]))] if operator.kind == "softmax" else []


def _expect_binary(operator: TracedOperator, _precision: str) -> list[Expected]:
    read = frozenset((*operator.input_elements, *map(_elements, operator.weight_shapes)))
    return [Expected((operator.operation, operator.output_shape, read))]


def _expect_pool(operator: TracedOperator, _precision: str) -> list[Expected]:
    return [Expected((operator.operation, operator.output_shape[:2], operator.input_elements[0]))]


def _expect_copy(operator: TracedOperator, _precision: str) -> list[Expected]:
    return [Expected(("copy", operator.copied_shape))]


def _expect_masked_fill(operator: TracedOperator, _precision: str) -> list[Expected]:
    return [Expected(("copy", operator.output_shape)), Expected(("masked_fill", operator.output_shape))]


def _expect_plain(aten: str = "") -> Callable[[TracedOperator, str], list[Expected]]:
    """Return a rule for an operator that runs as one kernel with the shape of its output."""
    return lambda operator, _precision: [Expected((aten or operator.operation, operator.output_shape))]


RULES: Final[Mapping[str, Callable[[TracedOperator, str], list[Expected]]]] = {
    "conv2d": _expect_convolution,
    "batch_norm": _expect_batch_norm,
    "layer_norm": _expect_layer_norm,
    "linear": _expect_product,
    "matmul": _expect_product,
    "scaled_dot_product_attention": _expect_attention,
    "add": _expect_binary,
    "sub": _expect_binary,
    "mul": _expect_binary,
    "div": _expect_binary,
    "max_pool": _expect_pool,
    "avg_pool": _expect_pool,
    "adaptive_avg_pool": _expect_pool,
    "reshape": _expect_copy,
    "contiguous": _expect_copy,
    "clone": _expect_copy,
    "pad": _expect_copy,
    "masked_fill": _expect_masked_fill,
    "new_zeros": _expect_plain("fill"),
    "relu": _expect_plain("clamp_min"),
    "softmax": _expect_plain("_softmax"),
    "cat": lambda _operator, _precision: [Expected(("cat",))],
    "append": lambda _operator, _precision: [Expected(("cat",))],
    "index": lambda operator, _precision: [Expected(("index", operator.weight_shapes[0]))],
    "roll": lambda operator, _precision: [Expected(("roll", operator.output_shape), ROLL_CALLS)],
}
"""Operation -> function that returns its kernels; any other operation is one kernel of the same name."""

_RULE_OF_OTHERS: Final = _expect_plain()


def expect_kernels(operator: TracedOperator, precision: str) -> list[Expected]:
    """Return the kernels that an operator is expected to run; none for a view."""
    if operator.kind == "view":
        return []
    return RULES.get(operator.operation, _RULE_OF_OTHERS)(operator, precision)
