"""Latency, utilization and power of devices that serve requests in batches, by simulation or a closed form."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Final, TypeAlias

import attrs
import numpy as np

from joulemap.system import frozen
from joulemap.wing.fleet.capacity.queue import Array, Observed, Pools, Service, simulate_parts

APART: Final = 100
"""Requests at the devices, beyond devices and spread of arrivals, above which probabilities fall geometrically.

The deviation is below 1e-12.
"""

PERIODS: Final = 8
"""Wait, in service times, above which its distribution is exponential to 1e-12."""

ROUNDED: Final = 1e-12
"""Tolerance for the rounding error of summed probabilities."""

FULL: Final = 1.0 - 1e-9
"""Utilization above which a queue is assumed to grow without bound; rounding makes its equation unsolvable there."""


@frozen(kw_only=True, eq=False)
class Waits:
    """Distribution of the wait for devices with a constant service time (M/D/c).

    Source: Crommelin 1932 for the number of requests at the devices, Franx 2001 ("A simple solution for the M/D/c
    waiting time distribution") for the wait, Tijms 1994 ("Stochastic Models", 4.4) for its exponential tail. Time and
    memory do not grow with the load.
    """

    rate: float
    service_s: float
    devices: int
    decay_per_s: float
    """Rate per second at which the probability of a longer wait decays in the tail."""
    queued: Array
    """Probability that at most n requests wait, for n = 0, 1, 2, …."""
    log_factorials: Array

    @property
    def _last_s(self) -> float:
        return PERIODS * self.service_s

    def find_share(self, wait_s: float) -> float:
        """Return the share of requests that wait at most this long."""
        if wait_s > self._last_s:
            return 1.0 - (1.0 - self.find_share(self._last_s)) * math.exp((self._last_s - wait_s) * self.decay_per_s)
        periods = math.floor(wait_s / self.service_s) + 1
        rest = self.rate * (periods * self.service_s - wait_s)
        places = np.arange(periods * self.devices)
        weights = np.zeros(len(places))
        weights[0] = math.exp(-rest)
        if rest > 0.0:
            weights = np.exp(places * math.log(rest) - rest - self.log_factorials[: len(places)])
        return float((self.queued[periods * self.devices - 1 - places] * weights).sum())

    def find_percentile(self, share: float) -> float:
        """Return the wait in seconds that this share of requests does not exceed."""
        if self.find_share(0.0) >= share - ROUNDED:
            return 0.0
        low, high = 0.0, self.service_s
        while high <= self._last_s and self.find_share(high) < share:
            low, high = high, 2.0 * high
        if high > self._last_s:
            excess = (1.0 - self.find_share(self._last_s)) / (1.0 - share)
            return self._last_s + math.log(excess) / self.decay_per_s
        for _ in range(60):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if self.find_share(middle) < share else (low, middle)
        return high


def form_waits(rate: float, service_s: float, devices: int) -> Waits | None:
    """Return the distribution of the wait at `rate` requests per second; None if the queue grows without end."""
    load = rate * service_s
    if load >= FULL * devices:
        return None
    growth = _find_root(load, devices)
    present = _find_present(load, devices, 1.0 / (1.0 + growth))
    return Waits(
        rate=rate,
        service_s=service_s,
        devices=devices,
        decay_per_s=rate * growth,
        queued=np.cumsum(present)[devices:],
        log_factorials=_log_factorials((PERIODS + 1) * devices),
    )


def _find_root(load: float, devices: int) -> float:
    """Return z - 1 for the root z > 1 of load (z - 1) = devices ln z.

    In the tail, each further request multiplies the probability by 1 / z.
    """
    share = load / devices
    low, high = 0.0, 1.0
    while math.log1p(high) > share * high:
        low, high = high, 2.0 * high
    for _ in range(200):
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        low, high = (middle, high) if math.log1p(middle) > share * middle else (low, middle)
    return high


def _find_present(load: float, devices: int, ratio: float) -> Array:
    """Return the probability of n requests at the devices, waiting or served, for n = 0, 1, 2, ….

    After one service time, the served requests have left and a Poisson number has arrived. In the tail, the probability
    of each number is `ratio` times that of the previous one.
    """
    count = devices + APART + math.ceil(10.0 * math.sqrt(load))
    come = np.exp(np.arange(count) * math.log(load) - load - _log_factorials(count))
    moves = np.zeros((count, count))
    for before in range(count + devices):
        left = max(before - devices, 0)
        if before < count - 1:
            moves[before, left:] = come[: count - left]
        else:
            moves[-1, left:] += ratio ** (before - count + 1) * come[: count - left]
    system = moves.T - np.eye(count)
    system[0] = 1.0
    system[0, -1] = 1.0 / (1.0 - ratio) if ratio < 1.0 else math.inf
    right = np.zeros(count)
    right[0] = 1.0
    present = np.maximum(np.linalg.solve(system, right), 0.0)
    beyond = present[-1] * ratio ** np.arange(1.0, (PERIODS + 2) * devices)
    probability: Array = np.concatenate((present, beyond))
    return probability


def _log_factorials(count: int) -> Array:
    return np.concatenate(([0.0], np.cumsum(np.log(np.arange(1, count)))))[:count]


Rates: TypeAlias = "float | Sequence[float]"
"""Requests per second over all models: one rate for all candidates, or one per candidate."""

TOGETHER: Final = 32
"""Maximum devices that share a queue; a larger fleet has several queues with equal shares of requests."""


@frozen(kw_only=True, eq=False)
class Candidate:
    """Device type with its times and energies of batches of the models, and the evaluated batch sizes."""

    service: Service
    batches: tuple[int, ...]


def form_candidate(
    batches: Sequence[int],
    occupied_s: Sequence[Sequence[float]],
    latency_s: Sequence[Sequence[float]],
    energy_j: Sequence[Sequence[float]],
) -> Candidate:
    """Return a candidate from times and energies of each model at some batch sizes; other sizes are interpolated."""
    every = np.arange(batches[-1] + 1)
    occupied, latency, energy = (
        np.stack([np.interp(every, batches, values) for values in table]) for table in (occupied_s, latency_s, energy_j)
    )
    return Candidate(service=Service(occupied_s=occupied, latency_s=latency, energy_j=energy), batches=tuple(batches))


@frozen(kw_only=True, eq=False)
class Sized:
    """Devices of one candidate with their batch policy, latency, utilization and power under the demand."""

    devices: int
    batch: int
    wait_s: float
    half_s: float
    """Median latency of the slowest model, in seconds."""
    latency_s: float
    """Latency that the target share of the slowest model's requests does not exceed, in seconds."""
    busy_fraction: float
    batch_w: float
    """Average watts of energy spent on batches, summed over all devices."""
    batch_mean: float


@frozen(kw_only=True, eq=False)
class Promise:
    """Latency target for a share of the requests of each model."""

    latency_s: float
    models: tuple[float, ...] = (1.0,)
    """Share of the requests that each model gets."""
    share: float = 0.99
    variation: float = 0.0
    """Coefficient of variation of a batch's time."""


@frozen(kw_only=True)
class Option:
    """Batch size and maximum wait with which a candidate serves requests."""

    candidate: int
    """Index of the candidate."""
    batch: int
    wait_s: float = 0.0
    """Maximum seconds that the first request of a batch waits for the batch to fill."""


Tried: TypeAlias = tuple[Option, int]
"""Option with a number of devices at which it is tried."""


@frozen(kw_only=True, eq=False)
class Seen:
    """Simulated or computed result of some devices under one batch policy, and whether they meet the target."""

    option: Option
    devices: int
    is_kept: bool
    batch_w: float
    """Average watts of energy spent on batches, summed over all devices; NaN unless it was requested."""


def scale(candidate: Candidate, factor: float) -> Candidate:
    """Return a candidate with all times multiplied by `factor` and unchanged energy."""
    service = candidate.service
    scaled = attrs.evolve(service, occupied_s=service.occupied_s * factor, latency_s=service.latency_s * factor)
    return attrs.evolve(candidate, service=scaled)


def observe(
    candidates: Sequence[Candidate], tried: Sequence[Tried], rates: Rates, promise: Promise, *, reads_power: bool = True
) -> list[Seen]:
    """Return whether each option's devices meet the target at these rates, and the power of their batches.

    Single requests of one model with a constant service time use the closed form; all other options are simulated.
    """
    by_option: dict[int, Seen] = {}
    for places, queues in _form_queues(candidates, tried, rates, promise):
        watts = queues.batch_w if reads_power else [math.nan] * len(places)
        for index, is_kept, batch_w in zip(places, queues.find_kept(promise), watts, strict=True):
            option, devices = tried[index]
            by_option[index] = Seen(option=option, devices=devices, is_kept=is_kept, batch_w=batch_w)
    return [by_option[index] for index in range(len(tried))]


def size_options(
    candidates: Sequence[Candidate], tried: Sequence[Tried], rates: Rates, promise: Promise
) -> list[Sized]:
    """Return the latencies, utilization and power of each option's devices at these rates.

    Latencies make this slower than `observe`.
    """
    by_option: dict[int, Sized] = {}
    for places, queues in _form_queues(candidates, tried, rates, promise):
        by_option |= zip(places, queues.size(promise), strict=True)
    return [by_option[index] for index in range(len(tried))]


def _form_queues(
    candidates: Sequence[Candidate], tried: Sequence[Tried], rates: Rates, promise: Promise
) -> Iterator[tuple[Sequence[int], _Closed | _Simulated]]:
    """Yield (indices of options, their queues): one option per closed form, several per simulation."""
    each = spread_rates(rates, promise, len(candidates))
    are_closed = [is_closed(option, promise) for option, _ in tried]
    for index in itertools.compress(range(len(tried)), are_closed):
        option, devices = tried[index]
        rate = float(each[option.candidate, 0])
        yield [index], _Closed(service=candidates[option.candidate].service, option=option, devices=devices, rate=rate)
    stepped = list(itertools.compress(range(len(tried)), (not closed for closed in are_closed)))
    if not stepped:
        return
    some = [tried[index] for index in stepped]
    for places, observed in _simulate(candidates, some, each, promise):
        yield (
            [stepped[index] for index in places],
            _Simulated(tried=[some[index] for index in places], observed=observed),
        )


def is_closed(option: Option, promise: Promise) -> bool:
    """Return whether an option has a closed form: single requests of one model with a constant service time."""
    return option.batch == 1 and len(promise.models) == 1 and promise.variation == 0.0


@frozen(kw_only=True, eq=False)
class _Closed:
    """Devices that serve single requests, whose waits have a closed form."""

    service: Service
    option: Option
    devices: int
    rate: float

    @cached_property
    def _waits(self) -> Waits | None:
        shared = min(self.devices, TOGETHER)
        return form_waits(self.rate * shared / self.devices, self._take("occupied_s"), shared)

    def _take(self, name: str) -> float:
        return float(getattr(self.service, name)[0, 1])

    @property
    def _load(self) -> float:
        return self.rate * self._take("occupied_s") / self.devices

    @property
    def batch_w(self) -> list[float]:
        """Average watts of energy spent on batches, summed over all devices."""
        return [self.rate * self._take("energy_j") / max(self._load, 1.0)]

    def find_kept(self, promise: Promise) -> list[bool]:
        """Return whether the devices meet a target."""
        slack = promise.latency_s - self._take("latency_s")
        share = 0.0 if self._waits is None or slack < 0.0 else self._waits.find_share(slack)
        return [share >= promise.share - ROUNDED]

    def size(self, promise: Promise) -> list[Sized]:
        """Return the devices' latencies, utilization and power."""
        half_s, most_s = (
            self._take("latency_s") + (math.inf if self._waits is None else self._waits.find_percentile(share))
            for share in (0.5, promise.share)
        )
        return [_form_sized((self.option, self.devices), half_s, most_s, min(self._load, 1.0), self.batch_w[0], 1.0)]


@frozen(kw_only=True, eq=False)
class _Simulated:
    """Several options whose devices are simulated together."""

    tried: Sequence[Tried]
    observed: Observed

    @cached_property
    def batch_w(self) -> list[float]:
        """Average watts of energy spent on batches of each option, summed over its devices."""
        devices = np.array([devices for _, devices in self.tried])
        watts: list[float] = (self.observed.energy_w * devices / np.minimum(devices, TOGETHER)).tolist()
        return watts

    def find_kept(self, promise: Promise) -> list[bool]:
        """Return whether each option's devices meet a target."""
        kept: list[bool] = (self.observed.count_late(promise.latency_s).max(axis=1) <= 1.0 - promise.share).tolist()
        return kept

    def size(self, promise: Promise) -> list[Sized]:
        """Return the latencies, utilization and power of each option's devices."""
        sizes = []
        for index, one in enumerate(self.tried):
            half_s, most_s = map(max, zip(*self.observed.percentiles(index, (0.5, promise.share)), strict=True))
            busy, mean = float(self.observed.busy_fraction[index]), float(self.observed.batch_mean[index])
            sizes.append(_form_sized(one, half_s, most_s, busy, self.batch_w[index], mean))
        return sizes


def _form_sized(
    tried: Tried, half_s: float, latency_s: float, busy_fraction: float, batch_w: float, batch_mean: float
) -> Sized:
    option, devices = tried
    return Sized(
        devices=devices,
        batch=option.batch,
        wait_s=option.wait_s,
        half_s=half_s,
        latency_s=latency_s,
        busy_fraction=busy_fraction,
        batch_w=batch_w,
        batch_mean=batch_mean,
    )


def _simulate(
    candidates: Sequence[Candidate], tried: Sequence[Tried], each: Array, promise: Promise
) -> Iterator[tuple[list[int], Observed]]:
    """Yield the indices of some options and their simulated devices, a group at a time."""
    devices = np.array([count for _, count in tried])
    shared = np.minimum(devices, TOGETHER)
    places = [option.candidate for option, _ in tried]
    known = {index: number for number, index in enumerate(dict.fromkeys(places))}
    pools = Pools(
        service=np.array([known[index] for index in places]),
        rates=each[places] * (shared / devices)[:, None],
        devices=shared,
        batch=np.array([option.batch for option, _ in tried]),
        wait_s=np.array([option.wait_s for option, _ in tried]),
    )
    services = [candidates[index].service for index in known]
    return simulate_parts(services, pools, variation=promise.variation)


def spread_rates(rates: Rates, promise: Promise, count: int) -> Array:
    """Return requests per second as candidate x model, by the models' shares."""
    each: Array = np.broadcast_to(rates, count)[:, None] * np.array(promise.models)
    return each
