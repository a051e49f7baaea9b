"""Pareto front of many designs, and the band of designs statistically tied with it.

front   no other design is as good in every objective and better in one; designs within 0.1 % of each other are one
band    compared with one front design, no objective is significantly worse at 80 %:  ln(x / best) sign <= h ln 4 / ln 9
h       half-width of the logarithm of the ratio of two designs: designs with equal chip, model and configuration share
        most of their errors, see docs/doubt.md
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from joulemap.physics import LOGISTIC, TOLD_APART, Booleans, Floats, Integers

SIGNIFICANT: Final = math.log(TOLD_APART / (1.0 - TOLD_APART)) / LOGISTIC
"""Difference of two designs, as a multiple of its half-width, above which the designs are significantly different."""

EQUAL: Final = 1e-3
"""Difference of logarithms up to which two designs count as equal in an objective: 0.1 %."""

SAME: Final = 1e-12
"""Rounding tolerance for a comparison of logarithms."""

BLOCK: Final = 262_144
"""Number of designs that are processed at once when a front or a band is computed."""


def find_front(costs: Floats) -> Booleans:
    """Return a mask of the nondominated rows of `costs` (design x objective, lower is better).

    Of equal rows only the first is on the front. A row with an infinite cost is never on it.
    """
    count, width = costs.shape
    is_front = np.zeros(count, dtype=bool)
    if count > BLOCK:
        starts = range(0, count, BLOCK)
        left = np.concatenate([start + np.flatnonzero(find_front(costs[start : start + BLOCK])) for start in starts])
        is_front[left[find_front(costs[left])] if len(left) < count else left] = True
        return is_front
    order = np.lexsort(tuple(costs[:, column] for column in reversed(range(width))))
    order = order[costs[order, 0] < np.inf]
    if width == 2:
        second = costs[order, 1]
        before = np.concatenate([[np.inf], np.minimum.accumulate(second)[:-1]])
        is_front[order[second < before]] = True
        return is_front
    left = order
    while len(left):
        first = left[0]  # no remaining design is better in the first objective, so none dominates it
        is_front[first] = True
        beaten = (costs[left] >= costs[first]).all(axis=1)
        left = left[~beaten]
    return is_front


def merge_equal(costs: Floats, front: Booleans) -> Booleans:
    """Return the front without designs that another design of the front equals or beats in every objective.

    `costs` are logarithms; a difference up to `EQUAL` counts as equal. Of several equal designs, the design with the
    least product of its objectives stays.
    """
    kept = np.zeros_like(front)
    left = np.flatnonzero(front)
    left = left[np.argsort(costs[left].sum(axis=1), kind="stable")]
    while len(left):
        first = left[0]
        kept[first] = True
        left = left[(costs[left] < costs[first] - EQUAL).any(axis=1)]
    return kept


def find_band(
    costs: Floats, front: Booleans, groups: Integers, thresholds: Sequence[Sequence[Floats]]
) -> tuple[Booleans, Integers]:
    """Return a mask of the designs tied with a front design, and the row of the nearest such front design; -1 for none.

    `costs` are logarithms. `thresholds[a][b]` is the tolerated excess in each objective, of a design of group `a` over
    a front design of group `b`.
    """
    is_near = front.copy()
    nearest = np.where(front, np.arange(len(costs), dtype=np.int32), np.int32(-1))
    rows = np.flatnonzero(front)
    find = _find_along if costs.shape[1] == 2 else _find_among
    for start in range(0, len(costs), BLOCK):
        part = np.arange(start, min(start + BLOCK, len(costs)))
        part = part[(costs[part, 0] < np.inf) & ~front[part]]
        for group in range(len(thresholds)):
            mine = part[groups[part] == group] if len(thresholds) > 1 else part
            distance = np.full(len(mine), np.inf)
            for other in range(len(thresholds)):
                theirs = rows[groups[rows] == other]
                if not len(theirs) or not len(mine):
                    continue
                rivals = find(costs[mine], costs[theirs], thresholds[group][other] + SAME)
                far = np.maximum(costs[mine] - costs[theirs][rivals], 0.0).sum(axis=1)
                is_nearer = (rivals >= 0) & (far < distance)
                distance[is_nearer] = far[is_nearer]
                is_near[mine[is_nearer]], nearest[mine[is_nearer]] = True, theirs[rivals[is_nearer]]
    return is_near, nearest


def _find_along(costs: Floats, front: Floats, behind: Floats) -> Integers:
    """Return for each row of `costs` the index of a front design that it exceeds by at most `behind`; -1 for none.

    There are two objectives. Along the front one rises and the other falls, so matching designs are contiguous. The
    match nearest in the first objective is returned.
    """
    order = np.argsort(front[:, 0])
    rising, falling = front[order, 0], front[order, 1]
    first = np.searchsorted(rising, costs[:, 0] - behind[0])
    last = len(front) - 1 - np.searchsorted(falling[::-1], costs[:, 1] - behind[1])
    index = np.clip(np.searchsorted(rising, costs[:, 0], side="right") - 1, first, np.maximum(first, last))
    dominator: Integers = np.where(first <= last, order[np.minimum(index, len(front) - 1)], -1)
    return dominator


def _find_among(costs: Floats, front: Floats, behind: Floats) -> Integers:
    """Return for each row of `costs` the nearest front design that it exceeds by at most `behind`; -1 for none.

    Any number of objectives is allowed.
    """
    nearest = np.full(len(costs), -1, dtype=np.int64)
    distance = np.full(len(costs), np.inf)
    for index, one in enumerate(front):
        worse = costs - one
        far = np.where((worse <= behind).all(axis=1), np.maximum(worse, 0.0).sum(axis=1), np.inf)
        is_nearer = far < distance
        nearest[is_nearer], distance[is_nearer] = index, far[is_nearer]
    return nearest
