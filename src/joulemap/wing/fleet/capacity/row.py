"""Rows of fleets: devices of one hardware under a demand, their monthly cost, and their headroom to the targets."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from joulemap.domain import HardwareRef
from joulemap.system import frozen
from joulemap.wing.fleet.generated.row import FleetColumns, LevelRow, QueueRow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from joulemap.wing.fleet.demand import Level, Objective
    from joulemap.wing.fleet.generated.row import Station

OK: Final = "ok"
OVER: Final = "over a limit"
LATE: Final = "late"
DELAYED: Final = ", delayed batching"
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


@frozen(kw_only=True)
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
    def total_power_w(self) -> float | None:
        """Watts of devices and hosts at the highest rate, which a power limit applies to."""
        return None if self.power_w is None else self.power_w + (self.host_power_w or 0.0)

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
    def idle_w(self) -> float:
        """Idle watts of one device; 0 if unknown."""
        return self.station.idle_power_w or 0.0


def first_of_each(rows: Iterable[FleetRow]) -> list[FleetRow]:
    """Return the first row of each hardware at its power mode."""
    first: dict[str, FleetRow] = {}
    for row in rows:
        first.setdefault(row.hardware, row)
    return list(first.values())
