"""Savings of fusion in a run, by pattern, subgraph and operator, and the causes of other changes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import attrs

from joulemap.ask.answer import RunAnswer, fetch_tables
from joulemap.ask.fact import Change, Facts, Quantity, Term, TermQuantity, Value
from joulemap.ask.finding import Finding
from joulemap.ask.part import enter, opening_parts
from joulemap.ask.rule import list_findings, weigh_findings
from joulemap.ask.scope import Scope
from joulemap.domain.default import SETTINGS
from joulemap.domain.settings import Settings
from joulemap.domain.table import Table, group
from joulemap.generated.fusion import FusionOperator, FusionPattern, FusionSubgraph, FusionTotal
from joulemap.physics.record.hardware import Hardware
from joulemap.physics.record.runtime import RUNTIME, USUAL_RUNTIME
from joulemap.plan.source import Source
from joulemap.system.record import frozen

ASKED: Final = ("energy", "latency")
"""Metrics of the decision."""

LEAST_CHANGE: Final = 5e-4
"""Share of the separate energy or time below which a group of subgraphs that are not fused is no fact."""

ALIKE: Final = 0.01
"""Relative difference of energy x delay below which two subgraphs lose equally much; neither is then the worst."""

FUSED, UNFUSED = "fused", "unfused"
"""Groups of subgraphs: with fewer kernels than separate, in which fusion costs, and with as many kernels."""


@frozen(kw_only=True)
class FusionAnswer(RunAnswer):
    """Savings of fusion in a run. Its patterns, subgraphs and operators each sum to the run exactly, fused and
    separate.
    """

    totals: Table[FusionTotal]
    """Totals of the fused and of the separate run; one row."""
    patterns: Table[FusionPattern]
    """Savings of each fusion pattern, largest saved energy-delay product first."""
    subgraphs: Table[FusionSubgraph]
    """Savings of each subgraph, largest saved energy-delay product first."""
    operators: Table[FusionOperator]
    """Savings of each operator, largest saved energy-delay product first."""
    facts: Facts
    """Savings, patterns, causes and caveats, from which all sentences are made."""

    @property
    def total(self) -> FusionTotal:
        """Totals of the fused and of the separate run."""
        return self.totals[0]


def fusion(source: Source, model: str, hardware: str | Hardware, settings: Settings = SETTINGS) -> FusionAnswer:
    """Compute the savings of fusion in a run, by pattern, subgraph and operator; each division sums to the run.

    The run is compared with its operators as separate kernels on the same hardware, without host cost. If `runtime` is
    `graph` or `eager`, the run in that runtime is compared with the run in `fused`. Raises like `analyze`.
    """
    merged = settings.runtime if RUNTIME[settings.runtime[0]].merges else (USUAL_RUNTIME,)
    runtimes = tuple(dict.fromkeys((*merged, *settings.runtime)))
    with opening_parts(source, "fusion", model, hardware, settings, runtimes=runtimes) as scope:
        run_a, run_b = scope.run_ids[-1], scope.run_ids[0]
        tables: dict[str, Any] = fetch_tables(scope.connection, FusionAnswer, run_a=run_a, run_b=run_b)
        return FusionAnswer(scope=scope, **tables, facts=find_facts(scope, **tables))


def find_facts(
    scope: Scope,
    totals: Sequence[FusionTotal],
    patterns: Sequence[FusionPattern],
    subgraphs: Sequence[FusionSubgraph],
    **_: Any,
) -> Facts:
    """Return the facts of fusion: the change of each quantity, a term per pattern, the causes of costs and of changes
    without fusion, the values of both runs, and caveats.

    Both runs are on one chip, so that what moves both in the same direction moves no saving.
    """
    total = totals[0]
    findings = list_findings(scope, metric=ASKED[0])
    doubts = [attrs.evolve(one, bias=0.0) if isinstance(one, Finding) else one for one in findings]
    separate = total.replace(
        run_id=total.separate_run_id, energy_j=total.separate_energy_j, latency_s=total.separate_latency_s
    )
    runs = {one.run_id: one for one in (separate, total)}
    return Facts(
        asked=ASKED,
        runs=scope.subjects({}),
        facts=(
            *_list_changes(total),
            *(term for row in patterns for term in _divide(row, patterns, total)),
            *find_costs(subgraphs, total),
            *find_unfused(subgraphs, total),
            *(enter(scope, one) for one in reversed(runs.values())),
            *weigh_findings(doubts, []),
        ),
    )


def _runs(total: FusionTotal) -> tuple[int, int]:
    return total.separate_run_id, total.run_id


def _list_changes(total: FusionTotal) -> Iterator[Change]:
    """Yield each quantity of the run with separate operators and of the fused one."""
    columns = {
        "energy": ("energy_j", "J"),
        "latency": ("latency_s", "s"),
        "edp": ("edp_js", "Js"),
        "kernels": ("kernel_count", ""),
        "dram_bytes": ("dram_bytes", "B"),
        "moved_bytes": ("moved_bytes", "B"),
    }
    counts: Mapping[str, Value] = {"subgraphs": total.subgraph_count, "fused_subgraphs": total.fused_subgraph_count}
    for metric, (column, unit) in columns.items():
        yield Change(
            runs=_runs(total),
            metric=metric,
            before=Quantity(float(getattr(total, f"separate_{column}")), unit),
            after=Quantity(float(getattr(total, column)), unit),
            cause="fusion",
            values=counts if metric == "kernels" else {},
        )


def _divide(row: FusionPattern, every: Sequence[FusionPattern], total: FusionTotal) -> Iterator[Term]:
    """Yield the energy and the time of a pattern; those of all patterns sum to the difference of the runs."""
    quantities: Mapping[TermQuantity, tuple[str, str, str]] = {
        "energy": ("energy_j", "J", "saved_energy_fj"),
        "time": ("latency_s", "s", "saved_latency_fs"),
    }
    for quantity, (column, unit, exact) in quantities.items():
        before, after = getattr(row, f"separate_{column}"), getattr(row, column)
        saved = [getattr(one, exact) for one in every]
        moved = sum(map(abs, saved))
        yield Term(
            runs=_runs(total),
            level="pattern",
            quantity=quantity,
            name=row.fusion_pattern,
            amounts=(Quantity(before, unit), Quantity(after, unit)),
            difference=Quantity(after - before, unit),
            exact=-getattr(row, exact),
            share=math.copysign(1.0, sum(saved)) * getattr(row, exact) / moved if moved else None,
            total=row.subgraph_count,
        )


def find_costs(subgraphs: Iterable[FusionSubgraph], total: FusionTotal) -> list[Change]:
    """Return the fused subgraphs in which fusion costs energy or time, as changes of both, grouped by cause."""
    losses = [row for row in subgraphs if _is_fused(row) and min(row.saved_energy_fj, row.saved_latency_fs) < 0]
    return list(_group(((_find_cost(row, total), row) for row in losses), FUSED, total))


def find_unfused(subgraphs: Iterable[FusionSubgraph], total: FusionTotal) -> list[Change]:
    """Return the subgraphs that are one kernel even without fusion and change, as changes of energy and time.

    They are grouped by cause; groups with a small share of the run are omitted.
    """
    changed = [
        row
        for row in subgraphs
        if row.kernel_count and not _is_fused(row) and (row.saved_energy_fj or row.saved_latency_fs)
    ]
    return list(_group(((_find_change(row, total), row) for row in changed), UNFUSED, total))


def _is_fused(row: FusionSubgraph) -> bool:
    return 0 < row.kernel_count < row.separate_kernel_count


def _find_cost(row: FusionSubgraph, total: FusionTotal) -> str:
    """Return why a fused kernel costs more than separate ones."""
    if row.pass_bytes > row.separate_pass_bytes:
        return "passed"
    if total.clock_fraction < total.separate_clock_fraction:
        return "capped"
    return "streamed" if row.saved_dram_bytes < 0 else "busier"


def _find_change(row: FusionSubgraph, total: FusionTotal) -> str:
    """Return why a subgraph changes that is one kernel either way."""
    if RUNTIME[total.separate_runtime].launches_each:
        return "launched"
    if row.separate_pass_bytes > row.pass_bytes:
        return "merged"
    if row.saved_dram_bytes > 0:
        return "cached"
    return "compiled" if total.clock_fraction == total.separate_clock_fraction else "capped"


def _group(causes: Iterable[tuple[str, FusionSubgraph]], part: str, total: FusionTotal) -> Iterator[Change]:
    """Yield the energy and the time of the subgraphs of each cause; the largest change of energy x delay is first."""
    by_cause = {cause: [row for _, row in own] for cause, own in group(causes, lambda one: one[0]).items()}
    for cause, own in sorted(by_cause.items(), key=lambda item: -abs(sum(row.saved_edp_share_js for row in item[1]))):
        if part == UNFUSED and not any(
            abs(sum(getattr(row, f"saved_{name}") for row in own)) > LEAST_CHANGE * getattr(total, f"separate_{name}")
            for name in ("energy_fj", "latency_fs")
        ):
            continue
        worst, *others = sorted(own, key=lambda row: (row.saved_edp_share_js, row.subgraph_index))
        is_alike = bool(others) and math.isclose(worst.saved_edp_share_js, others[0].saved_edp_share_js, rel_tol=ALIKE)
        named = worst.name if not others or (not is_alike and worst.saved_edp_share_js < 0.0) else None
        values: dict[str, Value] = {"part": part, "subgraphs": len(own), "worst": named}
        if cause == "capped":
            values |= {"clock": total.clock_fraction, "separate_clock": total.separate_clock_fraction}
        for metric, field, unit in (("energy", "energy_j", "J"), ("latency", "latency_s", "s")):
            saved = sum(getattr(row, f"saved_{field}") for row in own)
            before = sum(getattr(row, f"separate_{field}") for row in own)
            yield Change(
                runs=_runs(total),
                metric=metric,
                before=Quantity(before, unit),
                after=Quantity(before - saved, unit),
                cause=cause,
                values={**values, "saved": Quantity(saved, unit)},
            )
