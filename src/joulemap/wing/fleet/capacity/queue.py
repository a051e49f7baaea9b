"""Batches at devices that share a queue: many pools stepped side by side, one service of each in a step.

requests of each model ─► wait in order ─► the first device that is free takes what waits, at most a batch ─► done
                          (or until a batch is full, or the first has waited as long as it may)

Requests come by themselves (Poisson), each pool at rates of its own; pools of a seed have the same requests, stretched
to their rates, so that what tells them apart is no chance. Each pool is stepped for a number of batches, however many
requests these take, so that large batches and many devices are seen as often as small and few.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property
from typing import Final, TypeAlias

import attrs
import numpy as np
from numpy.typing import NDArray

from joulemap.system.record import frozen

Array: TypeAlias = NDArray[np.float64]
Counts: TypeAlias = NDArray[np.int64]

WARM_UP: Final = 0.2
"""Of the batches: those at the start, which find the devices idle, count in nothing."""

BATCHES: Final = 500
"""Of each seed, that a pool is stepped for at least."""

ROUNDS: Final = 20
"""Batches of each device, at least."""

QUEUED: Final = 4800
"""Requests of each seed at least: queues of devices that are 95 % full settle in some 400."""

MOST_BATCHES: Final = 3000
"""Of each seed, that a pool is stepped for because its queue is long or a model has few of the requests."""

MOST_CELLS: Final = 2**19
"""Batches of all rows that are looked at together: more take memory and gain nothing."""

MOST_DRAWN: Final = 2**18
"""Requests of each model and seed."""


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

    def take(self, rows: Counts) -> Pools:
        """Return these rows in this order."""
        return Pools(**{one.name: getattr(self, one.name)[rows] for one in attrs.fields(Pools)})


def simulate_pools(
    services: list[Service],
    pools: Pools,
    *,
    batches: int | None = None,
    seeds: int = 8,
    variation: float = 0.0,
    draw: int = 0,
) -> Observed:
    """Return how pools serve, for so many batches of each seed, or as many as each needs to be told well.

    `variation` is the coefficient of variation of the time that a device takes for a batch (gamma-distributed; 1 is
    exponential). Pools that cannot keep up are observed as they fall behind. Another `draw` has other requests.
    """
    lengths = _count_batches(pools) if batches is None else np.full(len(pools.devices), batches)
    order = np.argsort(-lengths, kind="stable")  # those that are stepped for longest come first
    rows = pools.take(np.repeat(order, seeds))
    run = _Run(services, rows, np.repeat(lengths[order], seeds), seeds=seeds, variation=variation, draw=draw)
    for step in range(int(lengths.max())):
        run.step(step)
    return Observed(run, order, seeds)


def _count_batches(pools: Pools) -> Counts:
    """Return how many batches tell a pool well: of a model that few requests are of, more."""
    rare = np.minimum(0.5 * pools.rates.sum(axis=1) / pools.rates.min(axis=1), 4.0)
    wanted = np.maximum(np.minimum(QUEUED // pools.batch, MOST_BATCHES), np.maximum(ROUNDS * pools.devices, BATCHES))
    most = np.minimum(np.maximum(MOST_DRAWN // pools.batch, 1), np.maximum(wanted, MOST_BATCHES))
    counts: Counts = np.minimum(wanted * np.maximum(rare, 1.0), most).astype(np.int64)
    return counts


class _Run:
    """Pools in the midst of their requests: rows of those that go on are before those that are done."""

    def __init__(
        self, services: list[Service], rows: Pools, lengths: Counts, seeds: int, variation: float, draw: int
    ) -> None:
        total, models = rows.rates.shape
        self.rows, self.lengths, self.models = rows, lengths, models
        self.count = int((lengths * rows.batch).max() + rows.batch.max())
        gaps = np.random.default_rng([draw, 0]).exponential(size=(models * seeds, self.count))
        arrivals = np.cumsum(gaps, axis=1)
        self.span = float(arrivals[:, -1].max()) + 1.0
        """Time from the requests of a model and seed to those of the next, which all lie on one line."""
        self.arrivals = arrivals.ravel()
        self.flat = (arrivals + self.span * np.arange(models * seeds)[:, None]).ravel()
        self.width = max(one.hold_s.shape[1] for one in services)
        self.hold, self.latency, self.energy = (
            np.stack([_pad(getattr(one, name), self.width) for one in services]).ravel()
            for name in ("hold_s", "latency_s", "energy_j")
        )
        self.at = np.arange(total)
        self.seed = self.at % seeds
        self.table = rows.service * models * self.width
        self.lines = np.arange(models)[:, None] * seeds + self.seed
        self.gaps = 1.0 / rows.rates.T
        self.factors = _draw_factors(variation, seeds, int(lengths.max()), draw)
        self.free = np.where(np.arange(rows.devices.max()) < rows.devices[:, None], 0.0, np.inf)
        self.next = np.zeros((models, total), dtype=np.int64)
        shape = (int(lengths.max()), total)
        self.answered, self.place, self.kind = np.zeros(shape), np.zeros(shape, np.int32), np.zeros(shape, np.int32)
        """Of each batch: when it is answered, its first request, and its place in the tables of its service."""

    def step(self, number: int) -> None:
        """Start a batch in each pool that is stepped for longer than this number."""
        some = int(np.searchsorted(-self.lengths, -number))
        at, line, gap = self.at[:some], self.lines[:, :some], self.gaps[:, :some]
        place, batch = self.next[:, :some], self.rows.batch[:some]
        spot = line * self.count + place
        heads = self.arrivals.take(spot) * gap
        server = at * self.free.shape[1] + self.free[:some].argmin(axis=1)
        ready = heads
        if self.rows.wait_s.any():
            full = self.arrivals.take(spot + batch - 1) * gap
            ready = np.minimum(full, heads + self.rows.wait_s[:some])
        start = np.maximum(self.free.take(server), ready)
        if self.models == 1:
            first, model, line, gap, spot = start[0], 0, line[0], gap[0], spot[0]
        else:
            first = start.min(axis=0)
            model = np.where(start <= first, heads, np.inf).argmin(axis=0)
            line, gap, spot = line[model, at], gap[model, at], spot[model, at]
        until = line * self.span + np.minimum(first / gap, self.span - 0.5)
        taken = np.minimum(np.maximum(self.flat.searchsorted(until, side="right") - spot, 1), batch)
        kind = self.table[:some] + model * self.width + taken
        factor = self.factors[self.seed[:some], number % self.factors.shape[1]]
        hold = self.hold.take(kind)
        self.answered[number, :some] = first + self.latency.take(kind) + hold * (factor - 1.0)
        self.place[number, :some] = spot
        self.kind[number, :some] = kind
        self.free.reshape(-1)[server] = first + hold * factor
        self.next[model, at] += taken

    def count_batches(self, rows: slice) -> NDArray[np.bool_]:
        """Return whether a batch is there and counts [batch, row], of some rows."""
        step, lengths = np.arange(len(self.kind))[:, None], self.lengths[rows]
        kept: NDArray[np.bool_] = (step >= np.floor(WARM_UP * lengths)) & (step < lengths)
        return kept


class Observed:
    """How pools served their requests, a row each."""

    def __init__(self, run: _Run, order: Counts, seeds: int) -> None:
        self.run, self.seeds = run, seeds
        self.order = order
        """Which pool each group of the run's rows is."""

    def _blocks(self) -> Iterator[tuple[slice, slice]]:
        """Give out the pools, as the run has them, a block at a time: their groups, and their rows."""
        steps, groups = len(self.run.kind), len(self.order)
        size = max(1, MOST_CELLS // (steps * self.seeds))
        for start in range(0, groups, size):
            end = min(start + size, groups)
            yield slice(start, end), slice(start * self.seeds, end * self.seeds)

    def _take(self, rows: slice) -> Counts:
        """Return the requests of each batch that counts [batch, row]."""
        taken: Counts = np.where(self.run.count_batches(rows), self.run.kind[:, rows] % self.run.width, 0)
        return taken

    def _find_factors(self, rows: slice) -> Array:
        run = self.run
        each = run.factors[run.seed[rows]].T
        return each if len(each) == 1 else each[: len(run.kind)]

    def _add(self, values: Array | Counts | NDArray[np.bool_]) -> Array:
        """Return sums over the batches and seeds of each pool of a block."""
        sums: Array = values.sum(axis=0).reshape(-1, self.seeds).sum(axis=1).astype(np.float64)
        return sums

    @cached_property
    def _sums(self) -> tuple[Array, Array, Array, Array]:
        """Counted requests, counted batches, device seconds and joules of each pool."""
        sums = np.empty((4, len(self.order)))
        for groups, rows in self._blocks():
            kind, factors, counted = self.run.kind[:, rows], self._find_factors(rows), self.run.count_batches(rows)
            found = [
                self._add(self._take(rows)),
                self._add(counted),
                *(
                    self._add(np.where(counted, table.take(kind) * factors, 0.0))
                    for table in (self.run.hold, self.run.energy)
                ),
            ]
            sums[:, self.order[groups]] = found
        return sums[0], sums[1], sums[2], sums[3]

    def _pick(self, values: Array | Counts) -> Array:
        """Return a column of the run's rows, of each pool."""
        found = np.empty(len(self.order))
        found[self.order] = values[:: self.seeds]
        return found

    @cached_property
    def _span_s(self) -> Array:
        """As long as such requests take to come, not up to the last answer: what comes behind them fills that time."""
        rows, (served, _, busy_s, _) = self.run.rows, self._sums
        rates, devices = self._pick(rows.rates.sum(axis=1)), self._pick(rows.devices)
        return np.maximum(served / rates, busy_s / devices)

    @cached_property
    def busy_fraction(self) -> Array:
        """Of the devices' time."""
        return self._sums[2] / (self._span_s * self._pick(self.run.rows.devices))

    @cached_property
    def energy_w(self) -> Array:
        """Joules of batches a second, of all devices of the pool."""
        return self._sums[3] / self._span_s

    @cached_property
    def batch_mean(self) -> Array:
        """Requests of a batch."""
        return self._sums[0] / self._sums[1]

    def count_late(self, within_s: float) -> Array:
        """Return the share of the requests of each model that take longer [pool, model]; 0 of a model without any."""
        found = np.zeros((len(self.order), self.run.models))
        for groups, rows in self._blocks():
            found[self.order[groups]] = self._count_late(within_s, rows)
        return found

    def _count_late(self, within_s: float, rows: slice) -> Array:
        """Return the shares of a block."""
        run, kind, place, taken = self.run, self.run.kind[:, rows], self.run.place[:, rows], self._take(rows)
        model = kind // run.width % run.models
        at = run.at[rows]
        until = (run.answered[:, rows] - within_s) / run.gaps[model, at]  # who came before it is late
        first = run.arrivals.take(place)
        late = np.where(run.arrivals.take(place + np.maximum(taken - 1, 0)) < until, taken, 0)
        partly = (first < until) & (late == 0) & (taken > 0)
        line = run.lines[model, at][partly]
        late[partly] = run.flat.searchsorted(line * run.span + until[partly]) - place[partly]
        shares = []
        for one in range(run.models):
            mine = model == one
            shares.append(self._add(np.where(mine, late, 0)) / np.maximum(self._add(np.where(mine, taken, 0)), 1))
        return np.stack(shares, axis=1)

    def latencies(self, pool: int, model: int = 0) -> Array:
        """Return the seconds from arrival to answer of the requests of a model, in no order."""
        run = self.run
        start = int(np.flatnonzero(self.order == pool)[0]) * self.seeds
        rows = slice(start, start + self.seeds)
        kind = run.kind[:, rows]
        taken = np.where(kind // run.width % run.models == model, self._take(rows), 0).ravel()
        first = np.repeat(run.place[:, rows].ravel() - np.cumsum(taken) + taken, taken)
        came = run.arrivals.take(first + np.arange(len(first))) * run.gaps[model, start]
        latencies: Array = np.repeat(run.answered[:, rows].ravel(), taken) - came
        return latencies

    def percentile(self, pool: int, share: float) -> list[float]:
        """Return the latency that this share of the requests of each model keeps; of those that have any."""
        found = []
        for model in range(self.run.models):
            latencies = self.latencies(pool, model)
            if len(latencies):
                place = max(math.ceil(share * len(latencies)) - 1, 0)
                found.append(float(np.partition(latencies, place)[place]))
        return found


def _pad(table: Array, width: int) -> Array:
    return np.pad(table, ((0, 0), (0, width - table.shape[1])), mode="edge")


def _draw_factors(variation: float, seeds: int, count: int, draw: int) -> Array:
    """Return what the times of batches are multiplied by, of mean 1 [seed, batch]."""
    if variation == 0.0:
        return np.ones((seeds, 1))
    shape = 1.0 / variation**2
    return np.random.default_rng([draw, 1]).gamma(shape, 1.0 / shape, size=(seeds, count))
