"""Placements with parallel devices, found from the best sequential one by moving parts of the graph.

Candidate parts are single subgraphs, all nodes that lead to one node alone (an encoder next to another), and all nodes
that follow from one alone (a head). Two lower bounds hold for every placement:

    the longest path through the graph with its copies, placed as if nothing else were there
    the work of all devices: sum over subgraphs of min over devices of weight x seconds, weights of sum 1
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import permutations
from typing import Final

import numpy as np

from joulemap.physics import Booleans, Floats, Integers
from joulemap.wing.place.box.problem import Problem
from joulemap.wing.place.box.score import fit_weights
from joulemap.wing.place.box.search import Costs, search

ROUNDS: Final = 6
"""Maximum rounds in which parts of the graph move."""

MOST_MOVES: Final = 384
"""Maximum moves per round for which a makespan is computed; moves with the least total work come first."""

WEIGHINGS: Final = 40
"""Maximum rounds in which device weights are adjusted for the lower bound."""

ENOUGH: Final = 1e-3
"""Relative gap to the bound at which the search stops."""

MOST_KINDS: Final = 4
"""Maximum kinds of device in a placement that gives each device one consecutive stretch of the model."""

TOO_LONG_S: Final = 1e9
"""Seconds that stand for a node which a device cannot run."""


def overlap(
    problem: Problem, devices: Integers, is_out: Booleans, price: Callable[[Integers], Floats], bound: float
) -> tuple[Integers, float]:
    """Return the best placement found by moving parts of the graph from `devices`, and its cost; never a worse one.

    `price` computes the costs of placements in rows. The search stops near the lower bound `bound`.
    """
    best, value = devices, float(price(devices[None])[0])
    regions = list(_list_regions(problem)) if value > bound * (1.0 + ENOUGH) else []
    for _ in range(ROUNDS):
        if value <= bound * (1.0 + ENOUGH):
            break
        trials = list_moves(regions, best, is_out)
        trials = trials[fit_weights(problem, trials)]
        if not len(trials):
            break
        work = problem.seconds[np.arange(problem.node_count), trials].sum(axis=1)
        trials = trials[np.argsort(work, kind="stable")[:MOST_MOVES]]
        costs = price(trials)
        index = int(np.argmin(costs))
        if costs[index] >= value:
            break
        best, value = trials[index], float(costs[index])
    return best, value


def list_moves(regions: Iterable[Booleans], devices: Integers, is_out: Booleans) -> Integers:
    """Return the placements in which one region of nodes moves to another device, as far as that can run them."""
    moves: dict[bytes, Integers] = {}
    for mask in regions:
        for target in np.flatnonzero(~is_out.all(axis=0)).tolist():
            moved = np.where(mask & ~is_out[:, target], target, devices)
            if (moved != devices).any():
                moves.setdefault(moved.tobytes(), moved)
    return np.array(list(moves.values()), dtype=np.int64).reshape(-1, len(devices))


def bound_path(problem: Problem, base: Floats, copy: Floats, rest: Floats) -> float:
    """Return a lower bound of the cost of any placement, in the unit of the arguments.

    `base` (node x device) and `copy` are costs on the longest path, with their time. `rest` (node x device) is the cost
    of a node off the path, whose time may be hidden.
    """
    least = base.min(axis=1)
    longest, back = least.copy(), np.full(len(least), -1)
    for node, reads in enumerate(problem.reads):
        before = [(float(longest[problem.maker[value]]), value) for value in reads]
        if before:
            most, value = max(before)
            longest[node], back[node] = most + least[node], value
    node, nodes, values = int(np.argmax(longest)), [], []
    while (value := int(back[node])) >= 0:
        nodes.append(node)
        values.append(value)
        node = int(problem.maker[value])
    nodes, values = [node, *nodes[::-1]], values[::-1]
    readers = tuple((index + 1,) for index in range(len(values)))
    cheapest = search(Costs(base[nodes], copy[values], np.arange(len(values)), readers))
    beside = np.delete(rest, nodes, axis=0).min(axis=1).sum()
    return 0.0 if cheapest is None else cheapest.bound + float(beside)


def bound_work(seconds: Floats) -> float:
    """Return a lower bound of the makespan in seconds from total work.

    `seconds` is node x device, infinite if a node cannot run.
    """
    weights, best = np.full(seconds.shape[1], 1.0), 0.0
    weights[~np.isfinite(seconds).any(axis=0)] = 0.0
    weights /= weights.sum()
    for number in range(WEIGHINGS):
        weighed = np.where(np.isfinite(seconds), seconds * np.where(weights > 0.0, weights, 1.0), np.inf)
        weighed[:, weights == 0.0] = np.inf
        best = max(best, float(weighed.min(axis=1).sum()))
        chosen = weighed.argmin(axis=1)
        load = np.bincount(chosen, seconds[np.arange(len(seconds)), chosen], minlength=len(weights))
        weights = weights * np.exp(load / max(float(load.max()), 1e-30) / (1.0 + number) ** 0.5)
        weights /= weights.sum()
    return best


def _list_regions(problem: Problem) -> Iterator[Booleans]:
    """Yield masks of nodes that move together: single nodes, all nodes that lead only to one node, and all that follow
    from one.
    """
    count = problem.node_count
    before, after = [set[int]() for _ in range(count)], [set[int]() for _ in range(count)]
    for value, nodes in enumerate(problem.readers):
        for node in nodes:
            before[node].add(int(problem.maker[value]))
            after[int(problem.maker[value])].add(node)
    seen = {1 << node for node in range(count)}
    for order, links in ((range(count), before), (range(count - 1, -1, -1), after)):
        above, sets = [0] * count, [0] * count
        for node in order:
            both = -1 if links[node] else 0
            for other in links[node]:
                both &= above[other]
            above[node] = mask = both | 1 << node
            while mask:
                low = mask & -mask
                sets[low.bit_length() - 1] |= 1 << node
                mask ^= low
        seen |= {*sets}
    for mask in sorted(seen):
        yield np.array([mask >> node & 1 for node in range(count)], dtype=bool)


def list_neighbours(problem: Problem, own: int) -> Iterator[Integers]:
    """Yield placements in which one subgraph runs on another device, alone or together with all later or all earlier
    subgraphs.
    """
    count = problem.node_count
    for other in range(len(problem.members)):
        able = problem.can_run[:, other]
        for node in range(count) if other != own else ():
            for mine in (slice(node, node + 1), slice(node, count), slice(0, node + 1)):
                if able[mine].all() and 0 < len(range(count)[mine]) < count:
                    devices = np.full(count, own)
                    devices[mine] = other
                    yield devices


def cut_stretches(problem: Problem, is_out: Booleans, allowed: Sequence[int]) -> Iterator[Integers]:
    """Yield placements with one consecutive stretch of nodes per device, balanced in time.

    Every order of the kinds of device is tried; all devices of a kind are used.
    """
    seconds = np.where(is_out, np.inf, problem.paced_s)
    kinds = [mine for alike in problem.kinds.values() if (mine := [one for one in alike if one in allowed])]
    for size in range(1, min(len(kinds), MOST_KINDS) + 1):
        for order in permutations(kinds, size):
            members = [number for alike in order for number in alike]
            devices = _balance(seconds[:, members])
            if devices is not None:
                yield np.array(members, dtype=np.int64)[devices]


def _balance(seconds: Floats) -> Integers | None:
    """Return the stage of each node that minimizes the longest stage; None if no split is possible."""
    finite = np.where(np.isinf(seconds), TOO_LONG_S, seconds)
    upto = np.vstack([np.zeros(seconds.shape[1]), np.cumsum(finite, axis=0)])
    count = len(upto)
    longest, back = upto[:, 0], []
    for stage in range(1, seconds.shape[1]):
        both = np.maximum(longest[:, None], upto[None, :, stage] - upto[:, None, stage])
        both = np.where(np.arange(count)[:, None] <= np.arange(count)[None], both, np.inf)
        back.append(np.argmin(both, axis=0))
        longest = both.min(axis=0)
    if longest[-1] >= TOO_LONG_S:
        return None
    stages, end = np.zeros(count - 1, dtype=np.int64), count - 1
    for stage in range(seconds.shape[1] - 1, 0, -1):
        start = int(back[stage - 1][end])
        stages[start:end] = stage
        end = start
    return stages
