"""Rank hardware by the metrics of a deployment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import attrs

from joulemap.answer.base import RunAnswer
from joulemap.answer.compare.contest import lay_out
from joulemap.answer.compare.summary import SHOWN
from joulemap.ask.fact import Choice, Entry, Facts, Quantity
from joulemap.ask.ranking import EVEN, find_facts
from joulemap.ask.scope import opening_scope
from joulemap.domain.default import SETTINGS
from joulemap.domain.metric import METRIC, RANK_METRICS, Metric, RankMetricName
from joulemap.domain.settings import RunDivision, Settings, check_name
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
from joulemap.plan.run import plan_runs
from joulemap.plan.source import Source
from joulemap.show.page import Drawings
from joulemap.show.present.cell import show_ends, show_units
from joulemap.show.present.document import Document, Grid, Section, choose_rows, show_under
from joulemap.show.present.picture import Picture, make_intervals
from joulemap.show.present.template import Template
from joulemap.show.ranking import describe_answer, list_reasons
from joulemap.store.query import fetch, start
from joulemap.system.record import frozen

ALLOCATION: Final = Template("Subgraphs on {rank}. {hardware}")
SUBGRAPHS: Final = Template("{metric} of each subgraph")
OPERATORS_TITLE: Final = "Operators of the model"
NUMBERS_TITLE: Final = "Numbers of each chip"
STRENGTHS_TITLE: Final = "Strengths and weaknesses"
SPREADS_TITLE: Final = "Utilization of each chip"
RANKING: Final = (
    "*inferences/J inferences_per_j", "*latency latency_s", "*power average_power_w", "inferences/s throughput_per_s",
    "class architecture", "energy/inference energy_per_inference_j", "TDP tdp_w",
    "utilization compute_utilization_fraction", "busy units units_used_count", "microarchitecture", "rank",
)  # fmt: skip
"""Columns of a ranking beside the hardware, most important first."""

RANGE: Final = "range"
RANKED: Final = {
    "latency": "latency",
    "throughput": "inferences/s",
    "power": "power",
    "efficiency": "inferences/J",
    "energy": "energy/inference",
}
"""Metric -> heading of its column."""

PLACED: Final = (
    "subgraph | *latency latency_s | *bottleneck | *busy units units_used_count | "
    "*utilization compute_utilization_fraction | *energy energy_j | share of latency latency_fraction | "
    "tiles tile_count | waves wave_count | pattern fusion_pattern"
)
MIX: Final = (
    "operators kind | *subgraphs subgraph_count | *count operator_count | share of operators operator_fraction | "
    "MACs mac_count | *share of MACs mac_fraction"
)
STRENGTHS: Final = (
    "*hardware | *aspect | *verdict | *value | ratio to the median median_ratio? | grade? | unit unit_name?"
)
SPREADS: Final = (
    "hardware | *mean utilization mean_utilization_fraction | *lowest min_utilization_fraction | "
    "lowest subgraph min_name | *highest max_utilization_fraction | highest subgraph max_name | "
    "time without MACs idle_time_fraction | compute-bound time compute_time_fraction | "
    "memory-bound time memory_time_fraction | launch-bound time launch_time_fraction"
)
STEPS_OF_RANKING: Final = (
    Template("compare {model} --level detailed --hardware {best} {repeated}"),
    Template("explain {model} {other} {best} {repeated}"),
)

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
    facts: Facts
    """Decision, limits of the first chips, rows and caveats, from which all sentences are made."""

    def data(self) -> dict[str, Any]:
        """Return the data for machine formats; a table that was not requested is an empty list."""
        empty: dict[str, Any] = {"spread": [], "numbers": [], "subgraphs": [], "placements": []}
        best = self.best_available
        return {**empty, **super().data(), "sort": self.sort, "best_available": best and best.hardware}

    def document(self, *, limit: int = SHOWN, repeated: Sequence[str] = ()) -> Document:
        """Return the document with `limit` hardware, and every subgraph if requested; csv contains all hardware."""
        parts = [
            Section(self._fill(ALLOCATION, row), self._allocate(row, self.placements))
            for row in self.rows
            if self.placements is not None and row.status == "ok"
        ]
        if self.subgraphs:
            drawn = lay_out(self.subgraphs, self._mark, "subgraph", len(self.subgraphs))
            parts.append(Section(SUBGRAPHS(metric=self.subgraphs[0].metric.capitalize()), drawn))
        return self._compose_facts(
            self.facts,
            (show_under("", self._rank(limit), *self._count_left_out()), *parts),
            self.rows,
            answer=describe_answer(self.facts),
            reasons=list_reasons(self.facts),
            details=self._details(),
            steps=self._steps(repeated),
        )

    def _rank(self, limit: int) -> Grid:
        """Return a grid of the first `limit` chips by rank, with the interval of the metric that ranks them."""
        answered = [row for row in self.rows if row.status == "ok"]
        values = {one.runs[0]: one.values[self.facts.asked[0]] for one in self.facts.of(Entry)}
        heading = RANKED[self.sort]
        (ranked,) = (column for column in RANKING if column.strip("*").rpartition(" ")[0] == heading)
        columns = [column for column in RANKING if column != ranked]

        def stays(row: RankedHardware) -> bool:
            return row is self.best_available

        drawn = self._lay(
            self.rows.with_rows(answered),
            " | ".join(("hardware", ranked, f"{RANGE} spread", *columns)),
            ranked=heading,
            keep=RANGE,
            limit=limit,
            noun="chips",
            stays=stays,
            spread=lambda row: _show_ends(values[row.run_id]),
            throughput_per_s=lambda row: _plain(row.throughput_per_s),
            inferences_per_j=lambda row: _plain(row.inferences_per_j),
            units_used_count=lambda row: show_units(row.units_used_count, row.units_total_count, row.unit_name),
        )
        shown = choose_rows(answered, limit, stays)
        ends = [(one.value, one.half_width) for one in (values[row.run_id] for row in shown)]
        picture = Picture(kind="interval", after=RANGE, of=heading, rows=make_intervals(ends), unit=self._metric.unit)
        (choice, *_), column = self.facts.of(Choice), drawn.headings.index(heading)
        tied = frozenset((index, column) for index, row in enumerate(shown) if row.run_id in choice.tied)
        best = frozenset((index, column) for index, row in enumerate(shown) if row.run_id == choice.runs[0])
        is_choice = len(choice.runs) > 1 and len(choice.tied) < len(choice.runs) - 1
        return attrs.evolve(
            drawn,
            pictures=(picture,),
            best=best if is_choice else frozenset(),
            tied=tied if is_choice else frozenset(),
        )

    def sketched(self, _by: RunDivision, /) -> Drawings:
        """Return a text drawing of the metric that ranks the hardware."""
        from joulemap.show.figure.figure import describe_metric

        return (self._sketch("ranking", self.rows, {**describe_metric(self._metric), "column": self._metric.column}),)

    @property
    def _metric(self) -> Metric:
        return METRIC["energy_per_inference" if self.sort == "energy" else self.sort]

    @property
    def best_available(self) -> RankedHardware | None:
        """Best hardware that can be bought or rented; None if no ranked hardware can."""
        return next((row for row in self.rows if row.rank is not None and row.is_available), None)

    def _allocate(self, row: RankedHardware, placements: Table[Placement]) -> Grid:
        """Return a grid with the placement of every subgraph on the compute units of one chip."""
        return self._lay(
            placements.with_rows(one for one in placements if one.run_id == row.run_id),
            PLACED,
            units_used_count=lambda one: show_units(one.units_used_count, one.units_total_count, one.unit_name),
        )

    def _details(self) -> list[Section]:
        """Return the composition of the model and, if requested, the numbers and the utilization of each chip."""
        is_large = len(self.facts.of(Entry)) >= FEWEST_FOR_MEDIAN
        told = [row for row in self.strengths if row.verdict != EVEN and (is_large or row.median_ratio is None)]
        sections = [
            Section(OPERATORS_TITLE, self._lay(self.mix, MIX)),
            Section(STRENGTHS_TITLE, self._lay(self.strengths.with_rows(told), STRENGTHS)),
        ]
        if self.numbers is not None:
            sections.append(
                Section(
                    NUMBERS_TITLE,
                    self._lay(
                        self.numbers, "*hardware | section | *quantity | *value | basis", quantity=_name_quantity
                    ),
                )
            )
        if self.spread is not None:
            sections.append(Section(SPREADS_TITLE, self._lay(self.spread, SPREADS)))
        return sections

    def _steps(self, repeated: Sequence[str]) -> list[list[str]]:
        """Return commands on the best chip, and on the next one if there is one."""
        choice = self.facts.of(Choice)[0]
        hardware = [self.scope.spell(self.facts.runs[run_id].hardware) for run_id in choice.runs[:2]]
        return [
            one.words(model=self.scope.model, best=hardware[0], other=hardware[-1], repeated=repeated)
            for one in STEPS_OF_RANKING[: len(hardware)]
        ]


def _name_quantity(row: HardwareNumber) -> str:
    """Return the displayed name of a hardware number."""
    if row.quantity == "unit_count":
        return f"{row.unit_name}s"
    return row.memory_type if row.quantity == "memory_capacity" else row.quantity.partition(".")[2] or row.quantity


def _show_ends(value: Quantity) -> str:
    return show_ends(value.value, value.unit, value.half_width)


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
    with opening_scope(source, plan_runs((model,), settings)) as scope:
        scope.check_evaluated()
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
            subgraphs=fetch(connection, Contender, run_ids=ids, metric=metric) if has_subgraphs else None,
            placements=fetch(connection, Placement, run_ids=ids) if has_subgraphs else None,
            rows=rows(),
        )
