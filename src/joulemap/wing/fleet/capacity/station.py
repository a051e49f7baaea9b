"""Fleets for models that are served in batches: each chip's runs at several batches, and its queue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import attrs

from joulemap.wing.fleet.capacity.cost import complete_fleet, make_late
from joulemap.wing.fleet.capacity.observation import Candidate, Promise, Sized, form_candidate
from joulemap.wing.fleet.capacity.row import DELAYED, LOADS, OK, FleetRow, Sizing
from joulemap.wing.fleet.capacity.size import find_load, observe_at
from joulemap.wing.fleet.capacity.study import Studied, study_fleets
from joulemap.wing.fleet.generated.row import QueueRow
from joulemap.wing.fleet.show.word import ALONE, TRIED

if TYPE_CHECKING:
    from joulemap.wing.fleet.demand import Demand
    from joulemap.wing.fleet.generated.row import Station

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
