"""Assembly of recorded calls into a workload."""

from __future__ import annotations

from collections import Counter
from typing import Final

import attrs
import torch

from joulemap.physics.record.workload import APPEND, APPENDED, Buffer, Finding, Operator, Tensor, Workload, WorkloadKey
from joulemap.trace.assembly import Assembly, PassedValue
from joulemap.trace.formula import ATTENTION, Call, Cost, count
from joulemap.trace.formula.attention import STEPS, attend
from joulemap.trace.packed.assemble import assemble_packed, is_packed
from joulemap.trace.place import does_nothing, find_places
from joulemap.trace.record import RecordedCall, Recorder
from joulemap.trace.recurrence import CELLS
from joulemap.trace.scan import assemble_recurrence
from joulemap.trace.tensor import distinct_bytes, dtype_name, float_bytes


@attrs.define
class _Assembly(Assembly):
    """Workload under construction, to which the calls of a recording are appended."""

    def add_call(self, call: RecordedCall, own_path: bool) -> None:
        if does_nothing(call, self.recorder.tensors):
            self.add_idle(call)
            return
        if call.name == ATTENTION:
            self.add_attention(call)
            return
        if call.name in CELLS:
            assemble_recurrence(self, call)
            return
        if is_packed(call):
            assemble_packed(self, call, own_path=own_path)
            return
        cost = count(call.name, Call(call.args, call.kwargs, call.outputs, call.aten, call.known))
        if cost.written_count is not None and not call.mutates and not self.takes_place(call):
            cost = attrs.evolve(cost, written_count=None, read_counts=())
        if call.is_view:
            cost = Cost(kind="view", operation=cost.operation)
        if len(self.last_operator) in self.places.appending:
            cost = attrs.evolve(cost, variant=APPEND)
        operator = self.add_operator(call, cost, own_path=own_path)
        if cost.kind != "view":
            self.add_reads(operator, call, self.find_reads(call), cost)
            self.add_writes(operator, call, cost.written_count)
        self.add_edges(operator, call.depends)
        self.last_operator.append(operator)

    def add_idle(self, call: RecordedCall) -> None:
        """Append a call that launches no kernel; its weights still occupy memory."""
        operator = self.add_operator(call, Cost(kind="view", operation=call.name.strip("_")), own_path=False)
        for index in call.reads:
            value = self.recorder.tensors[index]
            if self.recorder.tensors[value.base].role in ("parameter", "constant"):
                self.add_access(operator, value.tensor, index, "input", 0)
        self.add_edges(operator, call.depends)
        self.last_operator.append(operator)

    def takes_place(self, call: RecordedCall) -> bool:
        """Return whether the first result of a call is written into the memory of its first argument."""
        return self.recorder.tensors[call.writes[0]].storage in self.places.taken

    def find_reads(self, call: RecordedCall) -> tuple[int, ...]:
        """Return the tensors that the kernel of a call reads from memory."""
        if call.name in _SHAPED:
            return ()
        reads = tuple(index for index in call.reads if not self.is_host_number(index))
        if call.name in _OVERWRITES:
            reads = tuple(index for index in reads if not self.is_written(call, index))
        return reads

    def is_host_number(self, index: int) -> bool:
        """Return whether a tensor is a number on the host, which a kernel gets as an argument."""
        value = self.recorder.tensors[index]
        is_constant = self.recorder.tensors[value.base].role == "constant"
        return is_constant and not value.tensor.is_meta and value.tensor.dim() == 0

    def is_written(self, call: RecordedCall, index: int) -> bool:
        storage = self.recorder.tensors[index].storage
        return any(self.recorder.tensors[write].storage == storage for write in call.writes)

    def add_attention(self, call: RecordedCall) -> None:
        """Split one fused attention call into its scores, softmax and weighted sum.

        This is the math path of `torch.nn.functional.scaled_dot_product_attention`: softmax(Q K^T / sqrt(d) + mask) V.
        """
        query, key, value = (argument for argument in call.args[:3])
        mask = call.kwargs.get("attn_mask", call.args[3] if len(call.args) > 3 else None)
        steps = attend(
            tuple(query.shape),
            key.shape[-2],
            value.shape[-1],
            is_causal=call.kwargs.get("is_causal", call.args[5] if len(call.args) > 5 else False),
            score_operations=(2 if mask is not None else 1) + call.score_operations,
        )
        shape = (*query.shape[:-1], key.shape[-2])
        operators = []
        for label, cost in zip(STEPS, steps, strict=True):
            inner = None if label == "weighted_sum" else shape
            operators.append(self.add_operator(call, cost, own_path=False, label=label, shape=inner))
        scores, soft, total = operators
        find = self.recorder.find
        for operator, arguments in ((scores, (query, key, mask)), (total, (value,))):
            tensors = [tensor for tensor in arguments if isinstance(tensor, torch.Tensor)]
            for index, byte_count in distinct_bytes(tensors):
                self.add_access(operator, tensors[index], find(tensors[index]), "input", byte_count)
        self.add_writes(total, call)
        for producer, consumer in ((scores, soft), (soft, total)):
            passed = PassedValue(self, shape, query)
            passed.write(producer)
            passed.read(consumer)
        from_value = tuple(dependence for dependence in call.depends if dependence[1] == find(value))
        others = tuple(dependence for dependence in call.depends if dependence not in from_value)
        same = value is query or value is key
        self.add_edges(scores, call.depends if same else others)
        self.add_edges(total, from_value)
        self.last_operator.append(total)


_OVERWRITES: Final = frozenset({"fill_", "copy_", "zero_"})
"""In-place operators that overwrite their first argument without reading it."""

_SHAPED: Final = frozenset({"full_like", "new_full", "new_ones", "new_zeros", "ones_like", "zeros_like"})
"""Operators that use only the shape, dtype and device of a tensor, and read none of its values."""


def assemble(
    recorder: Recorder,
    outputs: list[torch.Tensor],
    *,
    key: WorkloadKey,
    model: str,
    batch: int,
    parameter_count: int,
    notes: tuple[str, ...],
    findings: tuple[Finding, ...] = (),
) -> Workload:
    """Return the workload of the recorded calls. It has no subgraphs, because fusion is a later step."""
    assembly = _Assembly(recorder, find_places(recorder, outputs))
    calls_in = Counter(call.invocation for call in recorder.calls if not call.is_view)
    for call in recorder.calls:
        assembly.add_call(call, own_path=not call.is_view and calls_in[call.invocation] == 1)
    output_bases = {recorder.tensors[recorder.find(tensor)].base for tensor in outputs}
    tensors, buffers = _tensors_and_buffers(assembly, output_bases)
    outgoing = [
        attrs.evolve(access, is_boundary=True)
        if access.role == "output" and access.tensor_index in output_bases
        else access
        for access in assembly.accesses
    ]
    read_weights = {access.tensor_index for access in outgoing if access.role == "weight"}
    return Workload(
        key=key,
        model=model,
        batch=batch,
        parameter_count=parameter_count,
        weight_bytes=sum(tensors[index].byte_count for index in sorted(read_weights)),
        operators=tuple(assembly.operators),
        tensors=tuple(tensors),
        accesses=tuple(outgoing),
        edges=tuple(assembly.edges),
        buffers=tuple(buffers),
        findings=findings,
        notes=(*notes, *_note_appending(assembly.operators), *_note_decompositions(assembly.operators)),
    )


def _note_appending(operators: list[Operator]) -> list[str]:
    """Return the note that `cat` calls append rows to given keys and values; an empty list without such calls."""
    count = sum(operator.variant == APPEND for operator in operators)
    return [f"{count} x cat appends new rows to given keys and values{APPENDED}"] if count else []


def _note_decompositions(operators: list[Operator]) -> list[str]:
    """Return the note on dependent steps and precision of matrix decompositions; an empty list without any."""
    steps = Counter[str]()
    for operator in operators:
        if operator.is_decomposition:
            steps[operator.operation] += operator.step_count
    lines = [f"{name} takes {count:,} dependent steps" for name, count in steps.items()]
    return [f"{', '.join(lines)}, in fp32 or wider at any precision: libraries have nothing narrower"] if lines else []


def _tensors_and_buffers(assembly: _Assembly, output_bases: set[int]) -> tuple[list[Tensor], list[Buffer]]:
    recorder, root = assembly.recorder, assembly.places.root
    last = max(len(assembly.operators) - 1, 0)
    born: dict[int, int] = {}
    died: dict[int, int] = {}
    size: dict[int, tuple[int, int]] = {}
    for value in recorder.tensors:
        owner = recorder.tensors[value.base]
        if owner.role in ("parameter", "constant") and value.storage not in assembly.places.states:
            continue
        producer = assembly.last_operator[value.producer] if value.producer is not None else 0
        storage = root(value.storage)
        born[storage] = min(born.get(storage, producer), producer)
        end = last if value.base in output_bases or value.storage in assembly.places.states else producer
        died[storage] = max(died.get(storage, 0), end)
        size.setdefault(storage, (value.tensor.untyped_storage().nbytes(), float_bytes(owner.tensor)))
    for access in assembly.accesses:
        if access.tensor_index < len(recorder.tensors):
            storage = root(recorder.tensors[access.tensor_index].storage)
            if storage in died:
                died[storage] = max(died[storage], access.operator_index)
    released = dict(died)
    for held, call in recorder.held_until.items():
        storage = root(held)
        if storage in released and call >= 0:
            released[storage] = max(released[storage], assembly.last_operator[call])
    position = {storage: index for index, storage in enumerate(born)}
    buffers = [
        Buffer(
            birth_index=born[storage],
            death_index=died[storage],
            release_index=released[storage],
            byte_count=size[storage][0],
            item_bytes=size[storage][1],
        )
        for storage in born
    ]
    offset = len(buffers)
    buffers.extend(assembly.extra_buffers)
    tensors = []
    for value in recorder.tensors:
        tensor, owns = value.tensor, value.base == value.index
        tensors.append(
            Tensor(
                shape=tuple(tensor.shape),
                dtype=dtype_name(tensor.dtype),
                byte_count=min(tensor.numel() * tensor.element_size(), tensor.untyped_storage().nbytes())
                if owns
                else 0,
                role=value.role,
                name=value.name,
                producer_index=assembly.last_operator[value.producer] if value.producer is not None else None,
                buffer_index=position.get(root(value.storage)),
                is_output=value.index in output_bases,
            )
        )
    tensors.extend(
        attrs.evolve(one, buffer_index=offset - 1 - (one.buffer_index or 0)) for one in assembly.extra_tensors
    )
    return tensors, buffers
