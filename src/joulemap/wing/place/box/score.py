"""Vectorized cost of many placements by a goal: sums over nodes and copies, the interval between batches, and the
schedule of one batch.

    begin(node) = max(its device is free, its inputs have arrived)
    arrival(value, device) = max(made, the link is free) + copy    a link carries one value at a time
    makespan = the latest end

Devices and links process nodes and values in the order of the problem. On devices that share a memory, traffic of a
subgraph queues behind traffic that began earlier. A chain has no parallelism: its makespan is the sum of all times.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Final, Generic, TypeVar

import numpy as np

from joulemap.physics import Booleans, Floats, Integers
from joulemap.system import frozen
from joulemap.wing.place.box.problem import Problem
from joulemap.wing.place.record import Goal

Times = TypeVar("Times", Floats, Integers)

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
            if (start, end) in problem.ways:
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


@frozen(kw_only=True, eq=False)
class Followed(Generic[Times]):
    """Start times in a batch, for many placements at once.

    The placement axis is last, so that it is contiguous in memory.
    """

    begin: Times
    """Start of each node: node x placement."""
    sent: Times
    """Start of a value's copy to a device: value x device x placement; 0 if there is no copy."""
    makespan: Times
    """Time from the start of the batch to its last end, for each placement."""


def find_makespan(problem: Problem, devices: Integers) -> Floats:
    """Return the makespan in seconds of each placement, one per row, at the times in the problem."""
    return np.concatenate([*(_find_makespan(problem, some) for some in cut_rows(problem, devices)), np.zeros(0)])


def _find_makespan(problem: Problem, devices: Integers) -> Floats:
    where = np.ascontiguousarray(devices.T)
    nodes, values = np.arange(problem.node_count)[:, None], np.arange(len(problem.maker))
    needs, home = find_copies(problem, devices), where[problem.maker]
    takes = problem.seconds[nodes, where]
    np.add.at(takes, problem.maker, problem.leave_s[values[:, None], home] * needs.sum(axis=1))
    moves = problem.dram_bytes[nodes, where] * share_rate(problem)[where]
    copies = problem.way_s.transpose(0, 2, 1)[values[:, None, None], np.arange(len(problem.members))[:, None],
                                              home[:, None]]  # fmt: skip
    return follow(problem, where, takes, moves, copies, problem.enter_s, needs).makespan


def share_rate(problem: Problem) -> Floats:
    """Return for each device the seconds per byte of the memory that it shares; 0 without a shared memory."""
    rates = np.zeros(len(problem.members))
    for rate, mine in share_groups(problem):
        rates[mine] = rate if len(mine) > 1 else 0.0
    return rates


def follow(
    problem: Problem,
    where: Integers,
    takes: Times,
    moves: Times,
    copies: Times,
    enters: Times | None = None,
    needs: Booleans | None = None,
) -> Followed[Times]:
    """Return the start times of each placement, in the unit of its inputs.

    `where`, `takes` and `moves` are node x placement: the node's device, its time there, and the time of its traffic in
    a shared memory. `copies` is the time of a copy: value x receiving device x placement. `enters` is value x device:
    the extra time before the receiver can begin. `needs` is the result of `find_copies`, if the caller has it.
    """
    count, rows = len(problem.members), np.arange(where.shape[1])
    needs = find_copies(problem, where.T) if needs is None else needs
    targets = [[target for target in range(count) if some[target].any()] for some in needs]
    names = sorted({member.device.memory for member in problem.members})
    memory_of = np.array([names.index(member.device.memory) for member in problem.members])
    is_shared = moves.any()
    free = np.zeros((count, len(rows)), dtype=takes.dtype)
    link = np.zeros((count * count, len(rows)), dtype=takes.dtype)
    memory = np.zeros((len(names), len(rows)), dtype=takes.dtype)
    there, sent = (np.zeros(copies.shape, dtype=takes.dtype) for _ in range(2))
    begins = np.zeros_like(takes)
    for node, (reads, makes) in enumerate(zip(problem.reads, problem.makes, strict=True)):
        device = where[node]
        begin = free[device, rows]
        for value in reads:
            begin = np.maximum(begin, there[value][device, rows])
        begins[node] = begin
        end = begin + takes[node]
        if is_shared:
            which = memory_of[device]
            moved = np.maximum(memory[which, rows], begin) + np.minimum(moves[node], takes[node])
            memory[which, rows] = moved
            end = np.where(moves[node] > 0, np.maximum(end, moved), end)
        free[device, rows] = end
        for value in makes:
            there[value] = end
            for target in targets[value]:
                mine = np.flatnonzero(needs[value, target])
                pair = np.minimum(device[mine], target) * count + np.maximum(device[mine], target)
                start = np.maximum(end[mine], link[pair, mine])
                arrives = start + copies[value, target, mine]
                link[pair, mine] = arrives
                sent[value, target, mine] = start
                there[value, target, mine] = arrives if enters is None else arrives + enters[value, target]
    return Followed(begin=begins, sent=sent, makespan=free.max(axis=0))


@frozen(kw_only=True, eq=False)
class Aim:
    """Goal of a placement, and the devices on which it may run."""

    problem: Problem
    goal: Goal
    allowed: Sequence[int]

    @property
    def power(self) -> float:
        """Cost of a second: 1, or for the goal `energy` the static and idle power of the box in watts."""
        return self.problem.draw_w(self.allowed) if self.goal == "energy" else 1.0

    @property
    def joules(self) -> Floats:
        """Cost of a node besides its time: node x device; zero unless energy is the goal."""
        return self.problem.joules if self.goal == "energy" else np.zeros_like(self.problem.joules)

    @property
    def copy_j(self) -> Floats:
        """Cost of a copy besides its time: value x sender x receiver; zero unless energy is the goal."""
        return self.problem.copy_j if self.goal == "energy" else np.zeros_like(self.problem.copy_s)

    def mask(self, devices: Sequence[int]) -> Booleans:
        """Return a mask [node, device] of nodes that must not run on a device, with these devices in use."""
        is_out = np.ones(self.problem.seconds.shape, dtype=bool)
        is_out[:, list(devices)] = ~self.problem.can_run[:, list(devices)]
        return is_out

    @cached_property
    def open_to(self) -> Sequence[int]:
        """Devices in use: for latency, all devices identical to an allowed one, which may run parallel branches.

        In sequence they would gain nothing.
        """
        if self.goal != "latency":
            return self.allowed
        return [one for mine in self.problem.kinds.values() if set(mine) & set(self.allowed) for one in mine]

    @cached_property
    def is_out(self) -> Booleans:
        """Mask [node, device] of nodes that must not run on a device."""
        return self.mask(self.open_to)

    def price(self, devices: Integers) -> Floats:
        """Return the goal's value of placements, one per row: seconds or joules."""
        if self.goal == "throughput":
            return score(self.problem, devices).interval_s
        seconds = find_makespan(self.problem, devices)
        if self.goal == "latency":
            return seconds
        return add_up(self.problem, self.joules, self.copy_j, devices) + self.power * seconds
