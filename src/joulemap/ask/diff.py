"""Facts of two versions of a model: changes of metrics, limits on them, the subgraphs that change, and caveats."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

import attrs

from joulemap.ask.fact import Caveat, Change, Facts, Limit, Quantity, Refusal, Term
from joulemap.ask.finding import Finding
from joulemap.ask.rule import list_findings, weigh_findings
from joulemap.ask.scope import Scope
from joulemap.generated.diff import VersionFigure
from joulemap.generated.explain import SubgraphDifference
from joulemap.system.units import FJ_PER_J

ASKED: Final = ("energy", "latency")
"""Metrics of the decision."""

Pair: TypeAlias = tuple[int, int]
"""Runs of the earlier and of the later version on one chip."""


def find_facts(
    scope: Scope,
    rows: Sequence[VersionFigure],
    parts: Mapping[str, Sequence[SubgraphDifference]],
    allowed: Mapping[str, float],
) -> Facts:
    """Return the facts of two versions: the change of each metric on each chip, limits, the subgraph that changes most
    on each chip, hardware that runs only one version, and caveats.

    `parts` maps hardware to its subgraphs that differ, and `allowed` maps metrics to the largest relative increase that
    is not a failure.
    """
    known = [row for row in rows if row.change_fraction is not None]
    pairs = {row.hardware: (row.run_a, row.run_b) for row in known}
    ids = {run_id for pair in pairs.values() for run_id in pair}
    weighed = scope.narrow(ids)
    findings = pair_findings(list_findings(weighed, metric=ASKED[0]), pairs.values())
    return Facts(
        asked=ASKED,
        runs=scope.subjects({}),
        facts=(
            *map(_change, known),
            *(_bound(known, metric, most) for metric, most in allowed.items()),
            *(term for name, pair in pairs.items() for term in _lead(parts[name], pair)),
            *_find_lost(rows),
            *weigh_findings(list(findings), []),
        ),
    )


def is_sure(row: VersionFigure) -> bool:
    """Return whether the interval of a change excludes zero."""
    return (row.low_fraction or 0.0) > 0.0 or (row.high_fraction or 0.0) < 0.0


def is_above(row: VersionFigure, allowed: float) -> bool:
    """Return whether a change surely is an increase, and exceeds the allowed one."""
    return (row.change_fraction or 0.0) > allowed and (row.low_fraction or 0.0) > 0.0


def _change(row: VersionFigure) -> Change:
    return Change(
        runs=(row.run_a, row.run_b),
        metric=row.metric,
        before=Quantity(row.value_a or 0.0, row.unit),
        after=Quantity(row.value_b or 0.0, row.unit),
        values={
            "fraction": row.change_fraction,
            "low": row.low_fraction,
            "high": row.high_fraction,
            "is_sure": is_sure(row),
            "same_fraction": row.same_fraction if row.half_width else None,
        },
    )


def _bound(rows: Iterable[VersionFigure], metric: str, allowed: float) -> Limit:
    """Return the limit on the increase of a metric: the runs beyond it, largest increase first, or the nearest run."""
    own = sorted((row for row in rows if row.metric == metric), key=lambda row: -(row.change_fraction or 0.0))
    failing = [row for row in own if is_above(row, allowed)]
    first = next(iter(failing or own), None)
    change = None if first is None else first.change_fraction or 0.0
    miss = None
    if change is not None and (failing or change <= allowed):
        miss = math.log((1.0 + change) / (1.0 + allowed)) if failing else 0.0
    return Limit(
        runs=tuple(row.run_b for row in failing or own[:1]),
        metric=metric,
        bound=Quantity(allowed),
        value=None if change is None else Quantity(change),
        miss=miss,
        missed_count=max(0, len(failing) - 1),
    )


def _lead(rows: Sequence[SubgraphDifference], pair: Pair) -> list[Term]:
    """Return the subgraph of one chip whose energy changes most, then the one that changes most the other way."""
    first = rows[0].energy_difference_fj if rows else 0
    other = next((row for row in rows if row.energy_difference_fj * first < 0), None)
    return [_change_of(row, rows, pair) for row in (*rows[:1], *([other] if other is not None else []))]


def _change_of(row: SubgraphDifference, rows: Sequence[SubgraphDifference], pair: Pair) -> Term:
    """Return the change of a subgraph, with the number of `rows` that change alike."""
    return Term(
        runs=pair,
        level="subgraph",
        quantity="energy",
        name=row.name,
        amounts=(Quantity(row.energy_a_fj / FJ_PER_J, "J"), Quantity(row.energy_b_fj / FJ_PER_J, "J")),
        difference=Quantity(row.energy_difference_fj / FJ_PER_J, "J"),
        exact=row.energy_difference_fj,
        share=row.share_fraction,
        alike=sum(one.energy_difference_fj == row.energy_difference_fj for one in rows) - 1,
        total=len(rows),
    )


def _find_lost(rows: Iterable[VersionFigure]) -> Iterator[Caveat]:
    """Yield the hardware that runs only the earlier version, and that which runs only the later one."""
    runs: dict[bool, dict[int, None]] = {True: {}, False: {}}
    for row in rows:
        if (row.value_a is None) != (row.value_b is None):
            runs[row.value_b is None][row.run_b] = None
    for is_lost, ids in runs.items():
        if ids:
            yield Caveat(kind="lost" if is_lost else "gained", runs=tuple(ids), values={})


def pair_findings(findings: Iterable[Finding | Refusal], pairs: Iterable[Pair]) -> Iterator[Finding | Refusal]:
    """Yield findings on changes in place of those on runs: what moves both versions on a chip alike moves no change."""
    own: dict[tuple[str, int], list[Finding]] = {}
    for one in findings:
        if isinstance(one, Refusal) or one.run_id is None:
            yield one
        else:
            own.setdefault((one.kind, one.run_id), []).append(one)
    for run_a, run_b in pairs:
        for kind in dict.fromkeys(kind for kind, run_id in own if run_id in (run_a, run_b)):
            before, after = (own.get((kind, one), []) for one in (run_a, run_b))
            moved, move = (sum(one.bias or one.doubt for one in alike) for alike in (before, after))
            bias = 0.0 if move == moved else move - moved
            for one in before if abs(moved) > abs(move) else after:
                known = {"bias": bias, "doubt": 0.0} if one.bias else {"bias": 0.0, "doubt": abs(bias)}
                yield attrs.evolve(one, run_id=run_b, **known)
