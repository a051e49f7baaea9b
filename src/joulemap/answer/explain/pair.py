"""Two runs and every decomposition of what one needs more than the other, and its words."""

from __future__ import annotations

from typing import Final

from joulemap.answer.answer import RunAnswer
from joulemap.answer.run import CATEGORIES
from joulemap.domain.metric import PartMetricName
from joulemap.domain.role import ROLES, Role
from joulemap.domain.table import Table
from joulemap.row.explain import (
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
from joulemap.system.record import frozen

MetricTerm = LatencyTerm | EdpTerm | MemoryTerm
"""A term of a difference in another metric than energy."""

TERMS: Final[dict[PartMetricName, type[MetricTerm]]] = {"latency": LatencyTerm, "edp": EdpTerm, "memory": MemoryTerm}
"""Metric -> what its difference is made of; that of energy has terms of its own."""

EXACT_UNITS: Final[dict[PartMetricName, str]] = {"energy": "fJ", "latency": "fs", "edp": "fJ fs, twice", "memory": "B"}
"""Metric -> unit in which its terms add up exactly."""

PLACES: Final[dict[PartMetricName, tuple[str, str, str]]] = {
    "energy": ("energy_a_j", "energy_b_j", "difference_fj"),
    "latency": ("latency_a_s", "latency_b_s", "latency_difference_fs"),
    "edp": ("edp_a_js", "edp_b_js", "edp_difference_exact"),
    "memory": ("memory_a_bytes", "memory_b_bytes", "memory_difference_bytes"),
}
"""Metric -> what the row of both runs has of A, of B, and of their difference in the exact unit."""


@frozen(kw_only=True)
class PairAnswer(RunAnswer):
    """Two runs in one metric; the terms sum to the difference exactly."""

    metric: PartMetricName
    subgraph: str
    """The one that is explained alone; empty for the whole runs. `subgraphs` always holds all."""
    totals: Table[RunPair]
    """One row."""
    terms: Table[EnergyTerm]
    """Of the energy, also where another metric is explained; the largest first."""
    metric_terms: Table[MetricTerm] | None
    """Of the metric, the largest first; None for energy."""
    effects: Table[Effect]
    """Of the energy, by kind of cause."""
    categories: Table[CategoryDifference]
    """Of the metric, or of the energy where that is memory; the largest difference first."""
    roles: Table[RoleDifference]
    """Of the energy, by what actions are for; the largest difference first."""
    purposes: Table[PurposeDifference]
    """Energy and time by what the work is for in a language model; the largest difference first."""
    subgraphs: Table[SubgraphDifference]
    """The largest difference in the metric first."""
    traffic: Table[Traffic] | None
    """Bytes that each memory carries; None unless memory is explained."""

    @property
    def total(self) -> RunPair:
        """Both runs as a whole."""
        return self.totals[0]

    @property
    def whole(self) -> str:
        """What its terms add up to, in a word."""
        return "subgraph" if self.subgraph else "runs"

    @property
    def are_runs(self) -> bool:
        """Whether the two are different runs on one hardware, which tells them apart by nothing."""
        return self.total.hardware_a == self.total.hardware_b and self.total.run_a != self.total.run_b

    @property
    def probability(self) -> float | None:
        """That the one predicted to need less does; None where that is not known."""
        known: float | None = getattr(self.total, f"{self.metric}_probability", None)
        return known

    @property
    def names(self) -> tuple[str, str]:
        """The hardware of A and that of B, marked where they are projections; two runs on one by their numbers."""
        if self.are_runs:
            return f"run {self.total.run_a}", f"run {self.total.run_b}"
        return self.scope.mark(self.total.hardware_a), self.scope.mark(self.total.hardware_b)

    @property
    def values(self) -> tuple[float, float]:
        """The metric of A and that of B, in its SI unit."""
        return self.ends(self.metric)

    def ends(self, metric: PartMetricName) -> tuple[float, float]:
        """Return a metric of A and of B, in its SI unit."""
        value_a, value_b, _ = (float(getattr(self.total, name)) for name in PLACES[metric])
        return value_a, value_b

    @property
    def difference_exact(self) -> int:
        """The metric of B minus that of A, in its exact unit."""
        return int(getattr(self.total, PLACES[self.metric][2]))

    @property
    def ratio(self) -> float | None:
        """The metric of B over that of A; None where A has none."""
        value_a, value_b = self.values
        return value_b / value_a if value_a else None


SPENT: Final = {**CATEGORIES, "on_chip_memory": "on-chip memory", "board": "rest of the board"}
"""Common category, all memories on a chip together -> what energy is spent on."""

BOUND: Final = {"compute": "time computing", "memory": "time for memory", "launch": "fixed time"}
"""What bounds time -> what is spent on."""

PURPOSES: Final = {
    "weights": "products with weights",
    "experts": "experts",
    "cache": "keys and values",
    "attention": "attention",
    "logits": "logits",
    "communication": "communication",
    "host": "starts of kernels",
    "static": "static power",
    "rest": "norms and the rest",
}
"""What work is for in a language model -> its words."""

Words = tuple[str, str]
"""What is said of the greater, and of the lesser."""

COUNT, PRICE, PRESENCE = "count", "price", "presence"

CAUSES: Final[dict[str, Words]] = {
    COUNT: ("more of it", "less"),
    PRICE: ("dearer", "cheaper"),
    PRESENCE: ("extra acts", ""),
}

MORE_PARTS: Final = ("more parts", "")

OF_CATEGORY: Final[dict[tuple[str, str], dict[str, Words]]] = {
    ("energy", "static"): {COUNT: ("longer", "shorter"), PRICE: ("more watts", "fewer watts")},
    ("time", "compute"): {COUNT: ("more work", "less"), PRICE: ("slower", "faster"), PRESENCE: MORE_PARTS},
    ("time", "memory"): {COUNT: ("more bytes", "fewer"), PRICE: ("slower", "faster"), PRESENCE: MORE_PARTS},
    ("time", "launch"): {
        COUNT: ("more kernels", "fewer"), PRICE: ("longer each", "shorter each"), PRESENCE: MORE_PARTS,
    },
}  # fmt: skip
"""Quantity and category -> words in place of those that hold for all."""

TOLD: Final = 0.25
"""Of the difference: a cause that moves less is not mentioned beside a larger one."""


def name_category(row: CategoryDifference) -> str:
    """Return what is spent on."""
    return (SPENT if row.quantity == "energy" else BOUND)[row.category]


def say_why(row: CategoryDifference) -> str:
    """Return in a few words why the greater is greater: the largest cause, and what goes against it or with it."""
    difference = abs(row.difference_exact)
    if not difference:
        return ""
    if not (row.spent_a_exact and row.spent_b_exact):
        return "only there"
    words = {**CAUSES, **OF_CATEGORY.get((row.quantity, row.category), {})}
    sign = 1 if row.difference_exact > 0 else -1
    moved = {COUNT: row.by_count_exact, PRICE: row.by_price_exact, PRESENCE: row.by_presence_exact}
    told = sorted(
        ((cause, sign * exact) for cause, exact in moved.items() if abs(exact) >= TOLD * difference),
        key=lambda one: -one[1],
    )
    but = "" if row.category == "static" else "but "
    along = [words[cause][0] for cause, exact in told if exact > 0]
    against = [f"{but}{words[cause][1]}" for cause, exact in told[::-1] if exact < 0 and words[cause][1]]
    first, *others = [along[0], *against, *along[1:]]
    return ", ".join([first.removesuffix(" of it"), others[0].removesuffix(" of it")]) if others else first


def find_role(row: RoleDifference) -> Role:
    """Return the role of a row; one of its own for an action that none is known of."""
    return ROLES.get(row.role) or Role(row.role, row.role, "count")
