"""Best placement for a goal: the lowest latency, the shortest interval between batches, or the least energy.

    latency      sum of subgraphs and copies, exact: `search`; lower where branches overlap: `overlap`
    energy       sum of their joules + static power of the box x latency, the same for each set of devices
    throughput   busiest stage: a device, a link, or a shared memory

The throughput objective is a maximum, not a sum. Any stage weights that add up to 1 give a sum that is at most every
placement's interval. So the optimum of `search` under such weights is a lower bound and a starting placement. Weights
move to the busy stages. From the best placement found, single subgraphs move as long as the interval shrinks. Source:
Lagrangean relaxation, Held and Karp, The Traveling-Salesman Problem and Minimum Spanning Trees, 1970.

A full memory is a price per byte, raised until the weights fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from joulemap.physics import Booleans, Floats, Integers
from joulemap.wing.place.box.overlap import bound_path, bound_work, cut_stretches, list_moves, overlap
from joulemap.wing.place.box.problem import Problem
from joulemap.wing.place.box.score import Aim, add_up, fit_weights, room, score, sum_by_device
from joulemap.wing.place.box.search import FEW_STATES, Choice, Costs, search
from joulemap.wing.place.box.solve import solve_placement

ROUNDS: Final = 16
"""Maximum rounds in which stage weights are adjusted."""

FEW_DEVICES: Final = 4
MANY_VALUES: Final = 256
"""Number of values above which only one round over the stage weights runs, because a round is slow."""

GAIN: Final = 0.01
"""Minimum relative growth of the bound that justifies another round."""

PATIENCE: Final = 3
"""Maximum consecutive rounds in which the bound grows by less than `GAIN`."""

LINK_WEIGHT: Final = 0.1
"""Initial weight of a link, relative to a device."""

MOVES: Final = 24
"""Maximum rounds in which single subgraphs move to other devices."""

RAISES: Final = 16
"""Maximum searches at different penalties per byte of a full memory."""

ENOUGH: Final = 1e-3
"""Relative gap to the bound at which the search stops."""


def choose(aim: Aim) -> Choice | None:
    """Return the best placement for an aim; None if its devices cannot run the model together."""
    problem, is_closed = aim.problem, aim.mask(aim.allowed)
    if is_closed.all(axis=1).any():
        return None
    if aim.goal == "throughput":
        return _spread(aim)
    base = np.where(is_closed, np.inf, problem.seconds * aim.power + aim.joules)
    copy = problem.copy_s * aim.power + aim.copy_j
    cheapest, per_byte = _search_within(problem, base, copy)
    if cheapest is None:
        return None
    if len(aim.open_to) > len(aim.allowed):
        per_byte = per_byte * 0.0  # identical devices add memory, so the price of a byte is zero
    filled, held = problem.weight_bytes * per_byte, float((per_byte * room(problem))[per_byte > 0.0].sum())
    bound = bound_path(problem, base + filled, copy, np.where(is_closed, np.inf, aim.joules) + filled) - held
    if aim.goal == "latency":
        bound = max(bound, bound_work(np.where(aim.is_out, np.inf, problem.seconds)))
    bound = min(bound, cheapest.bound)
    devices, value = overlap(problem, cheapest.devices, aim.is_out, aim.price, bound)
    return Choice(devices=devices, value=value, bound=min(bound, value))


def improve(aim: Aim, choice: Choice) -> Choice:
    """Return a solver's refinement of a choice; neither the placement nor the lower bound gets worse."""
    solved, bound = solve_placement(aim, choice.devices)
    devices, value = choice.devices, choice.value
    if solved is not None and fit_weights(aim.problem, solved[None])[0]:
        refined = float(aim.price(solved[None])[0])
        if refined < value:
            devices, value = solved, refined
    return Choice(devices=devices, value=value, bound=min(max(choice.bound, bound), value))


def _search_within(problem: Problem, node: Floats, copy: Floats) -> tuple[Choice | None, Floats]:
    """Return the cheapest placement found whose weights fit into the memories, and the penalty per byte of each memory.

    The penalties are those of the best lower bound; 0 if the weights fit without a penalty. Identical layers see the
    same penalty and move together, which leaves memory unused. So a placement that does not fit is also combined with
    one that fits, at every node.
    """

    def find(price: Floats) -> Choice | None:
        return search(Costs(node + problem.weight_bytes * price, copy, problem.maker, problem.readers))

    most, price = room(problem), np.zeros(len(problem.members))
    cheapest = find(price)
    if cheapest is None or fit_weights(problem, cheapest.devices[None])[0]:
        return cheapest, price
    step = float(node[np.isfinite(node)].max()) / max(float(problem.weight_bytes.max()), 1.0)
    bound, best, over, fitting = cheapest.bound, price, [cheapest.devices], []
    low, high = price, None
    for _ in range(RAISES):
        if high is None:
            excess = sum_by_device(problem.weight_bytes, over[-1][None])[0] > most
            price = np.where(excess, np.maximum(price * 4.0, step), price)
        else:
            price = (low + high) / 2.0
        trial = find(price)
        if trial is None:
            return None, best
        least = trial.bound - float((price * most)[price > 0.0].sum())
        if least > bound:
            bound, best = least, price
        if fit_weights(problem, trial.devices[None])[0]:
            fitting.append(trial.devices)
            high = price
        else:
            over.append(trial.devices)
            low = price
    if not fitting:
        return None, best
    trials = np.array([*fitting, *_cross(over[-1], fitting[-1]), *_cross(over[0], fitting[-1])])
    trials = trials[fit_weights(problem, trials)]
    cost = add_up(problem, node, copy, trials)
    index = int(np.argmin(cost))
    return Choice(devices=trials[index], value=float(cost[index]), bound=min(bound, float(cost[index]))), best


def _cross(first: Integers, second: Integers) -> Integers:
    """Return all placements that follow one placement up to a node and the other one after it, in both orders."""
    count = len(first)
    begins = np.arange(count)[None] < np.arange(1, count)[:, None]
    return np.concatenate([np.where(begins, first, second), np.where(begins, second, first)])


def _spread(aim: Aim) -> Choice | None:
    """Return a placement with a short interval between batches, with the highest lower bound found; None if none is
    possible.
    """
    problem, nodes = aim.problem, np.eye(aim.problem.node_count, dtype=bool)
    seeds = list(cut_stretches(problem, aim.is_out, aim.allowed))
    best = _take_best(problem, np.array(seeds), None) if seeds else None
    weights, bound, since = _begin(problem, aim.allowed), 0.0, 0
    is_small = len(aim.allowed) <= FEW_DEVICES and len(problem.maker) <= MANY_VALUES
    for number in range(ROUNDS if is_small else 1):
        balanced = search(_weigh_stages(problem, aim.is_out, weights), FEW_STATES)
        if balanced is None:
            return None
        since = 0 if balanced.bound > bound * (1.0 + GAIN) else since + 1
        bound = max(bound, balanced.bound)
        best = _take_best(problem, balanced.devices[None], best)
        if since == PATIENCE or (best is not None and best[1] <= bound * (1.0 + ENOUGH)):
            break
        loads = score(problem, balanced.devices[None]).stages[0]
        drawn = weights * np.exp((loads / max(loads.max(), 1e-30) - 0.5) / (1.0 + number) ** 0.5)
        weights = drawn / drawn.sum()
    if best is None:
        return None
    for _ in range(MOVES):
        if best[1] <= bound * (1.0 + ENOUGH):
            break
        before, moves = best[1], list_moves(nodes, best[0], aim.is_out)
        best = (_take_best(problem, moves, best) if len(moves) else None) or best
        if best[1] >= before:
            break
    return Choice(devices=best[0], value=best[1], bound=min(bound, best[1]))


def _begin(problem: Problem, allowed: Sequence[int]) -> Floats:
    """Return initial stage weights that add up to 1, in the order of `Scores.stages`.

    Links get a low weight, devices that are not allowed get zero.
    """
    count = len(problem.members)
    is_mine = np.isin(np.arange(count), list(allowed))
    links = LINK_WEIGHT * np.triu(is_mine[:, None] & is_mine[None], 1)
    weights = np.append(is_mine.astype(float), links.ravel())
    total: Floats = weights / weights.sum()
    return total


def _weigh_stages(problem: Problem, is_out: Booleans, weights: Floats) -> Costs:
    """Return costs that add up to the weighted sum of the stages, a lower bound of the longest stage."""
    count = len(problem.members)
    device, link = weights[:count], weights[count:].reshape(count, count)
    others = ~np.eye(count, dtype=bool)
    way = np.where(np.isinf(problem.way_s), 0.0, problem.way_s) * (link + link.T)
    ends = (problem.leave_s * device)[:, :, None] + (problem.enter_s * device)[:, None, :]
    copy = np.where(np.isinf(problem.way_s), np.inf, way + np.where(others, ends, 0.0))
    node = np.where(is_out, np.inf, problem.paced_s * device)
    return Costs(node, copy, problem.maker, problem.readers)


def _take_best(
    problem: Problem, trials: Integers, best: tuple[Integers, float] | None
) -> tuple[Integers, float] | None:
    """Return (placement, interval) with the shortest interval among placements that fit into the memories.

    `best` is the best known placement, which is returned if no trial is better.
    """
    interval = np.where(fit_weights(problem, trials), score(problem, trials).interval_s, np.inf)
    index = int(np.argmin(interval))
    if not np.isfinite(interval[index]) or (best is not None and best[1] <= interval[index]):
        return best
    return trials[index], float(interval[index])
