"""Hardware in the order that a deployment asks for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import attrs

from joulemap.answer.answer import RunAnswer
from joulemap.answer.compare.contest import Contender, lay_out
from joulemap.answer.run import BOUNDS, TimedOutcome
from joulemap.answer.scope import holding_scope
from joulemap.domain.metric import RANK_METRICS, RankMetricName
from joulemap.domain.settings import check_name
from joulemap.domain.table import Table
from joulemap.plan.run import plan_runs
from joulemap.present.cell import show_quantity, show_share
from joulemap.present.document import Document, Grid, Section, grid
from joulemap.store.query import fetch, start

if TYPE_CHECKING:
    from joulemap.domain.settings import Settings
    from joulemap.plan.source import Source


@attrs.frozen
class RankedHardware(TimedOutcome):
    """One hardware in the order that a deployment asks for."""

    query: ClassVar[str] = "compare.ranking"

    rank: int | None
    deployment: list[str]
    sort: str
    best_ratio: float | None
    inferences_per_s_per_w: float | None
    energy_per_inference_j: float | None
    tdp_w: float | None
    precision: str
    runtime: str


@attrs.frozen
class UtilizationSpread:
    """How utilization spreads over the subgraphs of a run, and what bounds them."""

    query: ClassVar[str] = "compare.spread"

    hardware: str
    mean_utilization_fraction: float | None
    min_utilization_fraction: float | None
    min_kind: str | None
    min_name: str | None
    max_utilization_fraction: float | None
    max_kind: str | None
    max_name: str | None
    idle_kind: str | None
    idle_time_fraction: float | None
    subgraph_count: int
    compute_bound_count: int
    memory_bound_count: int
    launch_bound_count: int
    compute_time_fraction: float | None
    memory_time_fraction: float | None
    launch_time_fraction: float | None
    run_id: int

    def __str__(self) -> str:
        """Return the mean utilization, its ends with who is responsible, and the time without MACs."""
        text = f"{show_share(self.mean_utilization_fraction)} on average"
        if self.min_utilization_fraction is not None:
            text += (
                f"; least {show_share(self.min_utilization_fraction)} ({self.min_kind} {self.min_name}), "
                f"most {show_share(self.max_utilization_fraction)} ({self.max_kind} {self.max_name})"
            )
        if self.idle_kind is not None:
            time = show_share(self.idle_time_fraction)
            text += f"; {time} of the time in subgraphs without MACs, most of it {self.idle_kind}"
        return text


@attrs.frozen
class HardwareNumber:
    """A number of what the hardware of a run is made of."""

    query: ClassVar[str] = "compare.geometry"

    hardware: str
    section: str
    quantity: str
    value: float
    unit: str
    basis: str
    unit_name: str
    memory_type: str
    fact_index: int
    run_id: int

    def __str__(self) -> str:
        """Return the number with what it is, in words."""
        name = self.quantity.removeprefix("geometry.").removeprefix("memory.").removeprefix("power_mode.")
        name = name.replace("_", " ").replace(".", " ")
        if self.quantity == "unit_count":
            return f"{self.value:g} {self.unit_name}s"
        if self.unit == "1":
            return f"{name} {self.value:g}"
        if self.quantity == "memory_capacity":
            name = self.memory_type
        return f"{name} {show_quantity(self.value, self.unit)}"


@attrs.frozen(kw_only=True)
class RankingAnswer(RunAnswer):
    """Hardware in the order that a deployment asks for."""

    sort: RankMetricName
    rows: Table[RankedHardware]
    """The best first, refused ones last."""
    spread: Table[UtilizationSpread] | None
    """One per evaluated run; None unless asked for."""
    numbers: Table[HardwareNumber] | None
    """Of each hardware; None unless asked for."""
    subgraphs: Table[Contender] | None
    """Subgraph by subgraph; None unless asked for."""

    def data(self) -> dict[str, Any]:
        """Return what programs get; a list is empty where its table was not asked for."""
        return {"spread": [], "numbers": [], "subgraphs": [], **super().data(), "sort": self.sort}

    def document(self, *, limit: int = 60, repeated: Sequence[str] = ()) -> Document:
        """Return it with `limit` subgraphs; csv holds the ranking."""
        scope = self.scope
        sections = [Section(f"Ranked by {self.sort}", self._ranking())]
        spread = {one.run_id: one for one in self.spread or ()}
        sections += [
            Section(f"{row.rank}. {scope.mark(row.hardware)}", self._facts(row, spread[row.run_id]))
            for row in self.rows
            if row.run_id in spread
        ]
        if self.subgraphs:
            metric = self.subgraphs[0].metric.capitalize()
            sections.append(Section(f"{metric} of each subgraph", lay_out(self.subgraphs, scope, "subgraph", limit)))
        notes = scope.describe_refusals() + scope.describe()
        return self._compose(scope.title, sections, self.rows, notes=notes, steps=self._steps(repeated))

    def _ranking(self) -> Grid:
        return grid(
            self.rows,
            (
                ("rank", "rank"),
                ("hardware", "hardware"),
                ("type", "architecture"),
                ("latency", lambda row: show_quantity(row.latency_s, "s") or "unsupported"),
                ("inferences/s", lambda row: _plain(row.throughput_per_s)),
                ("power", "average_power_w"),
                ("inferences/s/W", lambda row: _plain(row.inferences_per_s_per_w)),
                ("energy/inference", "energy_per_inference_j"),
                ("tdp", "tdp_w"),
            ),
            keep=("hardware", "latency", "power", "inferences/s/W"),
            projected=self.scope.projected,
        )

    def _facts(self, row: RankedHardware, spread: UtilizationSpread) -> Grid:
        """Return what one hardware is made of, and how its utilization spreads."""
        numbers = [one for one in self.numbers or () if one.run_id == row.run_id]
        facts = [
            (section, "; ".join(str(one) for one in numbers if one.section == section))
            for section in ("geometry", "memory", "power", "peak")
        ]
        bounds = (
            f"{bound} {getattr(spread, f'{bound}_bound_count')} of {spread.subgraph_count} "
            f"({show_share(getattr(spread, f'{bound}_time_fraction'))} of the time)"
            for bound in BOUNDS
        )
        facts += [
            (
                "performance",
                f"{show_quantity(row.latency_s, 's')}, {show_quantity(row.throughput_per_s, '1/s')}, "
                f"{show_quantity(row.average_power_w, 'W')} on average",
            ),
            ("utilization", str(spread)),
            ("bound by", ", ".join(bounds)),
        ]
        return Grid(headings=("about", "figures"), rows=tuple((about, text) for about, text in facts if text))

    def _steps(self, repeated: Sequence[str]) -> list[list[str]]:
        best, *others = [self.scope.spell(row.hardware) for row in self.rows if row.status == "ok"]
        steps = [["compare", self.scope.model, "--level", "detailed", "--hardware", best, *repeated]]
        if others:
            steps.append(["explain", self.scope.model, others[0], best, *repeated])
        return steps


def _plain(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def rank(
    source: Source, model: str, settings: Settings, sort: RankMetricName, *, has_details: bool, has_subgraphs: bool
) -> RankingAnswer:
    """Return hardware in order, as `Workspace.rank_hardware` documents it."""
    check_name("sort", sort, RANK_METRICS)
    settings.check_single("compare")
    with holding_scope(source, plan_runs((model,), settings)) as (scope, connection, ids):
        rows = start(connection, RankedHardware, run_ids=ids, sort=sort)
        metric = "latency" if sort == "throughput" else "energy"
        return RankingAnswer(
            scope=scope,
            sort=sort,
            spread=fetch(connection, UtilizationSpread, run_ids=ids) if has_details else None,
            numbers=fetch(connection, HardwareNumber, run_ids=ids) if has_details else None,
            subgraphs=fetch(connection, Contender, run_ids=ids, metric=metric) if has_subgraphs else None,
            rows=rows(),
        )
