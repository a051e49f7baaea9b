"""Two runs and every decomposition of what one needs more than the other."""

from __future__ import annotations

from typing import Final

from joulemap.answer.answer import RunAnswer
from joulemap.domain.metric import PartMetricName
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
