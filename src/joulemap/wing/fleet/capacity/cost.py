"""Monthly cost of fleets, their limits, and their order by the objective."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

import attrs

from joulemap.domain.doubt import LOGISTIC
from joulemap.domain.use import add_up
from joulemap.present.template import Template
from joulemap.system.record import frozen
from joulemap.wing.fleet.capacity.row import (
    LATE,
    OK,
    OVER,
    WATCHED,
    FleetRow,
    FleetWinner,
    LevelRow,
    Load,
    QueueRow,
    Sizing,
    first_of_each,
)

if TYPE_CHECKING:
    from joulemap.wing.fleet.demand import Demand, Objective
    from joulemap.wing.fleet.row import Station

POWER_OVER: Final = Template(
    "power of {value:W}[ ({host_power_w:W} of it for hosts)] is {excess} the limit of {limit:W}"
)
COST_OVER: Final = Template("cost of {value:USD} per month is {excess} the limit of {limit:USD}")
NO_PRICE: Final = "price is not known"
SHARE_OVER: Final = Template("{share:%} over")
TIMES_OVER: Final = Template("{ratio:x}")

QUANTILES: Final = 40
"""Number of equally probable errors of the predicted time for which the devices of a fleet are counted."""

HOURS: Final = 8760.0
"""Hours per year, in which a fleet is always present."""

MONTHS: Final = 12.0
"""Months per year."""

OBJECTIVES: Final[Mapping[Objective, tuple[str, str]]] = {
    "cost": ("cost_per_month", "USD"),
    "energy": ("kwh_per_month", "kWh"),
    "carbon": ("gco2_per_month", "g"),
}
"""Objective -> the column to minimize, and its unit."""

HALF_MORE: Final = 1.5
"""Multiple of the highest rate up to which limits that break are reported."""

TWICE: Final = 2.0
"""Ratio of a value to its limit from which the excess is shown as a ratio, not as a percentage."""


def cost_fleet(
    station: Station, loads: Sequence[Load], devices: int, owned: int, idle_w: float | None
) -> dict[str, Any]:
    """Return the monthly energy, carbon and cost of a fleet, as fields of its row.

    Owned devices cost only electricity, including the electricity of their hosts, and are powered first. Other devices
    are rented or bought.
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
            "module_w": station.module_power_w,
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
    module_w = station.module_power_w
    own_w = sum(
        one.level.share * one.draw(idle_w or 0.0, module_w) * min(owned / one.devices, 1.0)
        for one in loads
        if one.devices
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


def complete_fleet(
    row: FleetRow,
    station: Station,
    demand: Demand,
    loads: Sequence[Load],
    *,
    devices: int,
    idle_w: float,
    power_w: float,
    grown_w: float,
    carried: float,
    **columns: Any,
) -> tuple[FleetRow, tuple[LevelRow, ...]]:
    """Return the row of a fleet that meets the targets, with its cost and its first limits, and its row at each rate.

    `idle_w` is the idle power of one device. `power_w` and `grown_w` are the power of all devices at the highest rate
    and at `HALF_MORE` times this rate. `carried` is the capacity relative to the highest rate. The power of the row
    includes the rest of each module or SoC to which a device belongs.
    """
    modules_w = station.module_power_w * devices
    power_w, grown_w = power_w + modules_w, grown_w + modules_w
    hosts, owned = 1.0 + station.host_energy_share_ratio, demand.owned.get(station.hardware_id, 0)
    found = attrs.evolve(
        row,
        **columns,
        status=OK,
        device_count=devices,
        carried_ratio=carried,
        utilization_fraction=find_utilization(carried),
        fails_first=list_failures(carried, demand.max_power_w, hosts * power_w, hosts * grown_w),
        power_w=power_w,
        host_power_w=station.host_energy_share_ratio * power_w,
        idle_power_w=idle_w * devices + modules_w,
        **cost_fleet(station, loads, devices, owned, idle_w),
    )
    return found, list_levels(found.label, station, loads, idle_w, owned)


def _add_rent(usd_per_hour: float | None, devices: float, owned_usd: float) -> float | None:
    """Return the monthly rent of `devices` plus the cost of owned devices; None if a rent is needed but unknown."""
    if not devices:
        return owned_usd
    return None if usd_per_hour is None else usd_per_hour * HOURS / MONTHS * devices + owned_usd


def list_levels(label: str, station: Station, loads: Sequence[Load], idle_w: float, owned: int) -> tuple[LevelRow, ...]:
    """Return one row per request rate: a fleet's utilization and power there."""
    rent = station.price_cloud_usd_per_hour
    return tuple(
        LevelRow(
            label=label,
            rate_per_s=one.level.rate_per_s,
            share_fraction=one.level.share,
            device_count=one.devices,
            busy_fraction=one.busy_devices / one.devices if one.devices else 0.0,
            power_w=one.draw(idle_w, station.module_power_w),
            rented_usd_per_hour=None if rent is None else rent * max(one.devices - owned, 0),
        )
        for one in loads
    )


def find_utilization(carried_ratio: float | None) -> float | None:
    """Return the highest rate as a fraction of the fleet's capacity; None if the capacity is unknown."""
    return 1.0 / carried_ratio if carried_ratio else None


def list_failures(carried: float, limit_w: float | None, power_w: float, grown_w: float) -> str:
    """Return the limits that break first as the load grows by up to half, in this order; power grows linearly."""
    fails = [(carried, "latency")] if carried < HALF_MORE else []
    if limit_w is not None and grown_w > limit_w:
        part = (limit_w - power_w) / (grown_w - power_w) if grown_w > power_w else 0.0
        fails.append((1.0 + max(part, 0.0) * (HALF_MORE - 1.0), "power"))
    return ", then ".join(what for _, what in sorted(fails))


def find_excess(row: FleetRow, demand: Demand) -> float:
    """Return the highest ratio of a fleet's power or cost to its limit; infinite if a price is unknown."""
    limits = ((demand.max_power_w, row.total_power_w), (demand.max_cost_per_month, row.cost_per_month))
    return max((math.inf if value is None else value / bound for bound, value in limits if bound), default=0.0)


def choose_payment(row: FleetRow, pay: str, demand: Demand) -> FleetRow:
    """Return the row with its cheapest way of paying that `pay` allows.

    Its status becomes refused if the fleet exceeds a limit on power or cost.
    """
    ways = {"rented": row.rented_per_month, "bought": row.bought_per_month}
    is_there = row.chip in demand.owned and (row.device_count or 0) <= demand.owned[row.chip]
    known = {way: cost for way, cost in ways.items() if cost is not None and (is_there or pay in (way, "both"))}
    way = min(known, key=lambda one: known[one], default="")
    row = attrs.evolve(row, way="owned" if way and is_there else way, cost_per_month=known.get(way))
    over = []
    for limit, value, template in (
        (demand.max_power_w, row.total_power_w, POWER_OVER),
        (demand.max_cost_per_month, row.cost_per_month, COST_OVER),
    ):
        if limit is not None and value is not None and value > limit:
            ratio = value / limit
            excess = SHARE_OVER(share=ratio - 1.0) if ratio < TWICE else TIMES_OVER(ratio=ratio)
            over.append(template(value=value, limit=limit, excess=excess, host_power_w=row.host_power_w or None))
    if demand.max_cost_per_month is not None and row.cost_per_month is None:
        over.append(NO_PRICE)
    return attrs.evolve(row, status=OVER, reason="; ".join(over)) if over and row.status == OK else row


@frozen(kw_only=True, eq=False)
class Ranking:
    """Fleets in the order of the objective; refused fleets come last."""

    rows: list[FleetRow]
    available: list[Sizing]
    """Fleets of available hardware in the same order, with their load at each rate."""


def rank_fleets(sized: Sequence[Sizing], rows: Sequence[FleetRow], demand: Demand, *, takes_all: bool) -> Ranking:
    """Return the fleets in order, the best first; `rows` are the rows of `sized` after a way of paying was chosen."""
    column, _ = OBJECTIVES[demand.objective]

    def rank(row: FleetRow) -> tuple[Any, ...]:
        value = find_excess(row, demand) if row.status == OVER else getattr(row, column)
        if row.status == LATE:
            value = row.promise_fraction or math.inf
        is_last = value is None or not (row.is_available or takes_all)
        return (row.status != OK, row.status == LATE, is_last, value or 0.0, row.quality is not None, row.label)

    ordered = sorted(rows, key=rank)
    by_row = {id(row): attrs.evolve(one, row=row) for one, row in zip(sized, rows, strict=True)}
    return Ranking(rows=ordered, available=[by_row[id(row)] for row in ordered if row.is_available or takes_all])


def find_least(rows: Sequence[FleetRow], demand: Demand, *, takes_all: bool) -> FleetRow | None:
    """Return the best fleet by the objective that meets all targets and limits; None if no fleet does."""
    column, _ = OBJECTIVES[demand.objective]
    there = (row for row in rows if row.status == OK and (row.is_available or takes_all))
    known = [row for row in there if getattr(row, column) is not None]
    return min(known, key=lambda row: float(getattr(row, column)), default=None)


def find_chance_together(
    parts: Sequence[tuple[FleetRow, float]], best: FleetRow | None, objective: Objective
) -> float | None:
    """Return the probability that a fleet of several parts beats the best fleet of one kind; None if there is none.

    `parts` are rows with their cost per month, or with their kWh per month for other objectives. Parts of one hardware
    and precision share their error, so that only the difference of their shares counts. Other errors are independent.
    """
    from joulemap.uncertainty.probability import probability_better

    total = math.fsum(value for _, value in parts)
    whole = None if best is None else best.cost_per_month if objective == "cost" else best.kwh_per_month
    if best is None or not whole or not total:
        return None
    errors = {(best.hardware, best.precision): [-1.0, best.find_doubt(objective)]}
    for row, value in parts:
        one = errors.setdefault((row.hardware, row.precision), [0.0, 0.0])
        one[0] += value / total
        one[1] = max(one[1], row.find_doubt(objective))
    width = math.hypot(*(share * doubt for share, doubt in errors.values()))
    return probability_better(whole / total, width) if width else None


def list_queues(ordered: Sequence[Sizing]) -> list[QueueRow]:
    """Return rows on the queues of the best fleets at several rates."""
    watched = {one.row.label: one.watch for one in ordered}
    shown = first_of_each(one.row for one in ordered if one.row.status == OK)[:WATCHED]
    return [one for row in shown for one in watched[row.label]()]


def find_winners(rows: Sequence[FleetRow], *, takes_all: bool) -> list[FleetWinner]:
    """Return one row per objective: the best fleet, and the next hardware."""
    found = []
    for objective, (column, unit) in OBJECTIVES.items():
        known = [row for row in rows if row.status == OK and getattr(row, column) and (row.is_available or takes_all)]
        ranked = first_of_each(
            sorted(known, key=lambda row: (getattr(row, column), row.quality is not None, row.label))
        )
        if not ranked:
            continue
        first, *others = ranked
        value = float(getattr(first, column))
        ratio = float(getattr(others[0], column)) / value if others else None
        found.append(
            FleetWinner(
                objective=objective,
                label=first.label,
                value=value,
                unit=unit,
                runner_up=others[0].label if others else "",
                regret_ratio=ratio,
                probability_best=_find_chance(first, others[0], objective, ratio) if ratio is not None else None,
            )
        )
    return found


def _find_chance(first: FleetRow, other: FleetRow, objective: Objective, ratio: float) -> float | None:
    """Return the probability that the first of two fleets is better; None if both values are certain.

    `ratio` is the other fleet's value divided by the first one's. A cost grows in steps: a fleet of slower devices
    needs more devices once its capacity is exceeded.
    """
    import numpy as np

    from joulemap.uncertainty.probability import probability_above, probability_better

    width = math.hypot(first.find_doubt(objective), other.find_doubt(objective))
    if not width:
        return None
    if objective != "cost" or not (first.carried_ratio and other.carried_ratio):
        return probability_better(ratio, width)
    growth, other_growth = (
        np.log([_grow_devices(row, scale) for scale in _list_scales(row)]) for row in (first, other)
    )
    ahead = math.log(ratio) + other_growth[None, :] - growth[:, None]
    return float(probability_above(ahead, math.hypot(first.price_half_width, other.price_half_width)).mean())


def _list_scales(row: FleetRow) -> list[float]:
    """Return equally probable ratios of actual to predicted time of a fleet, from the logistic distribution."""
    shares = [(place + 0.5) / QUANTILES for place in range(QUANTILES)]
    return [(share / (1.0 - share)) ** ((row.time_half_width or 0.0) / LOGISTIC) for share in shares]


def _grow_devices(row: FleetRow, scale: float) -> float:
    """Return the number of devices that a fleet needs if times are `scale` times longer, relative to its number now."""
    assert row.device_count is not None
    assert row.carried_ratio is not None
    unit = math.gcd(row.device_count, row.device_low_count or 0, row.device_high_count or 0) or 1
    needed = row.device_count * scale / row.carried_ratio
    return max(unit * math.ceil(needed / unit - 1e-9), unit) / row.device_count
