"""Batches at devices that share a queue: many pools simulated together, one batch of each pool per step.

requests of each model ─► wait in order ─► the first free device takes the waiting requests, at most a batch ─► done
                          (with a wait: until the batch is full or the first request has waited that long)

Requests arrive at random (Poisson), at each pool's own rates. Pools of one seed have the same requests, scaled to their
rates, so that differences between pools are not due to chance. Each pool is simulated for a number of batches rather
than requests, so that large batches and many devices are observed as often as small batches and few devices.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Final, TypeAlias

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

BATCHES: Final = 500
"""Minimum batches in each simulation of a pool."""

ROUNDS: Final = 20
"""Minimum batches per device in a simulation."""

QUEUED: Final = 4800
"""Minimum requests per seed; queues of devices at 95 % utilization settle in about 400 of them."""

MOST_BATCHES: Final = 3000
"""Maximum batches per seed that long queues or rarely requested models may add."""

MOST_STEPPED: Final = 2**22
"""Maximum batches of all rows that are simulated together; more take memory without a speedup."""

MOST_CELLS: Final = 2**19
"""Maximum batches of all rows that are summed up together; more take memory without a speedup."""

LEAST_VARIATION: Final = 1e-6
"""Coefficient of variation below which batch times are constant; the shape of their distribution would overflow."""

ROUNDED: Final = 1.0 + 1e-12
"""Factor on a start time, without which rounding leaves out the request whose arrival makes a batch full."""

MOST_DRAWN: Final = 2**18
"""Maximum random requests per model and seed."""


@frozen(kw_only=True, eq=False)
class Service:
    """Times and energy of batches on a device: tables [model, requests of the batch], with a column for 0 requests."""

    occupied_s: Array
    """Seconds that the batch occupies the device."""
    latency_s: Array
    """Seconds from a batch's start to its results; longer than `occupied_s` if batches overlap on the device."""
    energy_j: Array


@frozen(kw_only=True, eq=False)
class Pools:
    """Pools of identical devices, one per row."""

    service: Counts
    """Index of each pool's service in the list of services."""
    rates: Array
    """Requests per second [pool, model]."""
    devices: Counts
    batch: Counts
    """Maximum number of requests in a batch of each pool."""
    wait_s: Array
    """Maximum seconds that a batch's first request waits for the batch to fill while a device is free."""

    def take(self, rows: Counts) -> Pools:
        """Return the pools of these rows, in this order."""
        return Pools(**{one.name: getattr(self, one.name)[rows] for one in attrs.fields(Pools)})


def simulate_pools(
    services: list[Service],
    pools: Pools,
    *,
    batches: int | None = None,
    seeds: int = SEEDS,
    variation: float = 0.0,
    draw: int = 0,
) -> Observed:
    """Return the simulated service of the pools, for `batches` per seed or as many as each pool needs for accuracy.

    `variation` is the coefficient of variation of a device's time per batch (gamma-distributed; 1 is exponential).
    Overloaded pools are observed while their queues grow. A different `draw` uses different requests.
    """
    lengths = _count_batches(pools) if batches is None else np.full(len(pools.devices), batches)
    requests = _Requests(pools, lengths, seeds, variation, draw)
    return _observe(_Tables(services), requests, pools, lengths)


def simulate_parts(
    services: list[Service], pools: Pools, *, variation: float = 0.0
) -> Iterator[tuple[list[int], Observed]]:
    """Yield the indices of some pools and their simulated service, a part at a time, which limits memory.

    Results are those of `simulate_pools`. Pools of one device come first, because the largest pool of a part determines
    the time of all.
    """
    lengths = _count_batches(pools)
    requests, tables = _Requests(pools, lengths, SEEDS, variation, 0), _Tables(services)
    order = np.lexsort((lengths, pools.devices > 1))
    part = np.cumsum(SEEDS * lengths[order]) // MOST_STEPPED
    for number in np.unique(part):
        some = order[part == number]
        yield some.tolist(), _observe(tables, requests, pools.take(some), lengths[some])


def _observe(tables: _Tables, requests: _Requests, pools: Pools, lengths: Counts) -> Observed:
    """Return the simulated service of the pools; `lengths` is the number of batches of each."""
    order = np.argsort(-lengths, kind="stable")  # pools that are simulated longest come first
    rows = pools.take(np.repeat(order, requests.seeds))
    run = _Run(tables, requests, rows, np.repeat(lengths[order], requests.seeds))
    run.step_all()
    return Observed(run, order, requests.seeds)


def _count_batches(pools: Pools) -> Counts:
    """Return the number of batches that each pool needs for accuracy; rarely requested models need more."""
    rare = np.minimum(0.5 * pools.rates.sum(axis=1) / pools.rates.min(axis=1), 4.0)
    wanted = np.maximum(np.minimum(QUEUED // pools.batch, MOST_BATCHES), np.maximum(ROUNDS * pools.devices, BATCHES))
    most = np.minimum(np.maximum(MOST_DRAWN // pools.batch, 1), np.maximum(wanted, MOST_BATCHES))
    counts: Counts = np.minimum(wanted * np.maximum(rare, 1.0), most).astype(np.int64)
    return counts


@frozen(kw_only=True, eq=False)
class _Steps:
    """Simulated batches [step, row]: each row starts one batch per step."""

    start_s: Array
    spot: NDArray[np.int32]
    """Index of each batch's first request in the array of all arrivals."""
    kind: NDArray[np.int32]
    """Index of each batch in the flat tables of times and energy."""

    @classmethod
    def empty(cls, steps: int, rows: int) -> _Steps:
        """Return arrays of this size without content."""
        shape = steps, rows
        return cls(start_s=np.empty(shape), spot=np.empty(shape, np.int32), kind=np.empty(shape, np.int32))

    def take(self, rows: slice) -> _Steps:
        """Return the batches of these rows."""
        return _Steps(start_s=self.start_s[:, rows], spot=self.spot[:, rows], kind=self.kind[:, rows])


class _Tables:
    """Times and energy of the batches of all services, as flat tables [service, model, requests of the batch]."""

    def __init__(self, services: list[Service]) -> None:
        self.width = max(one.occupied_s.shape[1] for one in services)
        self.occupied, self.latency, self.energy = (
            np.stack([_pad(getattr(one, name), self.width) for one in services]).ravel()
            for name in ("occupied_s", "latency_s", "energy_j")
        )


class _Requests:
    """Random arrivals of all models and seeds, and random factors of batch times; all pools share them."""

    def __init__(self, pools: Pools, lengths: Counts, seeds: int, variation: float, draw: int) -> None:
        self.models, self.seeds, self.varies = pools.rates.shape[1], seeds, variation >= LEAST_VARIATION
        self.count = int((lengths * pools.batch).max() + pools.batch.max())
        arrivals = np.cumsum(_draw_gaps(self.models, seeds, self.count, draw), axis=1)
        self.span = float(arrivals[:, -1].max()) + 1.0
        """Time offset between the requests of consecutive models and seeds."""
        self.arrivals = arrivals.ravel()
        self.flat = (arrivals + self.span * np.arange(self.models * seeds)[:, None]).ravel()
        self.factors = _draw_factors(variation, seeds, int(lengths.max()), draw)


class _Run:
    """State of all simulated rows, a pool and a seed each; rows with the longest simulations come first."""

    def __init__(self, tables: _Tables, requests: _Requests, rows: Pools, lengths: Counts) -> None:
        total, seeds = len(lengths), requests.seeds
        self.rows, self.lengths, self.models = rows, lengths, requests.models
        self.span, self.arrivals, self.flat = requests.span, requests.arrivals, requests.flat
        self.second = self.flat[1:]
        self.width, self.occupied, self.latency, self.energy = (
            tables.width,
            tables.occupied,
            tables.latency,
            tables.energy,
        )
        self.at = np.arange(total)
        self.seed = self.at % seeds
        self.table = rows.service * self.models * self.width
        self.lines = np.arange(self.models)[:, None] * seeds + self.seed
        self.offset = self.lines * self.span
        self.gaps = 1.0 / rows.rates.T
        self.ones = np.ones(total, np.intp)
        self.varies, self.factors = requests.varies, requests.factors
        self.waits = bool(rows.wait_s.any())
        self.free = np.where(np.arange(rows.devices.max()) < rows.devices[:, None], 0.0, np.inf)
        self.spot = self.lines * requests.count
        """Index of the next request of each model and row in the array of all arrivals."""
        self.parts: list[_Steps] = []

    def step_all(self) -> None:
        """Simulate all batches; each step starts one batch in each row."""
        step = self._step_one if self.models == 1 else self._step_any
        start = 0
        for end in np.unique(self.lengths).tolist():
            some = int((self.lengths >= end).sum())
            steps = _Steps.empty(end - start, some)
            for number in range(start, end):
                step(number, some, steps, number - start)
            self.parts.append(steps)
            start = end

    def _find_ready(self, spot: Counts, gap: Array, some: int) -> Array:
        """Return the earliest start of a batch of each model [model, row].

        Its first request must have arrived, and the batch must be full or its maximum wait over.
        """
        heads: Array = self.arrivals.take(spot)
        heads *= gap
        if not self.waits:
            return heads
        full = self.arrivals.take(spot + self.rows.batch[:some] - 1) * gap
        return np.minimum(full, heads + self.rows.wait_s[:some])

    def _find_server(self, some: int) -> tuple[Counts | None, Array]:
        """Return for each row the index of the device that is free first, and the time when it is free.

        The index is None if all pools have one device.
        """
        if self.free.shape[1] == 1:
            return None, self.free[:some, 0]
        server: Counts = self.free[:some].argmin(axis=1)
        server += self.at[:some] * self.free.shape[1]
        return server, self.free.reshape(-1).take(server)

    def _step_one(self, number: int, some: int, steps: _Steps, row: int) -> None:
        """Start a batch in each row, for pools of a single model."""
        spot, gap = self.spot[0, :some], self.gaps[0, :some]
        server, free = self._find_server(some)
        start = steps.start_s[row]
        np.maximum(free, self._find_ready(spot, gap, some), out=start)
        until = start / gap * ROUNDED
        np.minimum(until, self.span - 0.5, out=until)
        until += self.offset[0, :some]
        self._serve(number, some, spot, until, server, steps, row)

    def _step_any(self, number: int, some: int, steps: _Steps, row: int) -> None:
        """Start a batch in each row, for several models; the model with the oldest waiting request comes first."""
        at, spot, gap = self.at[:some], self.spot[:, :some], self.gaps[:, :some]
        server, free = self._find_server(some)
        heads: Array = self.arrivals.take(spot) * gap
        start = np.maximum(free, self._find_ready(spot, gap, some))
        first = steps.start_s[row]
        start.min(axis=0, out=first)
        model = np.where(start <= first, heads, np.inf).argmin(axis=0)
        line, gap, mine = self.lines[model, at], gap[model, at], spot[model, at]
        until = line * self.span + np.minimum(first / gap * ROUNDED, self.span - 0.5)
        taken = self._serve(number, some, mine, until, server, steps, row, model * self.width)
        self.spot[model, at] += taken

    def _serve(
        self,
        number: int,
        some: int,
        spot: Counts,
        until: Array,
        server: Counts | None,
        steps: _Steps,
        row: int,
        table: Counts | None = None,
    ) -> Counts:
        """Record a batch in each row with the requests that have arrived until a time; return the number of requests in
        each.
        """
        steps.spot[row] = spot
        taken = self._count_taken(spot, until, self.rows.batch[:some])
        if table is None:
            spot += taken  # `spot` is a view, so this advances each pool to its next requests
        kind = self.table[:some] + taken
        if table is not None:
            kind += table
        steps.kind[row] = kind
        occupied = self.occupied.take(kind)
        if self.varies:
            occupied *= self.factors[self.seed[:some], number]
        occupied += steps.start_s[row]
        if server is None:
            self.free[:some, 0] = occupied
        else:
            self.free.reshape(-1)[server] = occupied
        return taken

    def _count_taken(self, spot: Counts, until: Array, batch: Counts) -> Counts:
        """Return for each row the number of requests from `spot` on that have arrived until a time.

        It is at least one and at most a full batch. These two cases are tested first, because they are common and a
        search among arrivals costs more.
        """
        taken = self.ones[: len(spot)].copy()
        several = (self.second.take(spot) <= until).nonzero()[0]
        if len(several):
            spot, until, most = spot.take(several), until.take(several), batch.take(several)
            between = (self.flat.take(spot + most - 1) > until).nonzero()[0]
            counts = self.flat.searchsorted(until.take(between), side="right")
            counts -= spot.take(between)
            most[between] = np.minimum(counts, most.take(between))
            taken[several] = most
        return taken

    def read(self, rows: slice) -> _Steps:
        """Return the batches of rows with equally long simulations, without the warm-up."""
        length = int(self.lengths[rows.start])
        parts, step = [], 0
        for part in self.parts:
            if step < length:
                parts.append(part.take(rows))
                step += len(part.kind)
        warm = math.floor(WARM_UP * length)
        start_s, spot, kind = (
            np.concatenate([getattr(one, name) for one in parts])[warm:] for name in ("start_s", "spot", "kind")
        )
        return _Steps(start_s=start_s, spot=spot, kind=kind)

    def read_factors(self, rows: slice) -> Array | float:
        """Return the random factors of the batch times, without the warm-up."""
        if not self.varies:
            return 1.0
        length = int(self.lengths[rows.start])
        factors: Array = self.factors[self.seed[rows]].T[math.floor(WARM_UP * length) : length]
        return factors

    def find_answered(self, steps: _Steps, rows: slice) -> Array:
        """Return the time at which each batch ends."""
        answered: Array = steps.start_s + self.latency.take(steps.kind)
        if self.varies:
            answered += self.occupied.take(steps.kind) * (self.read_factors(rows) - 1.0)
        return answered


class Observed:
    """Latencies, utilization and power of simulated pools, one row each."""

    def __init__(self, run: _Run, order: Counts, seeds: int) -> None:
        self.run, self.seeds = run, seeds
        self.order = order
        """Pool index of each group of rows; a group has one row per seed."""

    def _blocks(self) -> Iterator[tuple[slice, slice]]:
        """Yield (slice of groups, slice of rows) of pools with equally long simulations, a block at a time."""
        lengths = self.run.lengths[:: self.seeds]
        for length in np.unique(lengths)[::-1].tolist():
            (groups,) = np.nonzero(lengths == length)
            size = max(1, MOST_CELLS // (length * self.seeds))
            for start in range(int(groups[0]), int(groups[-1]) + 1, size):
                end = min(start + size, int(groups[-1]) + 1)
                yield slice(start, end), slice(start * self.seeds, end * self.seeds)

    def _add(self, values: Array | Counts) -> Array:
        """Return sums over the batches and seeds of each pool of a block."""
        sums: Array = values.sum(axis=0).reshape(-1, self.seeds).sum(axis=1).astype(np.float64)
        return sums

    @cached_property
    def _sums(self) -> tuple[Array, Array, Array, Array]:
        """Number of requests and batches after the warm-up, and busy seconds and joules, of each pool."""
        sums = np.empty((4, len(self.order)))
        for groups, rows in self._blocks():
            steps, factors = self.run.read(rows), self.run.read_factors(rows)
            taken = steps.kind % self.run.width
            busy, spent = (table.take(steps.kind) * factors for table in (self.run.occupied, self.run.energy))
            sums[:, self.order[groups]] = [
                self._add(taken), np.full(len(taken[0]) // self.seeds, len(taken) * self.seeds),
                self._add(busy), self._add(spent),
            ]  # fmt: skip
        return sums[0], sums[1], sums[2], sums[3]

    def _pick(self, values: Array | Counts) -> Array:
        """Return one value per pool, in the order of the pools, from one value per row."""
        picked = np.empty(len(self.order))
        picked[self.order] = values[:: self.seeds]
        return picked

    @cached_property
    def _span_s(self) -> Array:
        """Seconds over which each pool's rates are averaged: the time in which its served requests arrive.

        The wait for the last answer does not count, because later requests would fill it.
        """
        rows, (served, _, busy_s, _) = self.run.rows, self._sums
        rates, devices = self._pick(rows.rates.sum(axis=1)), self._pick(rows.devices)
        return np.maximum(served / rates, busy_s / devices)

    @cached_property
    def busy_fraction(self) -> Array:
        """Fraction of the devices' time in which a batch runs."""
        return self._sums[2] / (self._span_s * self._pick(self.run.rows.devices))

    @cached_property
    def energy_w(self) -> Array:
        """Average watts of energy spent on batches, summed over the pool's devices."""
        return self._sums[3] / self._span_s

    @cached_property
    def batch_mean(self) -> Array:
        """Mean number of requests per batch of each pool."""
        return self._sums[0] / self._sums[1]

    def count_late(self, within_s: float) -> Array:
        """Return the share of requests slower than `within_s` seconds [pool, model]; 0 for models without requests."""
        shares = np.zeros((len(self.order), self.run.models))
        for groups, rows in self._blocks():
            shares[self.order[groups]] = self._count_late(within_s, rows)
        return shares

    def _count_late(self, within_s: float, rows: slice) -> Array:
        """Return the share of late requests for the pools of one block."""
        run, steps = self.run, self.run.read(rows)
        kind, spot = steps.kind, steps.spot
        taken = kind % run.width
        model = kind // run.width % run.models if run.models > 1 else np.zeros(1, dtype=np.int64)
        at = run.at[rows]
        until = (run.find_answered(steps, rows) - within_s) / run.gaps[model, at]  # earlier arrivals are late
        first = run.arrivals.take(spot)
        late = np.where(run.arrivals.take(spot + taken - 1) < until, taken, 0)
        partly = (first < until) & (late == 0)
        line = np.broadcast_to(run.lines[model, at], partly.shape)[partly]
        late[partly] = run.flat.searchsorted(line * run.span + until[partly]) - spot[partly]
        if run.models == 1:
            return (self._add(late) / np.maximum(self._add(taken), 1))[:, None]
        shares = []
        for one in range(run.models):
            mine = model == one
            shares.append(self._add(np.where(mine, late, 0)) / np.maximum(self._add(np.where(mine, taken, 0)), 1))
        return np.stack(shares, axis=1)

    def latencies(self, pool: int, model: int = 0) -> Array:
        """Return the seconds from arrival to answer of a model's requests, unordered."""
        run = self.run
        start = int(np.flatnonzero(self.order == pool)[0]) * self.seeds
        rows = slice(start, start + self.seeds)
        steps = run.read(rows)
        kind, width = steps.kind, run.width
        taken = np.where(kind // width % run.models == model, kind % width, 0).ravel().astype(np.intp)
        first = np.repeat(steps.spot.ravel() - np.cumsum(taken) + taken, taken)
        came = run.arrivals.take(first + np.arange(len(first))) * run.gaps[model, start]
        latencies: Array = np.repeat(run.find_answered(steps, rows).ravel(), taken) - came
        return latencies

    def percentiles(self, pool: int, shares: Sequence[float]) -> list[list[float]]:
        """Return for each model its latencies in seconds at these shares; models without requests are omitted."""
        percentiles = []
        for model in range(self.run.models):
            latencies = self.latencies(pool, model)
            if len(latencies):
                places = [max(math.ceil(share * len(latencies)) - 1, 0) for share in shares]
                percentiles.append(np.partition(latencies, places)[places].tolist())
        return percentiles


def _pad(table: Array, width: int) -> Array:
    """Return a table with its last column repeated up to a width."""
    padded: Array = table[:, np.minimum(np.arange(width), table.shape[1] - 1)]
    return padded


def _draw_gaps(models: int, seeds: int, count: int, draw: int) -> Array:
    """Return random gaps between requests, with mean 1 [model and seed, request].

    Each line has its own generator, so a longer simulation begins with the same numbers. Seeds come in pairs: one has
    long gaps where the other has short ones, which removes as much noise from percentiles as twice the seeds.
    """
    odds = np.empty((models, seeds, count))
    for model, seed in np.ndindex(models, seeds):
        drawn = np.random.default_rng([draw, 0, model, seed // 2]).random(count) + 2.0**-54  # excludes 0 and 1
        odds[model, seed] = 1.0 - drawn if seed % 2 else drawn
    gaps: Array = -np.log(odds.reshape(models * seeds, count))
    return gaps


def _draw_factors(variation: float, seeds: int, count: int, draw: int) -> Array:
    """Return random factors of batch times, with mean 1 [seed, batch]."""
    if variation < LEAST_VARIATION:
        return np.ones((seeds, 1))
    shape = 1.0 / variation**2
    streams = (np.random.default_rng([draw, 1, seed]) for seed in range(seeds))
    return np.stack([one.gamma(shape, 1.0 / shape, size=count) for one in streams])
