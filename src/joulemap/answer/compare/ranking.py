"""Rank hardware by the metrics of a deployment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import attrs

from joulemap.answer.answer import Drawings, RunAnswer
from joulemap.answer.compare import text
from joulemap.answer.compare.contest import lay_out
from joulemap.answer.compare.summary import SHOWN
from joulemap.answer.run import find_ties
from joulemap.answer.scope import holding_scope
from joulemap.domain.default import SETTINGS
from joulemap.domain.doubt import TIE_RATIO
from joulemap.domain.metric import METRIC, RANK_METRICS, Metric, RankMetricName
from joulemap.domain.settings import RunDivision, Settings, check_name
from joulemap.domain.table import Table
from joulemap.plan.run import plan_runs
from joulemap.plan.source import Source
from joulemap.present.cell import show_units
from joulemap.present.document import Document, Grid, Section, show_under
from joulemap.row.compare import (
    Contender,
    HardwareNumber,
    ModelMix,
    Placement,
    RankedHardware,
    Strength,
    UtilizationSpread,
)
from joulemap.store.query import fetch, start
from joulemap.system.record import frozen

FEWEST_FOR_MEDIAN: Final = 3
"""Minimum chips for a comparison with their median; with two chips, the median adds nothing to the table."""


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
    is_tied: bool = False
    """True if the best and the second-best hardware of the headline are statistically tied."""

    def data(self) -> dict[str, Any]:
        """Return the data for machine formats; a table that was not requested is an empty list."""
        empty: dict[str, Any] = {"spread": [], "numbers": [], "subgraphs": [], "placements": []}
        best = self.best_available
        return {**empty, **super().data(), "sort": self.sort, "best_available": best and best.hardware}

    def document(self, *, limit: int = SHOWN, repeated: Sequence[str] = ()) -> Document:
        """Return the document with `limit` hardware, and every subgraph if requested; csv contains all hardware."""
        parts = [
            Section(self._fill(text.ALLOCATION, row), self._allocate(row, self.placements))
            for row in self.rows
            if self.placements is not None and row.status == "ok"
        ]
        if self.subgraphs:
            drawn = lay_out(self.subgraphs, self.scope, "subgraph", len(self.subgraphs))
            parts.append(Section(text.SUBGRAPHS(metric=self.subgraphs[0].metric.capitalize()), drawn))
        ranking = self._lay(
            self.rows.with_rows(row for row in self.rows if row.status == "ok"),
            text.RANKING,
            ranked=f"hardware | {text.RANKED[self.sort]}",
            limit=limit,
            noun="chips",
            stays=lambda row: row is self.best_available,
            throughput_per_s=lambda row: _plain(row.throughput_per_s),
            inferences_per_j=lambda row: _plain(row.inferences_per_j),
            units_used_count=lambda row: show_units(row.units_used_count, row.units_total_count, row.unit_name),
        )
        return self._compose(
            self.scope.title,
            (show_under(text.RANKED_BY(sort=self.sort), ranking, *self.scope.describe_left_out()), *parts),
            self.rows,
            answer=self.describe_best(),
            insights=self.describe_strengths(),
            details=self._details(),
            steps=self._steps(repeated),
        )

    def sketched(self, _by: RunDivision, /) -> Drawings:
        """Return a text drawing of the metric that ranks the hardware."""
        from joulemap.figure.figure import describe_metric

        return (self._sketch("ranking", self.rows, {**describe_metric(self._metric), "column": self._metric.column}),)

    @property
    def _metric(self) -> Metric:
        return METRIC["energy_per_inference" if self.sort == "energy" else self.sort]

    @property
    def best_available(self) -> RankedHardware | None:
        """Best hardware that can be bought or rented; None if no ranked hardware can."""
        return next((row for row in self.rows if row.rank is not None and row.is_available), None)

    def _list_ranked(self) -> list[RankedHardware]:
        """Return the available hardware by rank; all hardware if none is available."""
        answered = [row for row in self.rows if row.status == "ok"]
        return [row for row in answered if row.is_available or self.best_available is None]

    @property
    def first_pair(self) -> tuple[str, int, int] | None:
        """Metric of the headline, with the run ids of the best and the second-best chip; None for a single chip."""
        ids = [row.run_id for row in self._list_ranked()[:2] if row.run_id is not None]
        metric = "energy_per_inference" if self.sort == "efficiency" else self._metric.name
        return (metric, ids[0], ids[1]) if len(ids) == 2 else None

    def describe_best(self) -> str:
        """Return the best available hardware, its ratio to the second, and unavailable hardware that ranks above it."""
        answered = [row for row in self.rows if row.status == "ok"]
        first = answered[0]
        best, had = self.best_available or first, self._list_ranked()
        ratio = (had[1].best_ratio or 1.0) / (best.best_ratio or 1.0) if len(had) > 1 else None
        other = self.scope.mark(had[1].hardware) if len(had) > 1 else None
        is_equal = ratio is not None and ratio < TIE_RATIO
        return (text.FIRST if len(answered) > 1 else text.ALONE)(
            best=self.scope.mark(best.hardware),
            metric=self._metric,
            label=text.EFFICIENCY if self.sort == "efficiency" else self._metric.label,
            way=text.HIGHER if self._metric.is_higher_better else text.LOWER,
            value=text.RANKED_VALUES[self.sort](best),
            among=text.AMONG if best is not first else "",
            ratio=None if is_equal else ratio,
            other=other,
            equal=other if is_equal else None,
            tied=text.STATISTICALLY_TIED if self.is_tied else "",
            first=self.scope.mark(first.hardware) if best is not first else None,
            ahead=best.best_ratio or 1.0,
            only=None if best.is_available else self.scope.mark(best.hardware),
        )

    def describe_strengths(self) -> list[str]:
        """Return the strengths and weaknesses of each chip, with numbers; hardware without any is omitted."""
        lines = []
        for row in self.rows:
            found: dict[str, list[str]] = {"strength": [], "weakness": []}
            for one in self.strengths:
                is_stated = len(self.rows) >= FEWEST_FOR_MEDIAN or one.aspect not in text.OF_MEDIAN
                if one.run_id == row.run_id and one.verdict in found and is_stated:
                    ratio = one.median_ratio or 1.0
                    better, worse = text.STRENGTH[one.aspect]
                    found[one.verdict].append((better if ratio > 1.0 else worse)(one, times=max(ratio, 1.0 / ratio)))
            strong, weak = found.values()
            if strong or weak:
                lines.append(
                    self._fill(text.STRENGTHS, row, strong=strong, weak=weak, between=";" if strong and weak else None)
                )
        return lines

    def _allocate(self, row: RankedHardware, placements: Table[Placement]) -> Grid:
        """Return a grid with the placement of every subgraph on the compute units of one chip."""
        return self._lay(
            placements.with_rows(one for one in placements if one.run_id == row.run_id),
            text.PLACED,
            units_used_count=lambda one: show_units(one.units_used_count, one.units_total_count, one.unit_name),
        )

    def _details(self) -> list[Section]:
        """Return the composition of the model and, if requested, the numbers and the utilization of each chip."""
        found = [Section(text.MODEL, self._lay(self.mix, text.MIX))]
        if self.numbers is not None:
            found.append(Section(text.NUMBERS_TITLE, self._lay(self.numbers, text.NUMBERS, quantity=_name_quantity)))
        if self.spread is not None:
            found.append(Section(text.SPREADS_TITLE, self._lay(self.spread, text.SPREADS)))
        return found

    def _steps(self, repeated: Sequence[str]) -> list[list[str]]:
        hardware = [self.scope.spell(row.hardware) for row in self.rows if row.status == "ok"]
        best, other = hardware[0], hardware[-1] if len(hardware) == 1 else hardware[1]
        return [
            one.words(model=self.scope.model, best=best, other=other, repeated=repeated)
            for one in text.STEPS_OF_RANKING[: len(hardware)]
        ]


def _name_quantity(row: HardwareNumber) -> str:
    """Return the displayed name of a hardware number."""
    if row.quantity == "unit_count":
        return f"{row.unit_name}s"
    return row.memory_type if row.quantity == "memory_capacity" else row.quantity.partition(".")[2] or row.quantity


def _plain(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def rank_hardware(
    source: Source,
    model: str,
    settings: Settings = SETTINGS,
    *,
    sort: RankMetricName = "efficiency",
    has_details: bool = False,
    has_subgraphs: bool = False,
) -> RankingAnswer:
    """Rank hardware by a metric of deployment; raises like `compare`.

    `has_details` adds the specifications of each chip and the spread of its utilization. `has_subgraphs` adds the
    placement and the bottleneck of every subgraph.
    """
    check_name("sort", sort, RANK_METRICS)
    settings.check_single("compare")
    with holding_scope(source, plan_runs((model,), settings)) as (scope, connection, ids):
        rows = start(connection, RankedHardware, run_ids=ids, sort=sort)
        metric = "latency" if sort == "throughput" else "energy"
        answer = RankingAnswer(
            scope=scope,
            sort=sort,
            mix=fetch(connection, ModelMix, run_ids=ids),
            strengths=fetch(connection, Strength, run_ids=ids),
            spread=fetch(connection, UtilizationSpread, run_ids=ids) if has_details else None,
            numbers=fetch(connection, HardwareNumber, run_ids=ids) if has_details else None,
            subgraphs=fetch(connection, Contender, run_ids=ids, metric=metric) if has_subgraphs else None,
            placements=fetch(connection, Placement, run_ids=ids) if has_subgraphs else None,
            rows=rows(),
        )
        pairs = [pair] if (pair := answer.first_pair) is not None else []
        return attrs.evolve(answer, is_tied=bool(find_ties(connection, pairs)))
