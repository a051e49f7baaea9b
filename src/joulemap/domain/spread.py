"""Uncertainty of a constant: from its own range, its class, or its basis."""

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
"""Basis -> factor, up or down, of one spread of a constant without its own range.

measured: repeats and instruments of one board. published: datasheet figures hold within a fifth (clocks under load,
copies versus rated bandwidth). derived: arithmetic over a published number with one estimate. recalled: public, source
not at hand. scaled: taken from another node, board or class. assumed: no source; twice or half is likely.
"""

EXACT: Final = ("unit_count", "memory_capacity")
"""Quantities, besides geometry and capacities, that a datasheet states exactly, unless they are assumed."""

LEAST_SPREAD: Final = 1.02
"""Smallest factor on each side of a range; it applies on a side where the value lies at or near the end of its
range."""


@frozen
class Spread:
    """Factors, down and up, of one spread of a constant; both 1 if the constant is exact."""

    down: float
    """Factor of at least 1; the low end is the value divided by it."""
    up: float
    origin: str
    """Origin of the spread: `range` of the constant, `class` for a fitted one, `exact`, or the constant's basis."""

    @property
    def log(self) -> float:
        """Natural logarithm of the factor, averaged over both sides."""
        return (math.log(self.down) + math.log(self.up)) / 2.0

    def count(self, factor: float) -> float:
        """Return the number of spreads in a factor, at least 0; infinite if the constant is exact."""
        one = math.log(self.up if factor >= 1.0 else self.down)
        return abs(math.log(factor)) / one if one else math.inf


def find_spread(constant: Constant, fitted: Mapping[str, float]) -> Spread:
    """Return the uncertainty of a constant; `fitted` maps each coefficient to its log spread in the fit of its class.

    A range applies if both ends are known; for an end of 0, the spread of the basis is used. A fitted spread applies
    unless the coefficient was measured. In a box, keys of `fitted` begin with the device's name.
    """
    usual = BASIS_SPREAD[constant.basis]
    is_exact = constant.own in EXACT or constant.kind == "geometry" or constant.address.field == "capacity"
    if is_exact and constant.basis in ("measured", "published"):
        return Spread(1.0, 1.0, "exact")
    if constant.value > 0.0 and constant.low is not None and constant.high is not None:
        down = constant.value / constant.low if constant.low > 0.0 else usual
        up = constant.high / constant.value if constant.high > 0.0 else usual
        return Spread(max(down, LEAST_SPREAD), max(up, LEAST_SPREAD), "range")
    if constant.kind == "coefficient" and constant.basis != "measured":
        own = fitted.get(".".join(filter(None, (constant.of, constant.address.name))))
        if own is not None:
            return Spread(math.exp(own), math.exp(own), "class")
    return Spread(usual, usual, constant.basis)
