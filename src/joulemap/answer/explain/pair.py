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

EXACT_UNITS: Final[dict[PartMetricName, str]] = {
    "energy": "fJ",
    "latency": "fs",
    "edp": "fJ fs, twice",
    "memory": "B",
}
"""Metric -> unit in which its terms add up exactly."""


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
        total = self.total
        return {
            "energy": total.energy_probability,
            "latency": total.latency_probability,
            "edp": total.edp_probability,
        }.get(self.metric)

    @property
    def names(self) -> tuple[str, str]:
        """The hardware of A and that of B, marked where they are projections; two runs on one by their numbers."""
        if self.are_runs:
            return f"run {self.total.run_a}", f"run {self.total.run_b}"
        return self.scope.mark(self.total.hardware_a), self.scope.mark(self.total.hardware_b)

    @property
    def values(self) -> tuple[float, float]:
        """The metric of A and that of B, in its SI unit."""
        return self.ends[self.metric]

    @property
    def ends(self) -> dict[PartMetricName, tuple[float, float]]:
        """Every metric of A and of B, in its SI unit."""
        total = self.total
        return {
            "energy": (total.energy_a_j, total.energy_b_j),
            "latency": (total.latency_a_s, total.latency_b_s),
            "edp": (total.edp_a_js, total.edp_b_js),
            "memory": (float(total.memory_a_bytes), float(total.memory_b_bytes)),
        }

    @property
    def difference_exact(self) -> int:
        """The metric of B minus that of A, in its exact unit."""
        total = self.total
        differences: dict[PartMetricName, int] = {
            "energy": total.difference_fj,
            "latency": total.latency_difference_fs,
            "edp": total.edp_difference_exact,
            "memory": total.memory_difference_bytes,
        }
        return differences[self.metric]

    @property
    def ratio(self) -> float | None:
        """The metric of B over that of A; None where A has none."""
        value_a, value_b = self.values
        return value_b / value_a if value_a else None
