"""Ranking of hardware by a metric of deployment: the best chip, what limits it and the next one, rows, and caveats."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from joulemap.ask.answer import RunAnswer
from joulemap.ask.fact import Choice, Facts, Share, ShareMetric
from joulemap.ask.scope import Scope, opening_compared
from joulemap.ask.standing import choose_each, find_own_caveats, list_entries, rank
from joulemap.domain.default import SETTINGS
from joulemap.domain.metric import RANK_METRICS, RankMetricName
from joulemap.domain.settings import Settings, check_name
from joulemap.domain.table import Table
from joulemap.generated.compare import (
    Contender,
    HardwareNumber,
    ModelMix,
    Placement,
    RankedHardware,
    Strength,
    UtilizationSpread,
)
from joulemap.plan.source import Source
from joulemap.store.query import fetch, start
from joulemap.system.record import frozen

MOST_LIMITED: Final = 2
"""Number of first runs whose limits are facts."""

EVEN: Final = "even"
"""Verdict on an aspect that is neither a strength nor a weakness."""

WHOLE: Final[Mapping[str, ShareMetric]] = {
    "utilization": "utilization",
    "idle": "units",
    "launch": "latency",
    "memory": "latency",
}
"""Aspect of a run alone -> what its share divides."""


@frozen(kw_only=True)
class RankingAnswer(RunAnswer):
    """Hardware ranked by a metric of deployment."""

    sort: RankMetricName
    rows: Table[RankedHardware]
    """Figures of each chip, by rank; refused chips are last."""
    mix: Table[ModelMix]
    """Share of each kind of operator in the model."""
    strengths: Table[Strength]
    """Strengths and weaknesses of each chip."""
    spread: Table[UtilizationSpread] | None
    """Utilization of each evaluated run; None unless requested."""
    numbers: Table[HardwareNumber] | None
    """Specifications of each chip; None unless requested."""
    subgraphs: Table[Contender] | None
    """Value of each subgraph on each chip; None unless requested."""
    placements: Table[Placement] | None
    """Placement and bottleneck of each subgraph on each chip, longest subgraph first; None unless requested."""
    facts: Facts
    """Decision, limits of the first chips, rows and caveats, from which all sentences are made."""

    def data(self) -> dict[str, Any]:
        """Return the data for machine formats; a table that was not requested is an empty list."""
        empty: dict[str, Any] = {"spread": [], "numbers": [], "subgraphs": [], "placements": []}
        best = self.best_available
        return {**empty, **super().data(), "sort": self.sort, "best_available": best and best.hardware}

    @property
    def answered(self) -> Table[RankedHardware]:
        """Rows of runs that were not refused."""
        return self.rows.with_rows(row for row in self.rows if row.status == "ok")

    @property
    def best_available(self) -> RankedHardware | None:
        """Best hardware that can be bought or rented; None if no ranked hardware can."""
        return next((row for row in self.rows if row.rank is not None and row.is_available), None)


def find_facts(scope: Scope, metric: str, strengths: Sequence[Strength]) -> Facts:
    """Return the facts of a ranking by `metric`: the best run, an unavailable run that is better, what limits the first
    runs, a row per run, and caveats.
    """
    rows = rank(scope, metric)
    choices = choose_each(scope, rows)
    limits = _limit(strengths, choices[0])
    caveats = find_own_caveats(scope, choices[:1], metric)
    facts = (*choices, *limits, *list_entries(rows), *caveats)
    return Facts(asked=(metric,), runs=scope.subjects({}), facts=facts)


def _limit(rows: Sequence[Strength], choice: Choice) -> Iterator[Share]:
    """Yield the aspects of the first runs alone that are strengths or weaknesses: utilization, idle units, and time in
    launches and in memory.
    """
    for run_id in choice.runs[:MOST_LIMITED]:
        for row in rows:
            if row.run_id == run_id and row.aspect in WHOLE and row.verdict != EVEN:
                name = row.unit_name if row.aspect == "idle" else row.aspect
                yield Share(runs=(run_id,), metric=WHOLE[row.aspect], name=name, share=row.value)


def rank_hardware(
    source: Source,
    model: str,
    settings: Settings = SETTINGS,
    *,
    sort: RankMetricName = "efficiency",
    has_details: bool = False,
) -> RankingAnswer:
    """Rank hardware by a metric of deployment; raises like `compare`.

    `has_details` adds the specifications of each chip, the spread of its utilization, and the placement and the
    bottleneck of every subgraph.
    """
    check_name("sort", sort, RANK_METRICS)
    with opening_compared(source, (model,), settings) as scope:
        connection, ids = scope.connection, list(scope.run_ids)
        rows = start(connection, RankedHardware, run_ids=ids, sort=sort)
        metric = "latency" if sort == "throughput" else "energy"
        strengths = fetch(connection, Strength, run_ids=ids)
        return RankingAnswer(
            scope=scope,
            sort=sort,
            mix=fetch(connection, ModelMix, run_ids=ids),
            strengths=strengths,
            facts=find_facts(scope, "energy_per_inference" if sort == "energy" else sort, strengths.rows),
            spread=fetch(connection, UtilizationSpread, run_ids=ids) if has_details else None,
            numbers=fetch(connection, HardwareNumber, run_ids=ids) if has_details else None,
            subgraphs=fetch(connection, Contender, run_ids=ids, metric=metric) if has_details else None,
            placements=fetch(connection, Placement, run_ids=ids) if has_details else None,
            rows=rows(),
        )
