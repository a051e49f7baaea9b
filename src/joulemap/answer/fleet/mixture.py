"""Fleets of two kinds of hardware: side by side, or each at the rates that suit it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import attrs

from joulemap.answer.computed import told
from joulemap.answer.fleet.row import HOURS, MONTHS, OK, FleetRow, first_of_each
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.answer.fleet.row import LevelRow
    from joulemap.domain.fleet import Demand

KINDS: Final = 8
"""Of hardware, those whose fleets alone take least: what is mixed."""

SAVED: Final = 0.99
"""Of the best fleet of one kind: a mixture that takes more of it is not told."""

TOLD: Final = 3
"""Mixtures that are told, the best first."""

SIDE_BY_SIDE: Final = "side by side"
BY_THE_HOUR: Final = "by the hour"


@frozen(kw_only=True)
class MixedRow:
    """Two kinds of hardware or more that serve the demand together, and take less than any of them alone."""

    label: str = told("so many of which hardware")
    form: str = told(
        "side by side: each serves a part of the requests, with a queue for each server; by the hour: at "
        "each rate the fleet that takes least then, and the others given back"
    )
    device_count: int = told("of all kinds, at the highest rate")
    power_w: float = told("of all devices at the highest rate", "W")
    kwh_per_month: float = told("with what data centres add", "kWh")
    cost_per_month: float | None = told("in the way of paying that is asked for", "USD")
    saved_fraction: float = told("of what the best of one kind takes, by the objective")


def mix(rows: Sequence[FleetRow], levels: Sequence[LevelRow], demand: Demand) -> list[MixedRow]:
    """Return mixtures that take less by the objective than the best fleet of one kind, which is the first row.

    A server carries as much as it does alone, so that what mixtures carry adds up and each keeps the promises; their
    energy is that of each kind's requests in a fleet of its own.
    """
    chosen = first_of_each(row for row in rows if row.status == OK and _value(row, demand) is not None)[:KINDS]
    if len(chosen) < 2:
        return []
    rate = max(one.rate_per_s for one in levels)
    found = [
        mixed
        for first in chosen
        for other in chosen
        if first is not other
        for mixed in _place_side_by_side(first, other, rate, demand)
    ]
    found += _choose_by_hour(chosen, levels, demand)
    best = _value(chosen[0], demand) or math.inf
    told = [(value, one) for one in found if (value := _value(one, demand)) is not None and value < SAVED * best]
    kept = [
        attrs.evolve(one, saved_fraction=1.0 - value / best)
        for value, one in sorted(told, key=lambda pair: (pair[0], pair[1].label))
    ]
    return [one for one in kept if demand.max_power_w is None or one.power_w <= demand.max_power_w][:TOLD]


def _value(row: FleetRow | MixedRow, demand: Demand) -> float | None:
    """Return what the objective counts; carbon is in proportion to energy."""
    return row.cost_per_month if demand.objective == "cost" else row.kwh_per_month


def _place_side_by_side(first: FleetRow, other: FleetRow, rate: float, demand: Demand) -> list[MixedRow]:
    """Return as many servers of one as are full, and of the other what the rest needs; what is owned goes first."""
    if not first.server_rate_per_s or not other.server_rate_per_s:
        return []
    counts = {
        math.floor(rate / first.server_rate_per_s),
        demand.owned.get(first.chip, 0) // first.server_device_count,
    }
    found = []
    for count in sorted(counts):
        rest = rate - count * first.server_rate_per_s
        if count and rest > 0.0:
            parts = ((first, count, 1.0 - rest / rate), (other, math.ceil(rest / other.server_rate_per_s), rest / rate))
            found.append(_add_up(parts, demand))
    return found


def _add_up(parts: Sequence[tuple[FleetRow, int, float]], demand: Demand) -> MixedRow:
    """Return kinds with their servers and shares of the requests as one fleet."""
    costs = [_cost(row, count, share, demand) for row, count, share in parts]
    return MixedRow(
        label=" + ".join(f"{count * row.server_device_count} {row.label}" for row, count, _ in parts),
        form=SIDE_BY_SIDE,
        device_count=sum(count * row.server_device_count for row, count, _ in parts),
        power_w=sum(share * (row.power_w or 0.0) for row, _, share in parts),
        kwh_per_month=sum(share * (row.kwh_per_month or 0.0) for row, _, share in parts),
        cost_per_month=None if None in costs else sum(one for one in costs if one is not None),
        saved_fraction=0.0,
    )


def _cost(row: FleetRow, count: int, share: float, demand: Demand) -> float | None:
    """Return what so many servers cost a month: devices that are not owned, and a share of the fleet's electricity."""
    device = row.rented_device_per_month if row.way == "rented" else row.bought_device_per_month
    if device is None or row.cost_per_month is None or row.device_count is None:
        return None
    owned = demand.owned.get(row.chip, 0)
    electricity = 0.0 if row.way == "rented" else row.cost_per_month - max(row.device_count - owned, 0) * device
    return max(count * row.server_device_count - owned, 0) * device + share * max(electricity, 0.0)


def _choose_by_hour(kinds: Sequence[FleetRow], levels: Sequence[LevelRow], demand: Demand) -> list[MixedRow]:
    """Return the fleet that takes least at each rate, where devices are given back; none where it is one kind."""
    by_label = {row.label: row for row in kinds}
    rates: dict[float, list[LevelRow]] = {}
    for one in levels:
        if one.label in by_label:
            rates.setdefault(one.rate_per_s, []).append(one)
    if not demand.releases or len(rates) < 2:
        return []
    is_cost = demand.objective == "cost"
    if is_cost and any(row.way != "rented" for row in kinds):
        return []
    chosen = [
        min(some, key=lambda one: (one.rented_usd_per_hour or math.inf) if is_cost else one.power_w)
        for some in rates.values()
    ]
    names = list(dict.fromkeys(one.label for one in chosen))
    if len(names) < 2:
        return []
    peak = max(chosen, key=lambda one: one.rate_per_s)
    hours = {one.label: 0.0 for one in chosen}
    for one in chosen:
        hours[one.label] += 24.0 * one.share_fraction
    spent = sum(one.share_fraction * one.power_w * _find_overhead(by_label[one.label]) for one in chosen)
    rents = [one.rented_usd_per_hour for one in chosen]
    return [
        MixedRow(
            label=", ".join(f"{name} {hours[name]:.3g} h a day" for name in names),
            form=BY_THE_HOUR,
            device_count=peak.device_count,
            power_w=peak.power_w,
            kwh_per_month=spent * HOURS / MONTHS / 1e3,
            cost_per_month=None
            if None in rents
            else sum(one.share_fraction * (one.rented_usd_per_hour or 0.0) for one in chosen) * HOURS / MONTHS,
            saved_fraction=0.0,
        )
    ]


def _find_overhead(row: FleetRow) -> float:
    """Return times the energy of devices that is paid for."""
    if not row.kwh_per_month or not row.mean_power_w:
        return 1.0
    return row.kwh_per_month * 1e3 * MONTHS / HOURS / row.mean_power_w
