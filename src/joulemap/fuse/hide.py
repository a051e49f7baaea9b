"""What a subgraph keeps on chip: traffic and buffers that never leave it."""

from __future__ import annotations

import attrs

from joulemap.domain.workload import Access, Workload
from joulemap.fuse.partition import partition


def fuse(workload: Workload) -> Workload:
    """Return the workload with its subgraphs, and with `fused_byte_count` and `is_hidden` set by them.

    A value that only its own subgraph reads is neither written nor read; a value that several members read is
    read once, by the first of them.
    """
    subgraphs = partition(workload.operators, workload.edges)
    owner = [0] * len(workload.operators)
    for index, subgraph in enumerate(subgraphs):
        for operator in subgraph.operator_indices:
            owner[operator] = index
    writer = {access.tensor_index: access.operator_index for access in workload.accesses if access.role == "output"}
    readers: dict[int, set[int]] = {}
    for access in workload.accesses:
        if access.role != "output":
            readers.setdefault(access.tensor_index, set()).add(owner[access.operator_index])
    seen: set[tuple[int, int]] = set()
    accesses: list[Access] = []
    for access in workload.accesses:
        here = owner[access.operator_index]
        if access.role == "output":
            outside = readers.get(access.tensor_index, set()) - {here}
            is_hidden = not outside and access.tensor_index in readers and not access.is_boundary
        else:
            made = writer.get(access.tensor_index)
            is_hidden = (made is not None and owner[made] == here) or (access.tensor_index, here) in seen
            seen.add((access.tensor_index, here))
        accesses.append(attrs.evolve(access, fused_byte_count=0) if is_hidden else access)
    visible = {workload.tensors[access.tensor_index].buffer_index for access in accesses if access.fused_byte_count > 0}
    buffers = tuple(
        attrs.evolve(buffer, is_hidden=index not in visible) for index, buffer in enumerate(workload.buffers)
    )
    return attrs.evolve(workload, subgraphs=subgraphs, accesses=tuple(accesses), buffers=buffers)
