"""Contests: how many parts of a model, or models, each chip is best at, the best chip in all, and caveats."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import groupby
from typing import Any, Final, Protocol, TypeVar, get_args

from joulemap.ask.answer import RunAnswer, fetch_tables
from joulemap.ask.candidate import Candidate
from joulemap.ask.fact import Change, Facts, Quantity, Win, WinLevel
from joulemap.ask.scope import Scope, opening_compared
from joulemap.ask.standing import choose_each, find_own_caveats, list_choosable, list_entries, rank
from joulemap.domain.default import SETTINGS
from joulemap.domain.metric import PART_METRICS, PartMetricName
from joulemap.domain.settings import ModelDivision, Settings, check_name
from joulemap.domain.table import Table
from joulemap.generated.compare import Contender, ModelFigure, Standing
from joulemap.plan.source import Source
from joulemap.system.record import frozen

MODEL: Final = "model"
"""Level of wins by model, and cause of a difference between two runs of one chip."""

TRAFFIC: Final = "memory"
"""Metric of a part, its off-chip bytes, that is none of a whole run."""


class Entrant(Candidate, Protocol):
    """Row of a contest: the value of one chip for one part or model."""

    @property
    def value(self) -> float | None:
        """Value of the metric; None without a result."""


Row = TypeVar("Row", bound=Entrant)


@frozen(kw_only=True)
class ContestAnswer(RunAnswer):
    """Best hardware for each subgraph or operator by a metric, and the wins of each chip."""

    by: ModelDivision
    metric: PartMetricName
    rows: Table[Contender]
    """Value of each subgraph or operator on each chip, lowest value first."""
    facts: Facts
    """Wins of each chip, the best chip in all, and caveats, from which all sentences are made."""

    def data(self) -> dict[str, Any]:
        """Return the data for machine formats."""
        return {**super().data(), "level": self.by, "metric": self.metric}

    @property
    def workloads(self) -> list[Table[Contender]]:
        """Rows of each model."""
        return [self.rows.with_rows(tuple(own)) for _, own in groupby(self.rows, lambda row: row.workload_id)]


@frozen(kw_only=True)
class ModelsAnswer(RunAnswer):
    """Comparison of several models on one or several chips."""

    about = ("metric",)

    metric: PartMetricName
    rows: Table[ModelFigure]
    """Value of each model on each chip, best chip of a model first."""
    facts: Facts
    """Best chip of each model, wins of each chip, models of each chip, and caveats, from which all sentences are made.
    """


def find_parts(scope: Scope, rows: Sequence[Contender], metric: str, level: ModelDivision) -> Facts:
    """Return the facts of a contest by parts: wins of each chip over all models, the best run of each model
    in all, an unavailable run that is better, and caveats.
    """
    had = set(list_choosable(scope, scope.evaluated_ids))
    workloads = [list(group) for _, group in groupby(rows, lambda row: row.workload_id)]
    contests = [list(part) for some in workloads for _, part in groupby(some, lambda row: row.part_index)]
    is_choice = len({row.hardware for row in rows}) > 1
    wins = _count(contests, had, metric, level) if is_choice else []
    standings = rank(scope, metric) if metric != TRAFFIC else ()
    choices = choose_each(scope, standings)
    caveats = find_own_caveats(scope, choices, metric)
    return Facts(asked=(metric,), runs=scope.subjects({}), facts=(*choices, *wins, *caveats))


def find_models(scope: Scope, rows: Sequence[ModelFigure], metric: str) -> Facts:
    """Return the facts of a comparison of models: the best run of each model, the models that each chip is best for,
    the model with the least and the one with the most on each chip, rows, and caveats.
    """
    had = set(list_choosable(scope, scope.evaluated_ids))
    contests = [list(group) for _, group in groupby(rows, lambda row: row.workload_id)]
    standings = rank(scope, metric)
    choices = choose_each(scope, standings)
    is_choice = len({row.hardware for row in standings}) > 1
    wins = _count(contests, had, metric, MODEL) if is_choice else []
    caveats = find_own_caveats(scope, choices, metric)
    facts = (*choices, *wins, *_spread(standings), *list_entries(standings), *caveats)
    return Facts(asked=(metric,), runs=scope.subjects({}), facts=facts)


def _spread(standings: Sequence[Standing]) -> Iterator[Change]:
    """Yield the model with the lowest and the one with the highest value on each chip, if these differ."""
    for hardware in dict.fromkeys(row.hardware for row in standings):
        own = sorted((row for row in standings if row.hardware == hardware), key=lambda row: row.value)
        low, high = own[0], own[-1]
        if low.value < high.value:
            yield Change(
                runs=(low.run_id, high.run_id),
                metric=low.metric,
                before=Quantity(low.value, low.unit, low.half_width),
                after=Quantity(high.value, high.unit, high.half_width),
                cause=MODEL,
                values={"least": low.model, "most": high.model},
            )


def _count(
    contests: Sequence[Sequence[Row]],
    had: Collection[int],
    metric: str,
    level: WinLevel,
) -> list[Win]:
    """Return the wins of each chip, most first; `had` are the runs that can be chosen."""
    won, tied = Counter[str](), Counter[str]()
    kinds: dict[str, Counter[str]] = {}
    runs: dict[str, dict[int, None]] = {}
    for contest in contests:
        answered = [row for row in contest if row.value is not None]
        first = [row for row in answered if row.run_id in had]
        best = [row for row in first if row.value == first[0].value]
        alone = best if len(best) == 1 else []
        alone += [row for row in answered[:1] if row not in first and row.value not in {one.value for one in best}]
        for row in (*best, *alone):
            runs.setdefault(row.hardware, {})[row.run_id] = None
        won.update(row.hardware for row in alone)
        tied.update(row.hardware for row in best if row not in alone)
        for row in alone:
            kinds.setdefault(row.hardware, Counter())[_read_kind(row)] += 1
    every = Counter(_read_kind(row) for contest in contests for row in contest[:1])
    wins = [
        Win(
            runs=tuple(runs[name]),
            metric=metric,
            level=level,
            count=won[name],
            total=len(contests),
            tied=tied[name],
            kinds=tuple((kind, count, every[kind]) for kind, count in kinds.get(name, Counter()).most_common() if kind),
        )
        for name in runs
    ]
    return sorted(wins, key=lambda one: (-one.count, -one.tied))


def _read_kind(row: Entrant) -> str:
    """Return the kind of operator of a part; empty for a model."""
    return row.kind if isinstance(row, Contender) else ""


def compare_parts(
    source: Source,
    models: Sequence[str],
    settings: Settings = SETTINGS,
    *,
    by: ModelDivision = "subgraph",
    metric: PartMetricName = "energy",
) -> ContestAnswer:
    """Compare each subgraph or operator of the models on each chip by a metric.

    The EDP of a part is its share of the run's EDP. The memory of a part is its off-chip traffic in bytes. Raises like
    `compare`.
    """
    check_name("level", by, get_args(ModelDivision))
    check_name("metric", metric, PART_METRICS)
    with opening_compared(source, models, settings) as scope:
        given: dict[str, Any] = {"run_ids": list(scope.run_ids), "level": by, "metric": metric}
        tables = fetch_tables(scope.connection, ContestAnswer, **given)
        facts = find_parts(scope, tables["rows"].rows, metric, by)
        return ContestAnswer(scope=scope, by=by, metric=metric, facts=facts, **tables)


def compare_models(
    source: Source, models: Sequence[str], settings: Settings = SETTINGS, *, metric: PartMetricName = "energy"
) -> ModelsAnswer:
    """Compare several models on each chip by a metric: rank the chips for each model, and the models on each chip.

    Raises like `compare`.
    """
    check_name("metric", metric, PART_METRICS)
    with opening_compared(source, models, settings) as scope:
        tables = fetch_tables(scope.connection, ModelsAnswer, run_ids=list(scope.run_ids), metric=metric)
        return ModelsAnswer(scope=scope, metric=metric, **tables, facts=find_models(scope, tables["rows"].rows, metric))
