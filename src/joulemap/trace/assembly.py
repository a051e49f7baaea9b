"""Operators and memory of a workload under construction, and values passed between the operators of one call."""

from __future__ import annotations

import math

import attrs
import torch

from joulemap.physics.record.workload import Access, Buffer, Edge, Operator, Tensor
from joulemap.trace.formula import Cost
from joulemap.trace.place import Places
from joulemap.trace.record import RecordedCall, Recorder
from joulemap.trace.tensor import distinct_bytes, dtype_name, float_bytes, touched_bytes


@attrs.define
class Assembly:
    """Operators of a workload under construction, with their memory accesses and data dependences."""

    recorder: Recorder
    places: Places
    operators: list[Operator] = attrs.field(factory=list)
    accesses: list[Access] = attrs.field(factory=list)
    edges: list[Edge] = attrs.field(factory=list)
    extra_tensors: list[Tensor] = attrs.field(factory=list)
    extra_buffers: list[Buffer] = attrs.field(factory=list)
    last_operator: list[int] = attrs.field(factory=list)
    """Call index -> index of the operator that yields its result."""
    names: dict[str, int] = attrs.field(factory=dict)

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
        """Append an operator for a call and return its index.

        `label` is its name within its module, and `shape` replaces the shape of the call's output. Without
        `is_foldable`, the operator is foldable if the call depends on no input.
        """
        output = call.outputs[0] if call.outputs else None
        if shape is None:
            shape = tuple(output.shape) if output is not None else ()
        operator = cost.operator(
            self._name(call.module_path, label or cost.operation, own_path),
            call.module_path,
            call.aten,
            shape,
            dtype_name(output.dtype) if output is not None else "",
            is_foldable=not call.depends_on_input if is_foldable is None else is_foldable,
        )
        self.operators.append(operator if output is not None else attrs.evolve(operator, output_element_count=0))
        return len(self.operators) - 1

    def _name(self, path: str, operation: str, own_path: bool) -> str:
        name = path if own_path and path else f"{path}.{operation}" if path else operation
        seen = self.names.get(name, 0) + 1
        self.names[name] = seen
        return name if seen == 1 else f"{name}:{seen}"

    def add_access(
        self,
        operator: int,
        tensor: torch.Tensor,
        index: int,
        role: str,
        byte_count: int,
        item_bytes: int | None = None,
    ) -> None:
        """Append an access of an operator to a tensor. `item_bytes` defaults to the bytes per element of the tensor's
        dtype.
        """
        base = self.recorder.tensors[index].base
        owner = self.recorder.tensors[base]
        is_state = owner.storage in self.places.states
        if role == "input" and owner.role in ("parameter", "constant") and not is_state:
            role = "weight"
        self.accesses.append(
            Access(
                operator_index=operator,
                tensor_index=base,
                role=role,
                byte_count=byte_count,
                item_bytes=float_bytes(tensor) if item_bytes is None else item_bytes,
                is_boundary=owner.role == "input" or is_state,
            )
        )

    def add_reads(self, operator: int, call: RecordedCall, reads: tuple[int, ...], cost: Cost) -> None:
        """Append the reads of a call. Memory that several arguments share is read once, and only as far as the kernel
        needs it.
        """
        tensors = [self.recorder.tensors[index].tensor for index in reads]
        limits: dict[int, int] = {}
        if cost.gathered_count is not None:
            limits[0] = cost.gathered_count * tensors[0].element_size()
        elif cost.gathers:
            limits[0] = sum(touched_bytes(output) for output in call.outputs)
        place = {id(tensor): position for position, tensor in enumerate(tensors)}
        for argument, most in cost.read_counts:
            position = place.get(id(call.args[argument])) if argument < len(call.args) else None
            if position is not None:
                limits[position] = most * tensors[position].element_size()
        for position, byte_count in distinct_bytes(tensors, limits):
            if byte_count or limits.get(position) != 0:
                self.add_access(operator, tensors[position], reads[position], "input", byte_count)

    def add_writes(self, operator: int, call: RecordedCall, written_count: int | None = None) -> None:
        """Append the writes of a call; `written_count` limits the elements written per tensor."""
        for index in call.writes:
            tensor = self.recorder.tensors[index].tensor
            byte_count = touched_bytes(tensor)
            if written_count is not None:
                byte_count = min(byte_count, written_count * tensor.element_size())
            self.add_access(operator, tensor, index, "output", byte_count)

    def add_edges(self, operator: int, depends: tuple[tuple[int, int], ...]) -> None:
        """Append an edge to an operator for each (index of the producing call, tensor index)."""
        for producer, tensor in depends:
            self.edges.append(
                Edge(
                    producer_index=self.last_operator[producer],
                    consumer_index=operator,
                    tensor_index=self.recorder.tensors[tensor].base,
                )
            )


@attrs.define
class PassedValue:
    """Intermediate tensor between two operators of one call; the first write creates it."""

    assembly: Assembly
    shape: tuple[int, ...]
    like: torch.Tensor
    index: int = -1
    buffer: int = -1
    producers: list[int] = attrs.field(factory=list)

    def write(self, operator: int, share: int = 1) -> None:
        """Record that an operator writes one of `share` equal parts."""
        if not self.producers:
            self._make(operator)
        self.producers.append(operator)
        self._access(operator, "output", share)

    def read(self, operator: int) -> None:
        """Record that an operator reads the whole value."""
        self._access(operator, "input", 1)
        for producer in self.producers:
            self.assembly.edges.append(Edge(producer_index=producer, consumer_index=operator, tensor_index=self.index))
        buffers = self.assembly.extra_buffers
        buffers[self.buffer] = attrs.evolve(buffers[self.buffer], death_index=operator, release_index=operator)

    @property
    def byte_count(self) -> int:
        """Bytes of the whole value."""
        return math.prod(self.shape) * self.like.element_size()

    def _make(self, operator: int) -> None:
        assembly = self.assembly
        self.index = len(assembly.recorder.tensors) + len(assembly.extra_tensors)
        self.buffer = len(assembly.extra_buffers)
        assembly.extra_buffers.append(
            Buffer(
                birth_index=operator,
                death_index=operator,
                byte_count=self.byte_count,
                item_bytes=float_bytes(self.like),
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
                item_bytes=float_bytes(self.like),
            )
        )
