"""Facts of a comparison: a row per chip, the best chip by each metric, causes of differences, and caveats."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from joulemap.ask.fact import Cause, Choice, Entry, Facts, Quantity
from joulemap.ask.rule import find_caveats
from joulemap.ask.scope import Scope, vary
from joulemap.ask.standing import find_ahead
from joulemap.domain.metric import METRIC, TIE_RATIO, MetricName, PartMetricName
from joulemap.generated.compare import Comparison, Insight, Recommendation

VALUES: Final[tuple[MetricName, ...]] = (
    "energy", "energy_per_inference", "latency", "power", "throughput", "edp", "memory", "utilization",
)  # fmt: skip
"""Metrics of an entry."""


def find_facts(
    scope: Scope,
    rows: Sequence[Comparison],
    available: Iterable[Recommendation],
    everything: Iterable[Recommendation],
    insights: Iterable[Insight],
    metric: PartMetricName,
) -> Facts:
    """Return the facts of a comparison: choices by `metric`, energy and latency among available hardware, then those of
    unavailable hardware that would win, causes, rows and caveats.
    """
    answered = [row for row in rows if row.status == "ok"]
    known = {row.label: row.run_id for row in answered}
    varied = vary(answered)
    chosen, every = tuple(available), tuple(everything)
    per = "_per_inference" if any(row.goal == "energy_per_inference" for row in chosen) else ""
    wanted = tuple(dict.fromkeys((_divide(metric, per), f"energy{per}", "latency")))
    entries = [_enter(row) for row in answered]
    values = {one.runs[0]: one.values for one in entries}
    chips = {run_id: one.hardware for run_id, one in scope.outlines.items()}
    choices = list(_choose(chosen, known, wanted, chips, values))
    runs = scope.subjects(varied)
    beyond = [
        one
        for one in _choose(every, known, wanted, chips, values)
        if not runs[one.runs[0]].is_available and one.runs[0] not in {own.runs[0] for own in choices}
    ]
    causes = list(_explain(insights, known))
    caveats = find_caveats(scope, choices, metric=choices[0].metric if choices else metric)
    return Facts(asked=wanted, runs=runs, facts=(*choices, *beyond, *causes, *entries, *caveats))


def _divide(metric: PartMetricName, per: str) -> str:
    return f"{metric}{per}" if metric in ("energy", "edp") else metric


def _enter(row: Comparison) -> Entry:
    """Return the values of a run."""
    values: dict[str, Quantity] = {}
    for name in VALUES:
        one = METRIC[name]
        value = getattr(row, one.column, None)
        if value is not None:
            width = getattr(row, one.half_width_column, None) if one.half_width_column else None
            values[name] = Quantity(float(value), one.unit, width)
    return Entry(runs=(row.run_id,), values=values)


def _choose(
    rows: Iterable[Recommendation],
    known: Mapping[str, int],
    wanted: Iterable[str],
    chips: Mapping[int, str],
    values: Mapping[int, Mapping[str, Quantity]],
) -> Iterator[Choice]:
    """Yield the best run by each wanted metric, and the next run of another chip."""
    goals: dict[str, Recommendation] = {row.goal: row for row in rows}
    for name in wanted:
        if (row := goals.get(name)) is None:
            continue
        winner, *others = row.ranked_ids
        rival = next((one for one in others if chips[one] != chips[winner]), next(iter(others), None))
        other = values[rival].get(name) if rival is not None else None
        ends = sorted((row.value, other.value)) if other is not None else []
        yield Choice(
            runs=(winner, *([rival] if rival is not None else []), *(one for one in others if one != rival)),
            metric=row.goal,
            value=Quantity(row.value, row.unit, getattr(values[winner].get(name), "half_width", None)),
            ratio=row.advantage_ratio if others[:1] == [rival] else ends[1] / ends[0] if ends and ends[0] else None,
            probability=row.probability_best,
            ahead=find_ahead(row, rival),
            tied=tuple(known[one] for one in row.rivals if one in known),
            equal=tuple(row.ranked_ids[: row.tied_count]) if row.tied_count > 1 else (),
        )


def _explain(rows: Iterable[Insight], known: Mapping[str, int]) -> Iterator[Cause]:
    """Yield the category that differs most between the lowest-energy run and each other run, nearest run first."""
    for row in rows:
        share = row.category_share_fraction
        if share is not None and row.energy_ratio >= TIE_RATIO and row.other_hardware in known:
            yield Cause(
                runs=(known[row.best_hardware], known[row.other_hardware]),
                metric="energy",
                name=row.common_category,
                difference=Quantity(row.category_difference_j, "J"),
                share=share,
            )
