"""Tensors that flow between the calls of a single operator, and the workload of these calls."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Final

from joulemap.domain.operator.name import SingleOperator
from joulemap.physics.record.workload import Access, Buffer, Edge, Operator, Subgraph, Tensor, Workload, WorkloadKey
from joulemap.system.record import frozen
from joulemap.trace.formula import Cost

DTYPE: Final = "fp32"
ITEM_BYTES: Final = 4
"""Bytes of a floating-point element in a workload; the precision of a run scales them."""

WIDTHS: Final = {DTYPE: ITEM_BYTES, "int64": 8, "float8_e4m3fn": 1, "int8": 1, "uint8": 1, "bfloat16": 2}
"""Dtype -> bytes of an element."""

LARGEST: Final = 2**60
"""Maximum of any count; the database sums in signed 64-bit integers."""

LEARNED: Final = ("weight", "bias", "up", "down", "up_bias", "down_bias", "decay", "skip", "step_bias")
"""Names of trained parameters; statistics of batch normalization are not trained."""

Shape = tuple[int, ...]


@frozen
class Held:
    """Tensor that a call reads or writes; formulas use only its shape."""

    shape: Shape
    name: str = ""
    """Name of a weight; empty for an input."""
    dtype: str = DTYPE

    @cached_property
    def byte_count(self) -> int:
        """Bytes of the tensor before a precision scales them."""
        return WIDTHS[self.dtype] * math.prod(self.shape)

    @property
    def item_bytes(self) -> int:
        """Bytes of an element that the precision scales; 0 for dtypes of fixed width."""
        return ITEM_BYTES if self.dtype == DTYPE else 0


def make_operator(aten: str, cost: Cost, output: Shape, name: str, module_path: str = "") -> Operator:
    """Return the workload operator for an ATen operator with this cost and output shape."""
    return cost.operator(name, module_path, f"aten.{aten}", output, DTYPE)


@frozen
class Flow:
    """Tensor between successive operators of a workload, with the operators that write and read it."""

    held: Held
    maker: int | None = None
    """Index of the operator that writes the tensor; None for inputs and weights."""
    reader: int | None = None
    """Index of the operator that reads the tensor; None for a result of the workload."""
    most_bytes: int = LARGEST
    """Maximum bytes of the tensor that its reader reads."""

    def accesses(self, tensor_index: int) -> Iterator[Access]:
        """Yield the accesses that write and read the tensor."""
        is_hidden = self.maker is not None and self.reader is not None
        read_as = "weight" if self.held.name else "input"
        for operator_index, role in ((self.maker, "output"), (self.reader, read_as)):
            if operator_index is not None:
                byte_count = min(self.held.byte_count, self.most_bytes)
                yield Access(
                    operator_index=operator_index,
                    tensor_index=tensor_index,
                    role=role,
                    byte_count=byte_count,
                    fused_byte_count=0 if is_hidden else byte_count,
                    item_bytes=self.held.item_bytes,
                    is_boundary=role != "weight" and not is_hidden,
                )


@frozen
class Parts:
    """Operators of one call, with the tensors that flow between them."""

    operators: tuple[Operator, ...]
    flows: tuple[Flow, ...]
    """Tensors in the order of the call's arguments and results."""
    pattern: str


def form(
    operator: SingleOperator,
    batch: int,
    key: WorkloadKey,
    operators: tuple[Operator, ...],
    flows: Sequence[Flow],
    pattern: str,
) -> Workload:
    """Return a workload of these operators, fused into one subgraph; `flows` keep the order of the arguments and
    results.
    """
    last = len(operators) - 1
    listed = sorted(flows, key=lambda one: (one.maker is not None, bool(one.held.name)))
    number = {id(one): index for index, one in enumerate(listed)}
    weights = [one.held for one in listed if one.held.name]
    kept = [one for one in listed if not one.held.name]
    position = {id(one): index for index, one in enumerate(kept)}

    def form_tensor(one: Flow) -> Tensor:
        role = "parameter" if one.held.name else "activation" if one.maker is not None else "input"
        return Tensor(
            shape=one.held.shape,
            dtype=one.held.dtype,
            byte_count=one.held.byte_count,
            role=role,
            name=one.held.name,
            producer_index=one.maker,
            buffer_index=None if one.held.name else position[id(one)],
            is_output=one.reader is None,
        )

    return Workload(
        key=key,
        model=str(operator),
        batch=batch,
        parameter_count=sum(math.prod(one.shape) for one in weights if one.name in LEARNED),
        weight_bytes=sum(one.byte_count for one in weights),
        operators=operators,
        tensors=tuple(map(form_tensor, listed)),
        accesses=tuple(access for one in flows for access in one.accesses(number[id(one)])),
        edges=tuple(
            Edge(producer_index=one.maker, consumer_index=one.reader, tensor_index=index)
            for index, one in enumerate(listed)
            if one.maker is not None and one.reader is not None
        ),
        buffers=tuple(
            Buffer(
                birth_index=one.maker or 0,
                death_index=last if one.reader is None else one.reader,
                release_index=last if one.maker is None or one.reader is None else one.reader,
                byte_count=one.held.byte_count,
                item_bytes=one.held.item_bytes,
                is_hidden=one.maker is not None and one.reader is not None,
            )
            for one in kept
        ),
        subgraphs=(Subgraph(pattern=pattern, name=operators[0].name, operator_indices=tuple(range(len(operators)))),),
        inner_batch=int(operator.arguments.get("batch", 1)),
    )
