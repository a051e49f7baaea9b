"""Fleets for models that are served in batches: each chip's runs at several batches, and its queue.

Fleets for models that are served in batches: fewest devices for a demand, their work, and their headroom.

candidates ─► fewest devices, in whole nodes ─► the same with delayed batching, if that saves energy
└─► work at each rate, range of devices, highest rate within the target
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial

import attrs

from joulemap.system import frozen
from joulemap.wing.fleet.capacity.cost import HALF_MORE, complete_fleet, make_late
from joulemap.wing.fleet.capacity.observation import Candidate, Promise, Sized, form_candidate, scale
from joulemap.wing.fleet.capacity.row import DELAYED, LOADS, OK, DeviceLoad, FleetRow, Sizing
from joulemap.wing.fleet.capacity.size import count_devices, find_load, find_rates, observe_at, save_energy, size_fleets
from joulemap.wing.fleet.demand import Demand
from joulemap.wing.fleet.generated.row import QueueRow, Station
from joulemap.wing.fleet.show.word import ALONE, TRIED

Fleet = tuple[int, Sized]
"""(index of a candidate, its devices)."""


@frozen(kw_only=True, eq=False)
class Studied:
    """Devices of one candidate that meet the target, with their work and their headroom."""

    candidate: int
    """Index of the candidate."""
    sized: Sized
    loads: Sequence[DeviceLoad]
    """Work at each rate of the demand."""
    low: int | None
    """Devices needed at the lower end of the interval of the batch times; None if no number meets the target."""
    high: int | None
    """Devices needed at the upper end."""
    carried: float
    """Highest rate within the target, as a multiple of the demanded one."""
    alone_per_s: float
    """Highest rate of a single device within the target."""
    grown: Sized
    """Service at `HALF_MORE` times the highest rate."""


def study_fleets(
    candidates: Sequence[Candidate], kinds: Sequence[str], widths: Sequence[float], demand: Demand, promise: Promise
) -> list[Studied]:
    """Return the fleet of the best candidate of each kind, then those that use less energy with delayed batching.

    `kinds` names the hardware of each candidate, and `widths` are the half-widths of its batch times. Hardware that
    misses the target with any number of devices is left out.
    """
    fleets = _size_fleets(candidates, kinds, demand, promise)
    if not fleets:
        return []
    peak = demand.peak_per_s
    sized = [one for _, one in fleets]
    some = [candidates[index] for index, _ in fleets]
    ends = [scale(candidates[index], math.exp(sign * widths[index])) for sign in (-1.0, 1.0) for index, _ in fleets]
    counts = [demand.round_up(count) if count else None for count in count_devices(ends, peak, promise)]
    carried = find_rates(some, sized, peak, promise, is_kept=True)
    several = [number for number, one in enumerate(sized) if one.devices > 1]
    alone = [peak * more for more in carried]
    rates = [alone[number] / sized[number].devices for number in several]
    ones = [attrs.evolve(sized[number], devices=1) for number in several]
    parts = find_rates([some[number] for number in several], ones, rates, promise)
    for number, rate, part in zip(several, rates, parts, strict=True):
        alone[number] = rate * part
    grown = observe_at(some, sized, HALF_MORE * peak, promise)
    loads = _observe_levels(some, sized, demand, promise)
    return [
        Studied(
            candidate=index,
            sized=one,
            loads=loads[number],
            low=counts[number],
            high=counts[number + len(fleets)],
            carried=carried[number],
            alone_per_s=alone[number],
            grown=grown[number],
        )
        for number, (index, one) in enumerate(fleets)
    ]


def _size_fleets(
    candidates: Sequence[Candidate], kinds: Sequence[str], demand: Demand, promise: Promise
) -> list[Fleet]:
    """Return the fewest devices for the highest rate, in whole nodes, then those that save energy if batches wait."""
    peak = demand.peak_per_s
    sized = dict(enumerate(size_fleets(candidates, peak, promise, kinds)))
    best = {index: one for index, one in sized.items() if one is not None}
    whole = {
        index: attrs.evolve(one, devices=demand.round_up(one.devices))
        for index, one in best.items()
        if one.devices % demand.node
    }
    seen = observe_at([candidates[index] for index in whole], [*whole.values()], peak, promise)
    best |= dict(zip(whole, seen, strict=True))
    filled = save_energy([candidates[index] for index in best], [*best.values()], peak, promise)
    delayed = [(index, now) for index, now in zip(best, filled, strict=True) if now.wait_s > 0.0]
    return [*best.items(), *delayed]


def _observe_levels(
    candidates: Sequence[Candidate], sized: Sequence[Sized], demand: Demand, promise: Promise
) -> list[list[DeviceLoad]]:
    """Return each fleet's load at each rate; with release, only the devices that the rate needs."""
    by_fleet: list[list[DeviceLoad]] = [[] for _ in sized]
    for index, level in enumerate(demand.levels):
        if level.rate_per_s == 0.0:
            seen: Sequence[Sized | None] = [None] * len(sized)
        elif index == 0:
            seen = sized
        elif demand.releases:
            seen = size_fleets(candidates, level.rate_per_s, promise)
        else:
            seen = observe_at(candidates, sized, level.rate_per_s, promise)
        for loads, whole, one in zip(by_fleet, sized, seen, strict=True):
            idle = 0 if demand.releases else whole.devices
            loads.append(
                DeviceLoad(
                    level=level,
                    devices=idle if one is None else demand.round_up(one.devices),
                    busy_devices=0.0 if one is None else one.busy_fraction * one.devices,
                    batch_w=0.0 if one is None else one.batch_w,
                )
            )
    return by_fleet


Runs = Mapping[str, "Sequence[Station]"]
"""Model -> its runs on one hardware, precision and runtime, smallest batch first."""


def size_stations(stations: Sequence[Station], shares: Mapping[str, float], demand: Demand) -> list[Sizing]:
    """Return the fleets of each chip that runs all models, at the precision that needs the fewest devices.

    One row serves waiting requests at once. Another one lets batches wait to be filled, if that saves energy. A chip
    that misses the target with any number of devices has one row that says so.
    """
    assert demand.p99_s is not None
    promise = Promise(latency_s=demand.p99_s, models=tuple(shares.values()), variation=demand.variation)
    runs = [one for one in _group(stations) if _fits(one, shares)]
    candidates = [_form_candidate(one, shares) for one in runs]
    names = [_first(one).hardware for one in runs]
    widths = [_first(one).latency_half_width or 0.0 for one in runs]
    sized = study_fleets(candidates, names, widths, demand, promise)
    met = {names[one.candidate] for one in sized}
    late = {name: one for name, one in zip(names, runs, strict=True) if name not in met}
    return [
        *(_form_row(runs[one.candidate], candidates[one.candidate], one, demand, promise) for one in sized),
        *(Sizing(row=_form_late(one, demand.p99_s), station=_first(one)) for one in late.values()),
    ]


def _group(stations: Sequence[Station]) -> list[Runs]:
    """Return the runs of each hardware, precision and runtime, without failed runs."""
    groups: dict[tuple[str, str, str], dict[str, list[Station]]] = {}
    for row in stations:
        if row.status == OK:
            key = (row.hardware, row.precision, row.runtime)
            groups.setdefault(key, {}).setdefault(row.model, []).append(row)
    return [*groups.values()]


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


def _form_row(runs: Runs, candidate: Candidate, studied: Studied, demand: Demand, promise: Promise) -> Sizing:
    """Return the row of a fleet that meets the target."""
    sized = studied.sized
    station = next(row for row in next(iter(runs.values())) if row.batch >= sized.batch)
    idle = station.idle_power_w or 0.0
    row, at_rates = complete_fleet(
        station,
        demand,
        studied.loads,
        devices=sized.devices,
        idle_w=idle,
        power_w=_power(sized, idle),
        grown_w=_power(studied.grown, idle),
        carried=studied.carried,
        label=f"{station.hardware} {station.precision}{DELAYED if sized.wait_s else ''}",
        device_low_count=studied.low,
        device_high_count=studied.high,
        batch=sized.batch,
        batch_mean=sized.batch_mean,
        wait_s=sized.wait_s,
        p50_latency_s=sized.half_s,
        p99_latency_s=sized.latency_s,
        promise_fraction=sized.latency_s / promise.latency_s,
        server_rate_per_s=studied.alone_per_s,
        busy_fraction=sized.busy_fraction,
    )
    return Sizing(
        row=row,
        station=station,
        levels=at_rates,
        serve=partial(_serve_alone, candidate, sized, promise),
        watch=partial(_watch, candidate, sized, row.label, station, demand.peak_per_s, promise),
    )


def _serve_alone(
    candidate: Candidate, sized: Sized, promise: Promise, rates: Sequence[float]
) -> list[tuple[float, float]]:
    """Return (busy fraction, watts of batches) of one device at each of these rates."""
    ones = [attrs.evolve(sized, devices=1)] * len(rates)
    return [(one.busy_fraction, one.batch_w) for one in observe_at([candidate] * len(rates), ones, rates, promise)]


def _watch(
    candidate: Candidate, sized: Sized, label: str, station: Station, peak: float, promise: Promise
) -> list[QueueRow]:
    """Return rows on a fleet's queue at several rates near the highest; times are None if the queue grows forever."""
    idle_w, modules_w = station.idle_power_w or 0.0, station.module_power_w * sized.devices
    rows = []
    rates = [load * peak for load in LOADS]
    seen = observe_at([candidate] * len(LOADS), [sized] * len(LOADS), rates, promise)
    for load, one in zip(LOADS, seen, strict=True):
        rate = load * peak
        keeps_up = find_load(candidate, sized.batch, rate, promise) < sized.devices
        rows.append(
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
    return rows


def _power(sized: Sized, idle_w: float) -> float:
    """Return the average power of all devices in watts, including idle devices."""
    return sized.batch_w + idle_w * sized.devices * (1.0 - min(sized.busy_fraction, 1.0))


def _form_late(runs: Runs, promise_s: float) -> FleetRow:
    """Return the row of hardware that misses a target of `promise_s` seconds with any number of devices."""
    station = _first(runs)
    slowest = max((some[0].latency_s or 0.0) for some in runs.values())
    reason = ALONE if slowest > promise_s else TRIED
    return make_late(station, reason(slowest=slowest, target=promise_s), max(slowest / promise_s, 1.0))
