"""Operating points that a user sets, besides named power modes: a locked clock, a power cap or a number of cores.

They are written `900MHz`, `300W` and `4cores`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

import attrs

from joulemap.system.errors import UnknownNameError
from joulemap.system.record import frozen

LOWEST_CLOCK: Final = 0.1
"""Lowest lockable share of the full clock; boards offer 0.15 (A100: 210 of 1410 MHz) and more."""

HZ_PER_MHZ: Final = 1e6

_POINT: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(ghz|mhz|w|cores?|threads?)", re.IGNORECASE)

_SCALE: Final = {"ghz": 1e3 * HZ_PER_MHZ, "mhz": HZ_PER_MHZ, "w": 1.0}
"""Unit as written -> factor to SI."""

_ROUNDING: Final = 1.0 + 1e-9


@frozen
class OperatingPoint:
    """A locked clock, a power cap, or a number of CPU cores with one thread each."""

    value: float
    """Value in `unit`."""
    unit: str = attrs.field(validator=attrs.validators.in_(("Hz", "W", "core")))

    @property
    def name(self) -> str:
        """Canonical spelling: `900MHz`, `1246.5MHz`, `300W`, `1core`, `4cores`."""
        if self.unit == "core":
            return f"{self.value:.9g}core{'' if self.value == 1.0 else 's'}"
        return f"{self.value / HZ_PER_MHZ:.9g}MHz" if self.unit == "Hz" else f"{self.value:.9g}W"

    def check(
        self,
        hardware: str,
        *,
        full_clock_hz: float,
        static_w: float,
        caps_w: Iterable[float],
        limits_w: tuple[float, ...],
        modes: Iterable[str],
        core_count: int,
    ) -> None:
        """Raise UnknownNameError, with the valid range and the named modes, if the hardware cannot be set to this
        point.

        `limits_w` is the range in which the board's power limit can be set; empty if no source states it. The range is
        then assumed to reach from static power to the highest cap of its modes. `core_count` is 0 for hardware that is
        not a CPU.
        """
        lowest_hz, highest_w, named = LOWEST_CLOCK * full_clock_hz, max(*limits_w, *caps_w, 0.0), ", ".join(modes)
        more = f"; its power modes are {named}" if named else ""
        if self.unit == "Hz" and not lowest_hz <= self.value <= full_clock_hz * _ROUNDING:
            low, high = lowest_hz / HZ_PER_MHZ, full_clock_hz / HZ_PER_MHZ
            hint = f"the clock of {hardware} can be set from {low:g} to {high:g} MHz{more}"
            raise UnknownNameError("power mode", self.name, (), hint)
        if self.unit == "core" and not (1 <= self.value <= core_count and self.value == int(self.value)):
            what = f"has 1 to {core_count} cores" if core_count else "is no CPU: its units are not set one by one"
            raise UnknownNameError("power mode", self.name, (), f"{hardware} {what}{more}")
        lowest_w = limits_w[0] if limits_w else 0.0
        if self.unit == "W" and not (static_w < self.value <= highest_w and self.value >= lowest_w):
            start = f"of {lowest_w:g}" if static_w < lowest_w else f"above its {static_w:g} W of static power, up"
            assumed = "" if limits_w else " (assumed: no source states its range)"
            hint = f"{hardware} takes a power limit {start} to {highest_w:g} W{assumed}{more}"
            raise UnknownNameError("power mode", self.name, (), hint)


def read_point(name: str) -> OperatingPoint | None:
    """Parse an operating point such as `900MHz`, `1.2GHz`, `300W` or `4cores`; None for any other name."""
    match = _POINT.fullmatch(name.strip())
    if match is None:
        return None
    unit = match[2].lower()
    if unit.startswith(("core", "thread")):
        return OperatingPoint(float(match[1]), "core")
    return OperatingPoint(float(match[1]) * _SCALE[unit], "W" if unit == "w" else "Hz")
