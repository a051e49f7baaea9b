"""Logarithmic axis of a picture: places of values from 0 to 1, and ticks with their texts."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

from joulemap.show import show_quantity
from joulemap.system import frozen

STEPS: Final = ((1.0,), (1.0, 3.0), (1.0, 2.0, 5.0), (1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0))
"""Ticks of a decade, fewest first."""

FEWEST: Final = 2
"""Minimum ticks of an axis, as far as the steps give them."""

MOST: Final = 4
"""Maximum ticks of an axis, so that their texts fit on a phone."""


@frozen
class Axis:
    """Logarithmic axis between two positive numbers."""

    low: float
    high: float
    unit: str

    @classmethod
    def over(cls, values: Iterable[float], unit: str) -> Axis:
        """Return the axis over values, with a margin on both sides."""
        known = [one for one in values if one > 0.0 and math.isfinite(one)]
        margin = 1.05 * (max(known) / min(known)) ** 0.02
        return cls(min(known) / margin, max(known) * margin, unit)

    def place(self, value: float) -> float:
        """Return the place of a value: 0 at the low end, 1 at the high end."""
        return round(math.log(value / self.low) / math.log(self.high / self.low), 5)

    @property
    def ticks(self) -> list[dict[str, object]]:
        """Place and text of each tick."""
        first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
        for steps in STEPS:
            values = [step * 10.0**power for power in range(first, last + 1) for step in steps]
            inside = [one for one in values if self.low <= one <= self.high]
            if len(inside) >= FEWEST:
                break
        every = max(math.ceil(len(inside) / MOST), 1)
        return [{"at": self.place(one), "text": show_quantity(one, self.unit)} for one in inside[::every]]
