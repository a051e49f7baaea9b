"""Limits that designs keep, and by how much they miss them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from joulemap.system.record import frozen
from joulemap.wing.explore.design.outcome import OBJECTIVES, Objective, Outcomes

if TYPE_CHECKING:
    from joulemap.model.workload import Booleans, Floats


@frozen(kw_only=True)
class Bound:
    """One limit."""

    option: str
    """As it is written."""
    objective: Objective
    value: float
    """In the objective's unit."""
    column: str
    """Of `Outcomes`: of latency the model that takes longest."""

    @classmethod
    def of(cls, option: str, name: str, value: float) -> Bound:
        """Return the limit of an objective."""
        objective = OBJECTIVES[name]
        column = "slowest_s" if name == "latency" else objective.column
        return cls(option=option, objective=objective, value=value, column=column)

    def excess(self, outcomes: Outcomes) -> Floats:
        """Return how many times over the limit each design is: at most 1 where it keeps it."""
        value: Floats = getattr(outcomes, self.column)
        ratio: Floats = self.value / value if self.objective.is_higher_better else value / self.value
        return ratio


def find_excess(outcomes: Outcomes, bounds: tuple[Bound, ...]) -> tuple[Booleans, Floats]:
    """Return which designs keep every limit, and how many times over the one that is missed most the others are."""
    worst = np.ones(len(outcomes))
    for bound in bounds:
        worst = np.fmax(worst, bound.excess(outcomes))
    worst = np.where(outcomes.is_evaluated, worst, np.inf)
    keeps: Booleans = worst <= 1.0
    return keeps, worst
