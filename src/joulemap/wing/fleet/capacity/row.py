"""Row of a fleet: devices of one hardware under a demand, their monthly cost, and their headroom to the targets."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final, cast

import attrs

from joulemap.answer.computed import told
from joulemap.domain.hardware_ref import HardwareRef
from joulemap.domain.use import add_up
from joulemap.present.cell import show, show_quantity, show_share
from joulemap.system.record import frozen
from joulemap.wing.fleet.demand import MOST_CARRIED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from joulemap.wing.fleet.demand import Demand, Level, Objective
    from joulemap.wing.fleet.row import Station

OK: Final = "ok"
OVER: Final = "over a limit"
LATE: Final = "late"

LOADS: Final = (0.1, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5)
"""Multiples of the highest rate at which the queue of a fleet is evaluated."""

HOURS: Final = 8760.0
"""Hours per year, for a fleet that is always present."""

MONTHS: Final = 12.0
"""Months per year."""

OBJECTIVES: Final[Mapping[Objective, tuple[str, str]]] = {
    "cost": ("cost_per_month", "USD"),
    "energy": ("kwh_per_month", "kWh"),
    "carbon": ("gco2_per_month", "g"),
}
"""Objective -> the column to minimize, and its unit."""

NEARLY: Final = 0.98
"""Share of the highest rate tried, above which a fleet's capacity is reported as a lower bound."""

NEAR: Final = 1.2
"""Maximum ratio to the best number of devices at which another is named: predictions hardly distinguish the two."""

HALF_MORE: Final = 1.5
"""Multiple of the highest rate at which the first broken limit is reported."""


WATCHED: Final = 3
"""Number of best fleets, on different hardware, whose queues and levels are reported."""


@frozen(kw_only=True)
class FleetRow:
    """Devices of one hardware that serve the demand, or why they do not; figures are of the whole fleet."""

    label: str = told("hardware with xN where N devices are one server, and the precision")
    hardware: str = told("catalogue id, with @MODE where the power mode is not the default")
    precision: str = told("of activations; bf16/int4 where weights of products are stored at another")
    runtime: str = told("how each device runs the models")
    status: str = told("ok, over a limit, or late: no number of devices meets the latency target")
    device_count: int | None = told("devices at the highest rate")
    device_low_count: int | None = told("below it one time in ten, as predictions may be off")
    device_high_count: int | None = told("above it one time in ten")
    server_device_count: int = told("devices that work together as one server")
    expert_device_count: int = told("devices of a server that whole experts are divided among; 1 where none are")
    batch: int | None = told("most requests of a batch; of a language model in work at once on a server, in the mean")
    batch_mean: float | None = told("requests of a batch at the highest rate")
    wait_s: float | None = told("longest that the first of a batch waits for others while a device is free", "s")
    p50_latency_s: float | None = told("median latency from arrival to answer, of the slowest model", "s")
    p99_latency_s: float | None = told(
        "p99 latency from arrival to answer, of the model that is nearest to its target", "s"
    )
    first_token_p99_s: float | None = told("p99 time to first token of a language model", "s")
    between_p99_s: float | None = told("p99 over requests of the mean time between tokens of a language model", "s")
    promise_fraction: float | None = told("p99 over its target, of the target that is nearest")
    server_rate_per_s: float | None = told("requests that one server alone carries within the targets", "1/s")
    carried_ratio: float | None = told("times the highest rate that this fleet carries within the targets")
    utilization_fraction: float | None = told(
        "highest rate over the rate that this fleet carries; an upper bound where carried_ratio is the most tried, 16"
    )
    fails_first: str = told("first limit to break as load grows to 1.5x: latency or power; empty where none does")
    busy_fraction: float | None = told("share of the devices' time with a batch running, at the highest rate")
    busy_mean_fraction: float | None = told("share of the powered devices' time with a batch running, over all rates")
    power_w: float | None = told("of all devices at the highest rate", "W")
    host_power_w: float | None = told("of the hosts that they sit in, at the highest rate; 0 where power_w has it", "W")
    mean_power_w: float | None = told("of all devices over all rates", "W")
    idle_power_w: float | None = told("of all devices with nothing to do", "W")
    energy_per_request_j: float | None = told("of devices, their idling included", "J")
    kwh_per_month: float | None = told("with what data centres add", "kWh")
    gco2_per_month: float | None = told("CO2 of that", "g")
    owned_device_count: int = told("devices that are owned: they cost their electricity alone")
    rented_per_month: float | None = told("devices that are not owned, rented; electricity of those that are", "USD")
    bought_per_month: float | None = told(
        "devices that are not owned over their lifetime, hosts and electricity", "USD"
    )
    rented_device_per_month: float | None = told("one device, rented all the time", "USD")
    bought_device_per_month: float | None = told("one device that is bought, with its host, over its lifetime", "USD")
    way: str = told(
        "what cost_per_month pays: rented or bought, for devices that are not owned, or owned, where all are; empty "
        "without a price"
    )
    cost_per_month: float | None = told("in that way", "USD")
    rented_told: str = told("rent of one device, who asks it, and when; empty without one that is compared")
    bought_told: str = told("purchase price of one device, who asks it, and when; empty likewise")
    unlike_told: str = told("price that is not compared, as it is of another kind of seller; empty elsewhere")
    time_half_width: float | None = told("of the 80 % interval of the logarithm of the time of a batch or token")
    energy_half_width: float | None = told("of the 80 % interval of the logarithm of its energy")
    rented_half_width: float = told("of the 80 % interval of the logarithm of the rent")
    bought_half_width: float = told("of the 80 % interval of the logarithm of what is bought and its electricity")
    is_available: bool = told("it can be bought or rented, at a price that is no guess")
    reason: str = told("why it is not ok; empty otherwise")
    run_id: int = told("a run of it: at the largest batch, or a step of a language model")

    @property
    def chip(self) -> str:
        """Hardware without its power mode."""
        return HardwareRef.read(self.hardware).label

    @property
    def price_told(self) -> str:
        """Price that cost_per_month is based on, with its seller and date; empty for owned devices and without a
        price.
        """
        return {"rented": self.rented_told, "bought": self.bought_told}.get(self.way, "")

    @property
    def total_power_w(self) -> float | None:
        """Watts of devices and hosts at the highest rate, which a power limit applies to."""
        return None if self.power_w is None else self.power_w + (self.host_power_w or 0.0)

    def find_doubt(self, objective: Objective) -> float:
        """Return the half-width of the 80 % interval of the logarithm of an objective's value."""
        if objective != "cost":
            return self.energy_half_width or 0.0
        price = self.rented_half_width if self.way == "rented" else self.bought_half_width
        return math.hypot(self.time_half_width or 0.0, price)


@frozen(kw_only=True)
class FleetWinner:
    """Best fleet by one objective."""

    objective: str = told("cost, energy or carbon: least USD, kWh or grams of CO2 a month")
    label: str = told("the best of one kind")
    value: float = told("in unit")
    unit: str = told("USD, kWh or g")
    runner_up: str = told("the next hardware; empty without one")
    regret_ratio: float | None = told("what it takes more: times the best")
    probability_best: float | None = told("that it takes less than the next")


@frozen(kw_only=True)
class LevelRow:
    """Fleet at one of the demand's rates."""

    label: str = told("the fleet")
    rate_per_s: float = told("requests that come", "1/s")
    share_fraction: float = told("of the time")
    device_count: int = told("that are powered")
    busy_fraction: float = told("share of their time with a batch running")
    power_w: float = told("of all of them", "W")
    rented_usd_per_hour: float | None = told("of those that are not owned", "USD/h")


@frozen(kw_only=True)
class QueueRow:
    """Queue of a fleet at one rate, with the devices that serve the highest rate."""

    label: str = told("the fleet")
    quantity: str = told("latency, first token or between tokens: what is promised")
    rate_per_s: float = told("requests that come", "1/s")
    load_ratio: float = told("times the highest rate that is asked for")
    p50_s: float | None = told("median; null where the queue grows without end", "s")
    p99_s: float | None = told("p99; null where the queue grows without end", "s")
    promise_s: float = told("target p99", "s")
    power_w: float | None = told("of all devices; null where the queue grows without end", "W")


@frozen(kw_only=True)
class Load:
    """Work of a fleet's devices at one rate."""

    level: Level
    devices: int
    """Number of powered devices."""
    busy_devices: float
    batch_w: float
    """Watts of the devices' work, excluding idle power."""

    def draw(self, idle_w: float) -> float:
        """Return the watts of all devices, each at `idle_w` while it is idle."""
        return self.batch_w + idle_w * max(self.devices - self.busy_devices, 0.0)


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
    found: dict[str, FleetRow] = {}
    for row in rows:
        found.setdefault(row.hardware, row)
    return list(found.values())


def cost_fleet(
    station: Station, loads: Sequence[Load], devices: int, owned: int, idle_w: float | None
) -> dict[str, Any]:
    """Return the monthly energy, carbon and cost of a fleet, as columns of its row.

    `domain/use.py` says how a request's share adds up. Owned devices cost their electricity and their hosts' share of
    it. They are powered before others, which are rented or bought.
    """
    powered = sum(one.level.share * one.devices for one in loads)
    busy = sum(one.level.share * one.busy_devices for one in loads)
    rate = sum(one.level.share * one.level.rate_per_s for one in loads)
    watts = sum(one.level.share * one.batch_w for one in loads)
    purchase = 0.0 if owned >= devices else station.price_purchase_usd
    found = add_up(
        {
            "throughput_per_s": rate / busy,
            "utilization": busy / powered,
            "energy_per_inference_j": watts / rate,
            "idle_w": idle_w,
            "hours_per_year": HOURS,
            "lifetime_years": station.lifetime_years,
            "pue": station.pue_ratio,
            "gco2_per_kwh": station.gco2_per_kwh,
            "usd_per_kwh": station.usd_per_kwh,
            "usd_per_hour": station.price_cloud_usd_per_hour,
            "purchase_usd": None if purchase is None else purchase * max(devices - owned, 0) / powered,
            "host_share": station.host_share_ratio,
            "host_energy_share": station.host_energy_share_ratio,
        }
    )
    millions = rate * HOURS * 3600.0 / MONTHS / 1e6

    def month(name: str) -> float | None:
        return None if found[name] is None else cast("float", found[name]) * millions

    rent = station.price_cloud_usd_per_hour
    months = MONTHS * station.lifetime_years
    hired = sum(one.level.share * max(one.devices - owned, 0) for one in loads)
    own_w = sum(
        one.level.share * one.draw(idle_w or 0.0) * min(owned / one.devices, 1.0) for one in loads if one.devices
    )
    own_kwh = own_w * HOURS / MONTHS / 1e3 * station.pue_ratio * (1.0 + station.host_energy_share_ratio)
    return {
        "owned_device_count": min(owned, devices),
        "busy_mean_fraction": busy / powered,
        "rented_device_per_month": None if rent is None else rent * HOURS / MONTHS,
        "bought_device_per_month": None if purchase is None else purchase * (1.0 + station.host_share_ratio) / months,
        "energy_per_request_j": found["powered_j"],
        "mean_power_w": None if found["powered_j"] is None else found["powered_j"] * rate,
        "kwh_per_month": month("kwh_per_million"),
        "gco2_per_month": month("gco2_per_million"),
        "rented_per_month": _add_rent(rent, hired, own_kwh * station.usd_per_kwh),
        "bought_per_month": month("bought_usd_per_million"),
    }


def _add_rent(usd_per_hour: float | None, devices: float, owned_usd: float) -> float | None:
    """Return the monthly cost of rented and owned devices; None if a rent is needed but unknown."""
    if not devices:
        return owned_usd
    return None if usd_per_hour is None else usd_per_hour * HOURS / MONTHS * devices + owned_usd


def list_levels(label: str, station: Station, loads: Sequence[Load], idle_w: float, owned: int) -> tuple[LevelRow, ...]:
    """Return the level row of a fleet at each rate."""
    rent = station.price_cloud_usd_per_hour
    return tuple(
        LevelRow(
            label=label,
            rate_per_s=one.level.rate_per_s,
            share_fraction=one.level.share,
            device_count=one.devices,
            busy_fraction=one.busy_devices / one.devices if one.devices else 0.0,
            power_w=one.draw(idle_w),
            rented_usd_per_hour=None if rent is None else rent * max(one.devices - owned, 0),
        )
        for one in loads
    )


def show_carried(ratio: float | None) -> str:
    """Return the capacity as a multiple of the highest rate, or as a lower bound; empty for None."""
    return "" if ratio is None else f"over {MOST_CARRIED:g}x" if ratio > NEARLY * MOST_CARRIED else f"{ratio:.3g}x"


def find_utilization(carried_ratio: float | None) -> float | None:
    """Return the highest rate as a fraction of the fleet's capacity; None if that is not known."""
    return 1.0 / carried_ratio if carried_ratio else None


def show_utilization(row: FleetRow) -> str:
    """Return the utilization of a fleet's capacity at the highest rate; a bound if the capacity exceeds all rates
    tried.
    """
    if row.carried_ratio is not None and row.carried_ratio > NEARLY * MOST_CARRIED:
        return f"under {show_share(1.0 / (NEARLY * MOST_CARRIED))}"
    return show_share(row.utilization_fraction)


def tell_failure(carried: float, limit_w: float | None, power_w: float, grown_w: float) -> str:
    """Return the limits that break at 1.5x the demand, in the order of the rates; power grows linearly."""
    fails = [(carried, "latency")] if carried < HALF_MORE else []
    if limit_w is not None and grown_w > limit_w:
        part = (limit_w - power_w) / (grown_w - power_w) if grown_w > power_w else 0.0
        fails.append((1.0 + max(part, 0.0) * (HALF_MORE - 1.0), "power"))
    return ", then ".join(what for _, what in sorted(fails))


def find_excess(row: FleetRow, demand: Demand) -> float:
    """Return the highest ratio to a limit of the whole fleet; infinite if a price is not known."""
    limits = ((demand.max_power_w, row.total_power_w), (demand.max_cost_per_month, row.cost_per_month))
    return max((math.inf if value is None else value / bound for bound, value in limits if bound), default=0.0)


def choose_way(row: FleetRow, pay: str, demand: Demand) -> FleetRow:
    """Return the row with its way of paying, and with its status under the limits of the whole fleet."""
    ways = {"rented": row.rented_per_month, "bought": row.bought_per_month}
    is_there = row.chip in demand.owned and (row.device_count or 0) <= demand.owned[row.chip]
    known = {way: cost for way, cost in ways.items() if cost is not None and (is_there or pay in (way, "both"))}
    way = min(known, key=lambda one: known[one], default="")
    row = attrs.evolve(row, way="owned" if way and is_there else way, cost_per_month=known.get(way))
    over = []
    hosts = f", {show_quantity(row.host_power_w, 'W')} of it for hosts" if row.host_power_w else ""
    for bound, value, noun, unit in (
        (demand.max_power_w, row.total_power_w, "power", "W"),
        (demand.max_cost_per_month, row.cost_per_month, "cost", "USD"),
    ):
        if bound is not None and value is not None and value > bound:
            told = f"{show_share(value / bound - 1.0)} over" if value < 2.0 * bound else f"{value / bound:,.3g}x"
            more, per = (hosts, "") if noun == "power" else ("", " a month")
            over.append(f"{noun} is {show(value, '', unit)}{per}{more}: {told} the limit of {show(bound, '', unit)}")
    if demand.max_cost_per_month is not None and row.cost_per_month is None:
        over.append("its price is not known")
    return attrs.evolve(row, status=OVER, reason="; ".join(over)) if over and row.status == OK else row


def look_at_queues(ordered: Sequence[Sizing]) -> list[QueueRow]:
    """Return the queues of the best fleets at several rates."""
    watched = {one.row.label: one.watch for one in ordered}
    shown = first_of_each(one.row for one in ordered if one.row.status == OK)[:WATCHED]
    return [one for row in shown for one in watched[row.label]()]
