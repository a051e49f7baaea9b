"""Fleets for models that are served in batches: fewest devices for a demand, their work, and their headroom.

stored runs ─► services ─► fewest devices, in whole nodes ─► the same with delayed batching, if that saves energy
                           └─► work at each rate, range of devices, highest rate within the target
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import attrs

from joulemap.wing.fleet.capacity.cost import HALF_MORE, complete_fleet, make_late
from joulemap.wing.fleet.capacity.queue import Pool, Promise, Seen, Service, form_service, observe
from joulemap.wing.fleet.capacity.row import DELAYED, LOADS, OK, DeviceLoad, FleetRow, Sizing
from joulemap.wing.fleet.capacity.size import find_fewest, find_rates, observe_at, save_energy
from joulemap.wing.fleet.demand import Demand
from joulemap.wing.fleet.generated.row import QueueRow, Station
from joulemap.wing.fleet.show.word import ALONE, TRIED

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
    sized = _size(runs, shares, demand, promise)
    met = {one.hardware for one in sized}
    late = {name: one for one in runs if (name := _first(one).hardware) not in met}
    return [*sized, *(Sizing(row=_form_late(one, demand.p99_s), station=_first(one)) for one in late.values())]


def _size(runs: Sequence[Runs], shares: Mapping[str, float], demand: Demand, promise: Promise) -> list[Sizing]:
    """Return the fleet of the best precision of each chip, then those that use less energy with delayed batching."""
    peak, services = demand.peak_per_s, [_form_service(one, shares) for one in runs]
    fewest = find_fewest(services, peak, promise, [_first(one).hardware for one in runs])
    places = [index for index, one in enumerate(fewest) if one is not None]
    sized = _fill_nodes([one for one in fewest if one is not None], demand, promise)
    ends = [
        services[place].scale(math.exp(sign * (_first(runs[place]).latency_half_width or 0.0)))
        for sign in (-1.0, 1.0)
        for place in places
    ]
    counts = [
        None if one is None else demand.round_up(one.pool.devices)
        for one in find_fewest(ends, peak, promise, is_counted=True)
    ]
    delayed = [(number, now) for number, now in enumerate(save_energy(sized, promise)) if now.pool.wait_s]
    fleets = [*enumerate(sized), *delayed]
    seen = [one for _, one in fleets]
    carried = find_rates([one.pool for one in seen], promise, is_kept=True)
    alone = [
        attrs.evolve(one.pool, devices=1, rate_per_s=peak * more / one.pool.devices)
        for one, more in zip(seen, carried, strict=True)
    ]
    several = [number for number, one in enumerate(seen) if one.pool.devices > 1]
    parts = dict(zip(several, find_rates([alone[number] for number in several], promise), strict=True))
    grown = observe_at(seen, HALF_MORE * peak, promise) if demand.max_power_w is not None else seen
    loads = _observe_levels(seen, demand, promise)
    return [
        _form_row(
            runs[places[place]],
            one,
            loads[number],
            demand,
            promise,
            grown=grown[number],
            device_low_count=counts[place],
            device_high_count=counts[place + len(places)],
            carried=carried[number],
            server_rate_per_s=alone[number].rate_per_s * parts.get(number, 1.0),
        )
        for number, (place, one) in enumerate(fleets)
    ]


def _fill_nodes(sized: Sequence[Seen], demand: Demand, promise: Promise) -> list[Seen]:
    """Return the pools with their devices rounded up to whole nodes."""
    whole = [attrs.evolve(one.pool, devices=demand.round_up(one.pool.devices)) for one in sized]
    grown = [number for number, one in enumerate(sized) if whole[number].devices > one.pool.devices]
    seen = observe([whole[number] for number in grown], promise, is_exact=True)
    return [*(dict(enumerate(sized)) | dict(zip(grown, seen, strict=True))).values()]


def _observe_levels(sized: Sequence[Seen], demand: Demand, promise: Promise) -> list[list[DeviceLoad]]:
    """Return each fleet's load at each rate; with release, only the devices that the rate needs."""
    by_fleet: list[list[DeviceLoad]] = [[] for _ in sized]
    for index, level in enumerate(demand.levels):
        seen: Sequence[Seen | None] = [None] * len(sized)
        if index == 0:
            seen = sized
        elif level.rate_per_s and demand.releases:
            seen = find_fewest([one.pool.service for one in sized], level.rate_per_s, promise)
        elif level.rate_per_s:
            seen = observe_at(sized, level.rate_per_s, promise)
        for loads, whole, one in zip(by_fleet, sized, seen, strict=True):
            idle = 0 if demand.releases else whole.pool.devices
            loads.append(
                DeviceLoad(
                    level=level,
                    devices=idle if one is None else demand.round_up(one.pool.devices),
                    busy_devices=0.0 if one is None else one.busy_fraction * one.pool.devices,
                    batch_w=0.0 if one is None else one.batch_w,
                )
            )
    return by_fleet


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


def _form_service(runs: Runs, shares: Mapping[str, float]) -> Service:
    """Return the service of a device from the runs of a configuration; other batch sizes are interpolated linearly."""
    batches = sorted(set.intersection(*({row.batch for row in some} for some in runs.values())))
    kept = [[row for row in runs[model] if row.batch in batches] for model in shares]
    return form_service(
        batches,
        [[row.batch / (row.throughput_per_s or 1.0) for row in some] for some in kept],
        [[row.latency_s or 0.0 for row in some] for some in kept],
        [[row.energy_j or 0.0 for row in some] for some in kept],
    )


def _form_row(
    runs: Runs,
    seen: Seen,
    loads: Sequence[DeviceLoad],
    demand: Demand,
    promise: Promise,
    *,
    grown: Seen,
    **columns: Any,
) -> Sizing:
    """Return a fleet that meets the target, with its `loads` at each rate of the demand.

    `grown` is its service at `HALF_MORE` times the highest rate if power has a limit, else at the highest rate.
    """
    pool = seen.pool
    station = next(row for row in next(iter(runs.values())) if row.batch >= pool.batch)
    idle = station.idle_power_w or 0.0
    row, at_rates = complete_fleet(
        station,
        demand,
        loads,
        devices=pool.devices,
        idle_w=idle,
        power_w=_power(seen, idle),
        grown_w=_power(grown, idle),
        label=f"{station.hardware} {station.precision}{DELAYED if pool.wait_s else ''}",
        batch=pool.batch,
        batch_mean=seen.batch_mean,
        wait_s=pool.wait_s,
        p50_latency_s=seen.half_s,
        p99_latency_s=seen.latency_s,
        promise_fraction=seen.latency_s / promise.latency_s,
        busy_fraction=seen.busy_fraction,
        **columns,
    )
    return Sizing(
        row=row,
        station=station,
        levels=at_rates,
        serve=partial(_serve_alone, pool, promise),
        watch=partial(_watch, seen, row.label, station, promise),
    )


def _serve_alone(pool: Pool, promise: Promise, rates: Sequence[float]) -> list[tuple[float, float]]:
    """Return (busy fraction, watts of batches) of one device at each of these rates."""
    ones = [attrs.evolve(pool, devices=1, rate_per_s=rate) for rate in rates]
    return [(one.busy_fraction, one.batch_w) for one in observe(ones, promise)]


def _watch(sized: Seen, label: str, station: Station, promise: Promise) -> list[QueueRow]:
    """Return rows on a fleet's queue at several rates near the highest; times are None if the queue grows forever."""
    idle_w, modules_w = station.idle_power_w or 0.0, station.module_power_w * sized.pool.devices
    rows = []
    pools = [attrs.evolve(sized.pool, rate_per_s=load * sized.pool.rate_per_s) for load in LOADS]
    for load, one in zip(LOADS, observe(pools, promise, is_exact=True), strict=True):
        keeps_up = one.pool.find_load(promise.models) < one.pool.devices
        rows.append(
            QueueRow(
                label=label,
                quantity="latency",
                rate_per_s=one.pool.rate_per_s,
                load_ratio=load,
                p50_s=one.half_s if keeps_up else None,
                p99_s=one.latency_s if keeps_up else None,
                promise_s=promise.latency_s,
                power_w=_power(one, idle_w) + modules_w if keeps_up else None,
            )
        )
    return rows


def _power(seen: Seen, idle_w: float) -> float:
    """Return the average power of all devices in watts, including idle devices."""
    return seen.batch_w + idle_w * seen.pool.devices * (1.0 - min(seen.busy_fraction, 1.0))


def _form_late(runs: Runs, promise_s: float) -> FleetRow:
    """Return the row of hardware that misses a target of `promise_s` seconds with any number of devices."""
    station = _first(runs)
    slowest = max((some[0].latency_s or 0.0) for some in runs.values())
    reason = ALONE if slowest > promise_s else TRIED
    return make_late(station, reason(slowest=slowest, target=promise_s), max(slowest / promise_s, 1.0))
