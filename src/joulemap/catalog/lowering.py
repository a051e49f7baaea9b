"""Which eager kernels run an operator of a trace, and the time of each operator from a profile of such kernels.

A profile lists ATen operators with the shapes of their arguments; a trace has operators as a model calls them. One
operator may be several kernels (a convolution and the addition of its bias), and kernels of several operators may stand
in one row (all biases of one shape). Each rule names the kernels that an operator is expected to run, as keys: the ATen
operator and what of its shapes the trace tells too. A row of the profile is divided among the operators that expect it,
a call each: the same kernel at the same shapes takes the same time. No time is lost: what no operator expects, or is
listed with other calls than expected, stays a row without operator.

Source of the rules: ATen's composite implementations (`aten/src/ATen/native` of PyTorch 2.11).
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Final

import attrs

from joulemap.domain.profile import OperatorMeasurement, ProfiledKernel, Shape, TracedOperator

Key = tuple[object, ...]
"""ATen operator without the underscore of its in-place form, and what of its shapes the trace tells too."""

ROLL_CALLS: Final = 3
"""A roll over two dimensions is listed once for itself and once for each dimension, which is a kernel."""

REDUCED: Final = ("fp16", "bf16")
"""Precisions whose batch normalization converts its parameters, a kernel each time."""


@attrs.frozen
class Expected:
    """A kernel that an operator runs."""

    key: Key
    call_count: int = 1
    is_certain: bool = True
    """False where it depends on the layout of an operand, which a trace does not tell."""


def _elements(shape: Shape) -> int:
    return math.prod(shape)


def _broadcast(first: Shape, second: Shape) -> Shape:
    width = max(len(first), len(second))
    padded = [(1,) * (width - len(shape)) + shape for shape in (first, second)]
    return tuple(max(pair) for pair in zip(*padded, strict=True))


def _join(aten: str, shapes: Sequence[Shape]) -> Key:
    """Return the key of an operator on two tensors, or on one and a number."""
    tensors = [shape for shape in shapes[:2] if shape]
    return (aten, _broadcast(tensors[0], tensors[-1]), frozenset(map(_elements, tensors)))


def _pool(aten: str, shapes: Sequence[Shape]) -> Key:
    return (aten, shapes[0][:2], _elements(shapes[0]))


def find_key(kernel: ProfiledKernel) -> Key:
    """Return what a row of a profile is matched by."""
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
    """All three operators of an attention are one kernel, which the softmax stands for."""
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
    """Return the rule of an operator that is one kernel of its output's shape."""
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
    "index": lambda operator, _precision: [Expected(("index", operator.weight_shapes[0]))],
    "roll": lambda operator, _precision: [Expected(("roll", operator.output_shape), ROLL_CALLS)],
}
"""operation -> the kernels that an operator of it runs; any other is one kernel of its own name."""

_RULE_OF_OTHERS: Final = _expect_plain()


def expect_kernels(operator: TracedOperator, precision: str) -> list[Expected]:
    """Return the kernels that an operator is expected to run; none for a view."""
    if operator.kind == "view":
        return []
    return RULES.get(operator.operation, _RULE_OF_OTHERS)(operator, precision)


@attrs.frozen
class _Row:
    """What a profile lists under one key."""

    kernels: tuple[ProfiledKernel, ...]

    @property
    def call_count(self) -> int:
        return sum(kernel.call_count for kernel in self.kernels)

    @property
    def device_time_us(self) -> float:
        return math.fsum(kernel.device_time_us for kernel in self.kernels)


@attrs.frozen(slots=False)
class _Claim:
    """How the rows of a profile are divided among operators."""

    rows: Mapping[Key, _Row]
    expected: Mapping[int, Sequence[Expected]]
    """Operator -> its kernels, for those that take part."""
    pass_count: int
    """How often the profile lists every operator."""

    @cached_property
    def certain(self) -> Counter[Key]:
        """Calls of one pass that operators are sure to make."""
        return self._count(True)

    @cached_property
    def possible(self) -> Counter[Key]:
        """Calls of one pass that operators may make beside those."""
        return self._count(False)

    def _count(self, is_certain: bool) -> Counter[Key]:
        counts = Counter[Key]()
        for kernels in self.expected.values():
            for one in kernels:
                if one.is_certain == is_certain:
                    counts[one.key] += one.call_count
        return counts

    def is_met(self, key: Key) -> bool:
        """Whether a row has as many calls as operators make."""
        least = self.certain[key]
        return key in self.rows and least <= self.rows[key].call_count / self.pass_count <= least + self.possible[key]

    def shares(self, one: Expected) -> tuple[float, float]:
        """Return (calls, microseconds) of one pass that an expected kernel gets of its row."""
        if not self.is_met(one.key):
            return 0.0, 0.0
        row = self.rows[one.key]
        calls = float(one.call_count)
        if not one.is_certain:
            calls *= (row.call_count / self.pass_count - self.certain[one.key]) / self.possible[one.key]
        return calls, row.device_time_us * calls / row.call_count

    def without_unmet(self) -> _Claim:
        """Return the claim without operators that lack one of their kernels."""
        kept = {
            index: kernels
            for index, kernels in self.expected.items()
            if all(self.is_met(one.key) for one in kernels if one.is_certain)
        }
        return attrs.evolve(self, expected=kept)


def match_profile(
    kernels: Iterable[ProfiledKernel], operators: Iterable[TracedOperator]
) -> tuple[OperatorMeasurement, ...]:
    """Return the device time of one configuration by operation and shapes, then of what no operator stands for.

    `kernels` are the rows of one model, precision and batch, `operators` its trace. Where the profile lists every
    operator k times, times and calls are those of one of them.
    """
    listed = tuple(kernels)
    traced = tuple(operators)
    by_key: dict[Key, list[ProfiledKernel]] = defaultdict(list)
    for kernel in listed:
        by_key[find_key(kernel)].append(kernel)
    rows = {key: _Row(tuple(found)) for key, found in by_key.items()}
    expected = {one.operator_index: expect_kernels(one, listed[0].precision) for one in traced}
    claim = _Claim(rows, {index: kernels for index, kernels in expected.items() if kernels}, 1)
    claim = attrs.evolve(claim, pass_count=_count_passes(claim))
    while len((rest := claim.without_unmet()).expected) < len(claim.expected):
        claim = rest
    groups: dict[tuple[str, str], list[TracedOperator]] = defaultdict(list)
    for operator in traced:
        is_attention = operator.operation == "scaled_dot_product_attention"
        if operator.operator_index in claim.expected or is_attention:
            groups[operator.operation, operator.shapes].append(operator)
    measured = (_measure(listed[0], group, claim) for group in groups.values())
    taken = {one.key for kernels in claim.expected.values() for one in kernels if claim.is_met(one.key)}
    return (
        *(one for one in measured if one.call_count),
        *(_leave_over(kernel, claim.pass_count) for kernel in listed if find_key(kernel) not in taken),
    )


def _count_passes(claim: _Claim) -> int:
    """Return how often a profile lists every operator, judged by the rows that certain kernels alone make up."""
    ratios = Counter(
        row.call_count // claim.certain[key]
        for key, row in claim.rows.items()
        if claim.certain[key] and not claim.possible[key] and row.call_count % claim.certain[key] == 0
    )
    return ratios.most_common(1)[0][0] if ratios else 1


def _measure(configuration: ProfiledKernel, group: Sequence[TracedOperator], claim: _Claim) -> OperatorMeasurement:
    kernels = [one for operator in group for one in claim.expected.get(operator.operator_index, ())]
    shares = [claim.shares(one) for one in kernels]
    names = {kernel.aten for one in kernels if claim.is_met(one.key) for kernel in claim.rows[one.key].kernels}
    return OperatorMeasurement(
        model=configuration.model,
        precision=configuration.precision,
        batch=configuration.batch,
        operation=group[0].operation,
        shapes=group[0].shapes,
        operator_count=len(group),
        kernels=" ".join(sorted(names)),
        call_count=round(math.fsum(calls for calls, _ in shares)),
        device_time_us=math.fsum(time for _, time in shares),
        is_overlapping=group[0].kind == "grouped_conv",
        pass_count=claim.pass_count,
    )


def _leave_over(kernel: ProfiledKernel, pass_count: int) -> OperatorMeasurement:
    return OperatorMeasurement(
        model=kernel.model,
        precision=kernel.precision,
        batch=kernel.batch,
        operation="",
        shapes=" ".join("x".join(map(str, shape)) for shape in kernel.shapes if shape),
        operator_count=0,
        kernels=kernel.aten,
        call_count=kernel.call_count // pass_count,
        device_time_us=kernel.device_time_us / pass_count,
        is_overlapping=False,
        pass_count=pass_count,
    )
