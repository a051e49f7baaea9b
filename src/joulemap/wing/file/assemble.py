"""Workload of a file's graph: its calls in order."""

from __future__ import annotations

from collections import Counter
from typing import Final

import attrs

from joulemap.domain.workload import Buffer, Edge, Tensor, Workload, WorkloadKey
from joulemap.system.errors import ModelError
from joulemap.wing.file.assembly import ATTENTIONS, INDICES, Assembly
from joulemap.wing.file.call import RULES, find_call
from joulemap.wing.file.graph import Program
from joulemap.wing.file.lite_call import LITE_RULES
from joulemap.wing.file.recurrent import CELLS, add_recurrence
from joulemap.wing.file.value import Node

EVERY: Final = {**RULES, **LITE_RULES}
"""Operator of any format -> rule; no name means two operators."""


def assemble(program: Program, name: str, key: WorkloadKey, batch: int, notes: tuple[str, ...]) -> Workload:
    """Return the workload of a graph, not yet fused; ModelError for an operator that has no formula."""
    made = Assembly()
    for value in program.inputs:
        made.own(value, "input")
    calls = [
        (node, None if node.op in ATTENTIONS or node.op in CELLS else find_call(node, EVERY)) for node in program.nodes
    ]
    paths = [find_path(node) for node, _ in calls]
    alone = Counter(path for path, (node, told) in zip(paths, calls, strict=True) if told is None or not told.is_view)
    for path, (node, told) in zip(paths, calls, strict=True):
        if all(one.is_weight for one in node.outputs):
            continue  # an engine computes it once, and keeps it as a weight
        if node.op in ATTENTIONS:
            made.add_attention(node, path)
        elif node.op in CELLS:
            add_recurrence(made, node, path)
        elif told is None:
            made.places[id(node.outputs[0])] = made.place(node.given(0))
            made.held.append(node.outputs[0])
        elif told.is_view:
            made.add_view(node, told, path)
        else:
            try:
                made.add_call(node, told, path, alone[path] == 1)
            except (AttributeError, IndexError, KeyError, TypeError, ValueError, ZeroDivisionError) as error:
                raise ModelError(f"{name}: {node.op} {node.name!r} cannot be counted: {error}") from error
    return _finish(made, program, name, key, batch, notes)


def find_path(node: Node) -> str:
    """Return the module of a node: by the name of its weight, else by the node's own name."""
    for value in node.inputs[1:3]:
        if value is not None and value.is_weight and value.name.endswith((".weight", ".bias")):
            return value.name.rpartition(".")[0]
    parts: list[str] = []
    for part in node.name.strip("/").split("/")[:-1]:
        if parts and part.startswith(f"{parts[-1]}."):
            parts[-1] = part
        else:
            parts.append(part)
    return ".".join(parts)


def _finish(
    made: Assembly, program: Program, name: str, key: WorkloadKey, batch: int, notes: tuple[str, ...]
) -> Workload:
    outside = {made.place(one).base for one in program.outputs if not one.is_weight}
    last = max(len(made.operators) - 1, 0)
    death = [made.makers.get(index, 0) for index in range(len(made.tensors))]
    for access in made.accesses:
        death[access.tensor_index] = max(death[access.tensor_index], access.operator_index)
    buffers: list[Buffer] = []
    tensors: list[Tensor] = []
    for index, tensor in enumerate(made.tensors):
        if tensor.role in ("parameter", "constant"):
            tensors.append(tensor)
            continue
        end = last if index in outside or tensor.role == "input" else death[index]
        buffers.append(
            Buffer(
                birth_index=made.makers.get(index, 0),
                death_index=end,
                release_index=end,
                byte_count=tensor.byte_count,
                item_bytes=made.items[index],
                is_hidden=False,
            )
        )
        tensors.append(attrs.evolve(tensor, buffer_index=len(buffers) - 1, is_output=index in outside))
    weights = {access.tensor_index for access in made.accesses if access.role == "weight"}
    return Workload(
        key=key,
        model=name,
        batch=batch,
        parameter_count=sum(one.count for one in program.weights if one.dtype not in INDICES),
        weight_bytes=sum(tensors[index].byte_count for index in sorted(weights)),
        operators=tuple(made.operators),
        tensors=tuple(tensors),
        accesses=tuple(
            attrs.evolve(one, is_boundary=True) if one.role == "output" and one.tensor_index in outside else one
            for one in made.accesses
        ),
        edges=tuple(
            Edge(producer_index=maker, consumer_index=reader, tensor_index=tensor)
            for maker, reader, tensor in made.edges
        ),
        buffers=tuple(buffers),
        subgraphs=(),
        notes=notes,
    )
