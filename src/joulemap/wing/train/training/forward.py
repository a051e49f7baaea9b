"""Forward pass of a training step: the inference pass with batch statistics, values kept for gradients, and a loss."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

import attrs

from joulemap.physics import APPEND, Access, Workload
from joulemap.system import FROZEN, ModelError
from joulemap.trace.formula import Cost
from joulemap.wing.train.training.tape import Call, Use, Value

FIXED: Final = 4
"""Bytes per element of values that are always in single precision, such as statistics and losses."""

SENT_BYTES: Final = 2
"""Bytes per element sent between devices in the forward pass, at any precision."""

INDEX_BYTES: Final = 8
"""Bytes per index into a pooling window, as PyTorch keeps it."""

STATISTICS: Final = ("running_mean", "running_var", "num_batches_tracked")
"""Suffixes of the names of module buffers that are not trained."""

NOT_TRAINED: Final = frozenset({"nms", "roi_align"})
"""Operations of models that train with another forward pass, such as detectors, whose loss reads no predictions."""

LOSS: Final = "loss"

INTEGERS: Final = ("int", "uint", "bool")
"""Prefixes of dtypes without gradients."""

ATTENTION: Final = "aten.scaled_dot_product_attention.default"
"""ATen call that is traced as three operators."""

SAVES_INPUT: Final = frozenset(
    {"silu", "gelu", "hardswish", "hardsigmoid", "clamp", "softplus", "mish", "log", "log2", "abs", "pow", "square",
     "sin", "cos", "erf", "leaky_relu", "elu", "log_sigmoid"}
)  # fmt: skip
"""Elementwise functions whose gradient reads their input. Source: PyTorch, tools/autograd/derivatives.yaml (recalled;
tests compare with the tensors that PyTorch saves)."""

SAVES_OUTPUT: Final = frozenset({"relu", "sigmoid", "tanh", "exp", "sqrt", "rsqrt", "reciprocal"})
"""Elementwise functions whose gradient reads their output. Source: as `SAVES_INPUT`."""


@attrs.define
class Forward:
    """Forward pass of a step: its calls in order, and the values that they read and write."""

    values: list[Value]
    calls: list[Call] = attrs.field(factory=list)
    notes: list[str] = attrs.field(factory=list)

    def add(self, value: Value) -> int:
        """Add a value and return its index."""
        self.values.append(value)
        return len(self.values) - 1

    def count(self, use: Use) -> int:
        """Return the number of elements in part of a value, given as (value, bytes)."""
        value = self.values[use[0]]
        return value.element_count * use[1] // max(value.byte_count, 1)


def read_forward(workload: Workload) -> Forward:
    """Return the forward pass of a step; ModelError for a pass that cannot be trained as traced."""
    for one in workload.operators:
        if one.operation in NOT_TRAINED:
            raise ModelError(
                f"{workload.model} is traced for inference, with {one.operation}; its training uses another forward "
                "pass"
            )
    made = Forward(_read_values(workload))
    of, waits = _group(workload)
    same: dict[int, int] = {}
    parts: dict[int, int] = {}
    for index, operator in enumerate(workload.operators):
        reads = tuple((same.get(one.tensor_index, one.tensor_index), _measure(made, one)) for one in of[index] if
                      one.role != "output")  # fmt: skip
        writes = tuple((one.tensor_index, one.byte_count) for one in of[index] if one.role == "output")
        if operator.aten == "aten.cat.default" and operator.operation == APPEND and len(reads) == 1:
            same[writes[0][0]] = reads[0][0]
            continue
        if operator.operation == "all_gather" and workload.tensors[writes[0][0]].is_output:
            parts[writes[0][0]] = reads[0][0]  # each device computes the loss of its own part
            continue
        if operator.variant == APPEND:
            raise ModelError(f"{workload.model} has cached tokens, which training does not use: leave out cached")
        needed = tuple(same.get(one, one) for one in waits[index])
        made.calls.extend(_train(made, Call(operator=operator, reads=reads, writes=writes, waits=needed, origin=index)))
    if any(one.operation == "dropout" for one in workload.operators):
        made.notes.append("dropout is not counted: an inference trace does not state its rate")
    _add_loss(made, workload, parts)
    return made


def _read_values(workload: Workload) -> list[Value]:
    """Return the tensors of a workload as values of a forward pass."""
    items = [0] * len(workload.tensors)
    for access in workload.accesses:
        items[access.tensor_index] = max(items[access.tensor_index], access.item_bytes)
    values = []
    for index, one in enumerate(workload.tensors):
        release = 0 if one.buffer_index is None else workload.buffers[one.buffer_index].release_index
        values.append(
            Value(
                shape=one.shape,
                dtype=one.dtype,
                byte_count=one.byte_count,
                item_bytes=items[index],
                role=one.role,
                name=one.name,
                memory=one.buffer_index,
                release=release,
            )
        )
    return values


def _measure(made: Forward, access: Access) -> int:
    """Return the bytes of an access at its value's item size; values sent to other devices are traced at 16 bits."""
    item_bytes = made.values[access.tensor_index].item_bytes
    is_sent = item_bytes and not access.item_bytes
    return access.byte_count * item_bytes // SENT_BYTES if is_sent else access.byte_count


def _group(workload: Workload) -> tuple[list[list[Access]], list[list[int]]]:
    """Return for each operator its accesses, and the tensors on which it depends."""
    accesses: list[list[Access]] = [[] for _ in workload.operators]
    for access in workload.accesses:
        accesses[access.operator_index].append(access)
    waits: list[list[int]] = [[] for _ in workload.operators]
    for edge in workload.edges:
        waits[edge.consumer_index].append(edge.tensor_index)
    return accesses, waits


def is_trained(value: Value) -> bool:
    """Return True for a weight that the optimizer updates: not frozen and not a statistic."""
    return is_weight(value) and not value.name.endswith(FROZEN)


def is_weight(value: Value) -> bool:
    """Return True for a weight, trained or frozen, that is not a statistic."""
    last = value.name.removesuffix(FROZEN).rpartition(".")[2]
    return value.role == "parameter" and value.item_bytes > 0 and last not in STATISTICS


def _train(made: Forward, call: Call) -> Iterator[Call]:
    """Yield the calls that replace an operator of the inference pass in training."""
    operator = call.operator
    if not call.writes:
        yield call
        return
    result = made.values[call.writes[0][0]]
    if operator.operation in SAVES_INPUT:  # gradients read the input, so no in-place output may overwrite it
        made.values[call.writes[0][0]] = attrs.evolve(result, memory=None)
    if operator.kind == "batch_norm" or operator.operation == "batch_norm":
        yield from _normalize_batch(made, call)
        return
    kept: Value | None = None
    if operator.kind == "normalization":
        rows = operator.special_count or operator.output_element_count // max(operator.output_shape[-1], 1)
        kept = _make_fp32_value((2, rows))
    elif operator.aten == ATTENTION and made.calls[-1].operator.kind == "softmax":
        kept = _make_fp32_value((operator.gemm_groups, operator.gemm_m))
    elif operator.operation == "max_pool":
        count = result.element_count
        kept = Value(shape=result.shape, dtype="int64", byte_count=INDEX_BYTES * count, item_bytes=0)
    if kept is not None:
        extra = made.add(kept)
        call = attrs.evolve(call, writes=(*call.writes, (extra, kept.byte_count)), extras=(extra,))
    yield call


def _make_fp32_value(shape: tuple[int, ...]) -> Value:
    return Value(shape=shape, dtype="float32", byte_count=FIXED * math.prod(shape), item_bytes=0)


def _normalize_batch(made: Forward, call: Call) -> Iterator[Call]:
    """Yield two calls of a batch normalization: the batch statistics, then the normalization.

    All statistics exist before the first element is normalized. So a kernel reads the input twice, and the kernel that
    makes the input cannot normalize it in its epilogue.
    """
    (source, byte_count), *others = call.reads
    operator, count = call.operator, call.operator.output_element_count
    channels = made.values[others[0][0]].element_count if others else operator.output_shape[1]
    kept = _make_fp32_value((2, channels))
    extra = made.add(kept)
    yield attrs.evolve(
        call,
        operator=attrs.evolve(
            operator,
            name=f"{operator.name}.statistics",
            operation="moment",
            kind="reduction",
            aten="aten.var_mean.correction",
            output_shape=(channels,),
            output_element_count=channels,
            elementwise_count=4 * count,
            special_count=channels,
        ),
        reads=((source, byte_count),),
        writes=((extra, kept.byte_count),),
    )
    weights = [use for use in others if is_weight(made.values[use[0]])]
    yield attrs.evolve(
        call,
        operator=attrs.evolve(operator, aten="aten.batch_norm_elemt.default", special_count=0),
        reads=((source, byte_count), *weights, (extra, kept.byte_count)),
        extras=(extra,),
    )


def _add_loss(made: Forward, workload: Workload, parts: dict[int, int]) -> None:
    """Add a cross-entropy of the pass's outputs in single precision.

    Other losses cost about as much.
    """
    written = {tensor for call in made.calls for tensor, _ in call.writes}
    for index in (parts.get(index, index) for index, one in enumerate(workload.tensors) if one.is_output):
        if index not in written or made.values[index].dtype.startswith(INTEGERS):
            continue
        logits = made.values[index]
        kept = _make_fp32_value(logits.shape)
        extra = made.add(kept)
        count = logits.element_count
        name = LOSS if made.calls[-1].operator.module_path != LOSS else f"{LOSS}.{index}"
        cost = Cost(kind="softmax", operation="log_softmax", elementwise_count=4 * count, special_count=count)
        operator = cost.operator(name, LOSS, "aten.log_softmax.int", logits.shape, "fp32")
        made.calls.append(
            Call(
                operator=operator,
                reads=((index, logits.byte_count),),
                writes=((extra, kept.byte_count),),
                extras=(extra,),
                origin=len(workload.operators),
            )
        )
