"""Fewest devices that meet a target, by bisection over the number of devices for all services at once."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Sequence
from typing import Final

import attrs
import numpy as np
from numpy.typing import NDArray

from joulemap.wing.fleet.capacity.queue import Pool, Promise, Seen, Service, judge, observe
from joulemap.wing.fleet.demand import MOST_CARRIED

FULLEST: Final = 0.95
"""Maximum utilization at full batches; above it, queues grow for longer than a simulation lasts."""

GROWTH: Final = 1.3
"""Ratio of the next number of devices to one that misses the target, until a number meets it."""

MOST_GROWTH: Final = 4
"""Maximum ratio of the number of devices to those that full batches need; more devices hardly shorten queues."""

NEAR: Final = 1.01
"""Ratio of two numbers of devices below which simulations do not search further."""

WAITS: Final = (0.25, 0.5, 0.75)
"""Maximum waits of a batch's first request that are tried, as shares of the target minus the latency of a full batch.
"""

ROOMS: Final = (1.0, 2.0)
"""Minimum ratios of the target to a batch's latency; for each, the largest such batch is tried with a wait."""

EQUAL: Final = 1.01
"""Ratio of two powers up to which batch sizes count as equal, because simulations do not distinguish them."""

DOUBT: Final = 1.05
"""Ratio of two powers up to which short simulations do not tell which is the lower one."""

CLOSE: Final = 0.1
"""Difference of the logarithms of a met and a missed rate at which the search stops."""

SURE: Final = 0.05
"""Difference of the logarithms of a share of late requests and of the allowed one at which the search stops."""

LEAST: Final = 0.05
"""Least share of late requests, relative to the allowed one, that simulations distinguish from none."""


def find_fewest(
    services: Sequence[Service],
    rate_per_s: float,
    promise: Promise,
    kinds: Sequence[Hashable] = (),
    *,
    is_counted: bool = False,
) -> list[Seen | None]:
    """Return the pool of each service with the fewest devices that meet a target at a rate; None if no number does.

    All evaluated batch sizes within the target are tried, because requests also wait for the batch before them. Of
    batch sizes with equally few devices, the one with the least energy is chosen, and of equal energies the largest,
    for its capacity. If `kinds` names a kind of each service, the result is None for all but the best service of a
    kind. With `is_counted`, only the number of devices is right.
    """
    names = [*(kinds or range(len(services)))]
    pools = [
        Pool(service=one, rate_per_s=rate_per_s, devices=1, batch=batch)
        for one in services
        for batch in _list_batches(one, promise)
    ]
    numbers = {one: names.index(name) for one, name in zip(services, names, strict=True)}
    kind = np.array([numbers[one.service] for one in pools], dtype=np.int64)
    least = np.array([max(1, math.ceil(one.find_load(promise.models) / FULLEST)) for one in pools])
    met, missed = np.full(len(pools), np.inf), least - 1.0
    seen: dict[int, Seen] = {}
    is_tried = _find_likely(pools, promise)
    while True:
        fewest = np.full(len(names), np.inf)
        np.minimum.at(fewest, kind, met)
        most = np.minimum(fewest[kind] - is_counted, MOST_GROWTH * least)
        tried = np.where(np.isinf(met), np.ceil(GROWTH * missed), np.floor(0.5 * (met + missed)))
        tried = np.clip(tried, missed + 1, most)
        is_open = (missed < most) & (met > missed + 1) & (met > NEAR * missed)
        places = (is_tried & is_open).nonzero()[0].tolist()
        if not places:
            break
        some = [attrs.evolve(pools[place], devices=int(tried[place])) for place in places]
        for place, one in zip(places, judge(some, promise), strict=True):
            if one.keeps(promise):
                met[place], seen[place] = one.pool.devices, one
            else:
                missed[place] = one.pool.devices
        is_tried[:] = True
    ties: dict[int, list[Seen]] = {}
    for place, one in sorted(seen.items()):
        if met[place] == fewest[kind[place]]:
            ties.setdefault(kind[place], []).append(one)
    chosen = [some[0] for some in ties.values()] if is_counted else _choose([*ties.values()], promise)
    found = {one.pool.service: one for one in chosen}
    return [found.get(one) for one in services]


def _find_likely(pools: Sequence[Pool], promise: Promise) -> NDArray[np.bool_]:
    """Return for each pool whether its batch is the likeliest of its service to meet the target.

    It is the largest whose latency is at most half of the target, so that a request may wait for one batch.
    """
    likely: dict[Service, int] = {}
    for place, one in enumerate(pools):
        if one.service not in likely or 2.0 * one.service.latency_s[:, one.batch].max() <= promise.latency_s:
            likely[one.service] = place
    return np.isin(np.arange(len(pools)), [*likely.values()])


def _choose(ties: Sequence[Sequence[Seen]], promise: Promise) -> list[Seen]:
    """Return of each group the pool with the least energy, or of its service a larger batch with equal energy."""
    least = [min(tied, key=lambda one: one.batch_w) for tied in ties]
    large = [
        max(
            (one for one in tied if one.pool.service is first.pool.service and one.batch_w <= DOUBT * first.batch_w),
            key=lambda one: one.pool.batch,
        )
        for tied, first in zip(ties, least, strict=True)
    ]
    some = [*dict.fromkeys((*least, *large))]
    seen = dict(zip(some, observe([one.pool for one in some], promise, is_exact=True), strict=True))
    return [
        seen[other] if seen[other].batch_w <= EQUAL * seen[one].batch_w else seen[one]
        for one, other in zip(least, large, strict=True)
    ]


def save_energy(sized: Sequence[Seen], promise: Promise) -> list[Seen]:
    """Return each pool with the maximum wait per batch that saves most energy with the same number of devices.

    The target is still met. A pool is unchanged if no wait saves energy.
    """
    options = [
        (index, attrs.evolve(one.pool, batch=batch, wait_s=share * (promise.latency_s - latency_s)))
        for index, one in enumerate(sized)
        for batch in _list_filled(one.pool, promise)
        if batch > 1
        for latency_s in [float(one.pool.service.latency_s[:, batch].max())]
        for share in WAITS
    ]
    best: dict[int, Seen] = {}
    for (index, _), now in zip(options, judge([pool for _, pool in options], promise), strict=True):
        if now.keeps(promise) and (index not in best or now.batch_w < best[index].batch_w):
            best[index] = now
    exact = observe([one.pool for one in best.values()], promise, is_exact=True)
    better = {index: one for index, one in zip(best, exact, strict=True) if one.keeps(promise)}
    return [min(one, better.get(index, one), key=lambda one: one.batch_w) for index, one in enumerate(sized)]


def _list_filled(pool: Pool, promise: Promise) -> list[int]:
    """Return the batch sizes that are tried with a wait: the pool's size, and the largest ones of `ROOMS`."""
    largest = (_list_batches(pool.service, promise, room)[-1:] for room in ROOMS)
    return list(dict.fromkeys((pool.batch, *itertools.chain.from_iterable(largest))))


def _list_batches(service: Service, promise: Promise, room: float = 1.0) -> list[int]:
    """Return the evaluated batches, smallest first, whose latency times `room` is within the target."""
    return [batch for batch in service.batches if (room * service.latency_s[:, batch] <= promise.latency_s).all()]


def observe_at(sized: Sequence[Seen], rate_per_s: float, promise: Promise) -> list[Seen]:
    """Return the service of pools at another rate than their own."""
    return observe([attrs.evolve(one.pool, rate_per_s=rate_per_s) for one in sized], promise)


def find_rates(pools: Sequence[Pool], promise: Promise, *, is_kept: bool = False) -> list[float]:
    """Return each pool's capacity as a multiple of its rate, up to `MOST_CARRIED`; 0 if it misses the target.

    Between the last met and missed rates, the logarithm of the share of late requests is interpolated. The capacity of
    full batches is an upper bound, because a short simulation may not show that a queue grows. `is_kept` states that
    all pools meet the target at their rates; then lower rates are not tried.
    """
    loads = np.array([one.find_load(promise.models) / one.devices for one in pools])
    high = np.log(np.clip(FULLEST / loads, 1.0 if is_kept else 1.0 / MOST_CARRIED, MOST_CARRIED))
    low = np.full(len(pools), 0.0 if is_kept else -np.log(MOST_CARRIED))
    below, above = np.full((2, len(pools)), [[math.log(LEAST)], [1.0]])
    tried, is_met = high.copy(), np.full(len(pools), is_kept)
    places = np.flatnonzero(high > low)
    while len(places):
        scaled = [
            attrs.evolve(pools[place], rate_per_s=pools[place].rate_per_s * math.exp(tried[place]))
            for place in places.tolist()
        ]
        late = np.array([max(one.late) for one in judge(scaled, promise)]) / (1.0 - promise.share)
        excess = np.log(np.maximum(late, LEAST))
        met, missed = places[excess <= SURE], places[excess > SURE]
        low[met], below[met], is_met[met] = tried[met], excess[excess <= SURE], True
        high[missed], above[missed] = tried[missed], excess[excess > SURE]
        tried = low + (high - low) * np.clip(below / (below - above), 0.2, 0.8)
        places = np.flatnonzero((high - low > CLOSE) & (below < -SURE))
    found = np.exp(low + (high - low) * np.minimum(below, 0.0) / (below - above))
    return [float(one) for one in np.where(is_met, found, 0.0)]
