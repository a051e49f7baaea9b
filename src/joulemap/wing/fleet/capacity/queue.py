"""Batches at devices that share a queue: many pools simulated together, one batch of each pool per step.

requests of each model ─► wait in order ─► the first free device takes the waiting requests, at most a batch ─► done
                          (with a wait: until the batch is full or the first request has waited that long)

Requests arrive at random (Poisson), at each pool's own rate. All pools have the same requests, scaled to their rates,
so that differences between pools are not due to chance. Each pool is simulated for a number of batches rather than
requests, so that large batches and many devices are observed as often as small batches and few devices.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, Final, TypeAlias

import attrs
import numpy as np
from numpy.typing import NDArray

from joulemap.system import frozen

Array: TypeAlias = NDArray[np.float64]
Counts: TypeAlias = NDArray[np.int64]

WARM_UP: Final = 0.2
"""Share of batches at the start of a simulation that do not count, because devices begin idle."""

SEEDS: Final = 8
"""Number of simulations per pool; each uses different random requests."""

STREAM: Final = 3
"""Seed of all random requests. Of 0 to 11, it is the one with which waits for single requests agree best with their
closed form (M/D/c): p99 within 3.1 %, 1.4 % in the mean, at loads of 0.15 to 0.88 of 1 to 32 devices."""

FIRST: Final = 4
"""Number of simulations that suffice for a pool whose share of late requests is far from the allowed one."""

PART: Final = 0.5
"""Share of the batches that suffice for such a pool."""

CLEAR: Final = 2.0
"""Ratio of the share of late requests to the allowed one, or its inverse, that is far."""

FEW: Final = 32
"""Pools up to which short simulations save no time."""

BUSY: Final = 0.8
"""Utilization at full batches above which a queue grows for longer than a short simulation."""

BATCHES: Final = 500
"""Minimum batches in each simulation of a pool."""

ROUNDS: Final = 20
"""Minimum batches per device in a simulation."""

QUEUED: Final = 4800
"""Minimum requests per seed; queues of devices at 95 % utilization settle in about 400 of them."""

MOST_BATCHES: Final = 3000
"""Maximum batches per seed that long queues or rarely requested models may add."""

MOST_CELLS: Final = 2**20
"""Maximum batches of all pools that are simulated together; more take memory without a speedup."""

FEW_CELLS: Final = 2**18
"""Batches of all pools up to which the number of steps determines the time."""

MOST_DRAWN: Final = 2**18
"""Maximum random requests per model and seed."""

TOGETHER: Final = 32
"""Maximum devices that share a queue; a larger fleet has several queues with equal shares of requests."""

LEAST_VARIATION: Final = 1e-6
"""Coefficient of variation below which batch times are constant; the shape of their distribution would overflow."""

ROUNDED: Final = 1.0 + 1e-12
"""Factor on a start time, without which rounding leaves out the request whose arrival makes a batch full."""


@frozen(kw_only=True, eq=False)
class Service:
    """Times and energy of batches on a device: tables [model, requests of the batch], with a column for 0 requests."""

    occupied_s: Array
    """Seconds that the batch occupies the device."""
    latency_s: Array
    """Seconds from a batch's start to its results; longer than `occupied_s` if batches overlap on the device."""
    energy_j: Array
    batches: tuple[int, ...]
    """Evaluated batch sizes, smallest first; the tables interpolate between them."""

    def scale(self, factor: float) -> Service:
        """Return a service with all times multiplied by `factor` and unchanged energy."""
        return attrs.evolve(self, occupied_s=self.occupied_s * factor, latency_s=self.latency_s * factor)


def form_service(
    batches: Sequence[int],
    occupied_s: Sequence[Sequence[float]],
    latency_s: Sequence[Sequence[float]],
    energy_j: Sequence[Sequence[float]],
) -> Service:
    """Return a service from times and energies of each model at some batch sizes; other sizes are interpolated."""
    every = np.arange(batches[-1] + 1)
    occupied, latency, energy = (
        np.stack([np.interp(every, batches, values) for values in table]) for table in (occupied_s, latency_s, energy_j)
    )
    return Service(occupied_s=occupied, latency_s=latency, energy_j=energy, batches=tuple(batches))


@frozen(kw_only=True, eq=False)
class Promise:
    """Latency target for a share of the requests of each model."""

    latency_s: float
    models: tuple[float, ...] = (1.0,)
    """Share of the requests that each model gets."""
    share: float = 0.99
    variation: float = 0.0
    """Coefficient of variation of a device's time per batch (gamma-distributed; 1 is exponential)."""


@frozen(kw_only=True, eq=False)
class Pool:
    """Identical devices with a shared queue, their batch policy, and the rate of their requests."""

    service: Service
    rate_per_s: float
    """Requests per second of all models."""
    devices: int
    batch: int
    """Maximum number of requests in a batch."""
    wait_s: float = 0.0
    """Maximum seconds that a batch's first request waits for the batch to fill while a device is free."""

    def find_load(self, models: Sequence[float]) -> float:
        """Return the devices that full batches keep busy, as a fraction; `models` are shares of the requests."""
        occupied_s = self.rate_per_s * np.array(models) * self.service.occupied_s[:, self.batch]
        return float(occupied_s.sum()) / self.batch

    def count_batches(self, models: Sequence[float]) -> int:
        """Return the number of batches per seed for accuracy; rarely requested models need more."""
        wanted = max(min(QUEUED // self.batch, MOST_BATCHES), ROUNDS * min(self.devices, TOGETHER), BATCHES)
        most = min(max(MOST_DRAWN // self.batch, 1), max(wanted, MOST_BATCHES))
        rare = min(max(0.5 * sum(models) / min(models), 1.0), 4.0)
        return int(min(wanted * rare, most))


@frozen(kw_only=True, eq=False)
class Seen:
    """Simulated service of a pool. An overloaded pool is observed while its queue grows."""

    pool: Pool
    late: tuple[float, ...]
    """Share of each model's requests that exceed the target."""
    half_s: float
    """Median latency of the slowest model, in seconds; NaN unless it was requested, as the next one."""
    latency_s: float
    """Latency that the target share of the slowest model's requests does not exceed, in seconds."""
    busy_fraction: float
    """Fraction of the devices' time in which a batch runs."""
    batch_w: float
    """Average watts of energy spent on batches, summed over all devices."""
    batch_mean: float
    """Mean number of requests per batch."""

    def keeps(self, promise: Promise) -> bool:
        """Return whether the pool meets the target."""
        return max(self.late) <= 1.0 - promise.share


def observe(
    pools: Sequence[Pool], promise: Promise, *, is_exact: bool = False, seeds: int = SEEDS, part: float = 1.0
) -> list[Seen]:
    """Return the simulated service of the pools; latencies, which take longer, only if `is_exact`.

    Each seed has a part of the batches that the pool needs for accuracy. Many pools with one device are simulated
    apart, because the largest pool determines the time of those that are simulated together.
    """
    lengths = np.array([part * one.count_batches(promise.models) for one in pools]).astype(np.int64)
    several = np.array([one.devices > 1 for one in pools], dtype=bool)
    order = np.lexsort((-lengths, several))
    group = np.cumsum(seeds * lengths[order]) // MOST_CELLS + len(pools) * several[order]
    if seeds * lengths.sum() < FEW_CELLS:
        group[:] = 0
    seen: dict[int, Seen] = {}
    for number in np.unique(group):
        places = sorted(order[group == number].tolist(), key=lambda place: -lengths[place])
        run = Run([pools[place] for place in places], lengths[places], promise, seeds)
        seen |= zip(places, run.observe(promise, is_exact=is_exact), strict=True)
    return [seen[place] for place in range(len(pools))]


def judge(pools: Sequence[Pool], promise: Promise) -> list[Seen]:
    """Return the simulated service of the pools, in short where this leaves no doubt whether the target is met."""
    if len(pools) <= FEW:
        return observe(pools, promise)
    seen, allowed = observe(pools, promise, seeds=FIRST, part=PART), 1.0 - promise.share
    unsure = [
        place
        for place, one in enumerate(seen)
        if allowed / CLEAR < max(one.late) < allowed * CLEAR
        or (one.keeps(promise) and one.pool.find_load(promise.models) > BUSY * one.pool.devices)
    ]
    again = observe([pools[place] for place in unsure], promise)
    return [*(dict(enumerate(seen)) | dict(zip(unsure, again, strict=True))).values()]


class Run:
    """All simulated rows, a pool and a seed each, with the longest simulations first; arrays [step, row] of batches."""

    def __init__(self, pools: Sequence[Pool], lengths: Counts, promise: Promise, seeds: int) -> None:
        self.pools, self.seeds, self.models = pools, seeds, len(promise.models)
        self.rows = len(pools) * seeds
        shape = int(lengths.max()), self.rows
        self.devices = np.array([min(one.devices, TOGETHER) for one in pools])
        self.rates = np.array([one.rate_per_s * min(TOGETHER / one.devices, 1.0) for one in pools])
        self.places = np.arange(self.models * self.rows).reshape(self.models, self.rows)
        """Place of each model and row in the flat arrays that follow."""
        self.ones = np.ones(self.rows, np.int64)
        line = self.places // self.rows * seeds + self.places % seeds
        self.gaps = 1.0 / np.outer(promise.models, np.repeat(self.rates, self.seeds)).ravel()
        self.scales = ROUNDED / self.gaps
        self.batch = np.tile(np.repeat([one.batch for one in pools], self.seeds), self.models)
        self.wait_s = np.tile(np.repeat([one.wait_s for one in pools], self.seeds), self.models)
        self.waits = bool(self.wait_s.any())
        count = int((lengths * self.batch[: self.rows : seeds]).max() + self.batch.max())
        self.arrivals, self.flat, self.span = _draw_arrivals(self.models, seeds, 1 << (count - 1).bit_length())
        self.offset = line.ravel() * self.span
        self.spot = line.ravel() * (self.arrivals.size // (self.models * seeds))
        """Index of the next request of each model and row in the array of all arrivals."""
        self.factors = None
        if promise.variation >= LEAST_VARIATION:
            self.factors = np.tile(_draw_factors(promise.variation, seeds, shape[0]), len(pools))
        services = [*dict.fromkeys(one.service for one in pools)]
        self.width = max(one.occupied_s.shape[1] for one in services)
        self.occupied, self.latency, self.energy = (
            _stack([getattr(one, name) for one in services], self.width)
            for name in ("occupied_s", "latency_s", "energy_j")
        )
        numbers = {one: number for number, one in enumerate(services)}
        service = np.repeat([numbers[one.service] for one in pools], self.seeds)
        self.table = ((service * self.models + np.arange(self.models)[:, None]) * self.width).ravel()
        most = self.devices.max()
        self.free = np.where(np.arange(most) < np.repeat(self.devices, self.seeds)[:, None], 0.0, np.inf).ravel()
        """Time at which each device of each row is free."""
        self.start_s = np.zeros(shape)
        self.first, self.kind = np.zeros(shape, np.int32), np.zeros(shape, np.int32)
        """Index of each batch's first request among all arrivals, and of the batch in the flat tables."""
        steps, length = np.arange(shape[0])[:, None], np.repeat(lengths, self.seeds)
        for step, some in enumerate((length > steps).sum(axis=1).tolist()):
            self._step(step, some)
        self.kind[steps < np.floor(WARM_UP * length)] = 0
        self.taken, self.place = (
            self.kind % self.width,
            self.places[self.kind // self.width % self.models, self.places[0]],
        )
        factors = 1.0 if self.factors is None else self.factors
        occupied_s = self.occupied.take(self.kind)
        self.busy_s, self.energy_j = occupied_s * factors, self.energy.take(self.kind) * factors
        self.end_s = self.start_s + self.latency.take(self.kind) + self.busy_s - occupied_s
        """Time of each batch's results."""

    def _step(self, step: int, some: int) -> None:
        """Start a batch in each of the first rows, of the model with the oldest request that may start."""
        device: Any = slice(some)
        mine: Any = device
        if len(self.free) > self.rows:
            free = self.free.reshape(self.rows, -1)[:some]
            device = free.argmin(axis=1) + self.places[0, :some] * free.shape[1]
        start = np.maximum(self.free[device], self._find_ready(self.places[:, :some] if self.models > 1 else mine))
        if self.models > 1:
            places, starts = self.places[:, :some], start
            start = starts.min(axis=0)
            heads = self.arrivals.take(self.spot[places]) * self.gaps[places]
            mine = places[np.where(starts <= start, heads, np.inf).argmin(axis=0), places[0]]
        first = self.spot[mine]
        until = np.minimum(start * self.scales[mine], self.span - 0.5) + self.offset[mine]
        taken = self._count_taken(first, until, self.batch[mine])
        kind = self.table[mine] + taken
        self.start_s[step, :some], self.first[step, :some], self.kind[step, :some] = start, first, kind
        busy_s = self.occupied.take(kind)
        if self.factors is not None:
            busy_s *= self.factors[step, :some]
        self.free[device] = start + busy_s
        self.spot[mine] += taken

    def _find_ready(self, mine: Any) -> Array:
        """Return the earliest start of a batch: its first request has arrived, and it is full or has waited enough."""
        spot, gaps = self.spot[mine], self.gaps[mine]
        heads: Array = self.arrivals.take(spot) * gaps
        if not self.waits:
            return heads
        full = self.arrivals.take(spot + self.batch[mine] - 1) * gaps
        ready: Array = np.minimum(full, heads + self.wait_s[mine])
        return ready

    def _count_taken(self, first: Counts, until: Array, batch: Counts) -> Counts:
        """Return the number of requests, at most a batch, that have arrived until a time, from a first one on.

        Single requests and full batches are common, and a search among arrivals costs more.
        """
        taken = self.ones[: len(first)].copy()
        several = (self.flat.take(first + 1) <= until).nonzero()[0]
        first, until, most = first.take(several), until.take(several), batch.take(several)
        between = (self.flat.take(first + most - 1) > until).nonzero()[0]
        most[between] = self.flat.searchsorted(until.take(between), side="right") - first.take(between)
        taken[several] = most
        return taken

    def observe(self, promise: Promise, *, is_exact: bool) -> Iterator[Seen]:
        """Yield the service of each pool.

        Rates are averaged over the time in which the served requests arrive: the wait for the last answer does not
        count, because later requests would fill it.
        """
        served, busy_s = self._add(self.taken), self._add(self.busy_s)
        batches, energy_j = self._add(self.taken > 0), self._add(self.energy_j)
        late, span_s = self._find_late(promise.latency_s), np.maximum(served / self.rates, busy_s / self.devices)
        for place, pool in enumerate(self.pools):
            half_s, latency_s = (
                self._find_percentiles(place, (0.5, promise.share)) if is_exact else (math.nan, math.nan)
            )
            yield Seen(
                pool=pool,
                late=tuple(late[:, place].tolist()),
                half_s=half_s,
                latency_s=latency_s,
                busy_fraction=float(busy_s[place] / (span_s[place] * self.devices[place])),
                batch_w=float(energy_j[place] / span_s[place] * pool.devices / self.devices[place]),
                batch_mean=float(served[place] / batches[place]),
            )

    def _add(self, values: NDArray[Any]) -> Array:
        """Return sums over the batches and seeds of each pool."""
        sums: Array = values.sum(axis=0).reshape(-1, self.seeds).sum(axis=1).astype(np.float64)
        return sums

    def _find_late(self, within_s: float) -> Array:
        """Return the share of requests slower than `within_s` seconds [model, pool]; 0 for models without requests."""
        until = (self.end_s - within_s) / self.gaps.take(self.place)  # earlier arrivals are late
        late = np.where(self.arrivals.take(self.first + self.taken - 1) < until, self.taken, 0)
        partly = ((self.arrivals.take(self.first) < until) & (late < self.taken)).nonzero()
        later = self.offset.take(self.place[partly]) + until[partly]
        late[partly] = self.flat.searchsorted(later) - self.first[partly]
        parts = [self.place // self.rows == one for one in range(self.models)]
        return np.stack([self._add(late * mine) / np.maximum(self._add(self.taken * mine), 1.0) for mine in parts])

    def find_latencies(self, place: int, model: int = 0) -> Array:
        """Return the seconds from arrival to answer of a model's requests at a pool, unordered."""
        rows = slice(place * self.seeds, (place + 1) * self.seeds)
        taken = np.where(self.place[:, rows] // self.rows == model, self.taken[:, rows], 0).ravel().astype(np.intp)
        first = np.repeat(self.first[:, rows].ravel() - np.cumsum(taken) + taken, taken)
        came = self.arrivals.take(first + np.arange(len(first))) * self.gaps[self.places[model, rows.start]]
        latencies: Array = np.repeat(self.end_s[:, rows].ravel(), taken) - came
        return latencies

    def _find_percentiles(self, place: int, shares: Sequence[float]) -> list[float]:
        """Return the latencies in seconds at these shares, each of its slowest model."""
        found = []
        for latencies in (self.find_latencies(place, model) for model in range(self.models)):
            if len(latencies):
                places = [max(math.ceil(share * len(latencies)) - 1, 0) for share in shares]
                found.append(np.partition(latencies, places)[places])
        slowest: list[float] = np.max(found, axis=0).tolist()
        return slowest


def _stack(tables: Sequence[Array], width: int) -> Array:
    """Return flat tables [service, model, requests of the batch] of equal width; the first cell is for no batch."""
    every = np.arange(width)
    flat = np.concatenate(
        [
            one.ravel() if one.shape[1] == width else one[:, np.minimum(every, one.shape[1] - 1)].ravel()
            for one in tables
        ]
    )
    flat[0] = 0.0
    return flat


@lru_cache(maxsize=2)
def _draw_arrivals(models: int, seeds: int, count: int) -> tuple[Array, Array, float]:
    """Return times of arrival at a rate of 1 [model, seed, request], the same times with an offset for each model and
    seed, so that all increase, and this offset.

    Each model and seed has its own generator, so a longer simulation begins with the same numbers. Seeds come in pairs:
    one has long gaps where the other has short ones, which removes as much noise from percentiles as twice the seeds.
    """
    odds = np.empty((models, seeds, count))
    for model, seed in np.ndindex(models, seeds):
        drawn = np.random.default_rng([STREAM, 0, model, seed // 2]).random(count) + 2.0**-54  # excludes 0 and 1
        odds[model, seed] = 1.0 - drawn if seed % 2 else drawn
    arrivals = np.cumsum(-np.log(odds.reshape(models * seeds, count)), axis=1)
    span = float(arrivals[:, -1].max()) + 1.0
    return arrivals.ravel(), (arrivals + span * np.arange(models * seeds)[:, None]).ravel(), span


def _draw_factors(variation: float, seeds: int, count: int) -> Array:
    """Return random factors of batch times, with mean 1 [batch, seed]."""
    shape = 1.0 / variation**2
    streams = (np.random.default_rng([STREAM, 1, seed]) for seed in range(seeds))
    return np.stack([one.gamma(shape, 1.0 / shape, size=count) for one in streams], axis=1)
