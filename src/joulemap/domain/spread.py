"""How uncertain a constant is: its own range, what its class says of it, else what its basis is worth."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.domain.constant import Constant

BASIS_SPREAD: Final[Mapping[str, float]] = {
    "measured": 1.1,
    "published": 1.2,
    "derived": 1.3,
    "scaled": 1.5,
    "recalled": 1.3,
    "assumed": 2.0,
}
"""Basis -> factor, either way, of one spread of a constant without a range of its own.

measured: repeats and instruments of one board; published: a datasheet's figure is reached to a fifth (clocks under
load, copies beside the bandwidth); derived: arithmetic over a published number with one estimate in it; recalled:
public, its source not at hand; scaled: taken over from another node, board or class; assumed: nobody says, twice or
half is likely.
"""

EXACT: Final = ("unit_count", "memory_capacity")
"""What a datasheet states exactly, as it does geometry and capacities, where they are not assumed."""

LEAST_SPREAD: Final = 1.02
"""Of the side of a range that its value lies at the end of."""


@frozen
class Spread:
    """The factors that one spread of a constant is, downwards and upwards; both 1 for what is stated exactly."""

    down: float
    """From 1: the low end is the value over it."""
    up: float
    origin: str
    """`range` of the constant itself, `class` that fits it, `exact`, or its basis."""

    @property
    def log(self) -> float:
        """Natural logarithm of the factor, mean of both sides."""
        return (math.log(self.down) + math.log(self.up)) / 2.0

    def count(self, factor: float) -> float:
        """Return how many spreads a factor is, always from 0; infinite for what is stated exactly."""
        one = math.log(self.up if factor >= 1.0 else self.down)
        return abs(math.log(factor)) / one if one else math.inf


def find_spread(constant: Constant, fitted: Mapping[str, float]) -> Spread:
    """Return how uncertain a constant is; `fitted` is the spread of logarithms that its class fits coefficients with.

    A range counts for each side that it has; a fitted one where nobody measured the constant: of a device of a box its
    class's, under the device's name.
    """
    usual = BASIS_SPREAD[constant.basis]
    is_exact = constant.own in EXACT or constant.kind == "geometry" or constant.name.endswith(".capacity")
    if is_exact and constant.basis in ("measured", "published"):
        return Spread(1.0, 1.0, "exact")
    if constant.value > 0.0 and constant.low is not None and constant.high is not None:
        down = constant.value / constant.low if constant.low > 0.0 else usual
        up = constant.high / constant.value if constant.high > 0.0 else usual
        return Spread(max(down, LEAST_SPREAD), max(up, LEAST_SPREAD), "range")
    if constant.kind == "coefficient" and constant.basis != "measured":
        own = fitted.get(constant.name.replace("coefficient.", ""))
        if own is not None:
            return Spread(math.exp(own), math.exp(own), "class")
    return Spread(usual, usual, constant.basis)
