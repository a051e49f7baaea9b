"""As few devices as keep a promise: every candidate at once, its number of devices halved in between."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

import attrs
import numpy as np

from joulemap.capacity.formula import constant_wait_percentile
from joulemap.capacity.queue import Array, Pools, Service, simulate_pools
from joulemap.system.record import frozen

Rates: TypeAlias = "float | Sequence[float]"
"""Requests a second of all models, the same for each candidate or of each."""

FULLEST: Final = 0.95
"""Of what devices with full batches could do: nearer to it, queues grow for longer than a simulation sees."""

TOGETHER: Final = 32
"""Devices that share a queue: of more, each queue has as many as these, and its part of the requests."""

STEPS: Final = (1.0, 1.15, 1.35, 1.7, 2.4, 4.0)
"""Times the devices that full batches need, which are tried first."""

NEAR: Final = 1.01
"""Ratio of two numbers of devices from which on they are told apart no further."""

WAITS: Final = (0.25, 0.5, 0.75)
"""Of the time that a promise leaves beside a full batch, how long the first of a batch may wait for others."""

MOST: Final = 16.0
"""Times a rate that a fleet is asked for at most, to see how much it carries."""

HALVINGS: Final = 8
"""Of the logarithm of a rate between one that is kept and `MOST` times it."""


@frozen(kw_only=True, eq=False)
class Candidate:
    """A device with its service of the models, and which batches it was evaluated at."""

    service: Service
    batches: tuple[int, ...]


def form_candidate(
    batches: Sequence[int],
    hold_s: Sequence[Sequence[float]],
    latency_s: Sequence[Sequence[float]],
    energy_j: Sequence[Sequence[float]],
) -> Candidate:
    """Return a candidate of what each model takes at these batches; between them it is on a straight line."""
    every = np.arange(batches[-1] + 1)
    hold, latency, energy = (
        np.stack([np.interp(every, batches, values) for values in table]) for table in (hold_s, latency_s, energy_j)
    )
    return Candidate(service=Service(hold_s=hold, latency_s=latency, energy_j=energy), batches=tuple(batches))


@frozen(kw_only=True, eq=False)
class Sized:
    """So many devices of a candidate, the policy of their batches, and how they serve the demand."""

    devices: int
    batch: int
    wait_s: float
    half_s: float
    """That half of the requests keep, of the slowest model."""
    latency_s: float
    """That the promised share keeps, of the slowest model."""
    busy_fraction: float
    batch_w: float
    """Joules of batches a second, of all devices."""
    batch_mean: float


@frozen(kw_only=True, eq=False)
class Promise:
    """That a share of the requests of each model have their answers within a time."""

    latency_s: float
    models: tuple[float, ...] = (1.0,)
    """Shares of the models in the requests."""
    share: float = 0.99
    variation: float = 0.0
    """Coefficient of variation of the time of a batch."""


@frozen(kw_only=True)
class _Option:
    candidate: int
    batch: int
    wait_s: float = 0.0


def size_fleets(candidates: Sequence[Candidate], rates: Rates, promise: Promise) -> list[Sized | None]:
    """Return for each candidate the fewest devices that keep a promise at these rates; None where no number does.

    Batches are as large as the promise lets them be, or half as long, whichever needs fewer devices, then joules.
    """
    options = [
        _Option(candidate=place, batch=batch)
        for place, one in enumerate(candidates)
        for batch in _choose_batches(one, promise)
    ]
    found: dict[int, Sized] = {}
    for option, sized in _fit(candidates, options, rates, promise).items():
        best = found.get(option.candidate)
        if best is None or (sized.devices, sized.batch_w) < (best.devices, best.batch_w):
            found[option.candidate] = sized
    return [found.get(place) for place in range(len(candidates))]


def save_energy(candidates: Sequence[Candidate], sized: Sequence[Sized], rates: Rates, promise: Promise) -> list[Sized]:
    """Return each fleet with the wait for others that costs it least joules and keeps the promise, in so many devices.

    None of its numbers change where no wait does.
    """
    options = []
    for place, (candidate, one) in enumerate(zip(candidates, sized, strict=True)):
        slack = promise.latency_s - float(candidate.service.latency_s[:, one.batch].max())
        options += [
            (place, one.devices, _Option(candidate=place, batch=one.batch, wait_s=share * slack)) for share in WAITS
        ]
    best = list(sized)
    tried = observe(candidates, [(option, devices) for _, devices, option in options], rates, promise)
    for (place, _, _), now in zip(options, tried, strict=True):
        if _keeps(now, promise) and now.batch_w < best[place].batch_w:
            best[place] = now
    return best


def observe_at(candidates: Sequence[Candidate], sized: Sequence[Sized], rates: Rates, promise: Promise) -> list[Sized]:
    """Return how fleets serve other rates than those that they were sized for."""
    tried = [
        (_Option(candidate=place, batch=one.batch, wait_s=one.wait_s), one.devices) for place, one in enumerate(sized)
    ]
    return observe(candidates, tried, rates, promise)


def find_rates(candidates: Sequence[Candidate], sized: Sequence[Sized], rates: Rates, promise: Promise) -> list[float]:
    """Return of each fleet how many times these rates it carries with its promise kept, up to `MOST`; 0 for none.

    No more than full batches can do: that a queue grows without end shows only after as long as the promise.
    """
    each = _spread(rates, promise, len(sized))
    loads = [
        _find_load(candidate, one.batch, some) / one.devices
        for candidate, one, some in zip(candidates, sized, each, strict=True)
    ]
    low, high = np.full(len(sized), np.log(1.0 / MOST)), np.log(np.minimum(MOST, FULLEST / np.array(loads)))
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        seen = observe_at(candidates, sized, list(np.exp(middle) * rates), promise)
        kept = np.array([_keeps(one, promise) for one in seen], dtype=bool)
        low, high = np.where(kept, middle, low), np.where(kept, high, middle)
    return [float(np.exp(one)) if one > np.log(1.0 / MOST) else 0.0 for one in low]


def scale(candidate: Candidate, factor: float) -> Candidate:
    """Return a candidate whose times are so many times as long; joules are as they were."""
    service = candidate.service
    scaled = attrs.evolve(service, hold_s=service.hold_s * factor, latency_s=service.latency_s * factor)
    return attrs.evolve(candidate, service=scaled)


def _choose_batches(candidate: Candidate, promise: Promise) -> list[int]:
    """Return the largest batch that keeps the promise alone, and the largest that does after another of its kind."""
    service = candidate.service
    found = []
    for room in (1.0, 2.0):
        kept = [batch for batch in candidate.batches if (room * service.latency_s[:, batch] <= promise.latency_s).all()]
        found += kept[-1:]
    return list(dict.fromkeys(found))


def _fit(
    candidates: Sequence[Candidate], options: Sequence[_Option], rates: Rates, promise: Promise
) -> dict[_Option, Sized]:
    """Return for each option the fewest devices that keep the promise; none for those that never do."""
    each = _spread(rates, promise, len(candidates))
    least = {
        option: _count_least(candidates[option.candidate], option.batch, each[option.candidate]) for option in options
    }
    tried = [
        (option, devices)
        for option in options
        for devices in sorted({int(np.ceil(least[option] * factor)) for factor in STEPS})
    ]
    kept: dict[_Option, Sized] = {}
    failed: dict[_Option, int] = {}
    while tried:
        for (option, devices), sized in zip(tried, observe(candidates, tried, rates, promise), strict=True):
            if not _keeps(sized, promise):
                failed[option] = max(failed.get(option, 0), devices)
            elif option not in kept or devices < kept[option].devices:
                kept[option] = sized
        tried = []
        for option, sized in kept.items():
            below = max(failed.get(option, 0), least[option] - 1)
            if sized.devices > below + 1 and sized.devices > NEAR * below:
                tried.append((option, (sized.devices + below) // 2))
    return kept


def _count_least(candidate: Candidate, batch: int, rates: Array) -> int:
    """Return how many devices full batches keep busy as far as they may be."""
    return max(1, int(np.ceil(_find_load(candidate, batch, rates) / FULLEST)))


def find_load(candidate: Candidate, batch: int, rate: float, promise: Promise) -> float:
    """Return how many devices full batches keep busy at a rate of all models."""
    return _find_load(candidate, batch, rate * np.array(promise.models))


def _find_load(candidate: Candidate, batch: int, rates: Array) -> float:
    """Return how many devices full batches of these rates keep busy."""
    return float((rates * candidate.service.hold_s[:, batch]).sum() / batch)


def observe(
    candidates: Sequence[Candidate], tried: Iterable[tuple[_Option, int]], rates: Rates, promise: Promise
) -> list[Sized]:
    """Return how so many devices of each option serve these rates: stepped, and where requests go one by one,
    in closed form.
    """
    pairs = list(tried)
    if not pairs:
        return []
    devices = np.array([count for _, count in pairs])
    each = _spread(rates, promise, len(candidates))
    shared = np.minimum(devices, TOGETHER)
    pools = Pools(
        service=np.array([option.candidate for option, _ in pairs]),
        rates=each[[option.candidate for option, _ in pairs]] * (shared / devices)[:, None],
        devices=shared,
        batch=np.array([option.batch for option, _ in pairs]),
        wait_s=np.array([option.wait_s for option, _ in pairs]),
    )
    seen = simulate_pools([one.service for one in candidates], pools, variation=promise.variation)
    latency = np.stack((seen.percentile(0.5), seen.percentile(promise.share)), axis=1).max(axis=2)
    for place, (option, _) in enumerate(pairs):
        if option.batch == 1 and each.shape[1] == 1 and promise.variation == 0.0:
            service = candidates[option.candidate].service
            hold, shares = float(service.hold_s[0, 1]), (0.5, promise.share)
            rate, count = float(pools.rates[place, 0]), int(shared[place])
            waits = [constant_wait_percentile(rate, hold, count, share) for share in shares]
            latency[place] = service.latency_s[0, 1] + np.array(waits)
    return [
        Sized(
            devices=count,
            batch=option.batch,
            wait_s=option.wait_s,
            half_s=float(latency[place, 0]),
            latency_s=float(latency[place, 1]),
            busy_fraction=float(seen.busy_fraction[place]),
            batch_w=float(seen.energy_w[place]) * count / int(shared[place]),
            batch_mean=float(seen.batch_mean[place]),
        )
        for place, (option, count) in enumerate(pairs)
    ]


def _spread(rates: Rates, promise: Promise, count: int) -> Array:
    """Return rates of each candidate and model."""
    each: Array = np.broadcast_to(rates, count)[:, None] * np.array(promise.models)
    return each


def _keeps(sized: Sized, promise: Promise) -> bool:
    return sized.latency_s <= promise.latency_s
