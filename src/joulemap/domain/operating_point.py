"""A locked clock or a power cap, which a hardware can be set to beside its named power modes: `900MHz`, `300W`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

import attrs

from joulemap.errors import UnknownNameError

LOWEST_CLOCK: Final = 0.1
"""Share of the full clock that is the lowest to lock: boards offer 0.15 (A100: 210 of 1410 MHz) and more."""

HZ_PER_MHZ: Final = 1e6

_POINT: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(ghz|mhz|w)", re.IGNORECASE)

_SCALE: Final = {"ghz": 1e3 * HZ_PER_MHZ, "mhz": HZ_PER_MHZ, "w": 1.0}
"""Unit as it is written -> SI."""

_ROUNDING: Final = 1.0 + 1e-9


@attrs.frozen
class OperatingPoint:
    """A clock that is locked, or a power cap that is set."""

    value: float
    """In its unit."""
    unit: str = attrs.field(validator=attrs.validators.in_(("Hz", "W")))

    @property
    def name(self) -> str:
        """The one way to write it: `900MHz`, `1246.5MHz`, `300W`."""
        return f"{self.value / HZ_PER_MHZ:.9g}MHz" if self.unit == "Hz" else f"{self.value:.9g}W"

    def check(
        self, hardware: str, *, full_clock_hz: float, static_w: float, caps_w: Iterable[float], modes: Iterable[str]
    ) -> None:
        """Raise UnknownNameError, with the range and the named modes, where a hardware of these cannot be set to it."""
        lowest_hz, tdp_w, named = LOWEST_CLOCK * full_clock_hz, max(caps_w), ", ".join(modes)
        more = f"; its power modes are {named}" if named else ""
        if self.unit == "Hz" and not lowest_hz <= self.value <= full_clock_hz * _ROUNDING:
            low, high = lowest_hz / HZ_PER_MHZ, full_clock_hz / HZ_PER_MHZ
            hint = f"the clock of {hardware} is locked at {low:g} to {high:g} MHz{more}"
            raise UnknownNameError("power mode", self.name, (), hint)
        if self.unit == "W" and not static_w < self.value <= tdp_w:
            hint = f"{hardware} takes a cap above its {static_w:g} W of static power, up to {tdp_w:g} W{more}"
            raise UnknownNameError("power mode", self.name, (), hint)


def read_point(name: str) -> OperatingPoint | None:
    """Return the clock or cap that the name of a mode is, as in `900MHz`, `1.2GHz` or `300W`; None for any other."""
    match = _POINT.fullmatch(name.strip())
    if match is None:
        return None
    unit = match[2].lower()
    return OperatingPoint(float(match[1]) * _SCALE[unit], "W" if unit == "w" else "Hz")
