"""The factor of a constant at which a function of it changes its sign."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

MOST_FACTOR: Final = 100.0
"""Either way: what a constant would have to be wrong by more than that is not looked for."""

TOLERANCE: Final = 1e-6
"""Of a factor where a sign changes, relative."""

MOST_STEPS: Final = 100

_ENDS: Final = (
    MOST_FACTOR, 50.0, 30.0, 20.0, 15.0, 10.0, 7.0, 5.0, 4.0, 3.0, 2.5, 2.0, 1.5, 1.2, 1.1, 1.05, 1.02, 1.01,
)  # fmt: skip
"""Factors that are tried, the largest first, where a constant cannot be wrong by all that is looked for."""


def solve(function: Callable[[float], float | None]) -> tuple[float, float] | None:
    """Return the factor nearest to 1 on either side, of two, where a function of it changes its sign.

    (just before, at or just beyond); None where it does not between 1/100 and 100, as far as it is defined. What
    changes its sign twice between 1 and the last factor that it is defined at is not found. Source: regula falsi, the
    Illinois rule, on logarithms, with a bisection where that is slow.
    """
    at_one = function(1.0)
    if not at_one:
        return None
    sides = [_solve_side(function, at_one, sign) for sign in (1.0, -1.0)]
    return min((one for one in sides if one is not None), key=lambda one: abs(math.log(one[1])), default=None)


def _solve_side(function: Callable[[float], float | None], at_one: float, sign: float) -> tuple[float, float] | None:
    for end in _ENDS:
        at_end = function(end**sign)
        if at_end is not None:
            break
    else:
        return None
    if at_end * at_one > 0.0:
        return None
    near, far = 0.0, sign * math.log(end)
    weight_near, weight_far, last = at_one, at_end, 0
    for index in range(MOST_STEPS):
        if abs(far - near) <= TOLERANCE:
            break
        middle = far - weight_far * (far - near) / (weight_far - weight_near)
        low, high = sorted((near + sign * TOLERANCE / 4.0, far - sign * TOLERANCE / 4.0))
        middle = (near + far) / 2.0 if index % 4 == 3 else min(max(middle, low), high)
        value = function(math.exp(middle))
        if value is None:
            return None
        if value * at_one > 0.0:
            near, weight_near = middle, value
            weight_far = weight_far / 2.0 if last == 1 else weight_far
            last = 1
        else:
            far, weight_far = middle, value
            weight_near = weight_near / 2.0 if last == 2 else weight_near
            last = 2
    return math.exp(near), math.exp(far)
