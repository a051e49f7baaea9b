"""Interface for adding the operators of a call, and values passed between them."""

from __future__ import annotations

import math
from typing import Protocol

import attrs
import torch

from joulemap.domain.workload import Access, Buffer, Edge, Tensor
from joulemap.trace.formula import Cost
from joulemap.trace.record import RecordedCall, Recorder
from joulemap.trace.tensor import dtype_name, float_bytes


class Assembly(Protocol):
    """Interface to which operators are added; `assemble` implements it."""

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
    """Value that an operator of a call passes to a later one; it is created when it is first written."""

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
