"""Fewest devices that meet a target, by bisection over the number of devices for all candidates at once."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from joulemap.wing.fleet.capacity.observation import (
    Candidate,
    Option,
    Promise,
    Rates,
    Seen,
    Sized,
    Tried,
    is_closed,
    observe,
    size_options,
    spread_rates,
)
from joulemap.wing.fleet.capacity.queue import Array
from joulemap.wing.fleet.demand import MOST_CARRIED

FULLEST: Final = 0.95
"""Maximum utilization at full batches; above it, queues grow for longer than a simulation lasts."""

STEPS: Final = ((1.0, 1.15, 1.35), (1.7, 2.4, 4.0))
"""Multiples of the devices that full batches need; each group of them is tried at once."""

NEAR: Final = 1.01
"""Ratio of two numbers of devices below which simulations do not search further."""

WAITS: Final = (0.25, 0.5, 0.75)
"""Maximum waits of a batch's first request that are tried, as shares of the target minus the latency of a full batch.
"""

ROOMS: Final = (1.0, 2.0)
"""Minimum ratios of the target to a batch's latency; for each, the largest such batch is tried with a wait."""

EQUAL: Final = 1.01
"""Ratio of two powers up to which batch sizes count as equal, because simulations do not distinguish them."""

CLOSE: Final = 0.02
"""Difference of the logarithms of a met and a missed rate at which the search stops."""


def size_fleets(
    candidates: Sequence[Candidate], rates: Rates, promise: Promise, kinds: Sequence[str] = ()
) -> list[Sized | None]:
    """Return the fewest devices of each candidate that meet a target at these rates; None if no number does.

    All evaluated batch sizes within the target are tried, because requests also wait for the batch before them. The
    option with the fewest devices is chosen, then the one with the least energy. Of batch sizes with equal energy, the
    largest is chosen, for its capacity. If `kinds` names a kind of each candidate, the result is None for all but the
    best candidate of a kind.
    """
    options: dict[int, list[Seen]] = {}
    kinds = kinds or _name(candidates)
    for option, seen in _fit(candidates, rates, promise, kinds).items():
        options.setdefault(option.candidate, []).append(seen)
    best: dict[str, Seen] = {}
    for candidate in sorted(options):
        one = _choose(options[candidate])
        best[kinds[candidate]] = min(
            best.get(kinds[candidate], one), one, key=lambda seen: (seen.devices, seen.batch_w)
        )
    sized = size_options(candidates, [(one.option, one.devices) for one in best.values()], rates, promise)
    by_place = {one.option.candidate: some for one, some in zip(best.values(), sized, strict=True)}
    return [by_place.get(index) for index in range(len(candidates))]


def _name(candidates: Sequence[Candidate]) -> list[str]:
    """Return a different kind for each candidate, so that candidates do not compete with each other."""
    return [str(index) for index in range(len(candidates))]


def _choose(options: Sequence[Seen]) -> Seen:
    """Return the option with the fewest devices; of equal ones, that with less energy, then the largest batch."""
    fewest = min(one.devices for one in options)
    some = [one for one in options if one.devices == fewest]
    least_w = min(one.batch_w for one in some)
    return max((one for one in some if one.batch_w <= EQUAL * least_w), key=lambda one: one.option.batch)


def count_devices(candidates: Sequence[Candidate], rates: Rates, promise: Promise) -> list[int | None]:
    """Return the number of devices of each candidate, as in `size_fleets`; None if no number meets the target."""
    counts: dict[int, int] = {}
    for option, seen in _fit(candidates, rates, promise, _name(candidates), is_counted=True).items():
        counts[option.candidate] = min(seen.devices, counts.get(option.candidate, seen.devices))
    return [counts.get(index) for index in range(len(candidates))]


def save_energy(candidates: Sequence[Candidate], sized: Sequence[Sized], rates: Rates, promise: Promise) -> list[Sized]:
    """Return each fleet with the maximum wait per batch that saves most energy at the same number of devices.

    The target is still met. A fleet is unchanged if no wait saves energy.
    """
    options = []
    for index, (candidate, one) in enumerate(zip(candidates, sized, strict=True)):
        for batch in _list_filled(candidate, one.batch, promise):
            slack = promise.latency_s - float(candidate.service.latency_s[:, batch].max())
            options += [
                (index, one.devices, Option(candidate=index, batch=batch, wait_s=share * slack)) for share in WAITS
            ]
    best: dict[int, Seen] = {}
    tried = observe(candidates, [(option, devices) for _, devices, option in options], rates, promise)
    for (index, _, _), now in zip(options, tried, strict=True):
        if now.is_kept and now.batch_w < (best[index] if index in best else sized[index]).batch_w:
            best[index] = now
    better = size_options(candidates, [(one.option, one.devices) for one in best.values()], rates, promise)
    saving = dict(zip(best, better, strict=True))
    return [saving.get(index, one) for index, one in enumerate(sized)]


def _list_filled(candidate: Candidate, batch: int, promise: Promise) -> list[int]:
    """Return the batch sizes that are tried with a wait: the fleet's size, and the largest ones of `ROOMS`."""
    largest = (_list_batches(candidate, promise, room)[-1:] for room in ROOMS)
    return list(dict.fromkeys((batch, *itertools.chain.from_iterable(largest))))


def observe_at(candidates: Sequence[Candidate], sized: Sequence[Sized], rates: Rates, promise: Promise) -> list[Sized]:
    """Return the latency, utilization and power of fleets at other rates than their design rates."""
    return size_options(candidates, list(map(_try, range(len(sized)), sized)), rates, promise)


def _try(candidate: int, sized: Sized) -> Tried:
    return Option(candidate=candidate, batch=sized.batch, wait_s=sized.wait_s), sized.devices


def find_rates(
    candidates: Sequence[Candidate], sized: Sequence[Sized], rates: Rates, promise: Promise, *, is_kept: bool = False
) -> list[float]:
    """Return each fleet's capacity as a multiple of these rates, up to `MOST_CARRIED`; 0 if it misses the target.

    The capacity of full batches is an upper bound, because a short simulation may not show that a queue grows.
    `is_kept` states that all fleets meet the target at these rates; then lower rates are not tried.
    """
    each = spread_rates(rates, promise, len(sized))
    loads = [
        _find_load(candidate, one.batch, some) / one.devices
        for candidate, one, some in zip(candidates, sized, each, strict=True)
    ]
    high = np.log(np.clip(FULLEST / np.array(loads), 1.0 if is_kept else 1.0 / MOST_CARRIED, MOST_CARRIED))
    low = np.full(len(sized), 0.0 if is_kept else -np.log(MOST_CARRIED))
    tried = high.copy()
    is_met = np.full(len(sized), is_kept)
    places = np.flatnonzero(high > low)
    while True:
        if not len(places):
            return [float(one) for one in np.where(is_met, np.exp(low), 0.0)]
        some = [candidates[index] for index in places.tolist()]
        options = [_try(number, sized[index]) for number, index in enumerate(places.tolist())]
        seen = observe(some, options, list((np.exp(tried) * rates)[places]), promise, reads_power=False)
        kept = np.array([one.is_kept for one in seen])
        low[places[kept]] = tried[places[kept]]
        high[places[~kept]] = tried[places[~kept]]
        is_met[places[kept]] = True
        tried = 0.5 * (low + high)
        places = np.flatnonzero(high - low > CLOSE)


def _list_batches(candidate: Candidate, promise: Promise, room: float = 1.0) -> list[int]:
    """Return the evaluated batches, smallest first, whose latency times `room` is within the target."""
    latency_s = candidate.service.latency_s
    return [batch for batch in candidate.batches if (room * latency_s[:, batch] <= promise.latency_s).all()]


def _fit(
    candidates: Sequence[Candidate], rates: Rates, promise: Promise, kinds: Sequence[str], *, is_counted: bool = False
) -> dict[Option, Seen]:
    """Return the fewest devices of each option that meet the target.

    Options that never meet it are omitted, as are options that need more devices than another option of their kind.
    With `is_counted`, only the number of devices matters, so options with an equal number are omitted too.
    """
    each = spread_rates(rates, promise, len(candidates))
    least = {
        Option(candidate=index, batch=batch): _count_least(one, batch, each[index])
        for index, one in enumerate(candidates)
        for batch in _list_batches(one, promise)
    }
    kept: dict[Option, Seen] = {}
    failed: dict[Option, int] = {}
    fewest: dict[str, int] = {}

    def look(tried: Sequence[Tried]) -> None:
        for seen in observe(candidates, tried, rates, promise, reads_power=not is_counted):
            option, devices, kind = seen.option, seen.devices, kinds[seen.option.candidate]
            if not seen.is_kept:
                failed[option] = max(failed.get(option, 0), devices)
            elif option not in kept or devices < kept[option].devices:
                kept[option] = seen
                fewest[kind] = min(fewest.get(kind, devices), devices)

    def find_limit(option: Option) -> float:
        """Return the number of devices above which an option can no longer be chosen."""
        return fewest.get(kinds[option.candidate], math.inf) - is_counted

    def list_least(names: Sequence[str]) -> list[Tried]:
        """Return each option that has the fewest devices of its name."""
        floor: dict[str, int] = {}
        for option, devices in least.items():
            name = names[option.candidate]
            floor[name] = min(devices, floor.get(name, devices))
        return [
            (option, devices)
            for option, devices in least.items()
            if devices == floor[names[option.candidate]] <= find_limit(option)
            if option not in kept and option not in failed
        ]

    def list_steps(factors: Sequence[float]) -> Iterator[Tried]:
        """Yield increasing numbers of devices for options that may still be chosen, until a number is too large."""
        for option in (one for one in least if one not in kept):
            below = max(failed.get(option, 0), least[option] - 1)
            for devices in sorted({math.ceil(least[option] * factor) for factor in factors}):
                if devices > below and below < find_limit(option):
                    yield option, devices
                    below = devices

    own = _name(candidates)
    if is_counted:
        look(_pick_likely(candidates, list_least(own), promise))
    look(list_least(kinds))
    look(list_least(own))
    for factors in STEPS:
        look([*list_steps(factors)])
    while True:
        tried = []
        for option, seen in kept.items():
            below = max(failed.get(option, 0), least[option] - 1)
            near = 1.0 if is_closed(option, promise) else NEAR
            if seen.devices > below + 1 and seen.devices > near * below and below < find_limit(option):
                tried.append((option, (seen.devices + below) // 2))
        if not tried:
            return kept
        look(tried)


def _pick_likely(candidates: Sequence[Candidate], tried: Sequence[Tried], promise: Promise) -> list[Tried]:
    """Return the option of each candidate that is most likely to meet the target.

    It has the largest batch whose latency is at most half of the target, so that a request may wait for one batch.
    """
    likely: dict[int, Tried] = {}
    for option, devices in tried:
        latency_s = float(candidates[option.candidate].service.latency_s[:, option.batch].max())
        if option.candidate not in likely or 2.0 * latency_s <= promise.latency_s:
            likely[option.candidate] = option, devices
    return [*likely.values()]


def _count_least(candidate: Candidate, batch: int, rates: Array) -> int:
    """Return the fewest devices whose utilization at full batches is at most `FULLEST`."""
    return max(1, int(np.ceil(_find_load(candidate, batch, rates) / FULLEST)))


def find_load(candidate: Candidate, batch: int, rate: float, promise: Promise) -> float:
    """Return the devices that full batches keep busy, as a fraction, at `rate` requests per second over all models."""
    return _find_load(candidate, batch, rate * np.array(promise.models))


def _find_load(candidate: Candidate, batch: int, rates: Array) -> float:
    """Return the devices that full batches keep busy, as a fraction, at these requests per second of each model."""
    return float((rates * candidate.service.occupied_s[:, batch]).sum() / batch)
