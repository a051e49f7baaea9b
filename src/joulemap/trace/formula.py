"""What each ATen operator costs: MACs, elementwise and special operations, GEMM view.

One small pure function per operator, registered on its ATen name without overload. An operator without a formula
becomes a row of kind `uncounted`: its bytes are known, its arithmetic is not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import attrs
import torch

Shape = tuple[int, ...]
Formula = Callable[["Call"], "Cost"]


@attrs.frozen(kw_only=True)
class Cost:
    """The counts of one operator, for the whole batch."""

    kind: str
    operation: str
    mac_count: int = 0
    elementwise_count: int = 0
    special_count: int = 0
    gemm: tuple[int, int, int, int] = (0, 0, 0, 0)
    """(M, N, K, groups)."""
    tap_count: int = 1
    gathers: bool = False
    """Whether it reads only the rows that it returns (embedding, gather), not its whole first input."""
    scalars: str = ""


@attrs.frozen
class Call:
    """One dispatched call with its output."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    outputs: tuple[torch.Tensor, ...]

    def value(self, position: int, name: str, default: Any = None) -> Any:
        """Return an argument by position or name."""
        if position < len(self.args):
            return self.args[position]
        return self.kwargs.get(name, default)

    def shape(self, position: int, name: str = "") -> Shape:
        """Return the shape of a tensor argument."""
        return tuple(self.value(position, name).shape)

    @property
    def output_shape(self) -> Shape:
        """Shape of the first output."""
        return tuple(self.outputs[0].shape) if self.outputs else ()

    @property
    def output_count(self) -> int:
        """Elements of the first output."""
        return math.prod(self.output_shape)

    @property
    def input_count(self) -> int:
        """Elements of the first argument."""
        return math.prod(self.shape(0))


MAX_MULTIPLIED_POWER: Final = 4
"""Whole exponents up to this are computed as products by the frameworks' kernels (x, x^2, x^3, x^4)."""

FORMULAS: Final[dict[str, Formula]] = {}

KEPT_COMPOSITES: Final = frozenset(
    {
        "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "avg_pool1d", "batch_norm",
        "contiguous", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d",
        "dropout", "embedding", "feature_dropout", "group_norm", "instance_norm", "layer_norm", "linear",
        "log_sigmoid", "log_softmax", "matmul", "max_pool1d", "max_pool2d", "max_pool3d", "pad", "prelu", "reshape",
        "rms_norm", "scaled_dot_product_attention", "softmax", "square", "to", "type_as", "upsample_bicubic2d",
        "upsample_bilinear2d", "upsample_linear1d", "upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d",
        "upsample_trilinear3d", "_upsample_bicubic2d_aa", "_upsample_bilinear2d_aa",
    }
)  # fmt: skip
"""Composite operators that stay whole because they are one kernel; every other composite is decomposed."""


def formula(*names: str) -> Callable[[Formula], Formula]:
    """Register a formula for the ATen operators of these names; a second registration raises."""

    def register(function: Formula) -> Formula:
        for name in names:
            if name in FORMULAS:
                raise ValueError(f"the operator {name} has two formulas")
            FORMULAS[name] = function
        return function

    return register


def _text(**scalars: Any) -> str:
    return " ".join(f"{name}={value}" for name, value in scalars.items())


def _pixels(shape: Shape) -> int:
    return math.prod(shape[2:])


@formula("conv1d", "conv2d", "conv3d", "convolution")
def convolution(call: Call) -> Cost:
    """MACs = output elements x input channels per group x taps (plus one addition per output for a bias)."""
    weight = call.shape(1, "weight")
    output = call.output_shape
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
        scalars=_text(kernel=list(weight[2:]), stride=call.value(3, "stride", 1), padding=call.value(4, "padding", 0),
                      groups=groups),
    )  # fmt: skip


@formula("conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
def transposed_convolution(call: Call) -> Cost:
    """MACs = input elements x output channels per group x taps."""
    weight = call.shape(1, "weight")
    source = call.shape(0)
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
        scalars=_text(kernel=list(weight[2:]), stride=call.value(3, "stride", 1), groups=groups),
    )


@formula("linear")
def linear(call: Call) -> Cost:
    """MACs = rows x input features x output features (plus one addition per output for a bias)."""
    weight = call.shape(1, "weight")
    rows = call.output_count // weight[0]
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
        rows, groups = output_count // columns, 1
    else:
        rows = left[-2] if len(left) > 1 else 1
        groups = output_count // (rows * columns)
    return Cost(
        kind="matmul",
        operation="matmul",
        mac_count=macs,
        elementwise_count=extra,
        gemm=(rows, columns, inner, groups),
    )


@formula("matmul", "mm", "bmm", "mv", "dot")
def matmul(call: Call) -> Cost:
    """MACs = output elements x inner dimension."""
    return _matmul_cost(call.shape(0), call.shape(1), max(call.output_count, 1))


@formula("addmm", "baddbmm", "addmv")
def added_matmul(call: Call) -> Cost:
    """As matmul of the second and third argument, plus one addition per output."""
    return _matmul_cost(call.shape(1), call.shape(2), call.output_count, extra=call.output_count)


@formula("batch_norm", "native_batch_norm", "_native_batch_norm_legit_no_training")
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
    """As layer_norm, over each group of channels of each sample."""
    return _normalization("group_norm", call.shape(0)[0] * int(call.value(1, "num_groups")), call)


@formula("native_group_norm")
def native_group_norm(call: Call) -> Cost:
    """As group_norm; the groups are the seventh argument."""
    return _normalization("group_norm", call.shape(0)[0] * int(call.value(6, "group")), call)


@formula("instance_norm")
def instance_norm(call: Call) -> Cost:
    """As layer_norm, over each channel of each sample."""
    return _normalization("instance_norm", math.prod(call.shape(0)[:2]), call)


@formula("softmax", "_softmax", "log_softmax", "_log_softmax")
def softmax(call: Call) -> Cost:
    """Per element: maximum, subtraction, exp, sum, division (as a multiplication): four operations and one exp."""
    return Cost(
        kind="softmax",
        operation="softmax",
        elementwise_count=4 * call.output_count,
        special_count=call.output_count,
    )


def _elementwise(names: Sequence[str], per_element: int, special: int = 0, operation: str = "") -> None:
    for name in names:
        label = operation or name.rstrip("_")

        def cost(call: Call, label: str = label) -> Cost:
            return Cost(
                kind="elementwise",
                operation=label,
                elementwise_count=per_element * call.output_count,
                special_count=special * call.output_count,
            )

        formula(name)(cost)


_elementwise(["relu", "relu_", "neg", "neg_", "abs", "abs_", "sign", "floor", "ceil", "round", "trunc"], 1)
_elementwise(["threshold", "threshold_"], 1)
_elementwise(["hardtanh", "hardtanh_", "relu6"], 2, operation="clamp")
_elementwise(["clamp_min", "clamp_min_", "clamp_max", "clamp_max_"], 1, operation="clamp")
_elementwise(["leaky_relu", "leaky_relu_", "prelu"], 2)
_elementwise(["hardsigmoid", "hardsigmoid_"], 4)
_elementwise(["hardswish", "hardswish_"], 5)
_elementwise(["silu", "silu_"], 3, 1)
_elementwise(["sigmoid", "sigmoid_", "log_sigmoid"], 2, 1)
_elementwise(["gelu", "gelu_"], 4, 1)
_elementwise(["mish", "mish_", "softplus"], 3, 2)
_elementwise(["elu", "elu_", "celu", "selu", "selu_"], 3, 1)
_elementwise(["glu"], 3, 1)
_elementwise(["tanh", "tanh_", "exp", "exp_", "exp2", "log", "log_", "log2", "log10", "log1p", "expm1"], 0, 1)
_elementwise(["sqrt", "sqrt_", "rsqrt", "reciprocal", "erf", "sin", "cos", "tan", "atan", "asin", "acos"], 0, 1)
_elementwise(["atan2", "remainder", "fmod", "floor_divide"], 1, 1)
_elementwise(["add", "add_", "sub", "sub_", "rsub", "mul", "mul_", "div", "div_", "maximum", "minimum", "square"], 1)
_elementwise(["addcmul", "addcmul_", "addcdiv", "lerp"], 2)
_elementwise(["where", "masked_fill", "masked_fill_", "bitwise_and", "bitwise_or", "bitwise_not", "bitwise_xor"], 1)
_elementwise(["eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_not", "isnan"], 1)


@formula("clamp", "clamp_")
def clamp(call: Call) -> Cost:
    """One comparison per element and bound."""
    bounds = sum(call.value(position, name) is not None for position, name in ((1, "min"), (2, "max")))
    return Cost(kind="elementwise", operation="clamp", elementwise_count=bounds * call.output_count)


@formula("pow", "pow_")
def power(call: Call) -> Cost:
    """A small whole exponent is a chain of multiplications; any other is exp(y log x): two special functions."""
    exponent = call.value(1, "exponent")
    if isinstance(exponent, int | float) and exponent == int(exponent) and 1 <= exponent <= MAX_MULTIPLIED_POWER:
        return Cost(kind="elementwise", operation="pow", elementwise_count=(int(exponent) - 1) * call.output_count)
    return Cost(kind="elementwise", operation="pow", special_count=2 * call.output_count)


@formula("max_pool1d", "max_pool2d", "max_pool3d", "max_pool2d_with_indices", "max_pool3d_with_indices")
def max_pool(call: Call) -> Cost:
    """One comparison per tap and output."""
    kernel = call.value(1, "kernel_size")
    dimensions = max(len(call.output_shape) - 2, 1)
    taps = math.prod(kernel) if len(kernel) > 1 else kernel[0] ** dimensions
    return Cost(
        kind="pool", operation="max_pool", elementwise_count=taps * call.output_count, tap_count=taps,
        scalars=_text(kernel=list(kernel), stride=call.value(2, "stride", [])),
    )  # fmt: skip


@formula("avg_pool1d", "avg_pool2d", "avg_pool3d")
def avg_pool(call: Call) -> Cost:
    """One addition per tap and output, one multiplication per output."""
    kernel = call.value(1, "kernel_size")
    dimensions = max(len(call.output_shape) - 2, 1)
    taps = math.prod(kernel) if len(kernel) > 1 else kernel[0] ** dimensions
    return Cost(
        kind="pool", operation="avg_pool", elementwise_count=(taps + 1) * call.output_count, tap_count=taps,
        scalars=_text(kernel=list(kernel), stride=call.value(2, "stride", [])),
    )  # fmt: skip


@formula(
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "_adaptive_avg_pool2d",
    "_adaptive_avg_pool3d",
)
def adaptive_avg_pool(call: Call) -> Cost:
    """Each input is added once (windows that overlap add again), one multiplication per output."""
    window = max(-(-call.input_count // max(call.output_count, 1)), 1)
    return Cost(
        kind="reduction" if call.output_count * 4 <= call.input_count else "pool",
        operation="adaptive_avg_pool",
        elementwise_count=max(call.input_count, call.output_count) + call.output_count,
        tap_count=window,
    )


@formula("adaptive_max_pool1d", "adaptive_max_pool2d", "adaptive_max_pool3d")
def adaptive_max_pool(call: Call) -> Cost:
    """One comparison per input."""
    window = max(-(-call.input_count // max(call.output_count, 1)), 1)
    return Cost(kind="pool", operation="adaptive_max_pool", elementwise_count=call.input_count, tap_count=window)


@formula(
    "sum",
    "mean",
    "max",
    "min",
    "amax",
    "amin",
    "prod",
    "any",
    "all",
    "argmax",
    "argmin",
    "cumsum",
    "logsumexp",
)
def reduction(call: Call) -> Cost:
    """One operation per input element; one multiplication per output for a mean."""
    return Cost(kind="reduction", operation="reduce", elementwise_count=call.input_count + call.output_count)


@formula("var", "std", "var_mean", "norm", "linalg_vector_norm")
def moment(call: Call) -> Cost:
    """Two passes: subtraction, multiplication and two additions per input element."""
    return Cost(kind="reduction", operation="moment", elementwise_count=4 * call.input_count)


@formula("topk", "sort", "argsort")
def sort(call: Call) -> Cost:
    """N log2 n comparisons along the sorted dimension."""
    length = max(call.shape(0)[-1] if call.shape(0) else 1, 2)
    return Cost(kind="reduction", operation="sort", elementwise_count=math.ceil(call.input_count * math.log2(length)))


_INTERPOLATION: Final = {"nearest": 0, "linear": 3, "bilinear": 7, "trilinear": 15, "bicubic": 31}
"""Multiplications and additions per output of each interpolation: 2 taps^dimensions - 1."""


def _upsample(mode: str, per_element: int) -> Formula:
    def cost(call: Call) -> Cost:
        return Cost(
            kind="elementwise" if per_element else "data_movement",
            operation=f"upsample_{mode}",
            elementwise_count=per_element * call.output_count,
        )

    return cost


for _mode, _operations in _INTERPOLATION.items():
    for _suffix in ("1d", "2d", "3d"):
        formula(f"upsample_{_mode}{_suffix}", f"_upsample_{_mode}{_suffix}_aa")(_upsample(_mode, _operations))


@formula("grid_sampler_2d", "grid_sampler_3d", "grid_sampler")
def grid_sample(call: Call) -> Cost:
    """Bilinear: four weights from two coordinates and a weighted sum of four taps."""
    return Cost(kind="elementwise", operation="grid_sample", elementwise_count=15 * call.output_count)


def _movement(names: Sequence[str], *, gathers: bool = False) -> None:
    for name in names:
        label = name.strip("_")

        def cost(_call: Call, label: str = label) -> Cost:
            return Cost(kind="data_movement", operation=label, gathers=gathers)

        formula(name)(cost)


_movement(["cat", "stack", "pad", "constant_pad_nd", "reflection_pad2d", "replication_pad2d", "roll", "flip"])
_movement(["clone", "contiguous", "copy_", "_to_copy", "to", "type_as", "reshape", "_unsafe_view", "repeat"])
_movement(["channel_shuffle", "pixel_shuffle", "pixel_unshuffle", "im2col", "col2im", "repeat_interleave", "tril"])
_movement(["triu", "fill_", "fill", "zero_", "masked_scatter", "scatter", "scatter_", "scatter_add", "index_put_"])
_movement(["dropout", "dropout_", "feature_dropout", "feature_dropout_", "unbind", "split", "chunk", "lift_fresh"])
_movement(["arange", "zeros", "ones", "full", "empty", "zeros_like", "ones_like", "full_like", "empty_like"])
_movement(["new_zeros", "new_ones", "new_full", "new_empty", "scalar_tensor", "linspace", "eye", "one_hot"])
_movement(
    [
        "empty_strided",
        "new_empty_strided",
        "meshgrid",
        "complex",
        "view_as_real",
        "as_strided",
        "slice_scatter",
    ]
)
_movement(["embedding", "index", "_unsafe_index", "index_select", "gather", "take"], gathers=True)


def count(name: str, call: Call) -> Cost:
    """Return the cost of a call of the ATen operator `name`; kind `uncounted` where no formula is registered."""
    registered = FORMULAS.get(name)
    if registered is None:
        return Cost(kind="uncounted", operation=name.strip("_"))
    return registered(call)
