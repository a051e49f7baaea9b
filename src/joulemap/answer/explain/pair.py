"""Two compared runs, the decompositions of their difference, and the displayed names of its parts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from joulemap.answer.base import RunAnswer
from joulemap.ask.explain import LEAST_CAUSE, PLACES
from joulemap.ask.fact import Facts
from joulemap.domain.metric import PartMetricName
from joulemap.domain.role import ROLES, Role
from joulemap.domain.table import Table
from joulemap.generated.explain import (
    CategoryDifference,
    EdpTerm,
    Effect,
    EnergyTerm,
    LatencyTerm,
    MemoryTerm,
    PurposeDifference,
    RoleDifference,
    RunPair,
    SubgraphDifference,
    Traffic,
)
from joulemap.show.explain import BOUND
from joulemap.show.present.category import name_category
from joulemap.show.present.cell import is_tied
from joulemap.system.record import frozen

COUNT, PRICE, PRESENCE = "count", "price", "presence"
MORE_PARTS: Final = ("more subgraphs", "")
CAUSES: Final[Mapping[str, tuple[str, str]]] = {
    COUNT: ("more actions", "but fewer actions"),
    PRICE: ("more energy each", "but less energy each"),
    PRESENCE: ("extra actions", ""),
}
"""Cause -> two texts: if it widens the difference, and if it narrows the difference."""

CAUSES_OF: Final[Mapping[tuple[str, str], Mapping[str, tuple[str, str]]]] = {
    ("energy", "static"): {COUNT: ("longer time", "but shorter time"), PRICE: ("higher power", "but lower power")},
    ("energy", "host"): {PRICE: ("more work", "but less work")},
    ("time", "compute"): {COUNT: ("more work", "but less work"), PRICE: ("slower", "but faster"), PRESENCE: MORE_PARTS},
    ("time", "memory"): {
        COUNT: ("more bytes", "but fewer bytes"), PRICE: ("slower", "but faster"), PRESENCE: MORE_PARTS,
    },
    ("time", "launch"): {
        COUNT: ("more kernels", "but fewer kernels"), PRICE: ("longer launches", "but shorter launches"),
        PRESENCE: MORE_PARTS,
    },
}  # fmt: skip
"""(Quantity, category) -> texts that replace those of CAUSES for this category."""

FEWER_UNITS: Final = ("fewer busy units", "but more busy units")
SLOWER_UNITS: Final = ("slower units", "but faster units")
"""Two texts on the time of one subgraph: if its units are slower, and if they are faster."""


MetricTerm = LatencyTerm | EdpTerm | MemoryTerm
"""Term of a difference in a metric other than energy."""

TERMS: Final[dict[PartMetricName, type[MetricTerm]]] = {"latency": LatencyTerm, "edp": EdpTerm, "memory": MemoryTerm}
"""Metric -> record type of its terms; energy is missing, because its terms are always present."""

EXACT_UNITS: Final[dict[PartMetricName, str]] = {"energy": "fJ", "latency": "fs", "edp": "fJ fs, twice", "memory": "B"}
"""Metric -> unit in which terms are integers and sum exactly."""

MOSTLY: Final = 0.5
"""Minimum share of a time ratio (logarithmic) due to fewer busy units, for the text to name these as the cause."""


@frozen(kw_only=True)
class PairAnswer(RunAnswer):
    """Two runs compared in one metric; the terms sum to the difference exactly."""

    metric: PartMetricName
    subgraph: str
    """Name of the explained subgraph; empty for whole runs. The table `subgraphs` always lists all."""
    totals: Table[RunPair]
    """Totals of both runs; one row."""
    terms: Table[EnergyTerm]
    """Terms of the energy difference, largest first; present for every metric."""
    metric_terms: Table[MetricTerm] | None
    """Terms of the difference in the metric, largest first; None for energy."""
    effects: Table[Effect]
    """Energy differences by kind of cause."""
    categories: Table[CategoryDifference]
    """Differences in the metric by category, or in energy if the metric is memory; largest first."""
    roles: Table[RoleDifference]
    """Energy differences by role of the actions, largest first."""
    purposes: Table[PurposeDifference]
    """Energy and time differences by purpose of the work in a language model, largest first."""
    subgraphs: Table[SubgraphDifference]
    """Differences in the metric by subgraph, largest first."""
    traffic: Table[Traffic] | None
    """Bytes moved per memory; None unless the metric is memory."""

    facts: Facts
    """Choice, terms and caveats, from which all sentences are made."""

    @property
    def total(self) -> RunPair:
        """Totals of both runs."""
        return self.totals[0]

    @property
    def difference(self) -> str:
        """Noun for what the terms sum to."""
        return f"the difference of the {'subgraph' if self.subgraph else 'runs'}"

    @property
    def are_runs(self) -> bool:
        """True if A and B are runs on one chip, so that only run ids distinguish them."""
        return self.total.hardware_a == self.total.hardware_b and self.total.run_a != self.total.run_b

    @property
    def probability(self) -> float | None:
        """Probability that the run with the lower predicted value really needs less; None if unknown."""
        known: float | None = getattr(self.total, f"{self.metric}_probability", None)
        return known

    @property
    def is_tied(self) -> bool:
        """True if the two runs are statistically tied."""
        return is_tied(self.probability)

    @property
    def names(self) -> tuple[str, str]:
        """Displayed names of A and B: hardware, or run ids if both runs are on one chip."""
        if self.are_runs:
            return f"run {self.total.run_a}", f"run {self.total.run_b}"
        return self._mark(self.total.hardware_a), self._mark(self.total.hardware_b)

    @property
    def values(self) -> tuple[float, float]:
        """Metric of A and metric of B, in SI units."""
        return self.ends(self.metric)

    def ends(self, metric: PartMetricName) -> tuple[float, float]:
        """Return the values of A and B in any metric, in SI units."""
        value_a, value_b, _ = (float(getattr(self.total, name)) for name in PLACES[metric])
        return value_a, value_b

    @property
    def difference_exact(self) -> int:
        """Metric of B minus the metric of A, as an integer in the exact unit."""
        return int(getattr(self.total, PLACES[self.metric][2]))

    @property
    def ratio(self) -> float | None:
        """Metric of B divided by the metric of A; None if the metric of A is zero."""
        value_a, value_b = self.values
        return value_b / value_a if value_a else None


def name_spent(row: CategoryDifference) -> str:
    """Return the displayed name of a category of energy or time."""
    return name_category(row.category) if row.quantity == "energy" else BOUND[row.category]


def name_cause(row: CategoryDifference, total: RunPair | None = None) -> str:
    """Return the causes of a difference in a few words, largest first; small causes are omitted.

    If `total` holds unit counts, a longer compute time is attributed to fewer or to slower units.
    """
    difference = abs(row.difference_exact)
    if not difference:
        return ""
    if not (row.spent_a_exact and row.spent_b_exact):
        return "absent on the other"
    words = {**CAUSES, **CAUSES_OF.get((row.quantity, row.category), {})}
    if (row.quantity, row.category) == ("time", "compute") and total and total.units_used_a and total.units_used_b:
        times, units = row.spent_b / row.spent_a, total.units_used_a / total.units_used_b
        is_by_units = math.log(units) / math.log(times) >= MOSTLY if times != 1.0 else False
        words[PRICE] = FEWER_UNITS if is_by_units else SLOWER_UNITS
    sign = 1 if row.difference_exact > 0 else -1
    moved = {COUNT: row.by_count_exact, PRICE: row.by_price_exact, PRESENCE: row.by_presence_exact}
    large = sorted(
        ((cause, sign * exact) for cause, exact in moved.items() if abs(exact) >= LEAST_CAUSE * difference),
        key=lambda one: -one[1],
    )
    along = [words[cause][0] for cause, exact in large if exact > 0]
    against = [words[cause][1] for cause, exact in large[::-1] if exact < 0 and words[cause][1]]
    first, *others = [along[0], *against, *along[1:]]
    return f"{first}, {others[0]}" if others else first


def find_role(row: RoleDifference) -> Role:
    """Return the role of a row. An action without a known role forms its own role."""
    return ROLES.get(row.role) or Role(row.role, row.role, "count")
