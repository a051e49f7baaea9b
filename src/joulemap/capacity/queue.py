"""Batches at devices that share a queue: many pools stepped side by side, one service of each in a step.

requests of each model ─► wait in order ─► the first device that is free takes what waits, at most a batch ─► done
                          (or until a batch is full, or the first has waited as long as it may)

Requests come by themselves (Poisson), each pool at rates of its own; pools of a seed have the same requests, stretched
to their rates, so that what tells them apart is no chance.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import attrs
import numpy as np
from numpy.typing import NDArray

from joulemap.system.record import frozen

Array: TypeAlias = NDArray[np.float64]
Counts: TypeAlias = NDArray[np.int64]

WARM_UP: Final = 0.1
"""Of the requests: those at the start, which find the devices idle, count in nothing."""


@frozen(kw_only=True, eq=False)
class Service:
    """What batches of some models take on a device: tables [model, requests of the batch], with a column for none."""

    hold_s: Array
    """That the device is taken for."""
    latency_s: Array
    """From its start until its requests have their answers: longer than the hold where batches overlap."""
    energy_j: Array


@frozen(kw_only=True, eq=False)
class Pools:
    """Pools of alike devices, a row each."""

    service: Counts
    """Which of the services."""
    rates: Array
    """Requests a second [pool, model]."""
    devices: Counts
    batch: Counts
    """Most requests of a batch."""
    wait_s: Array
    """Longest that the first of a batch waits for others while a device is free."""

    def repeat(self, times: int) -> Pools:
        """Return each pool so many times, one behind the other."""
        return Pools(**{one.name: np.repeat(getattr(self, one.name), times, axis=0) for one in attrs.fields(Pools)})


@frozen(kw_only=True, eq=False)
class Observed:
    """How pools served their requests, a row each."""

    latency_s: Array
    """Of their requests [pool, model, seed and request], from arrival to answer; not a number where there is none."""
    busy_fraction: Array
    """Of the devices' time."""
    energy_w: Array
    """Joules of batches a second, of all devices of the pool."""
    batch_mean: Array
    """Requests of a batch."""

    def percentile(self, share: float) -> Array:
        """Return the latency that this share of the requests of each model keeps [pool, model]."""
        count = self.latency_s.shape[2]
        ordered = np.sort(self.latency_s, axis=2)
        known = count - np.isnan(ordered).sum(axis=2)
        place = np.clip(np.ceil(share * known).astype(int) - 1, 0, count - 1)
        return np.take_along_axis(ordered, place[:, :, None], axis=2)[:, :, 0]


def simulate_pools(
    services: list[Service], pools: Pools, *, requests: int = 2000, seeds: int = 4, variation: float = 0.0
) -> Observed:
    """Return how pools serve so many requests of each seed, the models of a pool by their shares.

    `variation` is the coefficient of variation of the time that a device takes for a batch (gamma-distributed; 1 is
    exponential). Pools that cannot keep up are observed as they fall behind.
    """
    arrivals, counts = _draw_arrivals(pools.rates, requests, seeds)
    rows = pools.repeat(seeds)
    seed = np.tile(np.arange(seeds), len(pools.devices))
    run = _Run(services, rows, seed, arrivals, counts, variation)
    while run.step():
        pass
    return run.observe(len(pools.devices), seeds)


def _draw_arrivals(rates: Array, requests: int, seeds: int) -> tuple[Array, Counts]:
    """Return arrivals at a rate of one [model, seed, request], and how many of each model a pool gets [pool, model]."""
    shares = rates / rates.sum(axis=1, keepdims=True)
    counts = np.maximum(np.ceil(shares * requests).astype(np.int64), 1)
    draw = np.random.default_rng(0)
    times = draw.exponential(size=(rates.shape[1], seeds, int(counts.max())))
    return np.cumsum(times, axis=2), counts


class _Run:
    """Pools in the midst of their requests."""

    def __init__(
        self, services: list[Service], rows: Pools, seed: Counts, arrivals: Array, counts: Counts, variation: float
    ) -> None:
        models, seeds, count = arrivals.shape
        self.count = count
        self.hold, self.latency, self.energy = (
            np.stack([_pad(getattr(one, name), services) for one in services])
            for name in ("hold_s", "latency_s", "energy_j")
        )
        self.rows, self.seed = rows, seed
        self.most = np.repeat(counts, seeds, axis=0)
        self.arrivals = np.concatenate((arrivals, np.full((models, seeds, 1), np.inf)), axis=2)
        self.span = float(arrivals[:, :, -1].max()) + 1.0
        offset = (np.arange(models)[:, None] * seeds + np.arange(seeds)) * self.span
        self.flat = (arrivals + offset[:, :, None]).ravel()
        total = len(seed)
        self.factors = _draw_factors(variation, seeds, count * models)
        self.free = np.where(np.arange(rows.devices.max()) < rows.devices[:, None], 0.0, np.inf)
        self.next = np.zeros((total, models), dtype=np.int64)
        self.done = np.full((total, models, count), np.nan)
        self.batches, self.counted, self.served, self.busy, self.joules = np.zeros((5, total))
        self.going = np.arange(total)

    def step(self) -> bool:
        """Start a batch in each pool that has requests left; return whether there was one."""
        rows = self.going
        if not len(rows):
            return False
        pools, seed, place = self.rows, self.seed[rows], self.next[rows]
        rates, batch = pools.rates[rows], pools.batch[rows]
        models = range(place.shape[1])
        heads = np.stack([self.arrivals[one, seed, place[:, one]] for one in models], axis=1) / rates
        heads = np.where(place < self.most[rows], heads, np.inf)
        server = np.argmin(self.free[rows], axis=1)
        free = self.free[rows, server]
        ready = self._find_ready(heads, place, seed, rates, batch, pools.wait_s[rows])
        start = np.maximum(free[:, None], ready)
        first = start.min(axis=1)
        model = np.argmin(np.where(start <= first[:, None], heads, np.inf), axis=1)
        at = np.arange(len(rows))
        taken = self._count_waiting(first, model, seed, rates[at, model], place[at, model])
        taken = np.clip(np.minimum(taken, self.most[rows, model] - place[at, model]), 1, batch)
        service = pools.service[rows]
        factor = self.factors[seed, (self.batches[rows].astype(np.int64)) % self.factors.shape[1]]
        hold = self.hold[service, model, taken] * factor
        answered = first + self.latency[service, model, taken] - hold / factor + hold
        self.free[rows, server] = first + hold
        self.done[rows, model, place[at, model]] = answered
        self.next[rows, model] += taken
        late = place[at, model] >= WARM_UP * self.most[rows, model]
        self._add_up(rows, late, taken, hold, self.energy[service, model, taken] * factor)
        self.going = rows[(self.next[rows] < self.most[rows]).any(axis=1)]
        return True

    def _find_ready(self, heads: Array, place: Counts, seed: Counts, rates: Array, batch: Counts, wait: Array) -> Array:
        """Return when a batch of each model is full, or its first has waited as long as it may.

        The last requests wait for none behind them: more come than are drawn.
        """
        if not wait.any():
            return heads
        last = np.minimum(place + batch[:, None] - 1, self.count - 1)
        full = np.stack([self.arrivals[one, seed, last[:, one]] for one in range(place.shape[1])], axis=1) / rates
        return np.where(np.isinf(heads), np.inf, np.minimum(full, heads + wait[:, None]))

    def _count_waiting(self, start: Array, model: Counts, seed: Counts, rate: Array, place: Counts) -> Counts:
        """Return how many of a model have come up to a time and are not served."""
        seeds = self.arrivals.shape[1]
        line = model * seeds + seed
        found = np.searchsorted(self.flat, line * self.span + np.minimum(start * rate, self.span - 0.5), side="right")
        waiting: Counts = found - line * self.count - place
        return waiting

    def _add_up(self, rows: Counts, late: NDArray[np.bool_], taken: Counts, hold: Array, joules: Array) -> None:
        self.batches[rows] += 1.0
        self.counted[rows] += late
        self.served[rows] += late * taken
        self.busy[rows] += late * hold
        self.joules[rows] += late * joules

    def observe(self, pools: int, seeds: int) -> Observed:
        """Return what was seen, of each pool the seeds together."""
        _, models, count = self.done.shape
        places = np.arange(count)
        last = np.maximum.accumulate(np.where(np.isnan(self.done), 0, places), axis=2)
        answered = np.take_along_axis(self.done, last, axis=2)
        came = np.stack([self.arrivals[one, self.seed, :count] for one in range(models)], axis=1)
        latency = answered - came / self.rows.rates[:, :, None]
        kept = (places >= WARM_UP * self.most[:, :, None]) & (places < self.most[:, :, None])
        latency = np.where(kept, latency, np.nan)

        def add(values: Array) -> Array:
            total: Array = values.reshape(pools, seeds).sum(axis=1)
            return total

        busy, served, devices = add(self.busy), add(self.served), self.rows.devices[::seeds]
        # As long as such requests take to come, not up to the last answer: what comes behind them fills that time.
        span = np.maximum(served / self.rows.rates.sum(axis=1)[::seeds], busy / devices)
        return Observed(
            latency_s=latency.reshape(pools, seeds, models, count).transpose(0, 2, 1, 3).reshape(pools, models, -1),
            busy_fraction=busy / (span * devices),
            energy_w=add(self.joules) / span,
            batch_mean=served / add(self.counted),
        )


def _pad(table: Array, services: list[Service]) -> Array:
    width = max(one.hold_s.shape[1] for one in services)
    return np.pad(table, ((0, 0), (0, width - table.shape[1])), mode="edge")


def _draw_factors(variation: float, seeds: int, count: int) -> Array:
    """Return what the times of batches are multiplied by, of mean 1 [seed, batch]."""
    if variation == 0.0:
        return np.ones((seeds, 1))
    shape = 1.0 / variation**2
    return np.random.default_rng(1).gamma(shape, 1.0 / shape, size=(seeds, count))
