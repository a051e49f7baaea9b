"""Formulas of attention, which is counted as three operators: scores, softmax and weighted sum."""

from __future__ import annotations

import math

from joulemap.physics.record.workload import CAUSAL
from joulemap.trace.formula.registry import Cost, Shape

STEPS = ("scores", "softmax", "weighted_sum")


def attend(
    query: Shape, columns: int, value_width: int, *, is_causal: bool = False, score_operations: int = 1, pairs: int = 0
) -> tuple[Cost, Cost, Cost]:
    """Return the costs of scores, softmax and weighted sum in softmax(Q K^T / sqrt(d) + mask) V, for `columns` keys.

    `score_operations` are the elementwise operations per score after the GEMM: scale, mask and the user's score
    function. If a query sees only some keys, `pairs` is the number of query-key pairs of a head, and `columns` the mean
    keys per query.
    """
    *batch, rows, width = query
    groups = math.prod(batch)
    score_count = groups * (pairs or rows * columns)
    variant = CAUSAL if is_causal and rows > 1 else ""
    return (
        Cost(
            kind="matmul",
            operation="matmul",
            mac_count=score_count * width,
            elementwise_count=score_count * score_operations,
            gemm=(rows, columns, width, groups),
            variant=variant,
        ),
        Cost(
            kind="softmax",
            operation="softmax",
            elementwise_count=4 * score_count,
            special_count=score_count,
            variant=variant,
        ),
        Cost(
            kind="matmul",
            operation="matmul",
            mac_count=score_count * value_width,
            gemm=(rows, value_width, columns, groups),
            variant=variant,
        ),
    )
