"""Fleets of two kinds of hardware, which work side by side or each at the rates where it is better."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import attrs

from joulemap.domain import find_unknown
from joulemap.physics import probability_better
from joulemap.system import frozen
from joulemap.wing.fleet.capacity.cost import cost_fleet
from joulemap.wing.fleet.capacity.row import DeviceLoad, FleetRow, Sizing, first_of_each
from joulemap.wing.fleet.demand import Demand, Level
from joulemap.wing.fleet.generated.row import LevelRow, MixedRow

if TYPE_CHECKING:
    from joulemap.wing.fleet.capacity.rank import Terms

KINDS: Final = 8
"""Maximum kinds of hardware that may be mixed; kinds whose own fleets are best come first."""

SAVED: Final = 0.99
"""Largest value of a mixture, relative to the best fleet of one kind, at which the mixture is reported."""

MOST_REPORTED: Final = 3
"""Maximum mixtures that are reported, best first."""

SIDE_BY_SIDE: Final = "side by side"
BY_THE_HOUR: Final = "by the hour"
BY_PHASE: Final = "prefill > decode"


@frozen(kw_only=True, eq=False)
class MixturePart:
    """Servers of one kind in a mixture, with their load at each rate."""

    sizing: Sizing
    servers: int
    loads: Sequence[DeviceLoad]
    """Load of the part at each rate, highest rate first."""

    @property
    def label(self) -> str:
        """Text with the number of devices and their hardware."""
        return f"{self.device_count} {self.sizing.row.label}"

    @property
    def device_count(self) -> int:
        """Number of devices in the part, including idle servers."""
        return max(*(one.devices for one in self.loads), self.servers * self.sizing.row.server_device_count)

    @property
    def power_w(self) -> float:
        """Power in watts of the part at the highest rate, including the rest of the devices' modules."""
        return self.loads[0].draw(self.sizing.idle_w, self.sizing.station.module_power_w)

    def cost(self, demand: Demand) -> dict[str, Any]:
        """Return the monthly energy, carbon and cost of the part, as fields of a fleet's row."""
        owned = demand.owned.get(self.sizing.row.chip, 0)
        return cost_fleet(self.sizing.station, self.loads, self.device_count, owned, self.sizing.idle_w)


def form_row(parts: Sequence[MixturePart], terms: Terms, best: FleetRow | None, **own: Any) -> MixedRow:
    """Return the row of a mixture with its `own` fields; each kind uses its cheapest way of paying.

    `best` is the best fleet of one kind by the objective; None if there is none.
    """
    part_costs = [part.cost(terms.demand) for part in parts]
    rows = [
        terms.choose_payment(part.sizing.row.replace(device_count=part.device_count, **figures))
        for part, figures in zip(parts, part_costs, strict=True)
    ]
    costs = [row.cost_per_month for row in rows]
    values = [(row, terms.value(row) or 0.0) for row in rows]
    figures = {
        "device_count": sum(part.device_count for part in parts),
        "power_w": sum(part.power_w for part in parts),
        "host_power_w": sum(part.power_w * part.sizing.station.host_energy_share_ratio for part in parts),
        "kwh_per_month": sum(one["kwh_per_month"] or 0.0 for one in part_costs),
        "gco2_per_month": sum(one["gco2_per_month"] or 0.0 for one in part_costs),
        "cost_per_month": None if None in costs else sum(one for one in costs if one is not None),
        "probability_best": find_chance_together(values, best, terms),
    }
    return MixedRow(**find_unknown(MixedRow) | figures | own)


def find_chance_together(parts: Sequence[tuple[FleetRow, float]], best: FleetRow | None, terms: Terms) -> float | None:
    """Return the probability that a fleet of several parts beats the best fleet of one kind; None if there is none.

    `parts` are rows with their values by the objective. Parts of one hardware and precision share their error, so that
    only the difference of their shares counts. Other errors are independent.
    """
    objective, total = terms.demand.objective, math.fsum(value for _, value in parts)
    whole = None if best is None else terms.value(best)
    if best is None or not whole or not total:
        return None
    errors = {(best.hardware, best.precision): [-1.0, best.find_doubt(objective)]}
    for row, value in parts:
        one = errors.setdefault((row.hardware, row.precision), [0.0, 0.0])
        one[0] += value / total
        one[1] = max(one[1], row.find_doubt(objective))
    width = math.hypot(*(share * doubt for share, doubt in errors.values()))
    return probability_better(whole / total, width) if width else None


def mix(sized: Sequence[Sizing], terms: Terms, best: FleetRow | None) -> list[MixedRow]:
    """Return the mixtures that beat the `best` fleet of one kind by the objective.

    `sized` has the best fleet first. A server serves the same rate as in a fleet of its kind, so rates add up and each
    server meets the targets. The energy assumes one queue per kind of server, with its share of the requests.
    """
    demand = terms.demand
    chosen = first_of_each(one for one in sized if terms.value(one.row) is not None)[:KINDS]
    if len(chosen) < 2 or best is None:
        return []
    least = terms.value(best) or math.inf
    guesses = [
        (guess, parts)
        for one in chosen
        for other in chosen
        if one is not other
        for parts in _split(one, other, demand)
        if (guess := _guess(parts, terms)) < least
    ]
    likely = sorted(guesses, key=lambda pair: pair[0])[: 2 * MOST_REPORTED]
    mixtures = [_place_side_by_side(parts, terms, best) for _, parts in likely]
    mixtures += _choose_by_hour(chosen, terms, best)
    ranked = terms.rank_together(mixtures, best)
    return [one for one in ranked if (one.saved_fraction or 0.0) > 1.0 - SAVED][:MOST_REPORTED]


Split: TypeAlias = "tuple[tuple[Sizing, int], tuple[Sizing, int]]"
"""(kind, servers) of the servers that are fully used, and (kind, servers) of those that serve the rest."""


def _split(first: Sizing, other: Sizing, demand: Demand) -> list[Split]:
    """Return splits of the highest rate: full servers of the first kind, and servers of the other kind for the rest.

    The full servers are as many as possible, or as many as are owned.
    """
    rate, each, others = demand.peak_per_s, first.row.server_rate_per_s, other.row.server_rate_per_s
    if not each or not others:
        return []
    counts = {math.floor(rate / each), demand.owned.get(first.row.chip, 0) // first.row.server_device_count}
    return [
        ((first, count), (other, math.ceil((rate - count * each) / others)))
        for count in sorted(counts)
        if count and rate - count * each > 0.0
    ]


def _guess(parts: Split, terms: Terms) -> float:
    """Return an estimate of a mixture's value by the objective, from the values of fleets of each kind."""
    (first, count), (other, more) = parts
    demand = terms.demand
    full = count * (first.row.server_rate_per_s or 0.0) / demand.peak_per_s
    total = 0.0
    for sizing, servers, share in ((first, count, full), (other, more, 1.0 - full)):
        row = sizing.row
        whole = terms.value(row) or 0.0
        if demand.objective != "cost":
            total += share * whole
            continue
        device = (row.rented_device_per_month if row.way == "rented" else row.bought_device_per_month) or 0.0
        owned = demand.owned.get(row.chip, 0)
        rest = max(whole - max((row.device_count or 0) - owned, 0) * device, 0.0) if row.way != "rented" else 0.0
        total += max(servers * row.server_device_count - owned, 0) * device + share * rest
    return total


def _place_side_by_side(parts: Split, terms: Terms, best: FleetRow) -> MixedRow:
    """Return a fleet of two kinds: servers of the first kind are fully used, the others share the rest.

    At lower rates all servers get fewer requests. If the demand releases devices, those of the second kind are released
    first.
    """
    demand = terms.demand
    routes = [_route(parts, level.rate_per_s, demand) for level in demand.levels]
    placed = [
        MixturePart(sizing=sizing, servers=servers, loads=_serve(sizing, [route[index] for route in routes], demand))
        for index, (sizing, servers) in enumerate(parts)
    ]
    return form_row(placed, terms, best, label=" + ".join(part.label for part in placed), form=SIDE_BY_SIDE)


def _route(parts: Split, rate: float, demand: Demand) -> tuple[tuple[float, int], tuple[float, int]]:
    """Return for each kind its requests per second and its powered servers, at one of the rates of a demand."""
    (first, count), (other, more) = parts
    each, others = first.row.server_rate_per_s or 0.0, other.row.server_rate_per_s or 0.0
    if not demand.releases:
        share = count * each / demand.peak_per_s
        return (share * rate, count), ((1.0 - share) * rate, more)
    full = min(count, math.floor(rate / each))
    # the servers of the other kind cannot take the rest, so one more of the first kind runs partly full
    if rate - full * each > more * others:
        full += 1
    rest = max(rate - full * each, 0.0)
    return (rate - rest, full), (rest, math.ceil(rest / others))


def _serve(sizing: Sizing, routes: Sequence[tuple[float, int]], demand: Demand) -> list[DeviceLoad]:
    """Return the load of a kind's servers at each rate; all servers get an equal share of its requests."""
    assert sizing.serve is not None
    rates = [rate / powered for rate, powered in routes if rate and powered]
    seen = iter(sizing.serve(rates) if rates else ())
    world = sizing.row.server_device_count
    loads = []
    for level, (rate, powered) in zip(demand.levels, routes, strict=True):
        busy, watts = next(seen) if rate and powered else (0.0, 0.0)
        loads.append(
            DeviceLoad(
                level=Level(rate_per_s=rate, share=level.share),
                devices=demand.round_up(powered * world),
                busy_devices=busy * powered * world,
                batch_w=watts * powered,
            )
        )
    return loads


def _choose_by_hour(kinds: Sequence[Sizing], terms: Terms, best: FleetRow) -> list[MixedRow]:
    """Return the fleet that uses the best kind of hardware at each rate, if devices are released.

    The list is empty if one kind is best at all rates. For cost, it is also empty if a kind is not rented.
    """
    levels, is_cost = terms.demand.levels, terms.demand.objective == "cost"
    known = [one for one in kinds if len(one.levels) == len(levels)]
    if not terms.demand.releases or not known:
        return []
    if is_cost and any(one.row.way != "rented" or one.row.owned_device_count for one in kinds):
        return []

    def find_value(row: LevelRow) -> float:
        return (row.rented_usd_per_hour or math.inf) if is_cost else row.power_w

    chosen = [min(known, key=lambda one: find_value(one.levels[place])) for place in range(len(levels))]
    parts = [
        MixturePart(
            sizing=one,
            servers=0,
            loads=[
                _read_load(one, place, level) if chosen[place] is one else _rest(level)
                for place, level in enumerate(levels)
            ],
        )
        for one in dict.fromkeys(chosen)
    ]
    if len(parts) < 2:
        return []
    hours = {one.sizing.row.label: 24.0 * sum(load.level.share for load in one.loads if load.devices) for one in parts}
    label = ", ".join(f"{name} {each:.3g} h a day" for name, each in hours.items())
    count = chosen[0].levels[0].device_count
    return [form_row(parts, terms, best, label=label, form=BY_THE_HOUR, device_count=count)]


def _read_load(sizing: Sizing, place: int, level: Level) -> DeviceLoad:
    """Return the load of a whole fleet at one of the rates."""
    row = sizing.levels[place]
    load = DeviceLoad(
        level=level, devices=row.device_count, busy_devices=row.busy_fraction * row.device_count, batch_w=0.0
    )
    idle_w = load.draw(sizing.idle_w, sizing.station.module_power_w)
    return attrs.evolve(load, batch_w=row.power_w - idle_w)


def _rest(level: Level) -> DeviceLoad:
    """Return the load of devices that another kind replaces at a rate."""
    return DeviceLoad(level=Level(rate_per_s=0.0, share=level.share), devices=0, busy_devices=0.0, batch_w=0.0)
