"""Solver for one or two constants that meet one target each.

ln (objective / target) = 0      for one constant; for two, the second is solved at each value of the first

The factor of a constant is searched between 1/100 and 100. Steps are refined at the sign change nearest to a factor of
1. Two sign changes within one of the first steps are missed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np

from joulemap.domain import name_constant, show_constant
from joulemap.physics import Floats
from joulemap.physics.record.constant import check_value
from joulemap.physics.root import MOST_FACTOR, TOLERANCE
from joulemap.system import frozen
from joulemap.wing.explore.design.outcome import Objective
from joulemap.wing.explore.design.survey import evaluate_rows
from joulemap.wing.explore.design.task import Group

TOGETHER: Final = 65
"""Number of values of a constant that are evaluated at once."""

APART: Final = 13
"""Number of values of an outer constant at which the inner constant is solved."""


@frozen(kw_only=True)
class Target:
    """Target value of an objective."""

    objective: Objective
    value: float

    def show(self, value: float) -> str:
        """Return a value of the objective as text."""
        return show_constant(value, self.objective.unit, digits=4)


def solve_values(group: Group, names: Sequence[str], targets: Sequence[Target]) -> dict[str, float] | str:
    """Return constant -> value that meets the targets, or a text with the reason if none does.

    A constant that counts something gets the nearest integer.
    """
    fixed = {name: float(one[0]) for name, one in group.space.values_at(np.zeros(1, dtype=np.int64)).items()}
    made: list[float] = []
    for order in (targets, targets[::-1]) if len(targets) > 1 else (targets,):
        if (solution := _solve(group, fixed, names, order, made)) is not None:
            return {name: solution[name] for name in names}
    wanted = " and ".join(f"{one.objective.label} {one.show(one.value)}" for one in targets)
    reached = [targets[0].show(value) for value in (min(made), max(made))] if made and len(targets) == 1 else []
    words = " and ".join(name_constant(group.space.law.constants[name]) for name in names)
    span = f"; it ranges from {' to '.join(reached)}" if reached else ""
    return f"no {words} from 1/{MOST_FACTOR:g} to {MOST_FACTOR:g} times the chip's own gives {wanted}{span}"


def _solve(
    group: Group, fixed: Mapping[str, float], names: Sequence[str], targets: Sequence[Target], made: list[float]
) -> dict[str, float] | None:
    """Return values for `names` that meet one target each, with the `fixed` constants held; None if there are none.

    All objective values seen are appended to `made`.
    """
    name, rest = names[0], names[1:]
    constant, target = group.space.law.constants[name], targets[0]

    def set_to(log: float) -> dict[str, float] | None:
        value = constant.value * math.exp(log)
        value = float(max(1, round(value))) if constant.is_whole else value
        try:
            check_value(constant, value)
        except ValueError:
            return None
        values = {**fixed, name: value}
        return _solve(group, values, rest, targets[1:], made) if rest else values

    def miss(places: Floats) -> Floats:
        each = [set_to(log) for log in places.tolist()]
        rows = [one for one in each if one is not None]
        logs = np.full(len(each), np.nan)
        if rows:
            values = evaluate_rows(group, rows).value(target.objective)
            logs[[one is not None for one in each]] = np.log(values / target.value)
            made.extend(values[np.isfinite(values)].tolist())
        return logs

    crossing = _find_crossing(miss, APART if rest else TOGETHER)
    return None if crossing is None else set_to(crossing)


def _find_crossing(function: Callable[[Floats], Floats], count: int) -> float | None:
    """Return the point at which a function is nearest to zero, at its sign change nearest to 0; None without a sign
    change.
    """
    low, high = -math.log(MOST_FACTOR), math.log(MOST_FACTOR)
    while True:
        places = np.linspace(low, high, count)
        values = function(places)
        crossings = np.flatnonzero(values[:-1] * values[1:] <= 0.0)
        if not len(crossings):
            return None
        first = int(crossings[np.argmin(np.abs(places[crossings] + places[crossings + 1]))])
        low, high = float(places[first]), float(places[first + 1])
        if high - low <= TOLERANCE:
            return low if abs(values[first]) < abs(values[first + 1]) else high
