"""Free parameters of a fit: positive numbers, each with a default and a spread that keeps the fit near the default.

    value = default x exp(spread x u)            u = 0 is the default; the fit minimizes the loss + u^2

The position u is in standard deviations. A number that the measurements do not affect stays at its default.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

import attrs
import numpy as np

from joulemap.physics.record.coefficient import MOST_RATIO, fitted_range
from joulemap.physics.record.hardware import Hardware
from joulemap.physics.workload import Floats
from joulemap.system.record import frozen

FARTHEST: Final = 4.0
"""Maximum distance of a fitted value from its default, in standard deviations."""

DIGITS: Final = 5
"""Significant digits of a fitted number: more than measurements support, few enough to be equal on every machine."""


@frozen(kw_only=True)
class FreeParameter:
    """Number that a calibration may fit."""

    name: str
    default: float = attrs.field(validator=attrs.validators.gt(0.0))
    spread: float = attrs.field(validator=attrs.validators.gt(0.0))
    lowest: float = 0.0
    """Lowest valid value."""
    highest: float = math.inf
    """Highest valid value."""

    @property
    def bounds(self) -> tuple[float, float]:
        """Lowest and highest position u; the range includes the default, 0."""
        low = math.log(self.lowest / self.default) / self.spread if self.lowest > 0.0 else -math.inf
        high = math.log(self.highest / self.default) / self.spread
        return min(0.0, max(-FARTHEST, low)), max(0.0, min(FARTHEST, high))

    def value(self, u: float) -> float:
        """Return the value at u standard deviations."""
        return self.default * math.exp(self.spread * u)

    def position(self, value: float) -> float:
        """Return the position u of a value, clipped to the bounds."""
        low, high = self.bounds
        return min(max(math.log(value / self.default) / self.spread, low), high)


def free_coefficients(hardware: Hardware, spreads: Mapping[str, float]) -> tuple[FreeParameter, ...]:
    """Return the coefficients of a chip that have a spread, as free parameters.

    Omits coefficients with the value 0, which cannot be scaled, and coefficients that the chip lacks.
    """
    parameters = []
    for name, spread in spreads.items():
        if name not in hardware.coefficients:
            continue
        default = hardware.coefficients[name].value
        low, high = fitted_range(name)
        if default > 0.0:
            parameters.append(
                FreeParameter(
                    name=name,
                    default=default,
                    spread=spread,
                    lowest=max(low, default / MOST_RATIO),
                    highest=min(high, default * MOST_RATIO),
                )
            )
    return tuple(parameters)


def values_at(parameters: Sequence[FreeParameter], position: Floats) -> dict[str, float]:
    """Return name -> value of each parameter at these positions."""
    return {one.name: one.value(u) for one, u in zip(parameters, position.tolist(), strict=True)}


def bounds_of(parameters: Sequence[FreeParameter]) -> tuple[Floats, Floats]:
    """Return the lowest and the highest position u of each parameter."""
    pairs = [one.bounds for one in parameters]
    return np.array([low for low, _ in pairs]), np.array([high for _, high in pairs])


def rounded(value: float, digits: int = DIGITS) -> float:
    """Round a number to this many significant digits."""
    return float(f"{value:.{digits}g}")
