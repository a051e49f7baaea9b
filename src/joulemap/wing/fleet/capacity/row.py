"""Rows of fleets: devices of one hardware under a demand, their monthly cost, and their headroom to the targets.

Number of devices of a fleet that is likely enough, if its times differ from the predicted ones.

    devices = devices now / capacity x times ^ p,   p = 1, or what the devices at the upper end of the interval take

`times` is the ratio of actual to predicted times, whose logarithm has a logistic distribution. A latency that is near
its target takes more devices than in proportion to the times, which p follows.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, TypeVar

from joulemap.domain import HardwareRef, first_of_each as find_firsts
from joulemap.physics import LOGISTIC
from joulemap.system import frozen
from joulemap.wing.fleet.generated.row import FleetColumns, LevelRow, QueueRow, Station

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from joulemap.wing.fleet.demand import Level, Objective


OK: Final = "ok"
OVER: Final = "over a limit"
LATE: Final = "late"
DELAYED: Final = " (delayed)"
"""End of the label of a fleet whose batches wait for more requests."""

LOADS: Final = (0.1, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5)
"""Multiples of the highest rate at which the queue of a fleet is evaluated."""

NEAR: Final = 1.2
"""Maximum ratio to the best number of devices at which another is named: predictions hardly distinguish the two."""

MONTH_S: Final = 730.0 * 3600.0
"""Seconds of a month."""

KWH_J: Final = 3.6e6
"""Joules of a kilowatt-hour."""

ANY_OVERHEAD: Final = 1.001
"""Ratio above which energy has an overhead rather than a rounding error."""

WATCHED: Final = 3
"""Number of best fleets, on different hardware, whose queues and levels are reported."""


class FleetRow(FleetColumns):
    """Devices of one hardware that serve the demand, or the reason why they cannot; figures refer to the whole
    fleet.
    """

    @property
    def chip(self) -> str:
        """Hardware without its power mode."""
        return HardwareRef.read(self.hardware).label

    @property
    def price_text(self) -> str:
        """Price that cost_per_month is based on, with its seller and date; empty for owned devices and without a
        price.
        """
        return {"rented": self.rent_text, "bought": self.purchase_text}.get(self.way, "")

    @property
    def pue_ratio(self) -> float | None:
        """Energy with the data centre's overhead over that of the devices; None where there is no overhead."""
        if self.kwh_per_month is None or not self.mean_power_w:
            return None
        ratio = self.kwh_per_month * KWH_J / (self.mean_power_w * MONTH_S)
        return round(ratio, 3) if ratio > ANY_OVERHEAD else None

    def find_doubt(self, objective: Objective) -> float:
        """Return the half-width of the 80 % interval of the logarithm of an objective's value."""
        if objective != "cost":
            return self.energy_half_width or 0.0
        return math.hypot(self.time_half_width or 0.0, self.price_half_width)

    @property
    def price_half_width(self) -> float:
        """Half-width of the 80 % interval of the logarithm of the price."""
        return self.rented_half_width if self.way == "rented" else self.bought_half_width


@frozen(kw_only=True)
class DeviceLoad:
    """Work of a fleet's devices at one rate."""

    level: Level
    devices: int
    """Number of powered devices."""
    busy_devices: float
    batch_w: float
    """Watts of the devices' work, excluding idle power."""

    def draw(self, idle_w: float, module_w: float = 0.0) -> float:
        """Return the watts of all devices: `idle_w` of each while it is idle, `module_w` for the rest of its module."""
        return self.batch_w + idle_w * max(self.devices - self.busy_devices, 0.0) + module_w * self.devices


@frozen(kw_only=True, eq=False)
class Sizing:
    """Fleet with its work at each rate."""

    row: FleetRow
    station: Station
    levels: tuple[LevelRow, ...] = ()
    serve: Callable[[Sequence[float]], Sequence[tuple[float, float]]] | None = None
    """Function that returns, for one server at each rate, its busy fraction and the watts of its work. None if the
    server meets no target."""
    watch: Callable[[], Sequence[QueueRow]] = tuple
    """Function that returns the fleet's queue at each of `LOADS`; empty if the fleet cannot serve the demand."""

    @property
    def hardware(self) -> str:
        """Hardware at its power mode."""
        return self.row.hardware

    @property
    def idle_w(self) -> float:
        """Idle watts of one device; 0 if unknown."""
        return self.station.idle_power_w or 0.0


One = TypeVar("One", FleetRow, Sizing)


def first_of_each(rows: Iterable[One]) -> list[One]:
    """Return the first row of each hardware at its power mode."""
    return list(find_firsts(rows, lambda one: one.hardware).values())


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
