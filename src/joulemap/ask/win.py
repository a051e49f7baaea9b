"""Facts of contests: how many parts of a model, or models, each chip is best at, the best chip in all, and caveats."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import groupby
from typing import Final, Protocol, TypeVar

from joulemap.ask.fact import Change, Choice, Facts, Quantity, Win
from joulemap.ask.scope import Scope
from joulemap.ask.standing import choose, find_beyond, find_own_caveats, list_choosable, list_entries, rank
from joulemap.generated.compare import Contender, ModelFigure, Standing

MODEL: Final = "model"
"""Level of wins by model, and cause of a difference between two runs of one chip."""

TRAFFIC: Final = "memory"
"""Metric of a part, its off-chip bytes, that is none of a whole run."""


class Entrant(Protocol):
    """Row of a contest: the value of one chip for one part or model."""

    @property
    def hardware(self) -> str:
        """Hardware at its power mode."""

    @property
    def run_id(self) -> int:
        """Id of the run."""

    @property
    def value(self) -> float | None:
        """Value of the metric; None without a result."""


Row = TypeVar("Row", bound=Entrant)


def find_parts(scope: Scope, rows: Sequence[Contender], metric: str, level: str) -> Facts:
    """Return the facts of a contest by parts: wins of each chip over all models and for each, the best run of each
    model in all, an unavailable run that is better, and caveats.
    """
    had = set(list_choosable(scope, scope.evaluated_ids))
    workloads = [list(group) for _, group in groupby(rows, lambda row: row.workload_id)]
    contests = [[list(part) for _, part in groupby(some, lambda row: row.part_index)] for some in workloads]
    is_choice = len({row.hardware for row in rows}) > 1
    wins = _count([part for parts in contests for part in parts], had, metric, level) if is_choice else []
    own = [
        win
        for parts in (contests if is_choice and len(workloads) > 1 else ())
        for win in _count(parts, had, metric, level, model=parts[0][0].model)
    ]
    standings = rank(scope, metric) if metric != TRAFFIC else ()
    choices = _choose(scope, standings, had)
    caveats = find_own_caveats(scope, choices, metric)
    return Facts(asked=(metric,), runs=scope.subjects({}), facts=(*choices, *wins, *own, *caveats))


def find_models(scope: Scope, rows: Sequence[ModelFigure], metric: str) -> Facts:
    """Return the facts of a comparison of models: the best run of each model, the models that each chip is best for,
    the model with the least and the one with the most on each chip, rows, and caveats.
    """
    had = set(list_choosable(scope, scope.evaluated_ids))
    contests = [list(group) for _, group in groupby(rows, lambda row: row.workload_id)]
    standings = rank(scope, metric)
    choices = _choose(scope, standings, had)
    is_choice = len({row.hardware for row in standings}) > 1
    wins = _count(contests, had, metric, MODEL) if is_choice else []
    caveats = find_own_caveats(scope, choices, metric)
    facts = (*choices, *wins, *_spread(standings), *list_entries(standings), *caveats)
    return Facts(asked=(metric,), runs=scope.subjects({}), facts=facts)


def _choose(scope: Scope, standings: Sequence[Standing], had: Collection[int]) -> list[Choice]:
    """Return the best run of each model, then unavailable runs that are better."""
    groups = [list(rows) for _, rows in groupby(standings, lambda row: row.workload_id)]
    choices = [
        choose([row for row in rows if row.run_id in had] or rows, model=rows[0].model if len(groups) > 1 else "")
        for rows in groups
    ]
    return [*choices, *find_beyond(scope, standings, choices)]


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
    contests: Sequence[Sequence[Row]], had: Collection[int], metric: str, level: str, model: str = ""
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
            model=model,
        )
        for name in runs
    ]
    return sorted(wins, key=lambda one: (-one.count, -one.tied))


def _read_kind(row: Entrant) -> str:
    """Return the kind of operator of a part; empty for a model."""
    return row.kind if isinstance(row, Contender) else ""
