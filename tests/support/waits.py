"""Waits for devices with a constant service time in closed form (M/D/c), which simulations are compared with."""

from __future__ import annotations

import math
from typing import Final

import attrs
import numpy as np

from joulemap.wing.fleet.capacity.queue import Array

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


@attrs.frozen(kw_only=True, eq=False)
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
