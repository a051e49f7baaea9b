"""Memory traffic and buffers that never leave their subgraph."""

from __future__ import annotations

import attrs

from joulemap.domain.workload import Access, Workload
from joulemap.fuse.dequantize import find_dequantizations
from joulemap.fuse.loop import find_loops
from joulemap.fuse.partition import partition


def fuse(workload: Workload) -> Workload:
    """Return the workload with its subgraphs, and with `fused_byte_count` and `is_hidden` set by them.

    A value that only its own subgraph reads is neither written nor read. Reads of a value by several members add up to
    at most the memory that holds it: the whole is read once, its slices one by one.
    """
    dequantizations = find_dequantizations(workload)
    operators = dequantizations.mark(workload.operators)
    subgraphs = dequantizations.join(partition(operators, workload.edges, find_loops(workload)))
    owner = [0] * len(workload.operators)
    for index, subgraph in enumerate(subgraphs):
        for operator in subgraph.operator_indices:
            owner[operator] = index
    writers: dict[int, set[int]] = {}
    readers: dict[int, set[int]] = {}
    for access in workload.accesses:
        found = writers if access.role == "output" else readers
        found.setdefault(access.tensor_index, set()).add(owner[access.operator_index])
    unread: dict[tuple[int, int], int] = {}
    accesses: list[Access] = []
    for access in workload.accesses:
        here = owner[access.operator_index]
        if access.role == "output":
            outside = readers.get(access.tensor_index, set()) - {here}
            is_whole = len(writers[access.tensor_index]) == 1
            is_hidden = is_whole and not outside and access.tensor_index in readers and not access.is_boundary
            byte_count = 0 if is_hidden else access.byte_count
        else:
            left = unread.get((access.tensor_index, here), _memory_bytes(workload, access.tensor_index))
            is_inside = writers.get(access.tensor_index) == {here} and not access.is_boundary
            byte_count = 0 if is_inside else min(access.byte_count, left)
            unread[access.tensor_index, here] = left - byte_count
        is_same = byte_count == access.fused_byte_count
        accesses.append(access if is_same else _replace_fused(access, byte_count))
    visible = {workload.tensors[access.tensor_index].buffer_index for access in accesses if access.fused_byte_count > 0}
    buffers = tuple(
        buffer if buffer.is_hidden == (index not in visible) else attrs.evolve(buffer, is_hidden=index not in visible)
        for index, buffer in enumerate(workload.buffers)
    )
    return attrs.evolve(workload, operators=operators, subgraphs=subgraphs, accesses=tuple(accesses), buffers=buffers)


def _replace_fused(access: Access, byte_count: int) -> Access:
    """Return an access with other fused bytes, in a third of the time of `attrs.evolve`."""
    return Access(
        operator_index=access.operator_index,
        tensor_index=access.tensor_index,
        role=access.role,
        byte_count=access.byte_count,
        fused_byte_count=byte_count,
        item_bytes=access.item_bytes,
        is_boundary=access.is_boundary,
    )


def _memory_bytes(workload: Workload, tensor_index: int) -> int:
    """Return the bytes of the memory that holds a tensor: its buffer, parameter or constant."""
    tensor = workload.tensors[tensor_index]
    return tensor.byte_count if tensor.buffer_index is None else workload.buffers[tensor.buffer_index].byte_count
