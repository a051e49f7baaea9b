"""Choices among runs that one metric ranks: the best run of a model, the next one, and those that are tied with it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby

from joulemap.ask.candidate import MOST_ENTRIES
from joulemap.ask.fact import Caveat, Choice, Entry, Quantity, Refusal
from joulemap.ask.rule import find_caveats
from joulemap.ask.scope import Scope
from joulemap.domain.metric import METRIC, MetricName
from joulemap.generated.compare import Recommendation, Standing
from joulemap.physics.interval.error_scale import TOLD_APART
from joulemap.store.query import fetch


def rank(scope: Scope, metric: str) -> tuple[Standing, ...]:
    """Return the evaluated runs by rank within each model. Chances are those among runs that can be chosen."""
    among = list_choosable(scope, scope.evaluated_ids)
    ids = {"run_ids": list(scope.run_ids), "among_ids": list(among) if among != scope.evaluated_ids else []}
    return fetch(scope.connection, Standing, metric=metric, **ids).rows


def list_choosable(scope: Scope, ids: Sequence[int]) -> tuple[int, ...]:
    """Return the runs that an answer can choose: those of available chips if there are any, otherwise all."""
    is_any = scope.settings.takes_all
    had = tuple(one for one in ids if is_any or scope.outlines[one].hardware not in scope.unavailable)
    return had or tuple(ids)


def choose_each(scope: Scope, rows: Sequence[Standing]) -> list[Choice]:
    """Return the best run of each model that an answer can choose, then unavailable runs that are better."""
    had = set(list_choosable(scope, scope.evaluated_ids))
    groups = [list(own) for _, own in groupby(rows, lambda row: row.workload_id)]
    choices = [
        choose([row for row in own if row.run_id in had] or own, model=own[0].model if len(groups) > 1 else "")
        for own in groups
    ]
    return [*choices, *find_beyond(scope, rows, choices)]


def choose(rows: Sequence[Standing], *, model: str = "") -> Choice:
    """Return the first of ranked runs as the best, with its lead over the second; `model` if there are several."""
    best, *others = rows
    behind = others[0].probability_better if others else None
    pairs = {row.run_id: sorted((best.value, row.value)) for row in others}
    ratios = {run_id: high / low if low else None for run_id, (low, high) in pairs.items()}
    tied = sorted((row for row in others if row.likely_best), key=lambda row: -(row.probability_best or 0.0))
    equal = [row.run_id for row in rows if row.value == best.value]
    return Choice(
        runs=tuple(row.run_id for row in rows),
        metric=best.metric,
        value=read_value(best),
        ratio=ratios[others[0].run_id] if others else None,
        probability=best.probability_best if others else None,
        ahead=None if behind is None else 1.0 - behind,
        further={
            row.run_id: (ratios[row.run_id], None if row.probability_better is None else 1.0 - row.probability_better)
            for row in others
        },
        tied=tuple(row.run_id for row in tied),
        equal=tuple(equal) if len(equal) > 1 else (),
        model=model,
    )


def choose_pair(
    metric: MetricName, values: Mapping[int, float], probability: float | None, *, is_equal: bool = False
) -> Choice:
    """Return the better of two runs by a metric, from run -> value and the probability that it is better."""
    order = sorted(values, key=lambda one: values[one], reverse=METRIC[metric].is_higher_better)
    least, most = sorted((values[order[0]], values[order[-1]]))
    is_close = most > least and probability is not None and probability < TOLD_APART
    return Choice(
        runs=tuple(order),
        metric=metric,
        value=Quantity(values[order[0]], METRIC[metric].unit),
        ratio=most / least if least else None,
        probability=probability,
        tied=tuple(order[1:]) if is_close else (),
        equal=tuple(order) if is_equal else (),
    )


def choose_best(
    row: Recommendation, metric: str, values: Mapping[int, Quantity], chips: Mapping[int, str], model: str = ""
) -> Choice:
    """Return the best of ranked runs by a metric, before the next run of another chip."""
    winner, *others = row.ranked_ids
    chances = dict(zip(others, row.ahead_probabilities, strict=False))
    pairs = {one: sorted((values[winner].value, values[one].value)) for one in others}
    further = {one: (high / low if low else None, chances.get(one)) for one, (low, high) in pairs.items()}
    choice = Choice(
        runs=tuple(row.ranked_ids),
        metric=metric,
        value=values[winner],
        ratio=further[others[0]][0] if others else None,
        probability=row.probability_best if others else None,
        ahead=chances.get(others[0]) if others else None,
        further=further,
        tied=tuple(row.rival_ids),
        equal=tuple(row.ranked_ids[: row.tied_count]) if row.tied_count > 1 else (),
        model=model,
    )
    return choice.facing(next((one for one in others if chips[one] != chips[winner]), winner))


def find_beyond(scope: Scope, rows: Sequence[Standing], choices: Iterable[Choice]) -> list[Choice]:
    """Return the best run of each model over the best of its choice, where that is another run."""
    firsts = {row.workload_id: row.run_id for row in reversed(rows)}
    workloads = {row.run_id: row.workload_id for row in rows}
    pairs = [(first, one.run) for one in choices if (first := firsts[workloads[one.run]]) not in one.runs]
    if not pairs:
        return []
    ids = [run_id for pair in pairs for run_id in pair]
    standings = fetch(scope.connection, Standing, run_ids=ids, metric=rows[0].metric)
    is_several = len(firsts) > 1
    groups = [list(group) for _, group in groupby(standings, lambda row: row.workload_id)]
    return [choose(group, model=group[0].model if is_several else "") for group in groups]


def find_own_caveats(scope: Scope, choices: Sequence[Choice], metric: str) -> list[Caveat | Refusal]:
    """Return the caveats of the first runs of each choice, and all refusals, heaviest first."""
    ids = {run_id for one in choices for run_id in one.runs[:MOST_ENTRIES]}
    return find_caveats(scope.narrow(ids) if choices else scope, choices, metric=metric)


def list_entries(rows: Iterable[Standing]) -> list[Entry]:
    """Return the value of each run."""
    return [Entry(runs=(row.run_id,), values={row.metric: read_value(row)}) for row in rows]


def read_value(row: Standing) -> Quantity:
    """Return the value of a run with its interval."""
    return Quantity(row.value, row.unit, row.half_width)
