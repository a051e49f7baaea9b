"""Vectorized cost of many placements: sums over nodes and copies, and the interval between batches."""

from __future__ import annotations

from typing import Final

import numpy as np

from joulemap.physics import Booleans, Floats, Integers
from joulemap.system import frozen
from joulemap.wing.place.box.problem import Problem

TOGETHER: Final = 500_000
"""Maximum values x devices x placements that are scored at once; larger arrays spill the CPU cache."""


@frozen(kw_only=True, eq=False)
class Scores:
    """Times of placements whose batches follow each other, one row each."""

    stages: Floats
    """Busy time of parallel stages: placement x (devices, then pairs of devices row by row).

    A pair has the copies of both directions.
    """
    interval_s: Floats
    """Interval between batches in a pipeline: time of its slowest stage."""


def score(problem: Problem, devices: Integers) -> Scores:
    """Return the times of placements; each row of `devices` has the device of each node."""
    parts = [_score(problem, some) for some in cut_rows(problem, devices)]
    return Scores(
        stages=np.concatenate([one.stages for one in parts]),
        interval_s=np.concatenate([one.interval_s for one in parts]),
    )


def cut_rows(problem: Problem, devices: Integers) -> list[Integers]:
    """Return placements in groups that are scored at once."""
    most = max(1, TOGETHER // max(1, len(problem.maker) * len(problem.members)))
    return [devices[start : start + most] for start in range(0, len(devices), most)]


def _score(problem: Problem, devices: Integers) -> Scores:
    count = len(problem.members)
    busy_s, dram = (sum_by_device(column, devices) for column in (problem.paced_s, problem.dram_bytes))
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
    both_ways = np.triu(link_s + link_s.transpose(0, 2, 1), 1)
    stages = np.concatenate([busy_s, both_ways.reshape(len(busy_s), -1)], axis=1)
    return Scores(stages=stages, interval_s=np.maximum(stages.max(axis=1), share_memory(problem, dram)))


def sum_by_device(column: Floats, devices: Integers) -> Floats:
    """Return the sum of a quantity on each device: placement x device.

    `column` is the quantity as node x device; `devices` has one placement per row.
    """
    nodes, count = column.shape
    own = column[np.arange(nodes), devices]
    return np.stack([np.where(devices == one, own, 0.0).sum(axis=1) for one in range(count)], axis=1)


def add_up(problem: Problem, node: Floats, copy: Floats, devices: Integers) -> Floats:
    """Return the total cost of each placement; `devices` has one placement per row.

    `node` is node x device, `copy` is value x sender x receiver.
    """
    total: Floats = node[np.arange(problem.node_count), devices].sum(axis=1)
    needs = find_copies(problem, devices)
    values, home = np.arange(len(problem.maker))[:, None], devices.T[problem.maker]
    for end in range(len(problem.members)):
        total = total + np.where(needs[:, end], copy[values, home, end], 0.0).sum(axis=0)
    return total


def share_memory(problem: Problem, dram_bytes: Floats) -> Floats:
    """Return for each placement the shortest interval that the bandwidth of shared memories allows."""
    interval_s = np.zeros(len(dram_bytes))
    for rate, mine in share_groups(problem):
        interval_s = np.maximum(interval_s, dram_bytes[:, mine].sum(axis=1) * rate)
    return interval_s


def share_groups(problem: Problem) -> list[tuple[float, list[int]]]:
    """Return (seconds per byte, devices) of each shared memory."""
    groups = []
    for name in sorted({member.device.memory for member in problem.members if member.device.memory}):
        mine = [number for number, member in enumerate(problem.members) if member.device.memory == name]
        groups.append((1.0 / max(problem.members[one].hardware.memory_bandwidth.value for one in mine), mine))
    return groups


def room(problem: Problem) -> Floats:
    """Return the bytes of each device's memory that activations leave for weights."""
    capacity = np.array([member.hardware.memory_capacity.value for member in problem.members])
    return np.maximum(capacity - problem.activation_bytes, 0.0)


def fit_weights(problem: Problem, devices: Integers) -> Booleans:
    """Return a mask of the placements whose weights fit into the memories."""
    mask: Booleans = np.all(sum_by_device(problem.weight_bytes, devices) <= room(problem), axis=1)
    return mask


def find_copies(problem: Problem, devices: Integers) -> Booleans:
    """Return a mask of the copies that placements need: value x receiving device x placement."""
    count, value_count = len(problem.members), len(problem.maker)
    is_copied = np.zeros((value_count, count, len(devices)), dtype=bool)
    value = np.repeat(np.arange(value_count), [len(one) for one in problem.readers])
    reader = np.array([one for readers in problem.readers for one in readers], dtype=np.int64)
    if value_count:
        starts = np.searchsorted(value, np.arange(value_count))
        bits = np.left_shift(1, devices.T, dtype=np.int32)
        sent = np.bitwise_or.reduceat(bits[reader], starts, axis=0) & ~bits[problem.maker]
        for one in range(count):
            is_copied[:, one] = sent & 1 << one
    return is_copied
