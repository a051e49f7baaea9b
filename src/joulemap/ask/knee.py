"""Knee of a Pareto front: the configuration beyond which the one metric costs more of the other than the front does on
the whole.

log y ↑ ●                     chord: from end to end of the front
      |  ╲ ╲                  knee:  farthest from the chord, on its better side
      |   ◆   ╲               Both axes are logarithmic, so that equal distances are equal factors, and the units of the
      |     ─── ●             metrics do not matter.

Source: I. Das, On characterizing the knee of the Pareto curve based on normal-boundary intersection, Structural
Optimization 18 (1999), 107-115.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

LEAST_GAIN: Final = 0.05
"""Minimum distance of a knee from the chord, as a share of the length of the front along each axis."""


def find_knee(costs: Sequence[tuple[float, float]]) -> int | None:
    """Return the place of the knee of a front among its costs; None if no place is better than the chord.

    `costs` are pairs of positive numbers of which less is better, from one end of the front to the other.
    """
    if len(costs) < 3 or min(map(min, costs)) <= 0.0:
        return None
    (left, top), (right, bottom) = ((math.log(x), math.log(y)) for x, y in (costs[0], costs[-1]))
    if left == right or top == bottom:
        return None
    gains = [(top - math.log(y)) / (top - bottom) - (math.log(x) - left) / (right - left) for x, y in costs]
    best = max(range(len(gains)), key=gains.__getitem__)
    return best if gains[best] >= LEAST_GAIN else None
