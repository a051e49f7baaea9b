"""Single operators as workloads, in closed form: what a trace of the same torch module gives, without torch.

Counts are those of the tracer's formulas (docs/operators.md). Sizes of an operator are those of one sample of the
workload, so a batch multiplies what grows with it: m of `gemm`, b of `bmm`, rows of `softmax` and `layer_norm`,
elements of `elementwise`, of all others their own batch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from joulemap.domain.key import WorkloadKey
from joulemap.domain.operator.name import ELEMENTWISE, SingleOperator
from joulemap.domain.workload import CAUSAL, Access, Buffer, Edge, Operator, Subgraph, Tensor, Workload
from joulemap.errors import UsageError

DTYPE: Final = "fp32"
ITEM_BYTES: Final = 4
"""Of an element as traced: a precision scales it."""

LARGEST: Final = 2**60
"""Of a count: the store's sums are of 63 bits."""

LEARNED: Final = ("weight", "bias")
"""What is trained, beside the statistics that a batch normalization holds."""

DEQUANTIZE: Final = "dequantize"
"""Word of `Operator.variant` for what makes weights wide for the product that reads them."""

Shape = tuple[int, ...]


def describe(operator: SingleOperator, batch: int, key: WorkloadKey) -> Workload:
    """Return the fused workload of an operator at a batch; UsageError for counts whose sums no database holds."""
    workload = _FORMS[operator.kind](operator, batch, key)
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


def _gemm(operator: SingleOperator, batch: int, key: WorkloadKey) -> Workload:
    m, n, k = batch * operator.size("m"), operator.size("n"), operator.size("k")
    has_bias = bool(operator.arguments["bias"])
    return _single(
        operator,
        batch,
        key,
        operation="linear",
        kind="linear",
        aten="linear.default",
        inputs=((m, k),),
        weights={"weight": (n, k), **({"bias": (n,)} if has_bias else {})},
        output=(m, n),
        mac_count=m * n * k,
        elementwise_count=m * n if has_bias else 0,
        gemm=(m, n, k, 1),
    )


def _bmm(operator: SingleOperator, batch: int, key: WorkloadKey) -> Workload:
    b, m, n, k = batch * operator.size("b"), operator.size("m"), operator.size("n"), operator.size("k")
    return _single(
        operator,
        batch,
        key,
        operation="matmul",
        kind="matmul",
        aten="bmm.default",
        inputs=((b, m, k), (b, k, n)),
        output=(b, m, n),
        mac_count=b * m * n * k,
        gemm=(m, n, k, b),
    )


def _conv2d(operator: SingleOperator, batch: int, key: WorkloadKey) -> Workload:
    images, channels_in, channels_out = (
        batch * operator.size("batch"),
        operator.size("channels_in"),
        operator.size("channels_out"),
    )
    size, kernel = operator.size("size"), operator.size("kernel")
    stride, padding, groups = operator.size("stride"), operator.size("padding"), operator.size("groups")
    has_bias = bool(operator.arguments["bias"])
    reached = (size + 2 * padding - kernel) // stride + 1
    per_group = channels_in // groups
    output = (images, channels_out, reached, reached)
    count = math.prod(output)
    return _single(
        operator,
        batch,
        key,
        operation="conv2d",
        kind="conv" if groups == 1 else "depthwise_conv" if per_group == 1 else "grouped_conv",
        aten="conv2d.default",
        inputs=((images, channels_in, size, size),),
        weights={
            "weight": (channels_out, per_group, kernel, kernel),
            **({"bias": (channels_out,)} if has_bias else {}),
        },
        output=output,
        mac_count=count * per_group * kernel * kernel,
        elementwise_count=count if has_bias else 0,
        gemm=(images * reached * reached, channels_out // groups, per_group * kernel * kernel, groups),
        tap_count=kernel * kernel,
        scalars=f"kernel={[kernel] * 2} stride={[stride] * 2} padding={[padding] * 2} groups={groups}",
    )


def _softmax(operator: SingleOperator, batch: int, key: WorkloadKey) -> Workload:
    shape = batch * operator.size("rows"), operator.size("columns")
    return _single(
        operator,
        batch,
        key,
        operation="softmax",
        kind="softmax",
        aten="softmax.int",
        inputs=(shape,),
        output=shape,
        elementwise_count=4 * math.prod(shape),
        special_count=math.prod(shape),
    )


def _layer_norm(operator: SingleOperator, batch: int, key: WorkloadKey) -> Workload:
    rows, columns = batch * operator.size("rows"), operator.size("columns")
    return _single(
        operator,
        batch,
        key,
        operation="layer_norm",
        kind="normalization",
        aten="layer_norm.default",
        inputs=((rows, columns),),
        weights={"weight": (columns,), "bias": (columns,)},
        output=(rows, columns),
        elementwise_count=8 * rows * columns,
        special_count=rows,
    )


def _elementwise(operator: SingleOperator, batch: int, key: WorkloadKey) -> Workload:
    kind, elements, operand = str(operator.arguments["kind"]), operator.size("elements"), operator.size("operand")
    form = ELEMENTWISE[kind]
    count = batch * elements
    aten, element_cost, special_cost = form.aten, form.element_cost, form.special_cost
    shape: Shape = (count,)
    inputs: tuple[Shape, ...] = (shape,)
    if kind == "pow" and operand == 1:
        aten, element_cost, special_cost = "pow.Tensor_Scalar", 1, 0  # a square is one product
    elif operand > 1:
        shape = (count,) if operand == elements else (count // operand, operand)
        inputs = (shape, (count,) if operand == elements else (operand,))
    is_copy = kind == "copy"
    return _single(
        operator,
        batch,
        key,
        operation="clone" if is_copy else kind,
        kind="data_movement" if is_copy else "elementwise",
        aten=aten,
        inputs=inputs,
        output=shape,
        elementwise_count=element_cost * count,
        special_count=special_cost * count,
    )


def _batch_norm(operator: SingleOperator, batch: int, key: WorkloadKey) -> Workload:
    channels = operator.size("channels")
    shape = (batch * operator.size("batch"), channels, *(operator.size("size"),) * 2)
    return _single(
        operator,
        batch,
        key,
        operation="batch_norm",
        kind="batch_norm",
        aten="batch_norm.default",
        inputs=(shape,),
        weights=dict.fromkeys((*LEARNED, "running_mean", "running_var"), (channels,)),
        output=shape,
        elementwise_count=2 * math.prod(shape),
    )


def _max_pool2d(operator: SingleOperator, batch: int, key: WorkloadKey) -> Workload:
    images, channels, size = batch * operator.size("batch"), operator.size("channels"), operator.size("size")
    kernel, stride = operator.size("kernel"), operator.size("stride")
    reached = (size + 2 * operator.size("padding") - kernel) // stride + 1
    output = (images, channels, reached, reached)
    return _single(
        operator,
        batch,
        key,
        operation="max_pool",
        kind="pool",
        aten="max_pool2d.default",
        inputs=((images, channels, size, size),),
        output=output,
        elementwise_count=kernel * kernel * math.prod(output),
        tap_count=kernel * kernel,
        scalars=f"kernel={[kernel] * 2} stride={[stride] * 2}",
    )


def _global_avg_pool(operator: SingleOperator, batch: int, key: WorkloadKey) -> Workload:
    images, channels, size = batch * operator.size("batch"), operator.size("channels"), operator.size("size")
    return _single(
        operator,
        batch,
        key,
        operation="adaptive_avg_pool",
        kind="reduction" if size > 1 else "pool",
        aten="adaptive_avg_pool2d.default",
        inputs=((images, channels, size, size),),
        output=(images, channels, 1, 1),
        elementwise_count=images * channels * (size * size + 1),
        tap_count=size * size,
    )


def _single(
    operator: SingleOperator,
    batch: int,
    key: WorkloadKey,
    *,
    operation: str,
    kind: str,
    aten: str,
    inputs: Sequence[Shape],
    output: Shape,
    weights: Mapping[str, Shape] | None = None,
    gemm: tuple[int, int, int, int] = (0, 0, 0, 0),
    **counts: Any,
) -> Workload:
    """Return the workload of one call that reads inputs and weights and writes one output."""
    held = weights or {}
    m, n, k, groups = gemm
    row = Operator(
        name=operation,
        module_path="",
        operation=operation,
        kind=kind,
        aten=f"aten.{aten}",
        output_shape=output,
        dtype=DTYPE,
        output_element_count=math.prod(output),
        gemm_m=m,
        gemm_n=n,
        gemm_k=k,
        gemm_groups=groups,
        **counts,
    )
    tensors = [
        *(_tensor(shape, role="input", buffer_index=index) for index, shape in enumerate(inputs)),
        *(_tensor(shape, role="parameter", name=name) for name, shape in held.items()),
        _tensor(output, producer_index=0, buffer_index=len(inputs), is_output=True),
    ]
    roles = ("input",) * len(inputs) + ("weight",) * len(held) + ("output",)
    return Workload(
        key=key,
        model=str(operator),
        batch=batch,
        parameter_count=sum(math.prod(shape) for name, shape in held.items() if name in LEARNED),
        weight_bytes=sum(ITEM_BYTES * math.prod(shape) for shape in held.values()),
        operators=(row,),
        tensors=tuple(tensors),
        accesses=tuple(
            _access(0, index, role, tensor.byte_count, is_boundary=role != "weight")
            for index, (role, tensor) in enumerate(zip(roles, tensors, strict=True))
        ),
        edges=(),
        buffers=tuple(_buffer(ITEM_BYTES * math.prod(shape)) for shape in (*inputs, output)),
        subgraphs=(Subgraph(pattern=operation, name=operation, operator_indices=(0,)),),
        inner_batch=int(operator.arguments.get("batch", 1)),
    )


def _attention(operator: SingleOperator, batch: int, key: WorkloadKey) -> Workload:
    """Return scores, softmax and weighted sum, which one call computes; grouped heads read their keys once."""
    images = batch * operator.size("batch")
    rows, heads, width = operator.size("queries"), operator.size("heads"), operator.size("head_dim")
    columns = operator.size("cached") + rows
    query, scores = (images, heads, rows, width), (images, heads, rows, columns)
    held = (images, operator.size("kv_heads"), columns, width)
    score_count, groups = math.prod(scores), images * heads
    words = [CAUSAL] if operator.arguments["causal"] else []
    variant = " ".join([*words, *filter(None, [str(operator.arguments["kernel"])])])

    def step(name: str, operation: str, shape: Shape, **counts: Any) -> Operator:
        return Operator(
            name=name,
            module_path="",
            operation=operation,
            kind=operation,
            aten="aten.scaled_dot_product_attention.default",
            output_shape=shape,
            dtype=DTYPE,
            output_element_count=math.prod(shape),
            variant=variant,
            **counts,
        )

    query_bytes, held_bytes, score_bytes = (ITEM_BYTES * math.prod(shape) for shape in (query, held, scores))
    return Workload(
        key=key,
        model=str(operator),
        batch=batch,
        parameter_count=0,
        weight_bytes=0,
        operators=(
            step(
                "scores",
                "matmul",
                scores,
                mac_count=score_count * width,
                elementwise_count=score_count,
                gemm_m=rows,
                gemm_n=columns,
                gemm_k=width,
                gemm_groups=groups,
            ),
            step("softmax", "softmax", scores, elementwise_count=4 * score_count, special_count=score_count),
            step(
                "weighted_sum",
                "matmul",
                query,
                mac_count=score_count * width,
                gemm_m=rows,
                gemm_n=width,
                gemm_k=columns,
                gemm_groups=groups,
            ),
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


_FORMS: Final[Mapping[str, Callable[[SingleOperator, int, WorkloadKey], Workload]]] = {
    "gemm": _gemm,
    "bmm": _bmm,
    "conv2d": _conv2d,
    "attention": _attention,
    "softmax": _softmax,
    "layer_norm": _layer_norm,
    "elementwise": _elementwise,
    "batch_norm": _batch_norm,
    "max_pool2d": _max_pool2d,
    "global_avg_pool": _global_avg_pool,
}
