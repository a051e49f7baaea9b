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

BLOCK: Final = 262_144
"""Designs of which a front is found at once."""

ALIKE: Final = 8_192
"""Designs next to each other in the first objective that are compared with a front at once: few of it are near."""


def find_front(costs: Floats) -> Booleans:
    """Return which rows no other beats: costs are design x objective, less is better; of equal ones the first.

    An infinite cost is never on it.
    """
    count, width = costs.shape
    found = np.zeros(count, dtype=bool)
    if count > BLOCK:
        starts = range(0, count, BLOCK)
        left = np.concatenate([start + np.flatnonzero(find_front(costs[start : start + BLOCK])) for start in starts])
        found[left[find_front(costs[left])] if len(left) < count else left] = True
        return found
    order = np.lexsort(tuple(costs[:, column] for column in reversed(range(width))))
    order = order[costs[order, 0] < np.inf]
    if width == 1:
        found[order[:1]] = True
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
    is_near = front.copy()
    nearest = np.where(front, np.arange(len(costs), dtype=np.int32), np.int32(-1))
    rows = np.flatnonzero(front)
    limits = np.array(thresholds) + SAME
    widest = costs[rows] + limits[:, groups[rows]].max(axis=0)
    order = np.argsort(costs[:, 0])
    for start in range(0, len(order), ALIKE):
        part = order[start : start + ALIKE]
        mine, group = costs[part], groups[part] if len(limits) > 1 else 0
        distance = np.where(front[part], 0.0, np.inf)
        for row in rows[(mine.min(axis=0) <= widest).all(axis=1)].tolist():
            behind = mine - costs[row]
            within = (behind <= limits[group, groups[row]]).all(axis=1)
            far = np.where(within, np.maximum(behind, 0.0).sum(axis=1), np.inf)
            is_nearer = far < distance
            is_near[part] |= within
            nearest[part] = np.where(is_nearer, row, nearest[part])
            distance = np.where(is_nearer, far, distance)
    return is_near, nearest
