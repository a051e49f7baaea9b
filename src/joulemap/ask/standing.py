"""Choices among runs that one metric ranks: the best run of a model, the next one, and those that are tied with it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from joulemap.ask.candidate import MOST_ENTRIES
from joulemap.ask.decision import choose, list_sold
from joulemap.ask.fact import Caveat, Choice, Entry, Quantity, Refusal
from joulemap.ask.rule import find_caveats
from joulemap.ask.scope import Scope
from joulemap.domain.table import group
from joulemap.generated.compare import Recommendation, Standing
from joulemap.store.query import fetch


def rank(scope: Scope, metric: str) -> tuple[Standing, ...]:
    """Return the evaluated runs by rank within each model. Chances are those among runs that can be chosen."""
    among = list_choosable(scope, scope.evaluated_ids)
    ids = {"run_ids": list(scope.run_ids), "among_ids": list(among) if among != scope.evaluated_ids else []}
    return fetch(scope.connection, Standing, metric=metric, **ids).rows


def list_choosable(scope: Scope, ids: Sequence[int]) -> tuple[int, ...]:
    """Return the runs that an answer can choose: those of available chips if there are any, otherwise all."""
    is_any = scope.settings.takes_all
    return tuple(list_sold(ids, lambda one: is_any or scope.outlines[one].hardware not in scope.unavailable))


def choose_each(scope: Scope, rows: Sequence[Standing]) -> list[Choice]:
    """Return the best run of each model that an answer can choose, then unavailable runs that are better."""
    had = set(list_choosable(scope, scope.evaluated_ids))
    groups = [list(own) for own in group(rows, lambda row: row.workload_id).values()]
    choices = [choose_first(list_sold(own, lambda row: row.run_id in had), len(groups)) for own in groups]
    beyond = [(own[0], one.run) for own, one in zip(groups, choices, strict=True) if own[0].run_id not in one.runs]
    pairs = [run_id for row, best in beyond for run_id in (row.run_id, best)]
    against = fetch(scope.connection, Standing, run_ids=pairs, metric=rows[0].metric) if pairs else ()
    better = group(against, lambda row: row.workload_id).values()
    return [*choices, *(choose_first(list(own), len(groups)) for own in better)]


def choose_first(rows: Sequence[Standing], count: int = 1) -> Choice:
    """Return the first of ranked runs as the best; its model is named if `count` is above 1."""
    behind = {row.run_id: row.probability_better for row in rows}

    def beats(_: int, other: int) -> float | None:
        better = behind[other]
        return None if better is None else 1.0 - better

    values = {row.run_id: read_value(row) for row in rows}
    best = rows[0]
    return choose(best.metric, values, beats, chance=best.probability_best, model=best.model if count > 1 else "")


def choose_best(
    row: Recommendation, metric: str, values: Mapping[int, Quantity], chips: Mapping[int, str], model: str = ""
) -> Choice:
    """Return the best of ranked runs by a metric, before the next run of another chip."""
    winner, *others = row.ranked_ids
    chances = dict(zip(others, row.ahead_probabilities, strict=False))
    ranked = {one: values[one] for one in row.ranked_ids}
    choice = choose(metric, ranked, lambda _, other: chances.get(other), chance=row.probability_best, model=model)
    return choice.facing(next((one for one in others if chips[one] != chips[winner]), winner))


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
