"""Workload built call by call: the inputs, outputs and weights of each call."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

import attrs

from joulemap.domain import Value, make_operator
from joulemap.physics import KEPT, Access, Edge, Operator, Tensor, Workload, WorkloadKey, allocate
from joulemap.trace.formula import Cost
from joulemap.trace.single import break_up
from joulemap.trace.single.flow import DTYPE, Flow, Held, Shape, make_operator as count_operator

Read = int | tuple[int, int]
"""Tensor, or (tensor, number of its bytes that are read)."""

FIELDS: Final = tuple(field.name for field in attrs.fields(Operator) if field.name not in ("name", "module_path"))
"""Fields of an operator, except those that identify the layer that calls it."""


@lru_cache(maxsize=4096)
def _break_up(
    what: str, sizes: tuple[tuple[str, Value], ...], dtype: str, words: str
) -> tuple[tuple[tuple[str, Mapping[str, Any]], ...], tuple[Flow, ...]]:
    """Return (name, other fields) of each operator that a single operator of these sizes consists of, and their data
    flows.

    Results are cached because layers repeat. `words` are added to the variants of GEMMs of queries with keys and
    values.
    """
    parts = break_up(make_operator(what, dict(sizes)), 1)
    operators = []
    for operator in parts.operators:
        fields = {name: getattr(operator, name) for name in FIELDS}
        if operator.operation == "matmul":
            fields["variant"] = f"{operator.variant} {words}".strip()
        operators.append((operator.name, fields))
    flows = (attrs.evolve(one, held=attrs.evolve(one.held, dtype=dtype or one.held.dtype)) for one in parts.flows)
    return tuple(operators), tuple(flows)


class Reached(NamedTuple):
    """Traffic of one operator on one tensor, before it is known which tensors enter or leave the pass."""

    operator_index: int
    tensor_index: int
    role: str
    byte_count: int
    item_bytes: int


@attrs.define
class Graph:
    """Calls in order, and the tensors between them. A tensor is identified by its index."""

    words: str = ""
    """Kernel family in the variants of GEMMs of queries with keys and values."""
    operators: list[Operator] = attrs.field(factory=list)
    held: list[Held] = attrs.field(factory=list)
    roles: list[str] = attrs.field(factory=list)
    makers: list[int | None] = attrs.field(factory=list)
    outputs: set[int] = attrs.field(factory=set)
    weights: dict[str, int] = attrs.field(factory=dict)
    accesses: list[Reached] = attrs.field(factory=list)
    marks: list[tuple[int, int, int]] = attrs.field(factory=list)
    """Number of operators, accesses and non-weight tensors at the end of each layer."""

    def add(self, held: Held, role: str) -> int:
        """Add a tensor that no call produces; return its index."""
        self.held.append(held)
        self.roles.append(role)
        self.makers.append(None)
        return len(self.held) - 1

    def enter(self, shape: Shape, dtype: str = DTYPE) -> int:
        """Add an input tensor; return its index."""
        return self.add(Held(shape, dtype=dtype), "input")

    def weigh(self, name: str, shape: Shape, dtype: str = DTYPE) -> int:
        """Return the index of the weight of this name; add it if it is new."""
        if name not in self.weights:
            self.weights[name] = self.add(Held(shape, name, dtype), "parameter")
        return self.weights[name]

    def shape(self, tensor: int) -> Shape:
        """Return the shape of a tensor."""
        return self.held[tensor].shape

    def call(
        self,
        path: str,
        cost: Cost,
        reads: Iterable[Read],
        output: Shape,
        *,
        aten: str = "",
        suffix: str = "",
        dtype: str = DTYPE,
    ) -> int:
        """Add a call; return its output tensor."""
        index = len(self.operators)
        name = f"{path}.{suffix}" if suffix else path
        self.operators.append(count_operator(aten or f"{cost.operation}.default", cost, output, name, path))
        for one in reads:
            tensor, byte_count = self._measure(one)
            self._access(index, tensor, "weight" if self.held[tensor].name else "input", byte_count)
        made = self._make(index, Held(output, dtype=dtype))
        self._access(index, made, "output", self.held[made].byte_count)
        return made

    def run(
        self,
        path: str,
        what: str,
        inputs: Sequence[Read],
        *,
        beside: Sequence[int] = (),
        suffix: str = "",
        dtype: str = "",
        weights: Mapping[str, str] | None = None,
        **sizes: Value,
    ) -> int:
        """Add a single operator of these sizes; return its output tensor. The names of its weights begin with `path`.

        An input may consist of several consecutive tensors, or be a part of one. The call also waits for the tensors of
        `beside`. Outputs after the first overwrite the last input. `dtype` is the type of inputs and output if it
        differs from that of GEMMs.
        """
        parts, flows = _break_up(what, tuple(sizes.items()), dtype, self.words)
        first, last = len(self.operators), len(parts) - 1
        prefix = f"{path}.{suffix}" if suffix else path
        for own, fields in parts:
            name = prefix if last == 0 else f"{prefix}.{own}"
            self.operators.append(Operator(name=name, module_path=path, **fields))
        waiting = iter(inputs)
        result = -1
        for flow in flows:
            if flow.maker is not None and flow.reader is None and result >= 0:
                tensor = self._measure(inputs[-1])[0]
            elif flow.maker is not None:
                tensor = self._make(first + flow.maker, flow.held)
                result = tensor if flow.reader is None else result
            elif flow.held.name:
                called = (weights or {}).get(flow.held.name, f"{path}.{flow.held.name}")
                tensor = self.weigh(called, flow.held.shape, flow.held.dtype)
            else:
                assert flow.reader is not None
                self._read(
                    first + flow.reader, waiting, min(flow.held.byte_count, flow.most_bytes), is_fixed=bool(dtype)
                )
                continue
            byte_count = min(flow.held.byte_count, flow.most_bytes)
            if flow.maker is not None:
                self._access(first + flow.maker, tensor, "output", byte_count)
            if flow.reader is not None:
                role = "weight" if flow.held.name else "input"
                self._access(first + flow.reader, tensor, role, byte_count)
        for tensor in beside:
            role = "weight" if self.held[tensor].name else "input"
            self._access(first, tensor, role, self.held[tensor].byte_count)
        return result

    def _read(self, index: int, waiting: Iterator[Read], byte_count: int, *, is_fixed: bool) -> None:
        """Add reads of the next tensors in `waiting` to an operator, up to `byte_count` bytes."""
        while byte_count > 0 and (one := next(waiting, None)) is not None:
            tensor, most = self._measure(one)
            taken = min(byte_count, most)
            self._access(index, tensor, "input", taken, is_fixed=is_fixed)
            byte_count -= taken

    def _measure(self, one: Read) -> tuple[int, int]:
        return one if isinstance(one, tuple) else (one, self.held[one].byte_count)

    def overwrite(self, tensor: int) -> None:
        """Make the last call overwrite a tensor in place."""
        self._access(len(self.operators) - 1, tensor, "output", self.held[tensor].byte_count)

    def keep_weights(self) -> None:
        """Mark the last call's weights as kept at 16 bits by quantizers."""
        self.operators[-1] = attrs.evolve(self.operators[-1], variant=KEPT)

    def mark(self) -> None:
        """Record the numbers of operators, accesses and tensors at the end of a layer."""
        self.marks.append((len(self.operators), len(self.accesses), len(self.held) - len(self.weights)))

    def keep(self, tensor: int) -> int:
        """Mark a tensor as an output of the pass, and return it."""
        self.outputs.add(tensor)
        return tensor

    def _make(self, index: int, held: Held) -> int:
        tensor = self.add(held, "activation")
        self.makers[tensor] = index
        return tensor

    def _access(self, index: int, tensor: int, role: str, byte_count: int, *, is_fixed: bool = False) -> None:
        item_bytes = 0 if is_fixed else self.held[tensor].item_bytes
        self.accesses.append(Reached(index, tensor, role, byte_count, item_bytes))

    def form(self, key: WorkloadKey, model: str, batch: int, notes: tuple[str, ...]) -> Workload:
        """Return the workload, with its operators not yet fused."""
        edges: dict[tuple[int, int, int], None] = {}
        for access in self.accesses:
            maker = self.makers[access.tensor_index]
            if maker is not None and access.role == "input":
                edges[maker, access.operator_index, access.tensor_index] = None
        tensors, buffers = allocate(
            (
                Tensor(
                    shape=held.shape,
                    dtype=held.dtype,
                    byte_count=held.byte_count,
                    role=role,
                    name=held.name,
                    producer_index=maker,
                )
                for held, role, maker in zip(self.held, self.roles, self.makers, strict=True)
            ),
            [held.item_bytes for held in self.held],
            dict(enumerate(self.makers)),
            ((access.operator_index, access.tensor_index) for access in self.accesses),
            self.outputs,
            len(self.operators) - 1,
        )
        outside = {index for index, one in enumerate(tensors) if one.is_output or one.role == "input"}
        weights = [self.held[one] for one in self.weights.values()]
        return Workload(
            key=key,
            model=model,
            batch=batch,
            parameter_count=sum(math.prod(one.shape) for one in weights),
            weight_bytes=sum(one.byte_count for one in weights),
            operators=tuple(self.operators),
            tensors=tensors,
            accesses=tuple(
                Access(
                    operator_index=operator,
                    tensor_index=tensor,
                    role=role,
                    byte_count=byte_count,
                    fused_byte_count=byte_count,
                    item_bytes=item_bytes,
                    is_boundary=tensor in outside,
                )
                for operator, tensor, role, byte_count, item_bytes in self.accesses
            ),
            edges=tuple(
                Edge(producer_index=maker, consumer_index=reader, tensor_index=tensor)
                for maker, reader, tensor in edges
            ),
            buffers=buffers,
            notes=notes,
        )
