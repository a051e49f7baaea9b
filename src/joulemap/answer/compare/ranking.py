"""Rank hardware by the metrics of a deployment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs

from joulemap.answer.answer import Drawings, RunAnswer
from joulemap.answer.compare.contest import lay_out
from joulemap.answer.compare.summary import SHOWN
from joulemap.answer.run import BOUNDS
from joulemap.answer.scope import describe_advantage, holding_scope
from joulemap.domain.default import SETTINGS
from joulemap.domain.metric import METRIC, RANK_METRICS, RankMetricName
from joulemap.domain.settings import RunDivision, Settings, check_name
from joulemap.domain.table import Table
from joulemap.plan.run import plan_runs
from joulemap.plan.source import Source
from joulemap.present.cell import show_count, show_quantity, show_share, show_units
from joulemap.present.document import Document, Grid, Section, Text, grid, show_under
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

KIND_NAMES: Final = {
    "conv": "convolutions",
    "depthwise_conv": "depthwise convolutions",
    "grouped_conv": "grouped convolutions",
    "linear": "linear layers",
    "matmul": "matrix products",
}
"""Kind of operator with MACs -> its plural name."""


def tell_spread(row: UtilizationSpread) -> str:
    """Return the mean utilization, its extremes with their subgraphs, and the time without MACs."""
    text = f"{show_share(row.mean_utilization_fraction)} on average"
    if row.min_utilization_fraction is not None:
        text += (
            f"; least {show_share(row.min_utilization_fraction)} ({row.min_kind} {row.min_name}), "
            f"most {show_share(row.max_utilization_fraction)} ({row.max_kind} {row.max_name})"
        )
    if row.idle_kind is not None:
        time = show_share(row.idle_time_fraction)
        text += f"; {time} of the time in subgraphs without MACs, most of it {row.idle_kind}"
    return text


def tell_number(row: HardwareNumber) -> str:
    """Return a number of a hardware with its name."""
    name = row.quantity.removeprefix("geometry.").removeprefix("memory.").removeprefix("power_mode.")
    name = name.replace("_", " ").replace(".", " ")
    if row.quantity == "unit_count":
        return f"{row.value:g} {row.unit_name}s"
    if row.unit == "1":
        return f"{name} {row.value:g}"
    if row.quantity == "memory_capacity":
        name = row.memory_type
    return f"{name} {show_quantity(row.value, row.unit)}"


def tell_mix(row: ModelMix) -> str:
    """Return a kind of operator with its share of the model."""
    kind = KIND_NAMES.get(row.kind, row.kind.replace("_", " "))
    where = f"{show_count(row.operator_count, 'operator')} in {show_count(row.subgraph_count, 'subgraph')}"
    return f"{kind} {show_share(row.mac_fraction)} of the MACs ({where})" if row.mac_count else f"{kind} ({where})"


def tell_strength(row: Strength) -> str:
    """Return a strength or weakness with its number."""
    ratio = row.median_ratio or 1.0
    times, share = f"{max(ratio, 1.0 / ratio):.3g}x", show_share(row.value)
    return {
        "energy_per_inference": f"{times} {'less' if ratio > 1.0 else 'more'} energy than the median",
        "latency": f"{times} {'faster' if ratio > 1.0 else 'slower'}",
        "power": f"draws {times} {'less' if ratio > 1.0 else 'more'} power",
        "utilization": f"uses {share} of its peak ({row.grade})",
        "idle": f"its {row.unit_name}s idle {share} of their time",
        "launch": f"{share} of the time goes to launches",
        "memory": f"waits for memory {share} of the time",
    }[row.aspect]


RANKED: Final[Mapping[RankMetricName, str]] = {
    "latency": "latency",
    "throughput": "inferences/s",
    "power": "power",
    "efficiency": "inferences/J",
    "energy": "energy/inference",
}
"""Metric -> heading of its column."""

PLACED: Final = (
    "subgraph", "latency_s", "bottleneck", "units_used_count", "compute_utilization_fraction", "energy_j",
    "latency_fraction", "units_total_count", "unit_name", "tile_count", "wave_count", "fusion_pattern",
)  # fmt: skip
"""Columns shown of a subgraph's placement on units."""


@frozen(kw_only=True)
class RankingAnswer(RunAnswer):
    """Hardware ranked by a metric of deployment."""

    sort: RankMetricName
    rows: Table[RankedHardware]
    """Rows by rank, refused ones last."""
    mix: Table[ModelMix]
    """Shares of operator kinds in the model."""
    strengths: Table[Strength]
    """Strengths and weaknesses of each hardware."""
    spread: Table[UtilizationSpread] | None
    """Utilization of each evaluated run; None unless requested."""
    numbers: Table[HardwareNumber] | None
    """Numbers of each hardware; None unless requested."""
    subgraphs: Table[Contender] | None
    """Rows by subgraph; None unless requested."""
    placements: Table[Placement] | None
    """Rows by hardware, then by subgraph, longest first; None unless requested."""

    def data(self) -> dict[str, Any]:
        """Return the data for machine formats; a table that was not requested is an empty list."""
        empty: dict[str, Any] = {"spread": [], "numbers": [], "subgraphs": [], "placements": []}
        best = self.best_available
        return {**empty, **super().data(), "sort": self.sort, "best_available": best and best.hardware}

    def document(self, *, limit: int = SHOWN, repeated: Sequence[str] = ()) -> Document:
        """Return the document with `limit` hardware, and every subgraph if requested; csv holds all hardware."""
        scope = self.scope
        below = scope.say_left_out()
        spread = {one.run_id: one for one in self.spread or ()}
        details = [Section("Model", Text(self.describe_model()))]
        details += [
            Section(f"{row.rank}. {scope.mark(row.hardware)}", self._facts(row, spread[row.run_id]))
            for row in self.rows
            if row.run_id in spread
        ]
        parts = [
            Section(f"Allocation on {row.rank}. {scope.mark(row.hardware)}", self._allocation(row))
            for row in self.rows
            if self.placements is not None and row.status == "ok"
        ]
        if self.subgraphs:
            metric = self.subgraphs[0].metric.capitalize()
            drawn = lay_out(self.subgraphs, scope, "subgraph", len(self.subgraphs))
            parts.append(Section(f"{metric} of each subgraph", drawn))
        return self._compose(
            scope.title,
            (show_under(f"Ranked by {self.sort}", self._ranking(limit), *below), *parts),
            self.rows,
            answer=self.say_first(),
            insights=self.describe_strengths(),
            details=details,
            steps=self._steps(repeated),
        )

    def sketched(self, _by: RunDivision, /) -> Drawings:
        """Return a text drawing of the metric that ranks the hardware."""
        from joulemap.figure.figure import tell_metric

        metric = METRIC["energy_per_inference" if self.sort == "energy" else self.sort]
        return (self._sketch("ranking", self.rows, {**tell_metric(metric), "column": metric.column}),)

    def _ranking(self, limit: int) -> Grid:
        return grid(
            attrs.evolve(self.rows, rows=tuple(row for row in self.rows if row.status == "ok")),
            (
                ("rank", "rank"),
                ("hardware", "hardware"),
                ("type", "architecture"),
                ("latency", "latency_s"),
                ("inferences/s", lambda row: _plain(row.throughput_per_s)),
                ("power", "average_power_w"),
                ("inferences/J", lambda row: _plain(row.inferences_per_j)),
                ("energy/inference", "energy_per_inference_j"),
                ("tdp", "tdp_w"),
                ("of its peak", "compute_utilization_fraction"),
                ("units", lambda row: show_units(row.units_used_count, row.units_total_count, row.unit_name)),
                ("microarchitecture", "microarchitecture"),
            ),
            limit=limit,
            noun="hardware",
            keep=("hardware", "latency", "power", "inferences/J"),
            ranked=("hardware", RANKED[self.sort]),
            stays=lambda row: row is self.best_available,
            projected=self.scope.projected,
        )

    @property
    def best_available(self) -> RankedHardware | None:
        """Best hardware that can be bought or rented, at a price that is not a guess."""
        return next((row for row in self.rows if row.rank is not None and row.is_available), None)

    def say_first(self) -> str:
        """Return the best available hardware, its ratio to the next, and any projection ahead of it."""
        metric = METRIC["energy_per_inference" if self.sort == "energy" else self.sort]
        answered = [row for row in self.rows if row.status == "ok"]
        best = self.best_available or answered[0]
        had = [row for row in answered if row.is_available or best is not self.best_available]
        among = " of the available hardware" if best is not answered[0] else ""
        mark = self.scope.mark
        text = f"{mark(best.hardware)} has the {metric.best} {metric.label}{among}"
        if len(had) > 1:
            ratio = (had[1].best_ratio or 1.0) / (best.best_ratio or 1.0)
            text += f", {describe_advantage(ratio, mark(had[1].hardware))}"
        if best is not answered[0]:
            ahead = best.best_ratio or 1.0
            text += f". If available, {mark(answered[0].hardware)} would be {ahead:.3g}x better"
        elif not best.is_available:
            text += f". {mark(best.hardware)} is not available"
        return f"{text}."

    def describe_model(self) -> str:
        """Return the composition of the model, in words."""
        first = self.mix[0]
        macs = show_quantity(float(first.all_mac_count), "MAC") if first.all_mac_count else "no MACs"
        operators = show_count(first.all_operator_count, "operator")
        whole = f"{show_count(first.all_subgraph_count, 'subgraph')} of {operators}, {macs}"
        told = [tell_mix(one) for one in self.mix if one.mac_count]
        others = [f"{one.operator_count} {one.kind.replace('_', ' ')}" for one in self.mix if not one.mac_count]
        told += [f"{'without MACs ' if told else ''}{', '.join(others)}"] if others else []
        return f"{whole}: {'; '.join(told)}"

    def describe_strengths(self) -> list[str]:
        """Return the strengths and weaknesses of each hardware, with numbers; hardware without any is omitted."""
        lines = []
        for row in self.rows:
            own = [one for one in self.strengths if one.run_id == row.run_id]
            told = [
                f"{label}: {', '.join(tell_strength(one) for one in own if one.verdict == verdict)}"
                for label, verdict in (("strong", "strength"), ("weak", "weakness"))
                if any(one.verdict == verdict for one in own)
            ]
            lines += [f"{self.scope.mark(row.hardware)}: {'; '.join(told)}"] if told else []
        return lines

    def _allocation(self, row: RankedHardware) -> Grid:
        """Return the placement of every subgraph on the units of one hardware."""
        assert self.placements is not None
        own = tuple(one for one in self.placements if one.run_id == row.run_id)
        return self._show(attrs.evolve(self.placements, rows=own), PLACED, keep=PLACED[1:6])

    def _facts(self, row: RankedHardware, spread: UtilizationSpread) -> Grid:
        """Return the specifications of one hardware, and the spread of its utilization."""
        numbers = [one for one in self.numbers or () if one.run_id == row.run_id]
        facts = [("microarchitecture", row.microarchitecture)]
        facts += [
            (section, "; ".join(tell_number(one) for one in numbers if one.section == section))
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
            ("utilization", tell_spread(spread)),
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


def rank_hardware(
    source: Source,
    model: str,
    settings: Settings = SETTINGS,
    *,
    sort: RankMetricName = "efficiency",
    has_details: bool = False,
    has_subgraphs: bool = False,
) -> RankingAnswer:
    """Rank hardware by a metric of deployment; raises as `compare`.

    `has_details` adds the specifications of each hardware and the spread of its utilization. `has_subgraphs` adds every
    subgraph with the units that it is placed on and its bottleneck.
    """
    check_name("sort", sort, RANK_METRICS)
    settings.check_single("compare")
    with holding_scope(source, plan_runs((model,), settings)) as (scope, connection, ids):
        rows = start(connection, RankedHardware, run_ids=ids, sort=sort)
        metric = "latency" if sort == "throughput" else "energy"
        return RankingAnswer(
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
