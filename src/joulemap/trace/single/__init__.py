"""Single operators as workloads, without torch: the calls of their modules, counted as a trace counts them.

The sizes in an operator's name are those of one sample. A batch size multiplies the size that grows with the batch: m
of `gemm`, b of `bmm`, rows of operators with rows, elements of `elementwise`, and otherwise `batch`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

import attrs

from joulemap.domain.catalogue import OPERATOR, ModelEntry, ShippedWorkload
from joulemap.domain.operator.name import COLLECTIVES, ELEMENTWISE, EXAMPLES, SingleOperator, find_operator
from joulemap.physics.record.weight import read_weight_format
from joulemap.physics.record.workload import NARROW_CACHES, NO_KEY, WIDE_CACHE, Workload, WorkloadKey
from joulemap.system.errors import UsageError
from joulemap.system.record import frozen
from joulemap.trace.formula import FORMULAS, Call, Cost
from joulemap.trace.formula.attention import STEPS, attend
from joulemap.trace.single.flow import DTYPE, LARGEST, LEARNED, Flow, Held, Parts, Shape, form, make_operator
from joulemap.trace.single.routing import route
from joulemap.trace.single.scan import scan_parts

SCALAR: Final = 2.0
"""Number that is the second operand of a binary operator, such as the exponent of a square."""


CACHES: Final = {"": DTYPE, "fp8": "float8_e4m3fn", "int8": "int8", "bf16": "bfloat16"}
"""Storage format of keys and values in attention -> dtype of their tensors."""


COUNTED: Final = frozenset(
    {
        "adaptive_avg_pool2d", "batch_norm", "bmm", "conv2d", "embedding", "layer_norm", "linear", "max_pool2d",
        "rms_norm", "softmax", *(one.aten.partition(".")[0] for one in ELEMENTWISE.values()),
    }
)  # fmt: skip
"""ATen operators whose formulas single operators use; the version of their workloads covers no other formula."""


_CACHE_WORDS: Final = {**NARROW_CACHES, "bf16": WIDE_CACHE}


@frozen
class SingleCall:
    """Workload that consists of a single call."""

    aten: str
    args: tuple[Any, ...]
    output: Shape
    cost: Cost | None = None
    """Cost of a kernel that is no ATen operator; None to use the formula of `aten`."""

    @property
    def held(self) -> tuple[Held, ...]:
        """Tensors that the call reads: inputs and weights."""
        return tuple(one for one in self.args if isinstance(one, Held))

    def count(self) -> Cost:
        """Return the cost of the call, by the same formula as in a trace."""
        if self.cost is not None:
            return self.cost
        outputs: Any = (Held(self.output),)
        name = self.aten.partition(".")[0]
        if name not in COUNTED:
            raise KeyError(f"the version of single operators does not cover the formula of {name}")
        return FORMULAS[name](Call(self.args, {}, outputs, f"aten.{self.aten}"))


def describe(operator: SingleOperator, batch: int, key: WorkloadKey) -> Workload:
    """Return the fused workload of an operator at a batch size. Raise UsageError for counts beyond the database's
    range.
    """
    parts = break_up(operator, batch)
    return check_counts(form(operator, batch, key, parts.operators, parts.flows, parts.pattern))


def check_counts(workload: Workload) -> Workload:
    """Return a workload unchanged. Raise UsageError if the sums of its counts exceed the database's range."""
    counts: dict[str, int] = {
        "MACs": workload.mac_count,
        "elementwise operations": sum(one.elementwise_count + one.special_count for one in workload.operators),
        "bytes": sum(access.byte_count for access in workload.accesses),
    }
    for noun, count in counts.items():
        if count > LARGEST:
            raise UsageError(
                f"{workload.model} at batch {workload.batch} has {count:.3g} {noun}, more than the {LARGEST:.3g} that "
                "can be added up"
            )
    return workload


def break_up(operator: SingleOperator, batch: int) -> Parts:
    """Return the operators of one call with its tensors, in the order of the call's arguments and results."""
    return _PARTS.get(operator.kind, _single)(operator, batch)


def describe_examples() -> dict[str, tuple[ModelEntry, ShippedWorkload]]:
    """Return the name of an example of each kind of single operator -> (its model entry, its workload's sizes)."""
    found = {}
    for name in EXAMPLES.values():
        operator = find_operator(name)
        assert operator is not None, name
        workload = describe(operator, 1, NO_KEY)
        count = workload.parameter_count
        entry = ModelEntry(name=name, family=OPERATOR, task=OPERATOR, parameter_count=count)
        found[name] = (
            entry,
            ShippedWorkload(model=name, is_affine=True, parameter_count=count, mac_count=workload.mac_count),
        )
    return found


def _gemm(operator: SingleOperator, batch: int) -> SingleCall:
    m, n, k = batch * operator.size("m"), operator.size("n"), operator.size("k")
    return SingleCall("linear.default", (Held((m, k)), Held((n, k), "weight"), *_bias(operator, n)), (m, n))


def _bias(operator: SingleOperator, count: int) -> tuple[Held | None]:
    return (Held((count,), "bias") if operator.arguments["bias"] else None,)


def _bmm(operator: SingleOperator, batch: int) -> SingleCall:
    b, m, n, k = batch * operator.size("b"), operator.size("m"), operator.size("n"), operator.size("k")
    return SingleCall("bmm.default", (Held((b, m, k)), Held((b, k, n))), (b, m, n))


def _image(operator: SingleOperator, batch: int, channels: str = "channels") -> Shape:
    return (batch * operator.size("batch"), operator.size(channels), *(operator.size("size"),) * 2)


def _windows(operator: SingleOperator) -> Shape:
    padded = operator.size("size") + 2 * operator.size("padding")
    return ((padded - operator.size("kernel")) // operator.size("stride") + 1,) * 2


def _conv2d(operator: SingleOperator, batch: int) -> SingleCall:
    image, channels = _image(operator, batch, "channels_in"), operator.size("channels_out")
    kernel, groups = operator.size("kernel"), operator.size("groups")
    weight = Held((channels, image[1] // groups, kernel, kernel), "weight")
    stride, padding = ([operator.size(name)] * 2 for name in ("stride", "padding"))
    args = (Held(image), weight, *_bias(operator, channels), stride, padding, [1, 1], groups)
    return SingleCall("conv2d.default", args, (image[0], channels, *_windows(operator)))


def _rows(operator: SingleOperator, batch: int) -> tuple[int, int]:
    return batch * operator.size("rows"), operator.size("columns")


def _softmax(operator: SingleOperator, batch: int) -> SingleCall:
    shape = _rows(operator, batch)
    return SingleCall("softmax.int", (Held(shape), -1), shape)


def _layer_norm(operator: SingleOperator, batch: int) -> SingleCall:
    shape = _rows(operator, batch)
    weights = (Held(shape[1:], name) for name in LEARNED[: 1 + bool(operator.arguments["bias"])])
    return SingleCall("layer_norm.default", (Held(shape), [shape[1]], *weights), shape)


def _rms_norm(operator: SingleOperator, batch: int) -> SingleCall:
    shape = _rows(operator, batch)
    weights = (Held(shape[1:], "weight"),) if operator.arguments["weight"] else ()
    return SingleCall("rms_norm.default", (Held(shape), [shape[1]], *weights), shape)


def _embedding(operator: SingleOperator, batch: int) -> SingleCall:
    rows, columns = _rows(operator, batch)
    table = Held((operator.size("table"), columns), "weight")
    return SingleCall("embedding.default", (table, Held((rows,), dtype="int64")), (rows, columns))


def _rotary(operator: SingleOperator, batch: int) -> SingleCall:
    """Return the rotary embedding of queries and keys: x cos + y sin for each pair of elements, with angles from a
    table.
    """
    rows, width = batch * operator.size("rows"), operator.size("head_dim")
    turned = rows, operator.size("heads") + operator.size("kv_heads"), width
    cost = Cost(kind="elementwise", operation="rotary", elementwise_count=3 * math.prod(turned))
    return SingleCall("rotary.default", (Held(turned), Held((rows, width))), turned, cost)


def _gated(operator: SingleOperator, batch: int) -> SingleCall:
    rows, columns = output = _rows(operator, batch)
    gate = SingleCall(ELEMENTWISE[str(operator.arguments["kind"])].aten, (Held(output),), output).count()
    cost = attrs.evolve(gate, operation="gated", elementwise_count=gate.elementwise_count + math.prod(output))
    return SingleCall("gated.default", (Held((rows, 2 * columns)),), output, cost)


def _elementwise(operator: SingleOperator, batch: int) -> SingleCall:
    kind, elements, operand = str(operator.arguments["kind"]), operator.size("elements"), operator.size("operand")
    aten, count = ELEMENTWISE[kind].aten, batch * elements
    if operand == 0:
        return SingleCall(aten, (Held((count,)),), (count,))
    if operand == 1:
        return SingleCall("pow.Tensor_Scalar" if kind == "pow" else aten, (Held((count,)), SCALAR), (count,))
    if operand == elements:
        return SingleCall(aten, (Held((count,)), Held((count,))), (count,))
    shape = count // operand, operand
    return SingleCall(aten, (Held(shape), Held((operand,))), shape)


def _batch_norm(operator: SingleOperator, batch: int) -> SingleCall:
    shape = _image(operator, batch)
    weights = (Held((shape[1],), name) for name in (*LEARNED[:2], "running_mean", "running_var"))
    return SingleCall("batch_norm.default", (Held(shape), *weights), shape)


def _max_pool2d(operator: SingleOperator, batch: int) -> SingleCall:
    image = _image(operator, batch)
    kernel, stride = ([operator.size(name)] * 2 for name in ("kernel", "stride"))
    return SingleCall("max_pool2d.default", (Held(image), kernel, stride), (*image[:2], *_windows(operator)))


def _global_avg_pool(operator: SingleOperator, batch: int) -> SingleCall:
    image = _image(operator, batch)
    return SingleCall("adaptive_avg_pool2d.default", (Held(image), [1, 1]), (*image[:2], 1, 1))


def _collective(operator: SingleOperator, batch: int) -> SingleCall:
    """Return the part of a collective that runs on one device, which stores or sums a part of the whole tensor."""
    whole, devices = batch * operator.size("elements"), operator.size("devices")
    part = -(-whole // devices)
    is_sum = operator.kind in ("all_reduce", "reduce_scatter")
    cost = Cost(
        kind="communication",
        operation=operator.kind,
        elementwise_count=(devices - 1) * part if is_sum else 0,
        gemm=(0, 0, 0, devices),
        variant=str(operator.arguments["kernel"]),
    )
    read = part if operator.kind == "all_gather" else whole
    written = part if operator.kind == "reduce_scatter" else whole
    return SingleCall(f"{operator.kind}.default", (Held((read,)),), (written,), cost)


_CALLS: Final[Mapping[str, Callable[[SingleOperator, int], SingleCall]]] = {
    "gemm": _gemm,
    "bmm": _bmm,
    "conv2d": _conv2d,
    "softmax": _softmax,
    "layer_norm": _layer_norm,
    "rms_norm": _rms_norm,
    "embedding": _embedding,
    "rotary": _rotary,
    "gated": _gated,
    "elementwise": _elementwise,
    "batch_norm": _batch_norm,
    "max_pool2d": _max_pool2d,
    "global_avg_pool": _global_avg_pool,
    **dict.fromkeys(COLLECTIVES, _collective),
}
"""Kind of single operator -> function that makes its call; `_PARTS` has the other kinds."""


def _single(operator: SingleOperator, batch: int) -> Parts:
    """Return the parts of an operator that is a single call with one output."""
    call = _CALLS[operator.kind](operator, batch)
    cost, output = call.count(), Held(call.output)
    most = output.byte_count if cost.gathers else LARGEST
    flows = [Flow(one, reader=0, most_bytes=most if one.name else LARGEST) for one in call.held]
    made = make_operator(call.aten, cost, output.shape, cost.operation)
    if operator.kind in COLLECTIVES:
        made = attrs.evolve(made, output_element_count=batch * operator.size("elements"))
    return Parts((made,), (*flows, Flow(output, maker=0)), cost.operation)


def _attention(operator: SingleOperator, batch: int) -> Parts:
    """Return the parts of attention: scores, softmax and weighted sum in one call. Grouped heads read their keys once.

    Latent keys contain the values as their first elements, so reading keys reads the values too.
    """
    images = batch * operator.size("batch")
    rows, heads, width = operator.size("queries"), operator.size("heads"), operator.size("head_dim")
    held, pairs = _keys(operator)
    columns = -(-pairs // rows)
    query, scores = Held((images, heads, rows, width)), Held((images, heads, rows, columns))
    result = attrs.evolve(query, shape=(*query.shape[:-1], operator.size("value_dim")))
    cache = str(operator.arguments["cache"])
    keys, values = (
        Held((images, operator.size("kv_heads"), held, one.shape[-1]), dtype=CACHES[cache]) for one in (query, result)
    )
    seen = min(columns, held)  # with a window, the keys of the mean query; blocks of queries share the rest
    is_causal = bool(operator.arguments["causal"]) and held == columns
    costs = attend(query.shape, columns, result.shape[-1], is_causal=is_causal, pairs=pairs)
    words = (costs[0].variant, _CACHE_WORDS.get(cache, ""), str(operator.arguments["kernel"]))
    variant = " ".join(filter(None, words))
    operators = tuple(
        make_operator("scaled_dot_product_attention.default", attrs.evolve(cost, variant=variant), one.shape, name)
        for name, cost, one in zip(STEPS, costs, (scores, scores, result), strict=True)
    )
    flows = (
        Flow(query, reader=0),
        Flow(keys, reader=0, most_bytes=keys.byte_count // held * seen),
        *(
            Flow(values, reader=2, most_bytes=values.byte_count // held * seen)
            for _ in range(not operator.arguments["latent"])
        ),
        Flow(result, maker=2),
        *(Flow(scores, maker=step, reader=step + 1) for step in (0, 1)),
    )
    return Parts(operators, flows, "attention")


def _keys(operator: SingleOperator) -> tuple[int, int]:
    """Return (keys that any query sees, number of query-key pairs).

    With a window, a query sees itself and the keys before it within the window; without one, all keys.
    """
    rows, cached, window = (operator.size(name) for name in ("queries", "cached", "window"))
    if not window or cached + rows <= window:
        return cached + rows, rows * (cached + rows)
    growing = max(min(window - cached, rows), 0)
    seen = growing * cached + growing * (growing + 1) // 2 + (rows - growing) * window
    return min(cached, window - 1) + rows, seen


def _experts(operator: SingleOperator, batch: int) -> Parts:
    """Return the parts of a mixture of experts: two GEMMs and the gate between them, in one call.

    The GEMMs process the choices that fall on this device, and read the weights of the experts chosen. The gate has a
    row for each choice, because a kernel also passes over the choices of other devices.
    """
    tokens, width, inner = batch * operator.size("rows"), operator.size("hidden"), operator.size("inner")
    held, is_gated = operator.size("held"), bool(operator.arguments["gated"])
    choices = tokens * operator.size("taken")
    rows, hit = route(
        tokens, operator.size("taken"), operator.size("experts"), held, str(operator.arguments["routing"])
    )
    kernel, stored = str(operator.arguments["kernel"]), str(operator.arguments["stored"])
    variant = " ".join(filter(None, (kernel, stored)))
    columns, biased = inner * (1 + is_gated), bool(operator.arguments["bias"])
    x, up, down = Held((tokens, width)), Held((rows, columns)), Held((choices, inner))

    def multiply(n: int, k: int) -> Cost:
        shape = -(-rows // hit), n, k, hit
        cost = Cost(kind="matmul", operation="grouped_mm", mac_count=rows * n * k, gemm=shape, variant=variant)
        return attrs.evolve(cost, elementwise_count=biased * rows * n)

    def weigh(name: str, n: int, k: int) -> Flow:
        width = math.ceil(read_weight_format(stored).row_bytes(k)) if stored else k
        held_of = Held((held, n, width), name, "uint8" if stored else DTYPE)
        return Flow(held_of, reader=0 if name == "up" else 2, most_bytes=held_of.byte_count // held * hit)

    def shift(name: str, n: int) -> tuple[Flow, ...]:
        one = Held((held, n), name)
        return (Flow(one, reader=0 if name == "up_bias" else 2, most_bytes=one.byte_count // held * hit),) * biased

    applied = str(operator.arguments["function"])
    function = SingleCall(f"{applied}.default", (down,), down.shape).count()
    simple = function.elementwise_count + is_gated * choices * inner
    gate = attrs.evolve(function, operation="gated" if is_gated else applied, elementwise_count=simple)
    sums = attrs.evolve(multiply(width, inner), elementwise_count=(2 + biased) * rows * width)
    operators = (
        make_operator("experts.default", multiply(columns, width), up.shape, "up"),
        make_operator("experts.default", gate, down.shape, "gate"),
        make_operator("experts.default", sums, x.shape, "down"),
    )
    flows = (
        *(
            Flow(x, reader=0),
            weigh("up", columns, width),
            *shift("up_bias", columns),
            Flow(up, maker=0, reader=1),
            Flow(down, maker=1, reader=2),
        ),
        *(weigh("down", width, inner), *shift("down_bias", width), Flow(Held(x.shape), maker=2)),
    )
    return Parts(operators, flows, "experts")


_PARTS: Final[Mapping[str, Callable[[SingleOperator, int], Parts]]] = {
    "attention": _attention,
    "experts": _experts,
    "scan": scan_parts,
}
