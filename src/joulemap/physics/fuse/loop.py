"""Hand-written loops over time, found as repeated operators. One kernel runs all repetitions, a scan.

    … a b c │ a b c │ a b c │ … │ a b c …          the same operators, shapes and weights, `LEAST_STEPS` times or more
          └─ state ─┘      each repetition reads the state that the previous one wrote

A scan kernel keeps the state on chip between steps and is launched once. A loop is not a scan if a compiler unrolls it
into library calls: with a convolution, a large GEMM or a GEMM with weights in its body, such as a recurrent cell, every
operator stays a kernel. All operators between the first and the last of a loop belong to it, so that it is convex.
Operators that join the results of the steps (`stack`, `cat`) belong to it too.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Sequence
from typing import Final

import attrs

from joulemap.physics.record.workload import Operator, Subgraph, Workload

LEAST_STEPS: Final = 8
"""Minimum repetitions of a loop over time."""

CANDIDATES: Final = 8
"""Maximum number of later occurrences of an operator that are tried as the start of the second repetition."""

INNER_KINDS: Final = frozenset(
    {"view", "elementwise", "batch_norm", "reduction", "softmax", "normalization", "data_movement"}
)
"""Kinds of operators that may occur any number of times in a step."""

LARGEST_PRODUCT: Final = 2**26
"""Maximum MACs of a GEMM in a step; a larger one keeps a chip busy for longer than a launch takes."""

ROWWISE: Final = frozenset({"reduction", "softmax", "normalization"})
LONG_ROW: Final = 256
"""Maximum elements of a row that one unit reduces. Longer rows are split over units, which exchange their results."""

LARGEST_STATE: Final = 2**20
"""Maximum elements of a reduction whose rows are split over units. They must stay on chip between steps."""

PATTERN: Final = "scan"
"""Name of the pattern of a loop's subgraph."""

JOINS: Final = frozenset({"cat", "stack", "append"})


@attrs.frozen(kw_only=True)
class Loop:
    """Operators of a loop over time, which one scan kernel runs."""

    operator_indices: tuple[int, ...]
    step_count: int


def find_loops(workload: Workload) -> tuple[Loop, ...]:
    """Return the loops over time in execution order; no two share an operator.

    The running time is proportional to the number of operators: each distance between repetitions is compared once.
    """
    operators = workload.operators
    if len(operators) < 2 * LEAST_STEPS:
        return ()
    marks = _number(_signatures(workload))
    following = _following(marks)
    producers: list[list[int]] = [[] for _ in operators]
    consumers: list[list[int]] = [[] for _ in operators]
    for edge in workload.edges:
        producers[edge.consumer_index].append(edge.producer_index)
        consumers[edge.producer_index].append(edge.consumer_index)
    ends: dict[int, int] = {}
    refused: dict[int, int] = {}
    found: list[Loop] = []
    start = 0
    while start < len(operators):
        stop, steps = _repetitions(start, marks, following, ends, refused, producers, operators)
        if steps:
            members = [*range(start, stop), *_joins(start, stop, operators, producers, consumers)]
            found.append(Loop(operator_indices=tuple(members), step_count=steps))
        start = max(stop, start + 1)
    return tuple(found)


def _signatures(workload: Workload) -> list[Hashable]:
    """Return the properties of each operator that repetitions have in common; None if no scan kernel can compute it."""
    weights: list[list[int]] = [[] for _ in workload.operators]
    for access in workload.accesses:
        if access.role == "weight":
            weights[access.operator_index].append(access.tensor_index)
    return [
        (
            operator.module_path,
            operator.aten,
            operator.operation,
            operator.output_shape,
            operator.dtype,
            operator.mac_count,
            operator.elementwise_count,
            operator.special_count,
            operator.gemm_k,
            tuple(read),
        )
        if _is_inner(operator, read)
        else None
        for operator, read in zip(workload.operators, weights, strict=True)
    ]


def _is_inner(operator: Operator, weights: Sequence[int]) -> bool:
    if operator.step_count > 1 or (operator.mac_count and weights):
        return False
    if operator.kind in ROWWISE:
        outputs = operator.output_element_count
        read = operator.elementwise_count if operator.kind == "reduction" else outputs
        row = read // max(outputs, 1) if operator.kind == "reduction" else (1, *operator.output_shape)[-1]
        return row <= LONG_ROW or read <= LARGEST_STATE
    return operator.kind in INNER_KINDS or (operator.kind == "matmul" and operator.mac_count <= LARGEST_PRODUCT)


def _number(signatures: Sequence[Hashable]) -> list[int]:
    """Return a number for each signature. Equal signatures have equal numbers; every None has a number for itself."""
    numbers: dict[Hashable, int] = {}
    fresh = itertools.count(-1, -1)
    return [
        next(fresh) if signature is None else numbers.setdefault(signature, len(numbers)) for signature in signatures
    ]


def _following(marks: Sequence[int]) -> list[int]:
    """Return the index of the next occurrence of each mark, or the number of marks if there is none."""
    after: dict[int, int] = {}
    following = [len(marks)] * len(marks)
    for index in range(len(marks) - 1, -1, -1):
        following[index] = after.get(marks[index], len(marks))
        after[marks[index]] = index
    return following


def _repetitions(
    start: int,
    marks: Sequence[int],
    following: Sequence[int],
    ends: dict[int, int],
    refused: dict[int, int],
    producers: Sequence[Sequence[int]],
    operators: Sequence[Operator],
) -> tuple[int, int]:
    """Return (end, number of steps) of the loop that begins at `start`; (`start`, 0) if no loop begins there.

    `ends` and `refused` are caches by period. `ends` has the end of the last compared run of equal marks. `refused` has
    the end of the last run that is not a loop.
    """
    second = following[start]
    for _ in range(CANDIDATES):
        period = second - start
        if start + LEAST_STEPS * period > len(marks):
            break
        if all(marks[start + step * period] == marks[start] for step in range(2, LEAST_STEPS)):
            if ends.get(period, -1) <= start:
                ends[period] = _end(start, period, marks)
            stop = ends[period] + period
            steps = (stop - start) // period
            if steps >= LEAST_STEPS and refused.get(period) != stop:
                if _carries(start, period, steps, producers, operators):
                    return stop, steps
                refused[period] = stop
        second = following[second]
    return start, 0


def _end(start: int, period: int, marks: Sequence[int]) -> int:
    """Return the first index from `start` whose mark differs from the mark one period later."""
    end = start
    while end + period < len(marks) and marks[end] == marks[end + period]:
        end += 1
    return end


def _carries(
    start: int, period: int, steps: int, producers: Sequence[Sequence[int]], operators: Sequence[Operator]
) -> bool:
    """Return whether each repetition computes something and passes a value to the next.

    The values must form a chain through nearly all repetitions. A single step of the chain is no evidence, because
    `start` may be inside the body of the loop.
    """
    if all(operator.is_view for operator in operators[start : start + period]):
        return False
    passed = [0] * (steps * period)
    for index in range(period, steps * period):
        for producer in producers[start + index]:
            if producer >= start:
                before = producer - start
                passed[index] = max(passed[index], passed[before] + (index // period - before // period))
    return max(passed) >= steps - 2


def _joins(
    start: int,
    stop: int,
    operators: Sequence[Operator],
    producers: Sequence[Sequence[int]],
    consumers: Sequence[Sequence[int]],
) -> list[int]:
    """Return the operators after the loop that join only its results, such as `cat`."""
    after = {consumer for index in range(start, stop) for consumer in consumers[index] if consumer >= stop}
    return [
        index
        for index in sorted(after)
        if operators[index].operation in JOINS and all(start <= producer < stop for producer in producers[index])
    ]


def describe_loop(loop: Loop, operators: Sequence[Operator]) -> Subgraph:
    """Return a loop as a subgraph. It is named after its operator with the most work, or the first of several."""
    found = max(
        loop.operator_indices,
        key=lambda index: (operators[index].mac_count, operators[index].elementwise_count, -index),
    )
    return Subgraph(
        pattern=PATTERN,
        name=operators[found].name,
        operator_indices=loop.operator_indices,
        step_count=loop.step_count,
    )
