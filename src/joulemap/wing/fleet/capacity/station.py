"""Fleets for models that are served in batches: each chip's runs at several batches, and its queue."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import attrs

from joulemap.answer.computed import find_unknown, take
from joulemap.present.template import Template
from joulemap.system.record import frozen
from joulemap.wing.fleet.capacity.cost import HALF_MORE, complete_fleet
from joulemap.wing.fleet.capacity.observation import Candidate, Promise, Sized, form_candidate, scale
from joulemap.wing.fleet.capacity.row import DELAYED, LATE, LOADS, OK, FleetRow, Load, QueueRow, Sizing
from joulemap.wing.fleet.capacity.size import (
    count_devices,
    find_load,
    find_rates,
    observe_at,
    save_energy,
    size_fleets,
)

if TYPE_CHECKING:
    from joulemap.wing.fleet.demand import Demand, Level
    from joulemap.wing.fleet.row import Station

ALONE: Final = Template("one request alone takes {slowest:s}, more than the {target:s} target")
TRIED: Final = Template("p99 exceeds the {target:s} target with every number of devices tried")

Runs = Mapping[str, "Sequence[Station]"]
"""Model -> its runs on one hardware, precision and runtime, smallest batch first."""


@frozen(kw_only=True, eq=False)
class _Fleet:
    """Devices of one configuration that meet the target, with the runs of their batches."""

    runs: Runs
    candidate: Candidate
    sized: Sized


def size_stations(
    stations: Sequence[Station], shares: Mapping[str, float], levels: Sequence[Level], demand: Demand
) -> list[Sizing]:
    """Return the fleets of each chip that runs all models, at the precision that needs the fewest devices.

    One row serves waiting requests at once. Another one lets batches wait to be filled, if that saves energy. A chip
    that misses the target with any number of devices has one row that says so.
    """
    assert demand.p99_s is not None
    promise = Promise(latency_s=demand.p99_s, models=tuple(shares.values()), variation=demand.variation)
    runs = [one for one in _group(stations) if _fits(one, shares)]
    candidates = [_form_candidate(one, shares) for one in runs]
    names = [_first(one).hardware for one in runs]
    found = size_fleets(candidates, levels[0].rate_per_s, promise, names)
    best = {
        name: _Fleet(runs=some, candidate=candidate, sized=sized)
        for name, some, candidate, sized in zip(names, runs, candidates, found, strict=True)
        if sized is not None
    }
    best = _fill_nodes(best, levels[0].rate_per_s, demand, promise)
    late = {_first(one).hardware: one for one in runs if _first(one).hardware not in best}
    fleets = [*best.values()]
    fleets += _fill(fleets, levels[0].rate_per_s, promise)
    return [
        *_form_rows(fleets, levels, demand, promise),
        *(Sizing(row=_form_late(one, demand.p99_s), station=_first(one)) for one in late.values()),
    ]


def _fill_nodes(best: dict[str, _Fleet], rate: float, demand: Demand, promise: Promise) -> dict[str, _Fleet]:
    """Return the fleets with their devices rounded up to whole nodes."""
    some = {
        name: attrs.evolve(one.sized, devices=demand.round_up(one.sized.devices))
        for name, one in best.items()
        if one.sized.devices % demand.node
    }
    seen = observe_at([best[name].candidate for name in some], list(some.values()), rate, promise)
    return best | {name: attrs.evolve(best[name], sized=now) for name, now in zip(some, seen, strict=True)}


def _group(stations: Sequence[Station]) -> list[Runs]:
    """Return the runs of each hardware, precision and runtime, without failed runs."""
    found: dict[tuple[str, str, str], dict[str, list[Station]]] = {}
    for row in stations:
        if row.status == OK:
            key = (row.hardware, row.precision, row.runtime)
            found.setdefault(key, {}).setdefault(row.model, []).append(row)
    return [*found.values()]


def _first(runs: Runs) -> Station:
    return next(iter(runs.values()))[0]


def _fits(runs: Runs, shares: Mapping[str, float]) -> bool:
    """Return whether a device runs all models and holds their weights together."""
    if set(runs) != set(shares):
        return False
    capacity = _first(runs).memory_capacity_bytes
    return capacity is None or sum(some[0].weight_bytes or 0 for some in runs.values()) <= capacity


def _form_candidate(runs: Runs, shares: Mapping[str, float]) -> Candidate:
    """Return a candidate from the runs of a configuration; other batch sizes are interpolated linearly."""
    batches = sorted(set.intersection(*({row.batch for row in some} for some in runs.values())))
    kept = [[row for row in runs[model] if row.batch in batches] for model in shares]
    return form_candidate(
        batches,
        [[row.batch / (row.throughput_per_s or 1.0) for row in some] for some in kept],
        [[row.latency_s or 0.0 for row in some] for some in kept],
        [[row.energy_j or 0.0 for row in some] for some in kept],
    )


def _fill(fleets: Sequence[_Fleet], rate: float, promise: Promise) -> list[_Fleet]:
    """Return the fleets that use less energy if batches wait to be filled, each with its best wait."""
    filled = save_energy([one.candidate for one in fleets], [one.sized for one in fleets], rate, promise)
    return [attrs.evolve(one, sized=now) for one, now in zip(fleets, filled, strict=True) if now.wait_s > 0.0]


def _form_rows(fleets: Sequence[_Fleet], levels: Sequence[Level], demand: Demand, promise: Promise) -> list[Sizing]:
    """Return a row for each fleet, with its load at each rate and the range of devices that it may need."""
    if not fleets:
        return []
    peak, count = levels[0].rate_per_s, len(fleets)
    candidates, sized = [one.candidate for one in fleets], [one.sized for one in fleets]
    doubted = count_devices(
        [
            scale(one.candidate, math.exp(sign * (_first(one.runs).latency_half_width or 0.0)))
            for sign in (-1.0, 1.0)
            for one in fleets
        ],
        peak,
        promise,
    )
    carried = find_rates(candidates, sized, peak, promise, is_kept=True)
    alone = _find_alone(candidates, sized, [peak * more for more in carried], promise)
    grown = observe_at(candidates, sized, HALF_MORE * peak, promise)
    loads = _observe_levels(candidates, sized, levels, demand, promise)
    parts = zip(fleets, loads, doubted[:count], doubted[count:], carried, alone, grown, strict=True)
    return [_form_row(fleet, demand, promise, *part) for fleet, *part in parts]


def _find_alone(
    candidates: Sequence[Candidate], sized: Sequence[Sized], carried: Sequence[float], promise: Promise
) -> list[float]:
    """Return the requests per second that one device of each fleet can serve, given the fleets' capacities."""
    several = [place for place, one in enumerate(sized) if one.devices > 1]
    rates = [carried[place] / sized[place].devices for place in several]
    ones = [attrs.evolve(sized[place], devices=1) for place in several]
    parts = find_rates([candidates[place] for place in several], ones, rates, promise)
    found = list(carried)
    for place, rate, part in zip(several, rates, parts, strict=True):
        found[place] = rate * part
    return found


def _observe_levels(
    candidates: Sequence[Candidate], sized: Sequence[Sized], levels: Sequence[Level], demand: Demand, promise: Promise
) -> list[list[Load]]:
    """Return each fleet's load at each rate; with release, only the devices that the rate needs."""
    found: list[list[Load]] = [[] for _ in sized]
    for place, level in enumerate(levels):
        if level.rate_per_s == 0.0:
            seen: Sequence[Sized | None] = [None] * len(sized)
        elif place == 0:
            seen = sized
        elif demand.releases:
            seen = size_fleets(candidates, level.rate_per_s, promise)
        else:
            seen = observe_at(candidates, sized, level.rate_per_s, promise)
        for loads, whole, one in zip(found, sized, seen, strict=True):
            idle = 0 if demand.releases else whole.devices
            loads.append(
                Load(
                    level=level,
                    devices=idle if one is None else demand.round_up(one.devices),
                    busy_devices=0.0 if one is None else one.busy_fraction * one.devices,
                    batch_w=0.0 if one is None else one.batch_w,
                )
            )
    return found


def _form_row(
    fleet: _Fleet,
    demand: Demand,
    promise: Promise,
    loads: Sequence[Load],
    low: int | None,
    high: int | None,
    carried: float,
    alone: float,
    grown: Sized,
) -> Sizing:
    """Return a row; `low` and `high` bound the devices needed, and `alone` is the capacity of one device.

    `grown` is the fleet's service at `HALF_MORE` times the highest rate.
    """
    sized = fleet.sized
    station = next(row for row in next(iter(fleet.runs.values())) if row.batch >= sized.batch)
    assert demand.p99_s is not None
    idle = station.idle_power_w or 0.0
    late = make_late(station, "")
    row, at_rates = complete_fleet(
        late,
        station,
        demand,
        loads,
        devices=sized.devices,
        idle_w=idle,
        power_w=_power(sized, idle),
        grown_w=_power(grown, idle),
        carried=carried,
        label=f"{late.label}{DELAYED if sized.wait_s else ''}",
        device_low_count=demand.round_up(low) if low else None,
        device_high_count=demand.round_up(high) if high else None,
        batch=sized.batch,
        batch_mean=sized.batch_mean,
        wait_s=sized.wait_s,
        p50_latency_s=sized.half_s,
        p99_latency_s=sized.latency_s,
        promise_fraction=sized.latency_s / demand.p99_s,
        server_rate_per_s=alone,
        busy_fraction=sized.busy_fraction,
    )
    return Sizing(
        row=row,
        station=station,
        levels=at_rates,
        serve=partial(_serve_alone, fleet.candidate, sized, promise),
        watch=partial(_watch, fleet, row.label, station, loads[0].level.rate_per_s, promise),
    )


def _serve_alone(
    candidate: Candidate, sized: Sized, promise: Promise, rates: Sequence[float]
) -> list[tuple[float, float]]:
    """Return (busy fraction, watts of batches) of one device at each of these rates."""
    ones = [attrs.evolve(sized, devices=1)] * len(rates)
    return [(one.busy_fraction, one.batch_w) for one in observe_at([candidate] * len(rates), ones, rates, promise)]


def _watch(fleet: _Fleet, label: str, station: Station, peak: float, promise: Promise) -> list[QueueRow]:
    """Return rows on a fleet's queue at several rates near the highest; times are None if the queue grows forever."""
    idle_w, modules_w = station.idle_power_w or 0.0, station.module_power_w * fleet.sized.devices
    found, sized = [], fleet.sized
    rates = [load * peak for load in LOADS]
    seen = observe_at([fleet.candidate] * len(LOADS), [sized] * len(LOADS), rates, promise)
    for load, one in zip(LOADS, seen, strict=True):
        rate = load * peak
        keeps_up = find_load(fleet.candidate, sized.batch, rate, promise) < sized.devices
        found.append(
            QueueRow(
                label=label,
                quantity="latency",
                rate_per_s=rate,
                load_ratio=load,
                p50_s=one.half_s if keeps_up else None,
                p99_s=one.latency_s if keeps_up else None,
                promise_s=promise.latency_s,
                power_w=_power(one, idle_w) + modules_w if keeps_up else None,
            )
        )
    return found


def _power(sized: Sized, idle_w: float) -> float:
    """Return the average power of all devices in watts, including idle devices."""
    return sized.batch_w + idle_w * sized.devices * (1.0 - min(sized.busy_fraction, 1.0))


def _form_late(runs: Runs, promise_s: float) -> FleetRow:
    """Return the row of hardware that misses a target of `promise_s` seconds with any number of devices."""
    station = _first(runs)
    slowest = max((some[0].latency_s or 0.0) for some in runs.values())
    reason = ALONE if slowest > promise_s else TRIED
    return make_late(station, reason(slowest=slowest, target=promise_s), max(slowest / promise_s, 1.0))


def make_late(station: Station, reason: str, taken: float | None = None) -> FleetRow:
    """Return the row of hardware that misses its target, with the reason.

    `taken` is the ratio of its latency to the target. Rows of other fleets are made from it by changing fields.
    """
    found: dict[str, Any] = {**find_unknown(FleetRow), **take(FleetRow, station)}
    found |= {
        "label": f"{station.hardware} {station.precision}",
        "status": LATE,
        "batch": None,
        "idle_power_w": None,  # the station has it per device, the row needs it for the fleet
        "promise_fraction": taken,
        "time_half_width": station.latency_half_width,
        "reason": reason,
    }
    return FleetRow(**found, server_device_count=1, expert_device_count=1, owned_device_count=0, fails_first="", way="")
