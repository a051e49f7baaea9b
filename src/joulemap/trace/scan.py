"""The operators of a recurrent layer's call, with what they hand on to one another."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Protocol

import attrs
import torch

from joulemap.domain.workload import Access, Buffer, Edge, Tensor
from joulemap.trace.formula import Cost
from joulemap.trace.record import RecordedCall, Recorder
from joulemap.trace.recurrence import Recurrence, product_cost, scan_cost
from joulemap.trace.tensor import dtype_name, float_bytes, touched_bytes


class Assembly(Protocol):
    """What operators are added to, as `assemble` has it."""

    recorder: Recorder
    accesses: list[Access]
    edges: list[Edge]
    extra_tensors: list[Tensor]
    extra_buffers: list[Buffer]
    last_operator: list[int]

    def add_operator(
        self,
        call: RecordedCall,
        cost: Cost,
        *,
        own_path: bool,
        label: str = "",
        shape: tuple[int, ...] | None = None,
        is_foldable: bool | None = None,
    ) -> int:
        """Append an operator and return its index."""
        ...

    def add_access(
        self,
        operator: int,
        tensor: torch.Tensor,
        index: int,
        role: str,
        byte_count: int,
        item_bytes: int | None = None,
    ) -> None:
        """Append an access."""
        ...

    def add_edges(self, operator: int, depends: tuple[tuple[int, int], ...]) -> None:
        """Append edges from (call, tensor) pairs."""
        ...


@attrs.define
class Held:
    """A value that an operator of a call hands on to a later one of it: made when it is first written."""

    assembly: Assembly
    shape: tuple[int, ...]
    like: torch.Tensor
    index: int = -1
    buffer: int = -1
    producers: list[int] = attrs.field(factory=list)

    def write(self, operator: int, share: int = 1) -> None:
        """Have an operator write one of `share` equal parts."""
        if not self.producers:
            self._make(operator)
        self.producers.append(operator)
        self._access(operator, "output", share)

    def read(self, operator: int) -> None:
        """Have an operator read all of it."""
        self._access(operator, "input", 1)
        for producer in self.producers:
            self.assembly.edges.append(Edge(producer_index=producer, consumer_index=operator, tensor_index=self.index))
        buffers = self.assembly.extra_buffers
        buffers[self.buffer] = attrs.evolve(buffers[self.buffer], death_index=operator, release_index=operator)

    @property
    def byte_count(self) -> int:
        """Of all of it."""
        return math.prod(self.shape) * self.like.element_size()

    def _make(self, operator: int) -> None:
        assembly = self.assembly
        self.index = len(assembly.recorder.tensors) + len(assembly.extra_tensors)
        self.buffer = len(assembly.extra_buffers)
        assembly.extra_buffers.append(
            Buffer(
                birth_index=operator,
                death_index=operator,
                release_index=operator,
                byte_count=self.byte_count,
                item_bytes=float_bytes(self.like),
                is_hidden=False,
            )
        )
        assembly.extra_tensors.append(
            Tensor(
                shape=self.shape,
                dtype=dtype_name(self.like.dtype),
                byte_count=self.byte_count,
                role="activation",
                producer_index=operator,
                buffer_index=-1 - self.buffer,
            )
        )

    def _access(self, operator: int, role: str, share: int) -> None:
        byte_count = self.byte_count // share
        self.assembly.accesses.append(
            Access(
                operator_index=operator,
                tensor_index=self.index,
                role=role,
                byte_count=byte_count,
                fused_byte_count=byte_count,
                item_bytes=float_bytes(self.like),
                is_boundary=False,
            )
        )


def assemble_recurrence(assembly: Assembly, call: RecordedCall) -> None:
    """Append the operators of a recurrent layer's call: for each sublayer and direction a product and a scan."""
    recurrence = Recurrence.of(call.name, call.func, call.args, call.kwargs)
    tensors = assembly.recorder.tensors
    position = {id(tensors[index].tensor): index for index in call.reads}
    products: list[int] = []
    scans: list[int] = []
    layer_count = len(recurrence.weights) // recurrence.directions
    handed: Held | None = None
    for layer in range(layer_count):
        is_last = layer == layer_count - 1
        shape = (recurrence.token_count, recurrence.directions * recurrence.width)
        following = None if is_last else Held(assembly, shape, recurrence.source)
        for direction in range(recurrence.directions):
            weights = recurrence.weights[layer * recurrence.directions + direction]
            label = f"l{layer}{'_reverse' if direction else ''}"
            cost = product_cost(recurrence, weights)
            product = assembly.add_operator(call, cost, own_path=False, label=f"input_{label}", shape=cost.shape)
            if handed is None:
                source = recurrence.source
                assembly.add_access(product, source, position[id(source)], "input", touched_bytes(source))
                products.append(product)
            else:
                handed.read(product)
            _read_weights(assembly, product, position, weights[::2][: 2 if recurrence.has_biases else 1])
            projected = Held(assembly, cost.shape, recurrence.source)
            projected.write(product)
            cost = scan_cost(recurrence, weights)
            scan = assembly.add_operator(call, cost, own_path=False, label=f"scan_{label}", shape=cost.shape)
            projected.read(scan)
            rest = weights[1::2][:2] if recurrence.has_biases else weights[1:2]
            rest += weights[4 if recurrence.has_biases else 2 :]
            _read_weights(assembly, scan, position, rest)
            for state in recurrence.states:
                part = touched_bytes(state) // len(recurrence.weights)
                assembly.add_access(scan, state, position[id(state)], "input", part)
            if following is None:
                _write(assembly, call, scan, 0, recurrence.directions)
            else:
                following.write(scan, recurrence.directions)
            for output in range(1, len(call.writes)):
                _write(assembly, call, scan, output, len(recurrence.weights))
            scans.append(scan)
        handed = following
    _join(assembly, call, recurrence, position, products, scans)
    assembly.last_operator.append(scans[-1])


def _join(
    assembly: Assembly,
    call: RecordedCall,
    recurrence: Recurrence,
    position: Mapping[int, int],
    products: Sequence[int],
    scans: Sequence[int],
) -> None:
    """Add the edges from what the call depends on: inputs to the first products, states to scans, others to both."""
    inputs = {position[id(recurrence.source)]}
    states = {position[id(state)] for state in recurrence.states}
    for dependence in call.depends:
        consumers = [*products, *scans]
        if dependence[1] in inputs - states:
            consumers = list(products)
        elif dependence[1] in states - inputs:
            consumers = list(scans)
        for consumer in consumers:
            assembly.add_edges(consumer, (dependence,))


def _read_weights(
    assembly: Assembly, operator: int, position: Mapping[int, int], weights: Sequence[torch.Tensor]
) -> None:
    for weight in weights:
        assembly.add_access(operator, weight, position[id(weight)], "input", touched_bytes(weight))


def _write(assembly: Assembly, call: RecordedCall, operator: int, output: int, share: int) -> None:
    """Have an operator write one of `share` equal parts of an output of the call."""
    index = call.writes[output]
    tensor = assembly.recorder.tensors[index].tensor
    assembly.add_access(operator, tensor, index, "output", touched_bytes(tensor) // share)
