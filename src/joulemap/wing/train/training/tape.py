"""A workload of a training step, put together call by call: what each reads, makes and hands on."""

from __future__ import annotations

import math
from collections.abc import Iterable

import attrs

from joulemap.domain.key import WorkloadKey
from joulemap.domain.workload import Access, Buffer, Edge, Operator, Subgraph, Tensor, Workload
from joulemap.system.record import frozen

Use = tuple[int, int]
"""(a tensor, bytes of it)."""


@frozen(kw_only=True)
class Value:
    """A tensor as it is known before it lies anywhere."""

    shape: tuple[int, ...]
    dtype: str
    byte_count: int
    item_bytes: int
    """Of an element that a precision scales; 0 of any other."""
    role: str = "activation"
    name: str = ""
    memory: int | None = None
    """Of the forward pass: tensors of one number share their storage."""
    release: int = 0
    """The operator of the forward pass until which a program that runs call by call holds it."""

    @property
    def element_count(self) -> int:
        """Elements."""
        return math.prod(self.shape)


@frozen(kw_only=True)
class Call:
    """An operator of the forward pass, and what it reads and makes; tensors are numbers of its values."""

    operator: Operator
    reads: tuple[Use, ...]
    writes: tuple[Use, ...]
    waits: tuple[int, ...] = ()
    """What it needs through views alone."""
    origin: int = 0
    """Its place in the pass of inference."""
    extras: tuple[int, ...] = ()
    """What it writes for the backward pass alone: statistics, indices."""


@attrs.define
class Memory:
    """A storage of the step."""

    byte_count: int
    item_bytes: int
    is_kept: bool = False
    """Whether it is there from the first operator to the last."""
    release: int = 0


@attrs.define
class Tape:
    """Operators in order, and the tensors between them. A tensor is known by its place."""

    operators: list[Operator] = attrs.field(factory=list)
    tensors: list[Tensor] = attrs.field(factory=list)
    item_bytes: list[int] = attrs.field(factory=list)
    memories: list[Memory] = attrs.field(factory=list)
    accesses: list[Access] = attrs.field(factory=list)
    edges: dict[tuple[int, int, int], None] = attrs.field(factory=dict)
    weights: set[int] = attrs.field(factory=set)
    """Tensors that are read as weights."""

    def hold(self, byte_count: int, item_bytes: int, *, is_kept: bool = False) -> int:
        """Return a new storage."""
        self.memories.append(Memory(byte_count, item_bytes, is_kept))
        return len(self.memories) - 1

    def put(self, value: Value, memory: int | None = None, *, is_kept: bool = False) -> int:
        """Return a new tensor of a value: a parameter, or in a storage, its own where none is given."""
        if value.role not in ("parameter", "constant") and memory is None:
            memory = self.hold(value.byte_count, value.item_bytes, is_kept=is_kept)
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
        """Add an operator and return its place; what it is the first to write is made by it.

        One that is apart begins when all before it is done, so that no kernel computes it with what it reads.
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
        """Add an access; what an operator reads and writes anew comes from outside and goes there."""
        if byte_count:
            self.accesses.append(
                Access(
                    operator_index=index,
                    tensor_index=tensor,
                    role=role,
                    byte_count=byte_count,
                    fused_byte_count=byte_count,
                    item_bytes=self.item_bytes[tensor],
                    is_boundary=is_outside or self.tensors[tensor].role == "input",
                )
            )

    def keep(self, tensor: int) -> None:
        """Let a tensor's storage stay to the end."""
        memory = self.tensors[tensor].buffer_index
        assert memory is not None
        self.memories[memory].is_kept = True

    def form(self, key: WorkloadKey, model: str, batch: int, parameter_count: int, notes: tuple[str, ...]) -> Workload:
        """Return the workload, each operator by itself."""
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
                    is_hidden=False,
                )
                for one, birth, death in zip(self.memories, births, deaths, strict=True)
            ),
            subgraphs=tuple(
                Subgraph(pattern=one.operation, name=one.name, operator_indices=(index,))
                for index, one in enumerate(self.operators)
            ),
            notes=notes,
        )
