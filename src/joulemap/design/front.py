"""The best of many designs: those that no other beats in every objective, and those that cannot be told from them.

front   no other design is as good in every objective and better in one
band    for one of the front, no objective is told to be worse at 80 %:   ln(x / best) sign <= h ln 4 / ln 9
h       half-width of the logarithm of what the two differ by: designs alike in chip, model and configuration share
most of their errors, see docs/doubt.md
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from joulemap.domain.doubt import LOGISTIC, TOLD_APART

if TYPE_CHECKING:
    from joulemap.model.workload import Booleans, Floats, Integers

TOLD_SHARE: Final = math.log(TOLD_APART / (1.0 - TOLD_APART)) / LOGISTIC
"""Of the half-width of a difference: from which on the two are told apart."""

SAME: Final = 1e-12
"""Of a logarithm: what differs by less is the same number, rounded."""

BLOCK: Final = 200_000
"""Designs that are compared at once."""


def find_front(costs: Floats) -> Booleans:
    """Return which rows no other beats: costs are design x objective, less is better; of equal ones the first."""
    count, width = costs.shape
    found = np.zeros(count, dtype=bool)
    if not count:
        return found
    order = np.lexsort(tuple(costs[:, column] for column in reversed(range(width))))
    if width == 1:
        found[order[0]] = True
        return found
    if width == 2:
        second = costs[order, 1]
        before = np.concatenate([[np.inf], np.minimum.accumulate(second)[:-1]])
        found[order[second < before]] = True
        return found
    left = order
    while len(left):
        first = left[0]  # nothing that is left comes before it in the first objective, so that nothing beats it
        found[first] = True
        beaten = (costs[left] >= costs[first]).all(axis=1)
        left = left[~beaten]
    return found


def find_band(
    costs: Floats, front: Booleans, groups: Integers, thresholds: Sequence[Sequence[Floats]]
) -> tuple[Booleans, Integers]:
    """Return which designs cannot be told from one of the front, and the row of the nearest of those.

    `costs` are logarithms; `thresholds[group][group of the front]` is for each objective by how much a logarithm may be
    worse.
    """
    count = len(costs)
    is_near = front.copy()
    nearest = np.where(front, np.arange(count), -1)
    distance = np.where(front, 0.0, np.inf)
    rows = np.flatnonzero(front)
    for start in range(0, count, BLOCK):
        part = np.arange(start, min(start + BLOCK, count))
        for row in rows.tolist():
            each = np.array([thresholds[group][groups[row]] for group in range(len(thresholds))])
            behind = costs[part] - costs[row]
            within = (behind <= each[groups[part]] + SAME).all(axis=1)
            far = np.where(within, np.maximum(behind, 0.0).sum(axis=1), np.inf)
            is_nearer = far < distance[part]
            is_near[part] |= within
            nearest[part] = np.where(is_nearer, row, nearest[part])
            distance[part] = np.where(is_nearer, far, distance[part])
    return is_near, nearest
