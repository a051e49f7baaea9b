"""Parts of runs by energy, time and events: one run by every division, and each part of one or several runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, get_args

from joulemap.ask.answer import RunAnswer, fetch_tables
from joulemap.ask.fact import Fact, Facts, Share, ShareMetric
from joulemap.ask.part import check_subgraph, divide, enter, gather, name_models, opening_parts, share_out
from joulemap.ask.scope import Scope, opening_compared
from joulemap.domain.default import SETTINGS
from joulemap.domain.operator.name import has_exchange
from joulemap.domain.settings import EnergyDivision, PartLevel, RunDivision, Settings, check_name
from joulemap.domain.table import Table
from joulemap.generated.analyze import (
    ActionShare,
    BottleneckShare,
    CategoryShare,
    EventCount,
    OperatorShare,
    RunTotal,
    StaticShare,
    SubgraphRoof,
    SubgraphShare,
)
from joulemap.generated.breakdown import PartAction, PartCategory
from joulemap.generated.report import EnergyLeaf
from joulemap.plan.source import Source
from joulemap.store.query import fetch, start
from joulemap.system.errors import UnsupportedError
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.ask.check import CheckedRow
    from joulemap.physics.record.hardware import Hardware

PLURALS: Final[dict[RunDivision, str]] = {
    "category": "categories",
    "action": "actions",
    "subgraph": "subgraphs",
    "operator": "operators",
    "event": "events",
}
"""Division -> table of the answer, in the order of follow-up commands."""

OVERHEAD: Final = "overhead"
"""Level of the share of the categories of architectural overhead."""

COMMUNICATION: Final = "communication"
"""Limit of the time of subgraphs that exchange data between devices, as `train` and `llm` call it."""

SPLIT: Final = "split"
"""Basis of parts of which only the sum is known."""

LEAST: Final = 0.01
"""Minimum share of architectural overhead that is a fact."""


@frozen(kw_only=True)
class AnalyzeAnswer(RunAnswer):
    """Breakdown of one run. Categories, actions, subgraphs and operators each sum to the energy of the run exactly."""

    totals: Table[RunTotal]
    """Totals of the run; one row."""
    categories: Table[CategoryShare]
    """Energy of each category, largest first."""
    actions: Table[ActionShare]
    """Energy of each action by category, largest first."""
    static_parts: Table[StaticShare]
    """Parts of static power, largest first."""
    subgraphs: Table[SubgraphShare]
    """Energy and time of each subgraph, in execution order."""
    operators: Table[OperatorShare]
    """Energy and time of each operator, in execution order."""
    bottlenecks: Table[BottleneckShare]
    tree: Table[EnergyLeaf]
    """Energies by common category and action; each action lists the subgraphs with the most energy."""
    roofline: Table[SubgraphRoof]
    """Arithmetic intensity and throughput of each subgraph, in execution order."""
    events: Table[EventCount]
    """Counts of instructions, cache lines, tiles and other events, in the order of the class file."""
    subgraph: str
    """Subgraph that the events belong to; empty for the whole run."""
    facts: Facts
    """Values, largest parts, limits and caveats, from which all sentences are made."""

    @property
    def checked(self) -> Sequence[CheckedRow]:
        """The analyzed run."""
        return self.totals.rows

    @property
    def total(self) -> RunTotal:
        """Totals of the whole run."""
        return self.totals[0]

    def data(self) -> dict[str, Any]:
        """Return the data for machine formats, including the name of the selected subgraph."""
        return {**super().data(), "subgraph": self.subgraph or None}


@frozen(kw_only=True)
class PartAnswer(RunAnswer):
    """Energy of one or several runs, or of each subgraph or operator; the rows of a run sum to its energy exactly."""

    level: PartLevel
    by: EnergyDivision
    subgraph: str
    """Requested subgraph; empty for all subgraphs."""
    categories: Table[PartCategory] | None
    """Energy of each part of each run by category, largest first; None if divided by action."""
    actions: Table[PartAction] | None
    """Energy of each part of each run by action, largest first; None if divided by category."""
    facts: Facts
    """Parts of each run, largest first, and caveats, from which all sentences are made."""

    @property
    def rows(self) -> Table[PartCategory] | Table[PartAction]:
        """Table of the requested division: `categories` or `actions`."""
        table = self.categories if self.categories is not None else self.actions
        assert table is not None
        return table

    def data(self) -> dict[str, Any]:
        """Return the data for machine formats."""
        return {**super().data(), "level": self.level, "by": self.by, "subgraph": self.subgraph or None}


def find_facts(
    scope: Scope,
    totals: Sequence[RunTotal],
    actions: Iterable[ActionShare],
    static_parts: Iterable[StaticShare],
    bottlenecks: Iterable[BottleneckShare],
    subgraphs: Sequence[SubgraphShare],
    **_: Any,
) -> Facts:
    """Return the facts of one run: its values, its common categories of energy, what limits its time, how busy its
    units are, its largest subgraph, and parts of static power that are known.
    """
    total = totals[0]
    runs = (total.run_id,)
    times = {row.bottleneck: row.latency_fraction or 0.0 for row in bottlenecks}
    for one in subgraphs:  # the store gives an exchange another bottleneck, mostly memory
        if has_exchange(one.fusion_pattern):
            times[one.bottleneck] -= one.latency_fraction
            times[COMMUNICATION] = times.get(COMMUNICATION, 0.0) + one.latency_fraction
    largest = max(subgraphs, key=lambda row: row.energy_fj)
    overhead = total.overhead_fraction or 0.0

    def share(metric: ShareMetric, fraction: float, **more: Any) -> Share:
        return Share(runs=runs, metric=metric, share=fraction, **more)

    parts: dict[str, Any] = {"level": "subgraph", "name": largest.name, "total": len(subgraphs)}
    used, units = total.units_used_count, total.units_total_count
    facts: list[Fact] = [
        enter(scope, total, "power", "edp"),
        *divide(total.run_id, "category", ((row.common_category, row.energy_fj) for row in actions)),
        *share_out(runs, "time", "bottleneck", times),
        share("compute", total.compute_utilization_fraction),
        share("bandwidth", total.bandwidth_utilization_fraction),
        share("units", used / max(1, units), name=total.unit_name, count=used, total=units),
        *([share("energy", overhead, level=OVERHEAD)] if overhead >= LEAST else []),
        *(
            share("energy", one.energy_fraction or 0.0, level="static", name=one.part)
            for one in static_parts
            if one.basis != SPLIT
        ),
        share("energy", largest.energy_fraction, **parts),
        share("time", largest.latency_fraction, **parts),
    ]
    return gather(scope, "energy", facts)


def name_part(row: PartCategory | PartAction) -> str:
    """Return the category of a row, or its component and action."""
    return row.category if isinstance(row, PartCategory) else f"{row.component}.{row.action}"


def analyze(
    source: Source, model: str, hardware: str | Hardware, settings: Settings = SETTINGS, *, subgraph: str = ""
) -> AnalyzeAnswer:
    """Break down one run by category, action, subgraph and operator, with time, memory and bottlenecks.

    `subgraph` limits the events to one subgraph. Raises like `compare`; UnknownNameError for a subgraph that the model
    does not have; UsageError for a folder with several chips; UnsupportedError with the reason if the hardware
    cannot run the configuration, for example for lack of a precision or of memory.
    """
    with opening_parts(source, "analyze", model, hardware, settings, subgraph=subgraph) as scope:
        connection, run_id = scope.connection, scope.run_ids[0]
        events = start(connection, EventCount, run_id=run_id, subgraph=subgraph)
        tables: dict[str, Any] = fetch_tables(connection, AnalyzeAnswer, ("events",), run_id=run_id, run_ids=[run_id])
        facts = find_facts(scope, **tables)
        return AnalyzeAnswer(scope=scope, subgraph=subgraph, **tables, events=events(), facts=facts)


def break_down(
    source: Source,
    model: str,
    hardware: str | Hardware,
    settings: Settings = SETTINGS,
    *,
    level: PartLevel = "subgraph",
    by: EnergyDivision = "category",
    subgraph: str = "",
) -> PartAnswer:
    """Break down the energy of each subgraph or operator of one run, summing to the run exactly.

    Categories are those of the chip's architecture. `subgraph` restricts the answer to one subgraph or its operators.
    Raises like `analyze`; UnknownNameError for a subgraph that the model does not have.
    """
    with opening_parts(source, "analyze", model, hardware, settings, subgraph=subgraph) as scope:
        return _divide(scope, level, by, subgraph, is_common=False)


def compare_breakdowns(
    source: Source,
    models: Sequence[str],
    settings: Settings = SETTINGS,
    *,
    level: PartLevel = "subgraph",
    by: EnergyDivision = "category",
    subgraph: str = "",
) -> PartAnswer:
    """Break down the energy of each run, or of each subgraph or operator on each chip.

    Categories are those common to all architectures. `subgraph` restricts the answer to one subgraph or its operators.
    Raises like `compare`; UnknownNameError for a subgraph that no model has.
    """
    with opening_compared(source, models, settings) as scope:
        check_subgraph(scope, subgraph)
        return _divide(scope, level, by, subgraph, is_common=True)


def _divide(scope: Scope, level: PartLevel, by: EnergyDivision, subgraph: str, *, is_common: bool) -> PartAnswer:
    """Return the parts of each run; UnsupportedError if none of them runs in a kernel, so that none takes energy."""
    check_name("level", level, get_args(PartLevel))
    check_name("division", by, get_args(EnergyDivision))
    given = {"run_ids": list(scope.run_ids), "level": level, "subgraph": subgraph}
    is_by_action = by == "action"
    actions = fetch(scope.connection, PartAction, **given) if is_by_action else None
    categories = None if is_by_action else fetch(scope.connection, PartCategory, **given, is_common=is_common)
    rows: list[PartCategory | PartAction] = [*(actions or categories or ())]
    if not rows:
        raise UnsupportedError(f"no operator of {subgraph} runs as a kernel, so it takes no energy")
    runs = {row.run_id: [(name_part(one), one.energy_fj) for one in rows if one.run_id == row.run_id] for row in rows}
    shares = (share for run_id, parts in runs.items() for share in divide(run_id, by, parts))
    return PartAnswer(
        scope=scope,
        level=level,
        by=by,
        subgraph=subgraph,
        categories=categories,
        actions=actions,
        facts=gather(scope, "energy", shares, name_models(scope, rows)),
    )
