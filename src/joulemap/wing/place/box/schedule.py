"""Schedule of a placement's subgraphs: devices work in parallel where the data flow allows.

    begin(node) = max(its device is free, its inputs have arrived)
    arrival(value, device) = max(made, the link is free) + copy    a link carries one value at a time
    makespan = the latest end

Devices and links process nodes and values in the order of the problem. On devices that share a memory, traffic of a
subgraph queues behind traffic that began earlier. A chain has no parallelism: its makespan is the sum of all times.
"""

from __future__ import annotations

from typing import Generic, TypeVar

import numpy as np

from joulemap.physics import Booleans, Floats, Integers
from joulemap.system import frozen
from joulemap.wing.place.box.problem import Problem
from joulemap.wing.place.box.score import cut_rows, find_copies, share_groups

Times = TypeVar("Times", Floats, Integers)


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
