"""Formulas of attention, which is counted as three operators: scores, softmax and weighted sum."""

from __future__ import annotations

import math

from joulemap.domain.workload import CAUSAL
from joulemap.trace.formula.registry import Cost, Shape

STEPS = ("scores", "softmax", "weighted_sum")


def attend(
    query: Shape, columns: int, value_width: int, *, is_causal: bool = False, score_operations: int = 1, pairs: int = 0
) -> tuple[Cost, Cost, Cost]:
    """Return the costs of the steps of softmax(Q K^T / sqrt(d) + mask) V, for `columns` keys.

    Each score takes `score_operations` after its GEMM: the scale, a mask, a score function of the user. If a query
    sees only some of the keys, `pairs` is the number that all queries of a head see, and `columns` their mean.
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
