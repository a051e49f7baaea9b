"""Constants whose values meet targets: one, or two of them for two targets.

ln (objective / target) = 0      of one constant, by `model.root`; of two, the second is solved at each first
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from joulemap.design.survey import evaluate_one
from joulemap.domain.change import check_value
from joulemap.model.root import MOST_FACTOR, solve
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.design.group import Group
    from joulemap.design.outcome import Objective


@frozen(kw_only=True)
class Target:
    """What an objective is to be."""

    objective: Objective
    value: float


def solve_values(group: Group, names: Sequence[str], targets: Sequence[Target]) -> dict[str, float] | str:
    """Return the values of constants, beside those that are varied, that meet targets; why not, where none do."""
    fixed = {name: float(one[0]) for name, one in group.space.values_at(np.zeros(1, dtype=np.int64)).items()}
    reasons = []
    for order in (list(targets), list(targets[::-1])) if len(targets) > 1 else (list(targets),):
        found = _solve(group, fixed, list(names), order)
        if not isinstance(found, str):
            return {name: found[name] for name in names}
        reasons.append(found)
    return reasons[0]


def _solve(group: Group, fixed: Mapping[str, float], names: list[str], targets: list[Target]) -> dict[str, float] | str:
    """Return all values where the first constant, and then each other, meets its target."""
    name, rest = names[0], names[1:]
    constant, target = group.space.law.constants[name], targets[0]
    tried: list[float] = []

    def set_to(factor: float) -> dict[str, float] | None:
        value = constant.value * factor
        value = float(max(1, round(value))) if constant.is_whole else value
        try:
            check_value(constant, value)
        except ValueError:
            return None
        values = {**fixed, name: value}
        if not rest:
            return values
        inner = _solve(group, values, rest, targets[1:])
        return None if isinstance(inner, str) else inner

    def miss(factor: float) -> float | None:
        values = set_to(factor)
        found = None if values is None else evaluate_one(group, values)
        if found is None or found.refusal[0]:
            return None
        value = float(found.value(target.objective)[0])
        tried.append(value)
        return math.log(value / target.value)

    found = solve(miss)
    if found is None and miss(1.0) == 0.0:
        found = 1.0, 1.0
    if found is None:
        ends = f"{min(tried):.4g} to {max(tried):.4g} {target.objective.unit}" if tried else "nothing that runs"
        return (
            f"no {name} from 1/{MOST_FACTOR:g} to {MOST_FACTOR:g} times its own makes {target.objective.label} "
            f"{target.value:.4g} {target.objective.unit}: it makes {ends}"
        )
    values = set_to(found[1])
    assert values is not None
    return values
