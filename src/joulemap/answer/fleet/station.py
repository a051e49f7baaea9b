"""Fleets for models that are served in batches: each hardware's runs at several batches, and its queue."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import attrs

from joulemap.answer.fleet.row import LATE, OK, FleetRow, Load, Sizing, cost_fleet, tell_levels
from joulemap.capacity.size import (
    Candidate,
    Promise,
    Sized,
    find_rates,
    form_candidate,
    observe_at,
    save_energy,
    scale,
    size_fleets,
)
from joulemap.present.cell import show_quantity
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.domain.fleet import Demand, Level
    from joulemap.row.fleet import Station

HALF_MORE: Final = 1.5
"""Times the highest rate at which it is told what fails."""

Runs = Mapping[str, "Sequence[Station]"]
"""Model -> its runs on a configuration, the smallest batch first."""


@frozen(kw_only=True, eq=False)
class _Fleets:
    """Fleets in step with each other: what each is made of, and how many keep the promise."""

    runs: Sequence[Runs]
    candidates: Sequence[Candidate]
    sized: Sequence[Sized]


def size_stations(
    stations: Sequence[Station], shares: Mapping[str, float], levels: Sequence[Level], demand: Demand
) -> list[Sizing]:
    """Return rows for each hardware that runs all models, at the precision that needs fewest of it.

    One row serves what waits at once, another where that saves joules lets batches wait to be filled; one says that no
    number of devices keeps the promise.
    """
    assert demand.p99_s is not None
    promise = Promise(latency_s=demand.p99_s, models=tuple(shares.values()), variation=demand.variation)
    runs = [one for one in _group(stations) if _fits(one, shares)]
    candidates = [_form_candidate(one, shares) for one in runs]
    sized = size_fleets(candidates, levels[0].rate_per_s, promise)
    best: dict[str, tuple[int, float, int]] = {}
    for place, one in enumerate(sized):
        if one is not None:
            name = _first(runs[place]).hardware
            best[name] = min(best.get(name, (one.devices, one.batch_w, place)), (one.devices, one.batch_w, place))
    places = [place for _, _, place in best.values()]
    fleets = _Fleets(
        runs=[runs[place] for place in places],
        candidates=[candidates[place] for place in places],
        sized=[one for place in places if (one := sized[place]) is not None],
    )
    late = {_first(one).hardware: one for one in runs if _first(one).hardware not in best}
    filled = _fill(fleets, levels[0].rate_per_s, promise)
    return [
        *_form_rows(_join(fleets, filled), levels, demand, promise),
        *(Sizing(row=_form_late(one, demand.p99_s)) for one in late.values()),
    ]


def _join(*fleets: _Fleets) -> _Fleets:
    return _Fleets(
        runs=[run for one in fleets for run in one.runs],
        candidates=[candidate for one in fleets for candidate in one.candidates],
        sized=[sized for one in fleets for sized in one.sized],
    )


def _group(stations: Sequence[Station]) -> list[Runs]:
    """Return the runs of each configuration that could be evaluated."""
    found: dict[tuple[str, str, str], dict[str, list[Station]]] = {}
    for row in stations:
        if row.status == OK:
            key = (row.hardware, row.precision, row.runtime)
            found.setdefault(key, {}).setdefault(row.model, []).append(row)
    return [*found.values()]


def _first(runs: Runs) -> Station:
    return next(iter(runs.values()))[0]


def _fits(runs: Runs, shares: Mapping[str, float]) -> bool:
    """Return whether a device runs all models, and holds them together."""
    if set(runs) != set(shares):
        return False
    capacity = _first(runs).memory_capacity_bytes
    return capacity is None or sum(some[0].weight_bytes or 0 for some in runs.values()) <= capacity


def _form_candidate(runs: Runs, shares: Mapping[str, float]) -> Candidate:
    """Return what batches take: between those that were evaluated, on a straight line."""
    batches = sorted(set.intersection(*({row.batch for row in some} for some in runs.values())))
    kept = [[row for row in runs[model] if row.batch in batches] for model in shares]
    return form_candidate(
        batches,
        [[row.batch / (row.throughput_per_s or 1.0) for row in some] for some in kept],
        [[row.latency_s or 0.0 for row in some] for some in kept],
        [[row.energy_j or 0.0 for row in some] for some in kept],
    )


def _fill(fleets: _Fleets, rate: float, promise: Promise) -> _Fleets:
    """Return those fleets whose joules are saved by batches that wait to be filled, so that they do."""
    filled = save_energy(fleets.candidates, fleets.sized, rate, promise)
    places = [place for place, one in enumerate(filled) if one.wait_s > 0.0]
    return _Fleets(
        runs=[fleets.runs[place] for place in places],
        candidates=[fleets.candidates[place] for place in places],
        sized=[filled[place] for place in places],
    )


def _form_rows(fleets: _Fleets, levels: Sequence[Level], demand: Demand, promise: Promise) -> list[Sizing]:
    """Return a row for each fleet: how it serves each rate and more, and how many there may have to be."""
    if not fleets.sized:
        return []
    peak = levels[0].rate_per_s
    count = len(fleets.sized)
    doubts = [_first(one).latency_half_width or 0.0 for one in fleets.runs]
    doubted = size_fleets(
        [
            scale(one, math.exp(sign * doubt))
            for sign in (-1.0, 1.0)
            for one, doubt in zip(fleets.candidates, doubts, strict=True)
        ],
        peak,
        promise,
    )
    alone = [attrs.evolve(one, devices=1) for one in fleets.sized]
    carried = find_rates(
        [*fleets.candidates] * 2,
        [*fleets.sized, *alone],
        [peak] * count + [peak / one.devices for one in fleets.sized],
        promise,
    )
    grown = observe_at(fleets.candidates, fleets.sized, HALF_MORE * peak, promise)
    loads = _observe_levels(fleets, levels, demand, promise)
    return [
        _form_row(
            fleets.runs[place],
            one,
            demand,
            loads=loads[place],
            low=doubted[place],
            high=doubted[count + place],
            carried=max(carried[place], 1.0),
            alone=carried[count + place] * levels[0].rate_per_s / one.devices,
            grown=grown[place],
        )
        for place, one in enumerate(fleets.sized)
    ]


def _observe_levels(fleets: _Fleets, levels: Sequence[Level], demand: Demand, promise: Promise) -> list[list[Load]]:
    """Return what each fleet does at each rate, with as many devices as that needs where others are given back."""
    found: list[list[Load]] = [[] for _ in fleets.sized]
    for place, level in enumerate(levels):
        if level.rate_per_s == 0.0:
            seen: Sequence[Sized | None] = [None] * len(fleets.sized)
        elif place == 0:
            seen = fleets.sized
        elif demand.releases:
            seen = size_fleets(fleets.candidates, level.rate_per_s, promise)
        else:
            seen = observe_at(fleets.candidates, fleets.sized, level.rate_per_s, promise)
        for loads, whole, one in zip(found, fleets.sized, seen, strict=True):
            idle = 0 if demand.releases else whole.devices
            loads.append(
                Load(
                    level=level,
                    devices=idle if one is None else one.devices,
                    busy_devices=0.0 if one is None else one.busy_fraction * one.devices,
                    batch_w=0.0 if one is None else one.batch_w,
                )
            )
    return found


def _form_row(
    runs: Runs,
    sized: Sized,
    demand: Demand,
    *,
    loads: Sequence[Load],
    low: Sized | None,
    high: Sized | None,
    carried: float,
    alone: float,
    grown: Sized,
) -> Sizing:
    station = next(row for row in next(iter(runs.values())) if row.batch >= sized.batch)
    assert demand.p99_s is not None
    idle = station.idle_power_w or 0.0
    power = _power(sized, idle)
    more = ["the promise"] if carried < HALF_MORE else []
    if demand.max_power_w is not None and _power(grown, idle) > demand.max_power_w:
        more.append("the power limit")
    label = f"{describe(station)['label']}{', filled' if sized.wait_s else ''}"
    row = FleetRow(
        **{**describe(station), "label": label},
        status=OK,
        reason="",
        device_count=sized.devices,
        device_low_count=low.devices if low else None,
        device_high_count=high.devices if high else None,
        batch=sized.batch,
        batch_mean=sized.batch_mean,
        wait_s=sized.wait_s,
        p50_latency_s=sized.half_s,
        p99_latency_s=sized.latency_s,
        promise_fraction=sized.latency_s / demand.p99_s,
        server_rate_per_s=alone,
        carried_ratio=carried,
        fails_first=" and ".join(more),
        busy_fraction=sized.busy_fraction,
        power_w=power,
        idle_power_w=idle * sized.devices,
        first_token_p99_s=None,
        between_p99_s=None,
        way="",
        cost_per_month=None,
        **cost_fleet(station, loads, sized.devices, demand.owned.get(station.hardware_id, 0), idle),
    )
    return Sizing(row=row, levels=tell_levels(label, station, loads, idle))


def _power(sized: Sized, idle_w: float) -> float:
    """Return the watts of all devices, those that idle in."""
    return sized.batch_w + idle_w * sized.devices * (1.0 - min(sized.busy_fraction, 1.0))


def _form_late(runs: Runs, promise_s: float) -> FleetRow:
    """Return the row of hardware that does not keep the promise, however many there are of it."""
    station = _first(runs)
    slowest = max((some[0].latency_s or 0.0) for some in runs.values())
    told = f"one request takes {show_quantity(slowest, 's')} alone, promised are {show_quantity(promise_s, 's')}"
    if slowest <= promise_s:
        told = f"99 of 100 are not within {show_quantity(promise_s, 's')} on any number of devices that is tried"
    return make_late(station, told, max(slowest / promise_s, 1.0))


def make_late(station: Station, reason: str, taken: float | None = None) -> FleetRow:
    """Return the row of hardware that keeps no promise, for a reason, with what it takes of the promise at least."""
    figures: dict[str, Any] = {one.name: None for one in attrs.fields(FleetRow) if str(one.type).endswith("None")}
    figures |= {**describe(station), "way": "", "fails_first": "", "promise_fraction": taken}
    return FleetRow(**figures, status=LATE, reason=reason)


def describe(station: Station) -> dict[str, Any]:
    """Return what a row says of its hardware and run."""
    return {
        "label": f"{station.hardware} {station.precision}",
        "hardware": station.hardware,
        "precision": station.precision,
        "runtime": station.runtime,
        "server_device_count": 1,
        "time_half_width": station.latency_half_width,
        "energy_half_width": station.energy_half_width,
        "rented_half_width": station.rented_half_width,
        "bought_half_width": station.bought_half_width,
        "is_available": station.is_available,
        "run_id": station.run_id,
    }
