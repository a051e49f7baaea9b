"""Builder of a training step's workload: operators in order, with reads, writes and dependencies."""

from __future__ import annotations

import math
from collections.abc import Iterable

import attrs

from joulemap.physics import Access, Buffer, Edge, Operator, Subgraph, Tensor, Workload, WorkloadKey
from joulemap.system import frozen

Use = tuple[int, int]
"""(index of a tensor, bytes of it that are used)."""


@frozen(kw_only=True)
class Value:
    """Tensor that is not stored yet."""

    shape: tuple[int, ...]
    dtype: str
    byte_count: int
    item_bytes: int
    """Bytes per element if they follow the precision of a run, else 0."""
    role: str = "activation"
    name: str = ""
    memory: int | None = None
    """Storage number in the forward pass; tensors with equal numbers share their storage."""
    release: int = 0
    """Last operator of the forward pass that holds the tensor in a runtime that launches call by call."""

    @property
    def element_count(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)


@frozen(kw_only=True)
class Call:
    """Operator of the forward pass with its reads and writes, as indices of values."""

    operator: Operator
    reads: tuple[Use, ...]
    writes: tuple[Use, ...]
    waits: tuple[int, ...] = ()
    """Tensors on which the operator depends only through views."""
    origin: int = 0
    """Index of the call in the inference pass."""
    extras: tuple[int, ...] = ()
    """Tensors written for the backward pass only: statistics, indices."""


@attrs.define
class Memory:
    """Storage of tensors in a step."""

    byte_count: int
    item_bytes: int
    is_kept: bool = False
    """True if the memory lives from the first operator to the last."""
    release: int = 0


@attrs.define
class Tape:
    """Workload of a step under construction; a tensor is identified by its index."""

    operators: list[Operator] = attrs.field(factory=list)
    tensors: list[Tensor] = attrs.field(factory=list)
    item_bytes: list[int] = attrs.field(factory=list)
    memories: list[Memory] = attrs.field(factory=list)
    accesses: list[Access] = attrs.field(factory=list)
    edges: dict[tuple[int, int, int], None] = attrs.field(factory=dict)
    weights: set[int] = attrs.field(factory=set)
    """Indices of the tensors that are read as weights."""

    def add_storage(self, byte_count: int, item_bytes: int, *, is_kept: bool = False) -> int:
        """Add a storage and return its index."""
        self.memories.append(Memory(byte_count, item_bytes, is_kept))
        return len(self.memories) - 1

    def put(self, value: Value, memory: int | None = None, *, is_kept: bool = False) -> int:
        """Add a tensor for a value and return its index.

        A parameter or constant has no storage; any other value without `memory` gets new storage.
        """
        if value.role not in ("parameter", "constant") and memory is None:
            memory = self.add_storage(value.byte_count, value.item_bytes, is_kept=is_kept)
        self.tensors.append(
            Tensor(
                shape=value.shape,
                dtype=value.dtype,
                byte_count=value.byte_count,
                role=value.role,
                name=value.name,
                producer_index=None,
                buffer_index=memory,
            )
        )
        self.item_bytes.append(value.item_bytes)
        if value.role in ("parameter", "constant"):
            self.weights.add(len(self.tensors) - 1)
        return len(self.tensors) - 1

    def call(
        self,
        operator: Operator,
        reads: Iterable[Use],
        writes: Iterable[Use],
        waits: Iterable[int] = (),
        *,
        is_apart: bool = False,
    ) -> int:
        """Add an operator and return its index; it becomes the producer of tensors that it writes first.

        With `is_apart` the operator depends on all earlier ones, so that no kernel fuses it with the producers of its
        inputs.
        """
        index = len(self.operators)
        self.operators.append(operator)
        reads, writes = tuple(reads), tuple(writes)
        for tensor in () if is_apart else dict.fromkeys((*(tensor for tensor, _ in reads), *waits)):
            maker = self.tensors[tensor].producer_index
            if maker is not None and maker != index:
                self.edges[maker, index, tensor] = None
        changed = {tensor for tensor, _ in reads} & {tensor for tensor, _ in writes}
        for tensor, byte_count in reads:
            role = "weight" if tensor in self.weights else "input"
            self._access(index, tensor, role, byte_count, is_outside=tensor in changed)
        for tensor, byte_count in writes:
            self._access(index, tensor, "output", byte_count, is_outside=tensor in changed)
            one = self.tensors[tensor]
            if one.producer_index is None and one.role == "activation":
                self.tensors[tensor] = attrs.evolve(one, producer_index=index)
        return index

    def _access(self, index: int, tensor: int, role: str, byte_count: int, *, is_outside: bool) -> None:
        """Record a read or write of a tensor, as crossing the chip's boundary if `is_outside` or if the tensor is an
        input.
        """
        if byte_count:
            self.accesses.append(
                Access(
                    operator_index=index,
                    tensor_index=tensor,
                    role=role,
                    byte_count=byte_count,
                    item_bytes=self.item_bytes[tensor],
                    is_boundary=is_outside or self.tensors[tensor].role == "input",
                )
            )

    def keep(self, tensor: int) -> None:
        """Keep a tensor's storage until the end of the step."""
        memory = self.tensors[tensor].buffer_index
        assert memory is not None
        self.memories[memory].is_kept = True

    def form(self, key: WorkloadKey, model: str, batch: int, parameter_count: int, notes: tuple[str, ...]) -> Workload:
        """Return the finished workload, with each operator in a separate subgraph."""
        last = len(self.operators) - 1
        births, deaths = [last] * len(self.memories), [0] * len(self.memories)
        uses = [(access.operator_index, access.tensor_index) for access in self.accesses]
        uses += [(index, tensor) for first, second, tensor in self.edges for index in (first, second)]
        for index, tensor in uses:
            memory = self.tensors[tensor].buffer_index
            if memory is not None:
                births[memory], deaths[memory] = min(births[memory], index), max(deaths[memory], index)
        read = {access.tensor_index for access in self.accesses if access.role == "weight"}
        return Workload(
            key=key,
            model=model,
            batch=batch,
            parameter_count=parameter_count,
            weight_bytes=sum(self.tensors[one].byte_count for one in read),
            operators=tuple(self.operators),
            tensors=tuple(self.tensors),
            accesses=tuple(self.accesses),
            edges=tuple(
                Edge(producer_index=maker, consumer_index=reader, tensor_index=tensor)
                for maker, reader, tensor in self.edges
            ),
            buffers=tuple(
                Buffer(
                    birth_index=0 if one.is_kept else min(birth, death),
                    death_index=last if one.is_kept else death,
                    release_index=last if one.is_kept else max(death, one.release),
                    byte_count=one.byte_count,
                    item_bytes=one.item_bytes,
                )
                for one, birth, death in zip(self.memories, births, deaths, strict=True)
            ),
            subgraphs=tuple(
                Subgraph(pattern=one.operation, name=one.name, operator_indices=(index,))
                for index, one in enumerate(self.operators)
            ),
            notes=notes,
        )
