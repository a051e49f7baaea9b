"""What placements take, many at a time: time of one batch, time between batches, energy."""

from __future__ import annotations

from typing import Final

import attrs
import numpy as np

from joulemap.model.workload import Booleans, Floats, Integers
from joulemap.system.record import frozen
from joulemap.wing.place.box.problem import Problem

TOGETHER: Final = 500_000
"""Copies that are looked at together: more leave the processor's caches."""


@frozen(kw_only=True, eq=False)
class Scores:
    """What placements take, one row each."""

    latency_s: Floats
    """Of a batch by itself: devices take turns."""
    busy_s: Floats
    """Placement x device: of a batch."""
    link_s: Floats
    """Placement x from x to: copies of a batch."""
    interval_s: Floats
    """From a batch to the next where they follow each other through the devices: of the slowest stage."""
    joules: Floats
    """Of a batch, but for static power."""
    weight_bytes: Floats
    """Placement x device."""

    @property
    def stages(self) -> Floats:
        """Placement x what works side by side: each device, then each pair of devices, both ways, row by row."""
        both_ways = np.triu(self.link_s + self.link_s.transpose(0, 2, 1), 1)
        return np.concatenate([self.busy_s, both_ways.reshape(len(self.busy_s), -1)], axis=1)


def score(problem: Problem, devices: Integers) -> Scores:
    """Return what placements take, each a row with the device of each node."""
    most = max(1, TOGETHER // max(1, len(problem.maker) * len(problem.members)))
    parts = [_score(problem, devices[start : start + most]) for start in range(0, len(devices), most)]
    names = [one.name for one in attrs.fields(Scores)]
    return Scores(**{name: np.concatenate([getattr(one, name) for one in parts]) for name in names})


def _score(problem: Problem, devices: Integers) -> Scores:
    count = len(problem.members)
    columns = problem.paced_s, problem.dram_bytes, problem.weight_bytes
    busy_s, dram, weights = (sum_by_device(column, devices) for column in columns)
    needs, home = find_copies(problem, devices), devices.T[problem.maker]
    link_s = np.zeros((len(devices), count, count))
    for start in range(count):
        own = home == start
        for end in range(count):
            sent = (needs[:, end] & own).astype(float)
            if start == end or not sent.any():
                continue
            if problem.ways.reaches(start, end):
                link_s[:, start, end] = problem.way_s[:, start, end] @ sent
                busy_s[:, start] += problem.leave_s[:, start] @ sent
                busy_s[:, end] += problem.enter_s[:, end] @ sent
            else:
                link_s[:, start, end] = np.where(sent.any(axis=0), np.inf, 0.0)
    both_ways = link_s + link_s.transpose(0, 2, 1)
    interval = np.maximum(busy_s.max(axis=1), both_ways.max(axis=(1, 2)))
    return Scores(
        latency_s=add_up(problem, problem.seconds, problem.copy_s, devices, needs),
        busy_s=busy_s,
        link_s=link_s,
        interval_s=np.maximum(interval, share_memory(problem, dram)),
        joules=add_up(problem, problem.joules, problem.copy_j, devices, needs),
        weight_bytes=weights,
    )


def sum_by_device(column: Floats, devices: Integers) -> Floats:
    """Return what each device has of a column of node x device, of placements in rows."""
    nodes, count = column.shape
    own = column[np.arange(nodes), devices]
    return np.stack([np.where(devices == one, own, 0.0).sum(axis=1) for one in range(count)], axis=1)


def add_up(problem: Problem, node: Floats, copy: Floats, devices: Integers, needs: Booleans | None = None) -> Floats:
    """Return what placements, each a row, cost in one currency: node x device, and value x from x to.

    `needs` is what `find_copies` says of them, where that is known.
    """
    total: Floats = node[np.arange(problem.node_count), devices].sum(axis=1)
    needs = find_copies(problem, devices) if needs is None else needs
    values, home = np.arange(len(problem.maker))[:, None], devices.T[problem.maker]
    for end in range(len(problem.members)):
        total = total + np.where(needs[:, end], copy[values, home, end], 0.0).sum(axis=0)
    return total


def share_memory(problem: Problem, dram_bytes: Floats) -> Floats:
    """Return the least time from batch to batch that memories which devices share allow, of each placement."""
    found = np.zeros(len(dram_bytes))
    for rate, mine in share_groups(problem):
        found = np.maximum(found, dram_bytes[:, mine].sum(axis=1) * rate)
    return found


def share_groups(problem: Problem) -> list[tuple[float, list[int]]]:
    """Return the seconds a byte of each memory that several share, and who they are."""
    found = []
    for name in sorted({member.memory for member in problem.members if member.memory}):
        mine = [number for number, member in enumerate(problem.members) if member.memory == name]
        found.append((1.0 / max(problem.members[one].hardware.memory_bandwidth.value for one in mine), mine))
    return found


def room(problem: Problem) -> Floats:
    """Return the bytes that each device has for weights, beside its activations."""
    capacity = np.array([member.hardware.memory_capacity.value for member in problem.members])
    return np.maximum(capacity - problem.activation_bytes, 0.0)


def fit_weights(problem: Problem, devices: Integers) -> Booleans:
    """Return which placements have room for their weights."""
    mask: Booleans = np.all(sum_by_device(problem.weight_bytes, devices) <= room(problem), axis=1)
    return mask


def find_copies(problem: Problem, devices: Integers) -> Booleans:
    """Return which values are sent to which device: value x device x placement."""
    count, value_count = len(problem.members), len(problem.maker)
    found = np.zeros((value_count, count, len(devices)), dtype=bool)
    value = np.repeat(np.arange(value_count), [len(one) for one in problem.readers])
    reader = np.array([one for readers in problem.readers for one in readers], dtype=np.int64)
    if value_count:
        starts = np.searchsorted(value, np.arange(value_count))
        bits = np.left_shift(1, devices.T, dtype=np.int32)
        sent = np.bitwise_or.reduceat(bits[reader], starts, axis=0) & ~bits[problem.maker]
        for one in range(count):
            found[:, one] = sent & 1 << one
    return found
