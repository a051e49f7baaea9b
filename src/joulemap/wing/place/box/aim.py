"""Aim of a placement: a goal on some devices of a problem."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from joulemap.physics import Booleans, Floats, Integers
from joulemap.system import frozen
from joulemap.wing.place.box.problem import Problem
from joulemap.wing.place.box.schedule import find_makespan
from joulemap.wing.place.box.score import add_up, score
from joulemap.wing.place.record import Goal


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
