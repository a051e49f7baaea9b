"""The partition of operators into subgraphs that one kernel can run.

A subgraph starts at the first operator in execution order that has none, and grows along the data flow while its
last operator has exactly one consumer and that consumer is fusible. A squeeze-and-excitation gate (mean, two small
products with activations, sigmoid) is one subgraph, because all of it works on one value per channel. Whatever leaves
a subgraph leaves from its last operator only, so no path can leave and come back: every subgraph is convex by
construction.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from joulemap.domain.workload import Edge, Operator, Subgraph
from joulemap.fuse.loop import Loop, describe_loop

ANCHORS: Final = frozenset({"conv", "depthwise_conv", "grouped_conv", "linear", "matmul"})
"""Kinds that lead a kernel; a subgraph has one, or two matmuls around a softmax (attention)."""

GATES: Final = frozenset({"sigmoid", "hardsigmoid"})
"""Operations that end a squeeze-and-excitation gate."""

PRODUCTS_IN_GATE: Final = 2
"""Squeeze and excite; some models do both in one."""

POINTWISE: Final = frozenset({"batch_norm", "elementwise"})
"""Kinds that need only the element at hand, so that they run in the epilogue of any kernel."""

ROWWISE: Final = frozenset({"softmax", "normalization"})
"""Kinds that need a whole row; they fuse with pointwise operators around them, not with a GEMM's epilogue."""


def _may_follow(members: Sequence[Operator], candidate: Operator) -> bool:
    """Whether one kernel can compute `candidate` right after `members`."""
    computing = [member for member in members if not member.is_view]
    if candidate.is_view:
        return True
    if not computing:
        return True
    kinds = {member.kind for member in computing}
    last = computing[-1]
    if last.output_element_count != candidate.output_element_count and candidate.kind != "matmul":
        return False
    if candidate.kind in POINTWISE:
        return bool(kinds & (ANCHORS | POINTWISE | ROWWISE)) and kinds <= ANCHORS | POINTWISE | ROWWISE
    if candidate.kind in ROWWISE:
        is_attention = candidate.kind == "softmax" and kinds & ANCHORS == {"matmul"}
        return kinds <= POINTWISE or (is_attention and kinds <= {"matmul"} | POINTWISE)
    if candidate.kind == "matmul":
        anchors = [member for member in computing if member.kind in ANCHORS]
        return (
            len(anchors) == 1
            and anchors[0].kind == "matmul"
            and "softmax" in kinds
            and kinds <= {"matmul", "softmax"} | POINTWISE
            and candidate.gemm_groups == anchors[0].gemm_groups
            and candidate.gemm_k == anchors[0].gemm_n
        )
    return False


def partition(operators: Sequence[Operator], edges: Sequence[Edge], loops: Sequence[Loop] = ()) -> tuple[Subgraph, ...]:
    """Return the subgraphs in execution order of their first operator; each operator is in exactly one.

    Each of `loops` is one as it is.
    """
    consumers: list[set[int]] = [set() for _ in operators]
    for edge in edges:
        consumers[edge.producer_index].add(edge.consumer_index)
    taken = [False] * len(operators)
    subgraphs: list[Subgraph] = []
    begins = {loop.operator_indices[0]: loop for loop in loops}
    for index in (index for loop in loops for index in loop.operator_indices):
        taken[index] = True
    for start in range(len(operators)):
        if start in begins:
            subgraphs.append(describe_loop(begins[start], operators))
        if taken[start]:
            continue
        taken[start] = True
        indices = [start]
        members = [operators[start]]
        gate = _gate(start, operators, consumers, taken)
        for index in gate:
            taken[index] = True
            indices.append(index)
            members.append(operators[index])
        while not gate and len(consumers[indices[-1]]) == 1:
            (candidate,) = consumers[indices[-1]]
            if taken[candidate] or not _may_follow(members, operators[candidate]):
                break
            taken[candidate] = True
            indices.append(candidate)
            members.append(operators[candidate])
        subgraphs.append(_describe(members, indices))
    return tuple(subgraphs)


def _gate(start: int, operators: Sequence[Operator], consumers: Sequence[set[int]], taken: Sequence[bool]) -> list[int]:
    """Return the operators after `start` that make a squeeze-and-excitation gate with it, or nothing.

    Every one but the last has a single consumer, so the gate is convex.
    """
    if operators[start].kind != "reduction":
        return []
    found: list[int] = []
    products = 0
    current = start
    while len(consumers[current]) == 1:
        (current,) = consumers[current]
        operator = operators[current]
        products += operator.kind in ("conv", "linear")
        fits = operator.is_view or operator.kind in ("conv", "linear", "batch_norm", "elementwise")
        if taken[current] or not fits or products > PRODUCTS_IN_GATE:
            return []
        found.append(current)
        if operator.operation in GATES:
            return found if products in (1, PRODUCTS_IN_GATE) else []
    return []


def _describe(members: Sequence[Operator], indices: Sequence[int]) -> Subgraph:
    computing = [member for member in members if not member.is_view]
    leaders = [member for member in computing if member.kind in ANCHORS] or computing or list(members)
    operations = [member.operation for member in computing] or ["view"]
    if members[0].kind == "reduction" and operations[-1] in GATES:
        pattern = "squeeze_excitation"
    elif operations.count("matmul") == 2 and "softmax" in operations:
        pattern = "attention"
    else:
        pattern = "+".join(operations)
    return Subgraph(
        pattern=pattern,
        name=leaders[0].name,
        operator_indices=tuple(indices),
        step_count=max(member.step_count for member in members),
    )
