"""Rows of fleets: devices of one hardware under a demand, their monthly cost, and their headroom to the targets."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from joulemap.domain import HardwareRef, described
from joulemap.system import frozen
from joulemap.wing.fleet.generated.row import LevelRow, QueueRow

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
class FleetRow:
    """Devices of one hardware that serve the demand, or the reason why they cannot; figures refer to the whole
    fleet.
    """

    label: str = described("hardware, with xN for N devices of one server, and the precision")
    hardware: str = described("catalogue id, with @MODE unless the power mode is the default")
    precision: str = described("precision of activations; bf16/int4 if weights are stored at another")
    runtime: str = described("runtime of each device")
    status: str = described("ok, over a limit, or late: no number of devices meets the latency target")
    device_count: int | None = described("devices at the highest rate")
    device_low_count: int | None = described(
        "lower end of the 80 % interval of the devices, from the interval of the predicted times"
    )
    device_high_count: int | None = described("upper end of the 80 % interval of the devices")
    likely_device_count: int | None = described("devices that suffice with a probability of 80 %; null if unknown")
    enough_fraction: float | None = described("probability that device_count suffices; null if unknown")
    server_device_count: int = described("devices of one server")
    expert_device_count: int = described("devices of a server that share whole experts; 1 for none")
    batch: int | None = described(
        "maximum requests per batch; for a language model, maximum concurrent requests of a server, by its memory and "
        "its engine"
    )
    batch_mean: float | None = described("mean requests per batch at the highest rate")
    wait_s: float | None = described("maximum wait of a batch's first request for others while a device is free", "s")
    p50_latency_s: float | None = described("median latency from arrival to answer, of the slowest model", "s")
    p99_latency_s: float | None = described(
        "p99 latency from arrival to answer, of the model that is nearest to its target", "s"
    )
    first_token_p99_s: float | None = described("p99 time to first token of a language model", "s")
    between_p99_s: float | None = described("p99 over requests of the time per output token of a language model", "s")
    promise_fraction: float | None = described("p99 over its target, for the target that is nearest")
    server_rate_per_s: float | None = described("maximum rate of one server within the targets", "1/s")
    carried_ratio: float | None = described(
        "maximum rate of this fleet within the targets, relative to the highest demanded rate"
    )
    utilization_fraction: float | None = described(
        "highest demanded rate over the maximum rate; an upper bound if carried_ratio is 16, the most tried"
    )
    fails_first: str = described("first limit to break as load grows to 1.5x: latency or power; empty where none does")
    busy_fraction: float | None = described("share of the devices' time with a batch running, at the highest rate")
    busy_mean_fraction: float | None = described(
        "share of the powered devices' time with a batch running, over all rates"
    )
    power_w: float | None = described("power of all devices at the highest rate, with the rest of their modules", "W")
    host_power_w: float | None = described("power of their hosts at the highest rate; 0 if power_w includes it", "W")
    mean_power_w: float | None = described("mean power of all devices over all rates", "W")
    idle_power_w: float | None = described("power of all devices when idle", "W")
    energy_per_request_j: float | None = described("device energy per request, including idle time", "J")
    kwh_per_month: float | None = described("energy per month, including the data centre's overhead", "kWh")
    gco2_per_month: float | None = described("CO2 of that energy", "g")
    owned_device_count: int = described("owned devices, which cost only their electricity")
    rented_per_month: float | None = described(
        "cost if devices that are not owned are rented, plus electricity of owned ones", "USD"
    )
    bought_per_month: float | None = described(
        "cost if devices that are not owned are bought: share of the lifetime, hosts and electricity", "USD"
    )
    rented_device_per_month: float | None = described("rent of one device for a month", "USD")
    bought_device_per_month: float | None = described(
        "purchase price of one device and its host per month of the lifetime", "USD"
    )
    way: str = described(
        "payment in cost_per_month: rented, bought, or owned if all devices are; empty without a price"
    )
    cost_per_month: float | None = described("cost by that payment", "USD")
    rent_text: str = described("rent of one device, its seller and date; empty without a compared one")
    purchase_text: str = described("purchase price of one device, its seller and date; empty without a compared one")
    unlike_price_text: str = described(
        "price that is not compared, because another kind of seller asks it; empty otherwise"
    )
    time_half_width: float | None = described(
        "half-width of the 80 % interval of the logarithm of the time of a batch or token"
    )
    energy_half_width: float | None = described("half-width of the 80 % interval of the logarithm of its energy")
    rented_half_width: float = described("half-width of the 80 % interval of the logarithm of the rent")
    bought_half_width: float = described("half-width of the 80 % interval of the logarithm of purchase and electricity")
    is_available: bool = described("true if it can be bought or rented at a known price")
    reason: str = described("reason for another status than ok; empty otherwise")
    quality: str | None = described(
        "published loss of quality of the precision; null if the checkpoint is published so"
    )
    run_id: int = described("run at the largest batch, or of a decode step of a language model")

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
