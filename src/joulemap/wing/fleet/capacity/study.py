"""Fleets for models that are served in batches: fewest devices for a demand, their work, and their headroom.

candidates ─► fewest devices, in whole nodes ─► the same with delayed batching, if that saves energy
└─► work at each rate, range of devices, highest rate within the target
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import attrs

from joulemap.system import frozen
from joulemap.wing.fleet.capacity.cost import HALF_MORE
from joulemap.wing.fleet.capacity.observation import Candidate, Promise, Sized, scale
from joulemap.wing.fleet.capacity.row import DeviceLoad
from joulemap.wing.fleet.capacity.size import count_devices, find_rates, observe_at, save_energy, size_fleets

if TYPE_CHECKING:
    from joulemap.wing.fleet.demand import Demand

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
