"""Parameters of a fit: each a positive number, moved by a factor that the class's spread keeps near 1.

    value = default x exp(spread x u)            u = 0 is the default; the fit pays u^2 for moving

So u is in standard deviations, and a number that the measurements say nothing about stays where it is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

import attrs
import numpy as np

from joulemap.domain.coefficient import MOST_RATIO, fitted_range
from joulemap.domain.hardware import Hardware
from joulemap.model.workload import Floats
from joulemap.system.record import frozen

FARTHEST: Final = 4.0
"""Standard deviations that nothing is moved beyond."""

DIGITS: Final = 5
"""Significant digits of a fitted number: more than measurements give, few enough to be the same everywhere."""


@frozen(kw_only=True)
class Parameter:
    """One number that may be fitted."""

    name: str
    default: float = attrs.field(validator=attrs.validators.gt(0.0))
    spread: float = attrs.field(validator=attrs.validators.gt(0.0))
    lowest: float = 0.0
    """The least value that it may have."""
    highest: float = math.inf
    """The largest value that it may have."""

    @property
    def bounds(self) -> tuple[float, float]:
        """The lowest and highest u, its default among them."""
        low = math.log(self.lowest / self.default) / self.spread if self.lowest > 0.0 else -math.inf
        high = math.log(self.highest / self.default) / self.spread
        return min(0.0, max(-FARTHEST, low)), max(0.0, min(FARTHEST, high))

    def value(self, u: float) -> float:
        """Return the number at u standard deviations."""
        return self.default * math.exp(self.spread * u)

    def position(self, value: float) -> float:
        """Return the u of a value, within bounds."""
        low, high = self.bounds
        return min(max(math.log(value / self.default) / self.spread, low), high)


def coefficient_parameters(hardware: Hardware, spreads: Mapping[str, float]) -> tuple[Parameter, ...]:
    """Return the coefficients of a hardware that have a spread; one of 0 cannot be scaled and is left out."""
    found = []
    for name, spread in spreads.items():
        default = hardware.coefficients[name].value
        low, high = fitted_range(name)
        if default > 0.0:
            found.append(
                Parameter(
                    name=name,
                    default=default,
                    spread=spread,
                    lowest=max(low, default / MOST_RATIO),
                    highest=min(high, default * MOST_RATIO),
                )
            )
    return tuple(found)


def values_at(parameters: Sequence[Parameter], position: Floats) -> dict[str, float]:
    """Return name -> value."""
    return {one.name: one.value(u) for one, u in zip(parameters, position.tolist(), strict=True)}


def bounds_of(parameters: Sequence[Parameter]) -> tuple[Floats, Floats]:
    """Return the lowest and the highest u of each."""
    pairs = [one.bounds for one in parameters]
    return np.array([low for low, _ in pairs]), np.array([high for _, high in pairs])


def rounded(value: float, digits: int = DIGITS) -> float:
    """Return a number at this many significant digits."""
    return float(f"{value:.{digits}g}")
