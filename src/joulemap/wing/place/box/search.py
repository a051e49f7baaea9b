"""Cheapest placement, exactly, by dynamic programming over live values.

    state after a node   for each value that a later node reads: its maker, and the devices that hold it
    next                 the node on each device that can run it: its cost, and a copy of each input missing there

A chain has one state per device; parallel branches multiply states. The number of states grows with the widest cut
through the model. A state is dropped, without loss, where another state is at most as expensive with the missing copies
added. Above `MOST_STATES` the most expensive states are dropped, and `Choice.bound` accounts for the dropped states.
Source: variable elimination of pairwise energies; Bertele and Brioschi, Nonserial Dynamic Programming, 1972.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from joulemap.physics import Floats, Integers
from joulemap.system import define, frozen

MOST_STATES: Final = 512
"""Maximum states kept per node, after dominated states are dropped."""

FEW_STATES: Final = 64
"""Number of states up to which dominated states are kept, because a test would take longer than it saves."""

MOST_ENTRIES: Final = 8192
"""Maximum live values summed over all states; it lowers the number of states where many values are live."""

LEAST_STATES: Final = 16

JUDGES: Final = 24
"""Number of cheapest states against which all other states are tested for dominance."""

State = tuple[int, ...]
"""One number per live value: its maker x 2^devices + one bit for each device that holds the value."""


@frozen(kw_only=True, eq=False)
class Choice:
    """Best placement that was found on some devices."""

    devices: Integers
    """Device of each node."""
    value: float
    """Cost of the placement: the sum of its costs, or by the goal its seconds or joules."""
    bound: float
    """Lower bound of the value that any placement can have; the value itself if the search was complete."""

    @property
    def gap(self) -> float:
        """Upper bound on the share of the value that a better placement could save."""
        return max(0.0, 1.0 - self.bound / self.value) if self.value > 0.0 else 0.0


@define(eq=False)
class Costs:
    """Costs of nodes and copies, in one unit."""

    node: Floats
    """Cost of a node on a device: node x device; infinite if the device cannot run it."""
    copy: Floats
    """Cost of sending a value: value x sender x receiver."""
    maker: Integers
    readers: Sequence[Sequence[int]]


def search(costs: Costs, most: int = 0) -> Choice | None:
    """Return the cheapest placement; None if no placement can run all nodes.

    `most` is the maximum number of states; 0 means `MOST_STATES`.
    """
    node_count, device_count = costs.node.shape
    made = group_values([(one,) for one in costs.maker.tolist()], node_count)
    read = group_values(costs.readers, node_count)
    last = [max(readers) for readers in costs.readers]
    least = np.append(np.cumsum(costs.node.min(axis=1)[::-1])[::-1], 0.0)
    able = [np.flatnonzero(np.isfinite(row)).tolist() for row in costs.node]
    node, copy = costs.node.tolist(), costs.copy.tolist()
    live: list[int] = []
    states: dict[State, tuple[float, int, State]] = {(): (0.0, -1, ())}
    history: list[dict[State, tuple[float, int, State]]] = []
    bound = np.inf
    for number in range(node_count):
        position = {value: index for index, value in enumerate(live)}
        inputs = [(position[value], copy[value]) for value in read[number]]
        kept = [index for index, value in enumerate(live) if last[value] > number]
        fresh = made[number]
        following: dict[State, tuple[float, int, State]] = {}
        for state, (cost, _, _) in states.items():
            for device in able[number]:
                total, bit = cost + node[number][device], 1 << device
                new = list(state)
                for index, price in inputs:
                    held = new[index]
                    if not held & bit:
                        total += price[held >> device_count][device]
                        new[index] = held | bit
                key = (*(new[index] for index in kept), *((device << device_count | bit,) * len(fresh)))
                other = following.get(key)
                if total < np.inf and (other is None or total < other[0]):
                    following[key] = total, device, state
        live = [live[index] for index in kept] + fresh
        room = max(LEAST_STATES, min(most or MOST_STATES, MOST_ENTRIES // max(1, len(live))))
        if len(following) > min(room, FEW_STATES):
            following, cut = _thin(following, costs.copy[live], device_count, room)
            bound = min(bound, cut + float(least[number + 1]))
        history.append(following)
        states = following
        if not states:
            return None
    state, (cost, _, _) = min(states.items(), key=lambda one: one[1][0])
    devices = np.zeros(node_count, dtype=np.int64)
    for number in range(node_count - 1, -1, -1):
        _, devices[number], state = history[number][state]
    return Choice(devices=devices, value=cost, bound=min(cost, bound))


def group_values(nodes: Sequence[Sequence[int]], count: int) -> list[list[int]]:
    """Return the values of each of `count` nodes, given the nodes of each value."""
    values: list[list[int]] = [[] for _ in range(count)]
    for value, some in enumerate(nodes):
        for one in some:
            values[one].append(value)
    return values


def _thin(
    states: dict[State, tuple[float, int, State]], copy: Floats, device_count: int, most: int
) -> tuple[dict[State, tuple[float, int, State]], float]:
    """Return at most `most` states that no other state dominates, cheapest first, and the cost of the cheapest dropped
    state.

    That cost is infinite if no state was dropped for lack of room.
    """
    keys = sorted(states, key=lambda key: states[key][0])
    held = np.array(keys, dtype=np.int64).reshape(len(keys), -1)
    cost = np.array([states[key][0] for key in keys])
    keep = np.ones(len(keys), dtype=bool)
    bits = 1 << np.arange(device_count)
    home, mask = held >> device_count, (held & ((1 << device_count) - 1))[:, :, None] & bits > 0
    price = copy[np.arange(held.shape[1])[None], home]
    for judge in range(min(JUDGES, len(keys))):
        if not keep[judge]:
            continue
        has = mask[judge][None]
        own = price[judge][None]
        lacks = np.where(mask, own, np.maximum(own - np.where(np.isfinite(price), price, 0.0), 0.0))
        extra = np.where(has, 0.0, lacks).sum(axis=(1, 2))
        replaced = cost[judge] + extra <= cost
        replaced[: judge + 1] = False
        keep &= ~replaced
    left = [key for key, is_kept in zip(keys, keep.tolist(), strict=True) if is_kept]
    cut = states[left[most]][0] if len(left) > most else np.inf
    return {key: states[key] for key in left[:most]}, float(cut)
