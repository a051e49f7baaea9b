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
"""Designs of which a front is found, or that are compared with one, at once."""


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
                place = find(costs[mine], costs[theirs], thresholds[group][other] + SAME)
                far = np.maximum(costs[mine] - costs[theirs][place], 0.0).sum(axis=1)
                is_nearer = (place >= 0) & (far < distance)
                distance[is_nearer] = far[is_nearer]
                is_near[mine[is_nearer]], nearest[mine[is_nearer]] = True, theirs[place[is_nearer]]
    return is_near, nearest


def _find_along(costs: Floats, front: Floats, behind: Floats) -> Integers:
    """Return the place in a front of two objectives from which each row is no further behind than this; -1 for none.

    Along the front one objective rises and the other falls, so that those are neighbours; the one that is nearest in
    the first objective is taken.
    """
    order = np.argsort(front[:, 0])
    rising, falling = front[order, 0], front[order, 1]
    first = np.searchsorted(rising, costs[:, 0] - behind[0])
    last = len(front) - 1 - np.searchsorted(falling[::-1], costs[:, 1] - behind[1])
    place = np.clip(np.searchsorted(rising, costs[:, 0], side="right") - 1, first, np.maximum(first, last))
    found: Integers = np.where(first <= last, order[np.minimum(place, len(front) - 1)], -1)
    return found


def _find_among(costs: Floats, front: Floats, behind: Floats) -> Integers:
    """Return the same of any number of objectives, by a look at each row of the front."""
    found = np.full(len(costs), -1, dtype=np.int64)
    distance = np.full(len(costs), np.inf)
    for place, one in enumerate(front):
        worse = costs - one
        far = np.where((worse <= behind).all(axis=1), np.maximum(worse, 0.0).sum(axis=1), np.inf)
        is_nearer = far < distance
        found[is_nearer], distance[is_nearer] = place, far[is_nearer]
    return found
