"""Waiting in closed form, where one holds: requests one by one, at devices that share a queue."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from joulemap.capacity.queue import Array

TAIL: Final = 30.0
"""Means of the queue's length, over 1 - load, that its distribution is followed to."""


def constant_wait_percentile(rate: float, service_s: float, devices: int, share: float) -> float:
    """Return the wait that this share of requests keeps, for services of one length (M/D/c), in seconds.

    Source: Crommelin 1932 for the number of requests at the devices, Franx 2001 ("A simple solution for the M/D/c
    waiting time distribution") for the wait. Infinite where requests come faster than they are served.
    """
    load = rate * service_s
    if load >= devices:
        return math.inf
    present = _find_present(load, devices)
    queued = np.cumsum(present)[devices:]

    def keep(wait: float) -> float:
        periods = math.floor(wait / service_s) + 1
        rest = rate * (periods * service_s - wait)
        most = min(periods * devices - 1, len(queued) - 1)
        places = np.arange(periods * devices)
        weights = np.zeros(len(places))
        weights[0] = math.exp(-rest)
        if rest > 0.0:
            weights = np.exp(places * math.log(rest) - rest - _log_factorials(len(places)))
        order = np.minimum(periods * devices - 1 - places, most)
        return float((queued[order] * weights).sum())

    if keep(0.0) >= share:
        return 0.0
    low, high = 0.0, service_s
    while keep(high) < share:
        low, high = high, 2.0 * high
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if keep(middle) < share else (low, middle)
    return high


def _find_present(load: float, devices: int) -> Array:
    """Return the probability of each number of requests at the devices, waiting or served.

    After a service's length those that were served are gone, and a Poisson number has come.
    """
    count = devices + math.ceil(TAIL / (1.0 - load / devices)) + math.ceil(10.0 * math.sqrt(load))
    come = np.exp(np.arange(count) * math.log(load) - load - _log_factorials(count))
    moves = np.zeros((count, count))
    for before in range(count):
        left = max(before - devices, 0)
        moves[before, left:] = come[: count - left]
    moves[:, -1] += 1.0 - moves.sum(axis=1)
    system = moves.T - np.eye(count)
    system[0] = 1.0
    right = np.zeros(count)
    right[0] = 1.0
    present: Array = np.maximum(np.linalg.solve(system, right), 0.0)
    return present


def _log_factorials(count: int) -> Array:
    return np.concatenate(([0.0], np.cumsum(np.log(np.arange(1, count)))))[:count]
