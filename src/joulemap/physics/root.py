"""Root search: factors of constants at which functions of the constants change sign, with all searches in parallel."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Hashable, Iterable, Sequence
from typing import Final, TypeVar

Key = TypeVar("Key", bound=Hashable)

MOST_FACTOR: Final = 100.0
"""Maximum factor searched, up or down; larger errors of a constant are not considered."""

TOLERANCE: Final = 1e-6
"""Relative tolerance of a factor at a sign change."""

MOST_STEPS: Final = 100

_ENDS: Final = (
    MOST_FACTOR, 50.0, 30.0, 20.0, 15.0, 10.0, 7.0, 5.0, 4.0, 3.0, 2.5, 2.0, 1.5, 1.2, 1.1, 1.05, 1.02, 1.01,
)  # fmt: skip
"""End factors to try, largest first, until the function is defined at one."""


def solve(
    function: Callable[[Sequence[tuple[Key, float]]], Sequence[float | None]], keys: Iterable[Key]
) -> dict[Key, tuple[float, float] | None]:
    """Return key -> factors (just before, at or just beyond) the sign change nearest to 1.

    The factors are None if there is no sign change between 1/100 and 100, as far as the function is defined. Two sign
    changes between 1 and the last defined factor are not found. `function` receives a key and factor of each active
    search, and returns their values, None if it is not defined. Source: regula falsi, the Illinois rule, on logarithms,
    with a bisection at every fourth step.
    """
    asked = list(keys)
    at_one = zip(asked, function([(key, 1.0) for key in asked]), strict=True)
    searches = [(key, _search(value, sign)) for key, value in at_one if value for sign in (1.0, -1.0)]
    waiting = {number: next(search) for number, (_, search) in enumerate(searches)}
    ends: dict[Key, dict[int, tuple[float, float]]] = {key: {} for key in asked}
    while waiting:
        values = function([(searches[number][0], factor) for number, factor in waiting.items()])
        for number, value in zip(tuple(waiting), values, strict=True):
            key, search = searches[number]
            try:
                waiting[number] = search.send(value)
            except StopIteration as done:
                del waiting[number]
                if done.value is not None:
                    ends[key][number] = done.value
    return {
        key: min((sides[number] for number in sorted(sides)), key=lambda one: abs(math.log(one[1])), default=None)
        for key, sides in ends.items()
    }


def _search(at_one: float, sign: float) -> Generator[float, float | None, tuple[float, float] | None]:
    """Yield factors on one side of 1, receive the function's value at each, and return the pair at its sign change."""
    for end in _ENDS:
        at_end = yield end**sign
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
        value = yield math.exp(middle)
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
