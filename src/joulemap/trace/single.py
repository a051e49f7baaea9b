"""Single operators as workloads, without torch: the calls that their modules make, counted as a trace counts them.

Sizes of an operator are those of one sample of the workload, so a batch multiplies what grows with it: m of `gemm`, b
of `bmm`, rows of `softmax` and `layer_norm`, elements of `elementwise`, of all others their own batch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

import attrs

from joulemap.domain.catalogue import OPERATOR, ModelEntry, ShippedWorkload
from joulemap.domain.key import NO_KEY, WorkloadKey
from joulemap.domain.operator.name import ELEMENTWISE, EXAMPLES, SingleOperator, find_operator
from joulemap.domain.workload import Access, Buffer, Edge, Operator, Subgraph, Tensor, Workload
from joulemap.system.errors import UsageError
from joulemap.system.record import frozen
from joulemap.trace.formula import FORMULAS, Call, Cost
from joulemap.trace.formula.attention import STEPS, attend

DTYPE: Final = "fp32"
ITEM_BYTES: Final = 4
"""Of an element as traced: a precision scales it."""

LARGEST: Final = 2**60
"""Of a count: the store's sums are of 63 bits."""

LEARNED: Final = ("weight", "bias")
"""What is trained, beside the statistics that a batch normalization holds."""

SCALAR: Final = 2.0
"""Second operand where it is a number: the exponent of a square."""

Shape = tuple[int, ...]


@frozen
class Held:
    """A tensor of a call, of which formulas see the shape."""

    shape: Shape
    name: str = ""
    """Of a weight; empty for an input."""

    @property
    def byte_count(self) -> int:
        """Bytes as traced."""
        return ITEM_BYTES * math.prod(self.shape)


@frozen
class Made:
    """A call that is a workload by itself."""

    aten: str
    args: tuple[Any, ...]
    output: Shape

    @property
    def held(self) -> tuple[Held, ...]:
        """What it reads."""
        return tuple(one for one in self.args if isinstance(one, Held))

    def count(self) -> Cost:
        """Return what the tracer's formula of the operator says."""
        outputs: Any = (Held(self.output),)
        return FORMULAS[self.aten.partition(".")[0]](Call(self.args, {}, outputs, f"aten.{self.aten}"))


def describe(operator: SingleOperator, batch: int, key: WorkloadKey) -> Workload:
    """Return the fused workload of an operator at a batch; UsageError for counts whose sums no database holds."""
    workload = _attention(operator, batch, key) if operator.kind == "attention" else _single(operator, batch, key)
    counts: dict[str, int] = {
        "MACs": workload.mac_count,
        "elementwise operations": sum(one.elementwise_count + one.special_count for one in workload.operators),
        "bytes": sum(access.byte_count for access in workload.accesses),
    }
    for noun, count in counts.items():
        if count > LARGEST:
            raise UsageError(
                f"{operator} at batch {batch} has {count:.3g} {noun}, more than the {LARGEST:.3g} that can be added up"
            )
    return workload


def describe_examples() -> dict[str, tuple[ModelEntry, ShippedWorkload]]:
    """Return an example of each kind of single operator, by name, as a model and its workload are listed."""
    found = {}
    for name in EXAMPLES.values():
        operator = find_operator(name)
        assert operator is not None, name
        workload = describe(operator, 1, NO_KEY)
        entry = ModelEntry(
            name=name,
            family=OPERATOR,
            task=OPERATOR,
            input_shape=(),
            input_layout="tensors",
            parameter_count=workload.parameter_count,
            published_mac_count=None,
            is_traceable=True,
            reason="",
        )
        counted = ShippedWorkload(
            model=name,
            is_affine=True,
            parameter_count=workload.parameter_count,
            mac_count=workload.mac_count,
            torch_version="",
            torchvision_version="",
            tracer_version="",
        )
        found[name] = entry, counted
    return found


def _gemm(operator: SingleOperator, batch: int) -> Made:
    m, n, k = batch * operator.size("m"), operator.size("n"), operator.size("k")
    return Made("linear.default", (Held((m, k)), Held((n, k), "weight"), *_bias(operator, n)), (m, n))


def _bias(operator: SingleOperator, count: int) -> tuple[Held | None]:
    return (Held((count,), "bias") if operator.arguments["bias"] else None,)


def _bmm(operator: SingleOperator, batch: int) -> Made:
    b, m, n, k = batch * operator.size("b"), operator.size("m"), operator.size("n"), operator.size("k")
    return Made("bmm.default", (Held((b, m, k)), Held((b, k, n))), (b, m, n))


def _image(operator: SingleOperator, batch: int, channels: str = "channels") -> Shape:
    return (batch * operator.size("batch"), operator.size(channels), *(operator.size("size"),) * 2)


def _windows(operator: SingleOperator) -> Shape:
    padded = operator.size("size") + 2 * operator.size("padding")
    return ((padded - operator.size("kernel")) // operator.size("stride") + 1,) * 2


def _conv2d(operator: SingleOperator, batch: int) -> Made:
    image, channels = _image(operator, batch, "channels_in"), operator.size("channels_out")
    kernel, groups = operator.size("kernel"), operator.size("groups")
    weight = Held((channels, image[1] // groups, kernel, kernel), "weight")
    stride, padding = ([operator.size(name)] * 2 for name in ("stride", "padding"))
    args = (Held(image), weight, *_bias(operator, channels), stride, padding, [1, 1], groups)
    return Made("conv2d.default", args, (image[0], channels, *_windows(operator)))


def _softmax(operator: SingleOperator, batch: int) -> Made:
    shape = batch * operator.size("rows"), operator.size("columns")
    return Made("softmax.int", (Held(shape), -1), shape)


def _layer_norm(operator: SingleOperator, batch: int) -> Made:
    rows, columns = batch * operator.size("rows"), operator.size("columns")
    weights = (Held((columns,), name) for name in LEARNED)
    return Made("layer_norm.default", (Held((rows, columns)), [columns], *weights), (rows, columns))


def _elementwise(operator: SingleOperator, batch: int) -> Made:
    kind, elements, operand = str(operator.arguments["kind"]), operator.size("elements"), operator.size("operand")
    aten, count = ELEMENTWISE[kind].aten, batch * elements
    if operand == 0:
        return Made(aten, (Held((count,)),), (count,))
    if operand == 1:
        return Made("pow.Tensor_Scalar" if kind == "pow" else aten, (Held((count,)), SCALAR), (count,))
    if operand == elements:
        return Made(aten, (Held((count,)), Held((count,))), (count,))
    shape = count // operand, operand
    return Made(aten, (Held(shape), Held((operand,))), shape)


def _batch_norm(operator: SingleOperator, batch: int) -> Made:
    shape = _image(operator, batch)
    weights = (Held((shape[1],), name) for name in (*LEARNED, "running_mean", "running_var"))
    return Made("batch_norm.default", (Held(shape), *weights), shape)


def _max_pool2d(operator: SingleOperator, batch: int) -> Made:
    image = _image(operator, batch)
    kernel, stride = ([operator.size(name)] * 2 for name in ("kernel", "stride"))
    return Made("max_pool2d.default", (Held(image), kernel, stride), (*image[:2], *_windows(operator)))


def _global_avg_pool(operator: SingleOperator, batch: int) -> Made:
    image = _image(operator, batch)
    return Made("adaptive_avg_pool2d.default", (Held(image), [1, 1]), (*image[:2], 1, 1))


_CALLS: Final[Mapping[str, Callable[[SingleOperator, int], Made]]] = {
    "gemm": _gemm,
    "bmm": _bmm,
    "conv2d": _conv2d,
    "softmax": _softmax,
    "layer_norm": _layer_norm,
    "elementwise": _elementwise,
    "batch_norm": _batch_norm,
    "max_pool2d": _max_pool2d,
    "global_avg_pool": _global_avg_pool,
}
"""Kind -> the call that it is; attention is told as three."""


def _operator(aten: str, cost: Cost, output: Shape, name: str) -> Operator:
    m, n, k, groups = cost.gemm
    return Operator(
        name=name,
        module_path="",
        operation=cost.operation,
        kind=cost.kind,
        aten=f"aten.{aten}",
        output_shape=output,
        dtype=DTYPE,
        mac_count=cost.mac_count,
        elementwise_count=cost.elementwise_count,
        special_count=cost.special_count,
        output_element_count=math.prod(output),
        gemm_m=m,
        gemm_n=n,
        gemm_k=k,
        gemm_groups=groups,
        tap_count=cost.tap_count,
        scalars=cost.scalars,
        variant=cost.variant,
    )


def _single(operator: SingleOperator, batch: int, key: WorkloadKey) -> Workload:
    """Return the workload of one call that reads inputs and weights and writes one output."""
    call = _CALLS[operator.kind](operator, batch)
    cost, output = call.count(), Held(call.output)
    inputs, weights = ([one for one in call.held if bool(one.name) == is_weight] for is_weight in (False, True))
    tensors = (
        *(_tensor(one.shape, role="input", buffer_index=index) for index, one in enumerate(inputs)),
        *(_tensor(one.shape, role="parameter", name=one.name) for one in weights),
        _tensor(output.shape, producer_index=0, buffer_index=len(inputs), is_output=True),
    )
    roles = ("input",) * len(inputs) + ("weight",) * len(weights) + ("output",)
    return Workload(
        key=key,
        model=str(operator),
        batch=batch,
        parameter_count=sum(math.prod(one.shape) for one in weights if one.name in LEARNED),
        weight_bytes=sum(one.byte_count for one in weights),
        operators=(_operator(call.aten, cost, output.shape, cost.operation),),
        tensors=tensors,
        accesses=tuple(
            _access(0, index, role, tensor.byte_count, is_boundary=role != "weight")
            for index, (role, tensor) in enumerate(zip(roles, tensors, strict=True))
        ),
        edges=(),
        buffers=tuple(_buffer(one.byte_count) for one in (*inputs, output)),
        subgraphs=(Subgraph(pattern=cost.operation, name=cost.operation, operator_indices=(0,)),),
        inner_batch=int(operator.arguments.get("batch", 1)),
    )


def _attention(operator: SingleOperator, batch: int, key: WorkloadKey) -> Workload:
    """Return scores, softmax and weighted sum, which one call computes; grouped heads read their keys once."""
    images = batch * operator.size("batch")
    rows, heads, width = operator.size("queries"), operator.size("heads"), operator.size("head_dim")
    columns = operator.size("cached") + rows
    query, scores = (images, heads, rows, width), (images, heads, rows, columns)
    held = (images, operator.size("kv_heads"), columns, width)
    costs = attend(query, columns, width, is_causal=bool(operator.arguments["causal"]))
    variant = " ".join(filter(None, [costs[0].variant, str(operator.arguments["kernel"])]))
    query_bytes, held_bytes, score_bytes = (ITEM_BYTES * math.prod(shape) for shape in (query, held, scores))
    return Workload(
        key=key,
        model=str(operator),
        batch=batch,
        parameter_count=0,
        weight_bytes=0,
        operators=tuple(
            _operator("scaled_dot_product_attention.default", attrs.evolve(cost, variant=variant), shape, name)
            for name, cost, shape in zip(STEPS, costs, (scores, scores, query), strict=True)
        ),
        tensors=(
            _tensor(query, role="input", buffer_index=0),
            _tensor(held, role="input", buffer_index=1),
            _tensor(held, role="input", buffer_index=2),
            _tensor(query, producer_index=2, buffer_index=3, is_output=True),
            _tensor(scores, producer_index=0, buffer_index=4),
            _tensor(scores, producer_index=1, buffer_index=5),
        ),
        accesses=(
            _access(0, 0, "input", query_bytes),
            _access(0, 1, "input", held_bytes),
            _access(2, 2, "input", held_bytes),
            _access(2, 3, "output", query_bytes),
            _access(0, 4, "output", score_bytes, is_boundary=False, is_hidden=True),
            _access(1, 4, "input", score_bytes, is_boundary=False, is_hidden=True),
            _access(1, 5, "output", score_bytes, is_boundary=False, is_hidden=True),
            _access(2, 5, "input", score_bytes, is_boundary=False, is_hidden=True),
        ),
        edges=(
            Edge(producer_index=0, consumer_index=1, tensor_index=4),
            Edge(producer_index=1, consumer_index=2, tensor_index=5),
        ),
        buffers=(
            _buffer(query_bytes, release_index=2),
            _buffer(held_bytes, release_index=2),
            _buffer(held_bytes, death_index=2, release_index=2),
            _buffer(query_bytes, birth_index=2, death_index=2, release_index=2),
            _buffer(score_bytes, death_index=1, release_index=1, is_hidden=True),
            _buffer(score_bytes, birth_index=1, death_index=2, release_index=2, is_hidden=True),
        ),
        subgraphs=(Subgraph(pattern="attention", name="scores", operator_indices=(0, 1, 2)),),
        inner_batch=operator.size("batch"),
    )


def _tensor(shape: Shape, *, role: str = "activation", **fields: Any) -> Tensor:
    return Tensor(shape=shape, dtype=DTYPE, byte_count=ITEM_BYTES * math.prod(shape), role=role, **fields)


def _access(
    operator_index: int,
    tensor_index: int,
    role: str,
    byte_count: int,
    *,
    is_boundary: bool = True,
    is_hidden: bool = False,
) -> Access:
    return Access(
        operator_index=operator_index,
        tensor_index=tensor_index,
        role=role,
        byte_count=byte_count,
        fused_byte_count=0 if is_hidden else byte_count,
        item_bytes=ITEM_BYTES,
        is_boundary=is_boundary,
    )


def _buffer(
    byte_count: int,
    *,
    birth_index: int = 0,
    death_index: int = 0,
    release_index: int = 0,
    is_hidden: bool = False,
) -> Buffer:
    return Buffer(
        birth_index=birth_index,
        death_index=death_index,
        release_index=release_index,
        byte_count=byte_count,
        item_bytes=ITEM_BYTES,
        is_hidden=is_hidden,
    )
