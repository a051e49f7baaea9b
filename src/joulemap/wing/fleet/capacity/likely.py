"""Number of devices of a fleet that is likely enough, if its times differ from the predicted ones.

    devices = devices now / capacity x times ^ p,   p = 1, or what the devices at the upper end of the interval take

`times` is the ratio of actual to predicted times, whose logarithm has a logistic distribution. A latency that is near
its target takes more devices than in proportion to the times, which p follows.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from joulemap.physics import LOGISTIC

if TYPE_CHECKING:
    from joulemap.wing.fleet.capacity.row import FleetRow

LIKELY: Final = 0.8
"""Probability from which a number of devices is called enough."""

END: Final = 0.9
"""Probability that times are below the upper end of their 80 % interval."""


def find_enough(row: FleetRow) -> float | None:
    """Return the probability that the devices of a fleet suffice; None if the interval of its times is unknown."""
    if not row.time_half_width or not row.carried_ratio:
        return None
    slower = math.log(row.carried_ratio) / _find_power(row)
    enough = 1.0 / (1.0 + math.exp(-LOGISTIC * slower / row.time_half_width))
    return enough if row.device_high_count is not None else min(enough, END)


def count_likely(row: FleetRow) -> int | None:
    """Return the devices that suffice with a probability of `LIKELY`; None if that is unknown, or if none may do."""
    enough = find_enough(row)
    if enough is None or enough >= LIKELY:
        return None if enough is None else row.device_count
    if row.device_high_count is None or row.device_count is None:
        return None
    scale = math.exp((row.time_half_width or 0.0) * math.log(LIKELY / (1.0 - LIKELY)) / LOGISTIC)
    return min(round(row.device_count * grow_devices(row, scale)), row.device_high_count)


def grow_devices(row: FleetRow, scale: float) -> float:
    """Return the number of devices that a fleet needs if times are `scale` times longer, relative to its number now."""
    assert row.device_count is not None
    assert row.carried_ratio is not None
    unit = _find_unit(row)
    needed = row.device_count * math.pow(scale, _find_power(row) if scale > 1.0 else 1.0) / row.carried_ratio
    return max(unit * math.ceil(needed / unit - 1e-9), unit) / row.device_count


def _find_unit(row: FleetRow) -> int:
    """Return the devices by which a fleet grows: those of a server or a node."""
    return math.gcd(row.device_count or 0, row.device_low_count or 0, row.device_high_count or 0) or 1


def _find_power(row: FleetRow) -> float:
    """Return the power of the times with which the number of devices grows.

    It is 1 if that explains the upper end of the devices, else what leads to half a step below this end.
    """
    high, width = row.device_high_count, row.time_half_width
    if not high or not width or not row.device_count or not row.carried_ratio:
        return 1.0
    needed, step = row.device_count / row.carried_ratio, _find_unit(row)
    if step * math.ceil(needed * math.exp(width) / step - 1e-9) >= high:
        return 1.0
    return max(1.0, math.log((high - step / 2.0) / needed) / width)
