"""Facts of fusion: what the fused run saves, the patterns that sum to it, causes of further changes, and caveats."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import attrs

from joulemap.ask.fact import Change, Entry, Facts, Quantity, Term, Value
from joulemap.ask.finding import Finding
from joulemap.ask.rule import list_findings, weigh_findings
from joulemap.ask.scope import Scope
from joulemap.generated.fusion import FusionPattern, FusionSubgraph, FusionTotal
from joulemap.physics.record.runtime import RUNTIME

ASKED: Final = ("energy", "latency")
"""Metrics of the decision."""

LEAST_CHANGE: Final = 5e-4
"""Share of the separate energy or time below which a group of subgraphs that are not fused is no fact."""

ALIKE: Final = 0.01
"""Relative difference of energy x delay below which two subgraphs lose equally much; neither is then the worst."""

FUSED, UNFUSED = "fused", "unfused"
"""Groups of subgraphs: with fewer kernels than separate, in which fusion costs, and with as many kernels."""


def find_facts(
    scope: Scope, total: FusionTotal, patterns: Sequence[FusionPattern], subgraphs: Sequence[FusionSubgraph]
) -> Facts:
    """Return the facts of fusion: the change of each quantity, a term per pattern, the causes of costs and of changes
    without fusion, the values of both runs, and caveats.

    Both runs are on one chip, so that what moves both in the same direction moves no saving.
    """
    findings = list_findings(scope, metric=ASKED[0])
    doubts = [attrs.evolve(one, bias=0.0) if isinstance(one, Finding) else one for one in findings]
    return Facts(
        asked=ASKED,
        runs=scope.subjects({}),
        facts=(
            *_list_changes(total),
            *(term for row in patterns for term in _divide(row, patterns, total)),
            *find_costs(subgraphs, total),
            *find_unfused(subgraphs, total),
            *_enter(scope, total),
            *weigh_findings(doubts, []),
        ),
    )


def _runs(total: FusionTotal) -> tuple[int, int]:
    return total.separate_run_id, total.run_id


def _list_changes(total: FusionTotal) -> Iterator[Change]:
    """Yield each quantity of the run with separate operators and of the fused one."""
    rows = {
        "energy": (total.separate_energy_j, total.energy_j, "J"),
        "latency": (total.separate_latency_s, total.latency_s, "s"),
        "edp": (total.separate_edp_js, total.edp_js, "Js"),
        "kernels": (float(total.separate_kernel_count), float(total.kernel_count), ""),
        "dram_bytes": (total.separate_dram_bytes, total.dram_bytes, "B"),
        "moved_bytes": (total.separate_moved_bytes, total.moved_bytes, "B"),
    }
    for metric, (before, after, unit) in rows.items():
        values: Mapping[str, Value] = {}
        if metric == "kernels":
            values = {"subgraphs": total.subgraph_count, "fused_subgraphs": total.fused_subgraph_count}
        yield Change(
            runs=_runs(total),
            metric=metric,
            before=Quantity(before, unit),
            after=Quantity(after, unit),
            cause="fusion",
            values=values,
        )


def _divide(row: FusionPattern, every: Sequence[FusionPattern], total: FusionTotal) -> Iterator[Term]:
    """Yield the energy and the time of a pattern; those of all patterns sum to the difference of the runs."""
    sides = {
        "energy": (row.separate_energy_j, row.energy_j, "J", row.saved_energy_fj, "saved_energy_fj"),
        "time": (row.separate_latency_s, row.latency_s, "s", row.saved_latency_fs, "saved_latency_fs"),
    }
    for quantity, (before, after, unit, saved, name) in sides.items():
        whole = sum(getattr(one, name) for one in every)
        moved = sum(abs(getattr(one, name)) for one in every)
        yield Term(
            runs=_runs(total),
            level="pattern",
            quantity=quantity,
            name=row.fusion_pattern,
            amounts=(Quantity(before, unit), Quantity(after, unit)),
            difference=Quantity(after - before, unit),
            exact=-saved,
            share=math.copysign(1.0, whole) * saved / moved if moved else None,
            total=row.subgraph_count,
        )


def find_costs(subgraphs: Iterable[FusionSubgraph], total: FusionTotal) -> list[Change]:
    """Return the fused subgraphs in which fusion costs energy or time, as changes of both, grouped by cause."""
    losses = [row for row in subgraphs if _is_fused(row) and min(row.saved_energy_fj, row.saved_latency_fs) < 0]
    return list(_group(losses, [_find_cost(row, total) for row in losses], FUSED, total))


def find_unfused(subgraphs: Iterable[FusionSubgraph], total: FusionTotal) -> list[Change]:
    """Return the subgraphs that are one kernel even without fusion and change, as changes of energy and time.

    They are grouped by cause; groups with a small share of the run are omitted.
    """
    changed = [
        row
        for row in subgraphs
        if row.kernel_count and not _is_fused(row) and (row.saved_energy_fj or row.saved_latency_fs)
    ]
    causes = [_find_change(row, total) for row in changed]
    large = {
        cause
        for cause in causes
        for own in ([row for row, other in zip(changed, causes, strict=True) if other == cause],)
        if abs(sum(row.saved_energy_fj for row in own)) > LEAST_CHANGE * total.separate_energy_fj
        or abs(sum(row.saved_latency_fs for row in own)) > LEAST_CHANGE * total.separate_latency_fs
    }
    kept = [(row, cause) for row, cause in zip(changed, causes, strict=True) if cause in large]
    return list(_group([row for row, _ in kept], [cause for _, cause in kept], UNFUSED, total))


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


def _group(rows: Sequence[FusionSubgraph], causes: Sequence[str], part: str, total: FusionTotal) -> Iterator[Change]:
    """Yield the energy and the time of the subgraphs of each cause; the largest change of energy x delay is first."""
    by_cause: dict[str, list[FusionSubgraph]] = {}
    for row, cause in zip(rows, causes, strict=True):
        by_cause.setdefault(cause, []).append(row)
    for cause, own in sorted(by_cause.items(), key=lambda item: -abs(sum(row.saved_edp_share_js for row in item[1]))):
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


def _enter(scope: Scope, total: FusionTotal) -> Iterator[Entry]:
    """Yield the values of the fused run, then those of the separate one if it is stored, with their intervals."""
    ends = {total.run_id: (total.energy_j, total.latency_s)}
    ends = {**ends, total.separate_run_id: (total.separate_energy_j, total.separate_latency_s), **ends}
    for run_id, (energy, latency) in ends.items():
        one = scope.outlines[run_id]
        yield Entry(
            runs=(run_id,),
            values={
                "energy": Quantity(energy, "J", one.energy_half_width),
                "latency": Quantity(latency, "s", one.latency_half_width),
            },
        )
