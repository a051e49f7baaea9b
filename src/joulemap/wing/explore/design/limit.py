"""Limits of designs, and the factor by which designs exceed them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from joulemap.system.record import frozen
from joulemap.wing.explore.design.outcome import OBJECTIVES, Objective, Outcomes

if TYPE_CHECKING:
    from joulemap.model.workload import Booleans, Floats


@frozen(kw_only=True)
class Bound:
    """Limit of one objective."""

    option: str
    """Option as written on the command line."""
    objective: Objective
    value: float
    """Limit in the objective's unit."""
    column: str
    """Column of `Outcomes`; for latency, the slowest model's."""

    @classmethod
    def of(cls, option: str, name: str, value: float) -> Bound:
        """Return the limit of an objective."""
        objective = OBJECTIVES[name]
        column = "slowest_s" if name == "latency" else objective.column
        return cls(option=option, objective=objective, value=value, column=column)

    def excess(self, outcomes: Outcomes) -> Floats:
        """Return the ratio of each design to the limit; at most 1 if the limit is met."""
        value: Floats = getattr(outcomes, self.column)
        ratio: Floats = self.value / value if self.objective.is_higher_better else value / self.value
        return ratio


def find_excess(outcomes: Outcomes, bounds: tuple[Bound, ...]) -> tuple[Booleans, Floats]:
    """Return True for designs within every limit, and the largest ratio to a limit of each design."""
    worst = np.ones(len(outcomes))
    for bound in bounds:
        worst = np.fmax(worst, bound.excess(outcomes))
    worst = np.where(outcomes.is_evaluated, worst, np.inf)
    keeps: Booleans = worst <= 1.0
    return keeps, worst
