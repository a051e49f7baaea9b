"""Valid range of each coefficient of an architecture class. Formulas are meaningless outside it.

The range is declared once. It bounds every fit. It is checked when a calibration is made or read, when a hardware file
states a coefficient, and when a question sets one.
"""

from __future__ import annotations

import math
from typing import Final

DEVICE_SCALE: Final = "device_time_scale"
"""Coefficient that multiplies the compute and memory time of every kernel."""

MOST_RATIO: Final = 20.0
"""Largest factor between a fitted coefficient and its default, in either direction. It is four standard deviations of
the widest spread of any class, exp(4 x 0.7) = 16.4, rounded up.
"""

ROUNDING: Final = 1e-4
"""Relative tolerance of `MOST_RATIO` for digits that a file drops."""

SHARE: Final = (0.0, 1.0)
"""Range of a share used as a divisor: above 0 and at most 1."""

ANY: Final = (0.0, math.inf)

RANGES: Final = {
    "traffic_ratio": (1.0, math.inf),
    "peak_share.winograd": (0.0, 4.0),
    "peak_share": SHARE,
    "wide_share": SHARE,
    "again_share": SHARE,
    "attention_share": SHARE,
    "attention_exponential": SHARE,
    "experts_share": SHARE,
    "voltage_floor": SHARE,
    "voltage_knee": SHARE,
    "cap_share": SHARE,
    "busy_share": SHARE,
}
"""Prefix of a coefficient's name -> (lowest, highest) value; the first matching prefix applies.

A kernel moves at least its operands, so a traffic ratio starts at 1. Winograd's F(4 x 4, 3 x 3) needs a quarter of the
multiplications, so its share of the peak may reach 4 (Lavin and Gray, 2015).
"""


def coefficient_range(name: str) -> tuple[float, float]:
    """Return the lowest and highest value of a coefficient; a low end of 0 is excluded if the high end is finite."""
    for start, limits in RANGES.items():
        if name == start or name.startswith(f"{start}."):
            return limits
    return SHARE if "efficiency" in name else ANY


def fitted_range(name: str) -> tuple[float, float]:
    """Return the lowest and highest value that a fit may give a coefficient; a low end of 0 is always excluded.

    `DEVICE_SCALE` can only slow a chip down. A chip faster than its class gets a higher efficiency, capped by the
    roofline.
    """
    low, high = coefficient_range(name)
    return (max(low, 1.0) if name == DEVICE_SCALE else low), high


def check_coefficient(name: str, value: float) -> None:
    """Raise ValueError for a value outside the valid range of a coefficient."""
    low, high = coefficient_range(name)
    excludes_zero = low == 0.0 and not math.isinf(high)
    if not (math.isfinite(value) and low <= value <= high) or (excludes_zero and value == 0.0):
        raise ValueError(f"{value:g} is not {_describe(low, high, excludes_zero=excludes_zero)}")


def check_fitted(name: str, default: float, value: float) -> None:
    """Raise ValueError if a fitted value is outside its range, or too far from the default (`MOST_RATIO`)."""
    low, high = fitted_range(name)
    if not (math.isfinite(value) and value > 0.0 and low <= value <= high):
        raise ValueError(f"{value:g} is not {_describe(low, high, excludes_zero=low == 0.0)}")
    ratio = value / default
    if not (1.0 - ROUNDING) / MOST_RATIO <= ratio <= MOST_RATIO * (1.0 + ROUNDING):
        raise ValueError(f"{value:g} differs from its default, {default:g}, by more than a factor of {MOST_RATIO:g}")


def _describe(low: float, high: float, *, excludes_zero: bool) -> str:
    least = "above 0" if excludes_zero else f"at least {low:g}"
    return least if math.isinf(high) else f"{least} and at most {high:g}"
