"""Uncertainty of a constant: from its plausible range, from a fit of its class, or from its basis."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.physics.record.constant import Constant

BASIS_SPREAD: Final[Mapping[str, float]] = {
    "measured": 1.1,
    "published": 1.2,
    "derived": 1.3,
    "scaled": 1.5,
    "split": 1.5,
    "recalled": 1.3,
    "assumed": 2.0,
}
"""Basis -> factor of the spread, up or down, for a constant without a plausible range.

measured: repeats and instruments of one board. published: datasheet figures hold within a fifth (clocks under load,
copies versus rated bandwidth). derived: arithmetic over a published number with one estimate. recalled: public, source
not at hand. scaled: taken from another node, board or class. split: part of a measured sum. assumed: no source; twice
or half is likely.
"""

EXACT: Final = ("unit_count", "memory_capacity")
"""Quantities that a datasheet states exactly, in addition to geometry and capacities. They count as exact only if
measured or published.
"""

LEAST_SPREAD: Final = 1.02
"""Smallest factor on either side of a plausible range, for values close to an end of the range."""


@frozen
class Spread:
    """Factors by which a constant may be too high (`down`) or too low (`up`); both are 1 if the constant is exact."""

    down: float
    """Factor of at least 1. The low end of the spread is the value divided by it."""
    up: float
    origin: str
    """Origin of the spread: `range` (plausible range), `class` (fit of the class), `exact`, or the basis of the
    constant.
    """

    @property
    def log(self) -> float:
        """Mean of the natural logarithms of both factors."""
        return (math.log(self.down) + math.log(self.up)) / 2.0

    def count(self, factor: float) -> float:
        """Return how many spreads a change of the constant by this factor amounts to; infinite for an exact
        constant.
        """
        one = math.log(self.up if factor >= 1.0 else self.down)
        return abs(math.log(factor)) / one if one else math.inf


def find_spread(constant: Constant, fitted: Mapping[str, float]) -> Spread:
    """Return the uncertainty of a constant. `fitted` maps each coefficient to the logarithm of its spread in the fit of
    its class.

    A plausible range applies if both ends are known; the spread of the basis replaces an end of 0. A fitted spread
    applies unless the coefficient was measured. In a box, keys of `fitted` begin with the device's name.
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
