"""Data flow between subgraphs: the values handed over, and an order of execution."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import numpy as np

from joulemap.physics import ROLE_CODE, Booleans, Floats, Integers, WorkloadColumns
from joulemap.physics.fallback import find_writers


def find_values(work: WorkloadColumns, computed: Booleans) -> tuple[Integers, Integers, Floats, Floats]:
    """Return the values that one subgraph makes and another reads.

    The arrays are the maker of each value, (value, reading subgraph) pairs, bytes at the traced precision, and bytes
    per item. A value is the content that one operator leaves in one buffer.
    """
    writer = find_writers(work)
    owner = work.subgraph_index
    read = (writer >= 0) & computed[writer] & computed[work.access_operator]
    read &= owner[writer] != owner[work.access_operator]
    rows = np.flatnonzero(read)
    key = work.access_buffer[rows] * (work.operator_count + 1) + writer[rows]
    values, first, number = np.unique(key, return_index=True, return_inverse=True)
    maker_operator = writer[rows[first]]
    outputs = np.flatnonzero((work.access_role == ROLE_CODE["output"]) & (work.access_buffer >= 0))
    made = work.access_buffer[outputs] * (work.operator_count + 1) + work.access_operator[outputs]
    traced, items = np.zeros(len(values)), np.ones(len(values))
    at = np.minimum(np.searchsorted(values, made), max(len(values) - 1, 0))
    is_one = values[at] == made if len(values) else np.zeros(len(made), dtype=bool)
    np.maximum.at(traced, at[is_one], work.access_bytes[outputs[is_one]])
    items[at[is_one]] = work.access_item_bytes[outputs[is_one]]
    pairs = np.unique(np.stack([number.ravel(), owner[work.access_operator[rows]]]), axis=1)
    return owner[maker_operator], pairs, traced, items


def share_ends(
    more: Floats, value_bytes: Floats, maker: Integers, readers: Sequence[Sequence[int]]
) -> tuple[Floats, Floats]:
    """Divide each node's extra cost among the values that enter or leave it, in proportion to bytes.

    Return value x device arrays: the cost on leaving the maker, and the mean cost on entering a reader.
    """
    crossing = np.zeros(len(more))
    np.add.at(crossing, maker, value_bytes)
    for value, nodes in enumerate(readers):
        crossing[list(nodes)] += value_bytes[value]
    each = more / np.maximum(crossing, 1.0)[:, None]
    enter = np.array([each[list(nodes)].mean(axis=0) for nodes in readers]).reshape(len(maker), more.shape[1])
    return each[maker] * value_bytes[:, None], enter * value_bytes[:, None]


def sort_nodes(nodes: Integers, maker: Integers, pairs: Integers) -> Integers:
    """Return subgraphs in topological order; where the data flow leaves a choice, the model's order counts."""
    waits = dict.fromkeys(nodes.tolist(), 0)
    follow: dict[int, list[int]] = {node: [] for node in waits}
    for before, after in sorted({(int(maker[value]), int(reader)) for value, reader in pairs.T}):
        follow[before].append(after)
        waits[after] += 1
    ready = [node for node, count in waits.items() if not count]
    heapq.heapify(ready)
    ordered = []
    while ready:
        node = heapq.heappop(ready)
        ordered.append(node)
        for after in follow[node]:
            waits[after] -= 1
            if not waits[after]:
                heapq.heappush(ready, after)
    assert len(ordered) == len(waits), "subgraphs that wait for each other"
    return np.array(ordered, dtype=np.int64)


def list_readers(pairs: Integers, node_of: Integers, count: int) -> tuple[tuple[int, ...], ...]:
    """Return the nodes that read each value, from (value, subgraph) pairs and the node of each subgraph."""
    readers: list[list[int]] = [[] for _ in range(count)]
    for value, reader in pairs.T.tolist():
        readers[value].append(int(node_of[reader]))
    return tuple(tuple(sorted(one)) for one in readers)
