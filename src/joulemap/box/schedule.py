"""When each subgraph of a placement runs: devices work at the same time where the data flow lets them.

    begin(node) = max(its device is free, what it reads is there)
    there(value, device) = max(made, the link is free) + copy      a link carries one value at a time
    makespan = the latest end

Devices and links take what is theirs in the order of the problem. Of devices that share a memory, what a subgraph moves
waits for what began to move before it. A chain has nothing at the same time: its makespan is the sum of all.
"""

from __future__ import annotations

from typing import Generic, TypeVar

import numpy as np

from joulemap.box.problem import Problem
from joulemap.box.score import TOGETHER, find_copies, share_groups
from joulemap.model.workload import Floats, Integers
from joulemap.system.record import frozen

Times = TypeVar("Times", Floats, Integers)


@frozen(kw_only=True, eq=False)
class Followed(Generic[Times]):
    """When placements do what they do, one row each, from the start of a batch."""

    begin: Times
    """Placement x node."""
    sent: Times
    """Placement x value x device: when its copy to that device begins; 0 where none is made."""
    makespan: Times
    """Placement."""


def find_makespan(problem: Problem, devices: Integers) -> Floats:
    """Return the seconds of each placement, a row each, as the problem prices its parts."""
    most = max(1, TOGETHER // max(1, len(problem.maker) * len(problem.members)))
    parts = [_find_makespan(problem, devices[start : start + most]) for start in range(0, len(devices), most)]
    return np.concatenate([*parts, np.zeros(0)])


def _find_makespan(problem: Problem, devices: Integers) -> Floats:
    nodes, values = np.arange(problem.node_count), np.arange(len(problem.maker))
    needs, home = find_copies(problem, devices), devices[:, problem.maker]
    leave = np.where(needs.any(axis=2), problem.leave_s[values, home] * needs.sum(axis=2), 0.0)
    takes = problem.seconds[nodes, devices]
    np.add.at(takes.T, problem.maker, leave.T)
    moves = problem.dram_bytes[nodes, devices] * share_rate(problem)[devices]
    return follow(problem, devices, takes, moves, problem.way_s[values, home], problem.enter_s).makespan


def share_rate(problem: Problem) -> Floats:
    """Return the seconds that a byte takes a memory that a device shares; 0 of one with a memory of its own."""
    rates = np.zeros(len(problem.members))
    for rate, mine in share_groups(problem):
        rates[mine] = rate if len(mine) > 1 else 0.0
    return rates


def follow(
    problem: Problem, devices: Integers, takes: Times, moves: Times, copies: Times, enters: Times | None = None
) -> Followed[Times]:
    """Return when each placement does what, in the unit of its times.

    `takes` and `moves`: placement x node, of the device and of a memory that it shares; `copies`: placement x value x
    device that it is sent to; `enters`: value x device, until who receives it can begin.
    """
    count, rows = len(problem.members), np.arange(len(devices))
    needs = find_copies(problem, devices)
    targets = [np.flatnonzero(needs[:, value].any(axis=0)).tolist() for value in range(len(problem.maker))]
    names = sorted({member.memory for member in problem.members})
    memory_of = np.array([names.index(member.memory) for member in problem.members])
    is_shared = moves.any()
    free = np.zeros((len(devices), count), dtype=takes.dtype)
    link = np.zeros((len(devices), count, count), dtype=takes.dtype)
    memory = np.zeros((len(devices), len(names)), dtype=takes.dtype)
    there, sent = (np.zeros((len(devices), len(problem.maker), count), dtype=takes.dtype) for _ in range(2))
    begins = np.zeros_like(takes)
    for node, (reads, makes) in enumerate(zip(problem.reads, problem.makes, strict=True)):
        device = devices[:, node]
        begin = free[rows, device]
        for value in reads:
            begin = np.maximum(begin, there[rows, value, device])
        begins[:, node] = begin
        end = begin + takes[:, node]
        if is_shared:
            which = memory_of[device]
            moved = np.maximum(memory[rows, which], begin) + np.minimum(moves[:, node], takes[:, node])
            memory[rows, which] = moved
            end = np.where(moves[:, node] > 0, np.maximum(end, moved), end)
        free[rows, device] = end
        for value in makes:
            there[:, value] = end[:, None]
            for target in targets[value]:
                mine = needs[:, value, target]
                low, high = np.minimum(device, target), np.maximum(device, target)
                before = link[rows, low, high]
                start = np.maximum(end, before)
                arrives = start + copies[:, value, target]
                link[rows, low, high] = np.where(mine, arrives, before)
                sent[:, value, target] = np.where(mine, start, 0)
                entered = arrives if enters is None else arrives + enters[value, target]
                there[:, value, target] = np.where(mine, entered, end)
    return Followed(begin=begins, sent=sent, makespan=free.max(axis=1))
