"""Waiting times in closed form for single requests at devices that share a queue."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from joulemap.wing.fleet.capacity.queue import Array

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
