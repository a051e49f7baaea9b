"""Observed service of a candidate's devices under a batch policy: simulated, or in closed form if one exists."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, NamedTuple, TypeAlias

import attrs
import numpy as np

from joulemap.system.record import frozen
from joulemap.wing.fleet.capacity.queue import Array, Observed, Pools, Service, simulate_pools

APART: Final = 100
"""Requests beyond the devices and the arrival spread, above which their distribution is geometric, to 1e-12."""

PERIODS: Final = 8
"""Service times beyond which the wait is distributed exponentially, to 1e-12."""

ROUNDED: Final = 1e-12
"""Rounding error of summed probabilities."""

FULL: Final = 1.0 - 1e-9
"""Utilization above which a queue is assumed to grow without end, because its root is lost in rounding."""


def constant_wait_percentile(rate: float, service_s: float, devices: int, share: float) -> float:
    """Return the wait in seconds that this share of requests does not exceed, for a constant service time (M/D/c).

    Source: Crommelin 1932 for the number of requests at the devices, Franx 2001 ("A simple solution for the M/D/c
    waiting time distribution") for the wait, Tijms 1994 ("Stochastic Models", 4.4) for its exponential tail. The wait
    is infinite if requests arrive faster than they are served. Time and memory do not grow with the load.
    """
    load = rate * service_s
    if load >= FULL * devices:
        return math.inf
    growth = _find_root(load, devices)
    present = _find_present(load, devices, 1.0 / (1.0 + growth))
    queued = np.cumsum(present)[devices:]

    def keep(wait: float) -> float:
        periods = math.floor(wait / service_s) + 1
        rest = rate * (periods * service_s - wait)
        places = np.arange(periods * devices)
        weights = np.zeros(len(places))
        weights[0] = math.exp(-rest)
        if rest > 0.0:
            weights = np.exp(places * math.log(rest) - rest - _log_factorials(len(places)))
        return float((queued[periods * devices - 1 - places] * weights).sum())

    if keep(0.0) >= share - ROUNDED:
        return 0.0
    low, high = 0.0, service_s
    while high <= PERIODS * service_s and keep(high) < share:
        low, high = high, 2.0 * high
    if high > PERIODS * service_s:
        last = PERIODS * service_s
        return last + math.log((1.0 - keep(last)) / (1.0 - share)) / (rate * growth)
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if keep(middle) < share else (low, middle)
    return high


def _find_root(load: float, devices: int) -> float:
    """Return by how much the root z of load (z - 1) = devices ln z exceeds 1.

    The probability of one more request falls by 1 / z.
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
    """Return the probability of each number of requests at the devices, waiting or served.

    After one service time, the served requests have left and a Poisson number has arrived. In the tail, each number is
    `ratio` times as likely as the previous one. The tail is therefore a multiple of the last probability that is solved
    for.
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
    found: Array = np.concatenate((present, beyond))
    return found


def _log_factorials(count: int) -> Array:
    return np.concatenate(([0.0], np.cumsum(np.log(np.arange(1, count)))))[:count]


Rates: TypeAlias = "float | Sequence[float]"
"""Requests per second over all models: one rate for all candidates, or one per candidate."""

TOGETHER: Final = 32
"""Maximum devices that share a queue; larger fleets have several such queues, each with its share of the requests."""


@frozen(kw_only=True, eq=False)
class Candidate:
    """Device with its service of the models, and the evaluated batch sizes."""

    service: Service
    batches: tuple[int, ...]


def form_candidate(
    batches: Sequence[int],
    hold_s: Sequence[Sequence[float]],
    latency_s: Sequence[Sequence[float]],
    energy_j: Sequence[Sequence[float]],
) -> Candidate:
    """Return a candidate from each model's times and energy at these batches, interpolated linearly between them."""
    every = np.arange(batches[-1] + 1)
    hold, latency, energy = (
        np.stack([np.interp(every, batches, values) for values in table]) for table in (hold_s, latency_s, energy_j)
    )
    return Candidate(service=Service(hold_s=hold, latency_s=latency, energy_j=energy), batches=tuple(batches))


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
    """Watts of batches, summed over all devices."""
    batch_mean: float


@frozen(kw_only=True, eq=False)
class Promise:
    """Latency target for a share of the requests of each model."""

    latency_s: float
    models: tuple[float, ...] = (1.0,)
    """Share of each model in the requests."""
    share: float = 0.99
    variation: float = 0.0
    """Coefficient of variation of a batch's time."""


@frozen(kw_only=True)
class Option:
    """Batch policy of a candidate."""

    candidate: int
    """Index of the candidate."""
    batch: int
    wait_s: float = 0.0
    """Maximum seconds that the first request of a batch waits for others."""


class Figures(NamedTuple):
    """Utilization, batch power and mean batch size of the devices."""

    busy_fraction: float
    batch_w: float
    batch_mean: float


@frozen(kw_only=True, eq=False)
class Seen:
    """Devices of one option, observed by simulation or by a closed form."""

    option: Option
    devices: int
    is_kept: bool
    figures: Callable[[], Figures]
    latencies: Callable[[], tuple[float, float]]
    """Function that returns the median and the target percentile of the slowest model's latency, in seconds."""

    @property
    def batch_w(self) -> float:
        """Watts of batches, summed over all devices."""
        return self.figures().batch_w

    def finish(self) -> Sized:
        """Return the sized option with its figures and latencies, which are slow to compute."""
        half_s, latency_s = self.latencies()
        figures = self.figures()
        return Sized(
            devices=self.devices,
            batch=self.option.batch,
            wait_s=self.option.wait_s,
            half_s=half_s,
            latency_s=latency_s,
            busy_fraction=figures.busy_fraction,
            batch_w=figures.batch_w,
            batch_mean=figures.batch_mean,
        )


def scale(candidate: Candidate, factor: float) -> Candidate:
    """Return a candidate with all times multiplied by `factor` and unchanged energy."""
    service = candidate.service
    scaled = attrs.evolve(service, hold_s=service.hold_s * factor, latency_s=service.latency_s * factor)
    return attrs.evolve(candidate, service=scaled)


def observe(
    candidates: Sequence[Candidate], tried: Sequence[tuple[Option, int]], rates: Rates, promise: Promise
) -> list[Seen]:
    """Return the simulated or closed-form service of each option's devices at these rates.

    Single requests of one model with a constant service time use the closed form; all other options are simulated.
    """
    each = spread_rates(rates, promise, len(candidates))
    are_closed = [is_closed(option, promise) for option, _ in tried]
    stepped = iter(
        _step(candidates, [one for one, closed in zip(tried, are_closed, strict=True) if not closed], each, promise)
    )
    return [
        _solve(candidates[one[0].candidate], one, float(each[one[0].candidate, 0]), promise)
        if closed
        else next(stepped)
        for one, closed in zip(tried, are_closed, strict=True)
    ]


def is_closed(option: Option, promise: Promise) -> bool:
    """Return whether an option has a closed form: single requests of one model with a constant service time."""
    return option.batch == 1 and len(promise.models) == 1 and promise.variation == 0.0


def _solve(candidate: Candidate, tried: tuple[Option, int], rate: float, promise: Promise) -> Seen:
    """Return the closed-form observation of devices that serve single requests."""
    option, devices = tried
    shared = min(devices, TOGETHER)
    hold_s, latency_s, energy_j = (
        float(table[0, 1])
        for table in (candidate.service.hold_s, candidate.service.latency_s, candidate.service.energy_j)
    )

    def find(share: float) -> float:
        return latency_s + constant_wait_percentile(rate * shared / devices, hold_s, shared, share)

    load = rate * hold_s / devices
    return Seen(
        option=option,
        devices=devices,
        is_kept=find(promise.share) <= promise.latency_s,
        figures=lambda: Figures(min(load, 1.0), rate * energy_j / max(load, 1.0), 1.0),
        latencies=lambda: (find(0.5), find(promise.share)),
    )


def _step(
    candidates: Sequence[Candidate], tried: Sequence[tuple[Option, int]], each: Array, promise: Promise
) -> list[Seen]:
    """Return the simulated observation of devices that serve batches."""
    if not tried:
        return []
    devices = np.array([count for _, count in tried])
    shared = np.minimum(devices, TOGETHER)
    places = [option.candidate for option, _ in tried]
    known = {place: number for number, place in enumerate(dict.fromkeys(places))}
    pools = Pools(
        service=np.array([known[place] for place in places]),
        rates=each[places] * (shared / devices)[:, None],
        devices=shared,
        batch=np.array([option.batch for option, _ in tried]),
        wait_s=np.array([option.wait_s for option, _ in tried]),
    )
    seen = simulate_pools([candidates[place].service for place in known], pools, variation=promise.variation)
    late = seen.count_late(promise.latency_s).max(axis=1)

    def read_figures(place: int) -> Figures:
        watts = float(seen.energy_w[place] * devices[place] / shared[place])
        return Figures(float(seen.busy_fraction[place]), watts, float(seen.batch_mean[place]))

    return [
        Seen(
            option=option,
            devices=count,
            is_kept=float(late[place]) <= 1.0 - promise.share,
            figures=partial(read_figures, place),
            latencies=partial(_find_latencies, seen, place, promise),
        )
        for place, (option, count) in enumerate(tried)
    ]


def _find_latencies(seen: Observed, place: int, promise: Promise) -> tuple[float, float]:
    half, most = map(max, zip(*seen.percentiles(place, (0.5, promise.share)), strict=True))
    return half, most


def spread_rates(rates: Rates, promise: Promise, count: int) -> Array:
    """Return the rates per candidate and model."""
    each: Array = np.broadcast_to(rates, count)[:, None] * np.array(promise.models)
    return each
