"""Facts of a ranking: the best chip by a metric of deployment, what limits it and the next one, rows, and caveats."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from joulemap.ask.fact import Choice, Facts, Share
from joulemap.ask.scope import Scope
from joulemap.ask.standing import choose, find_beyond, find_own_caveats, list_choosable, list_entries, rank
from joulemap.generated.compare import Strength

MOST_LIMITED: Final = 2
"""Number of first runs whose limits are facts."""

EVEN: Final = "even"
"""Verdict on an aspect that is neither a strength nor a weakness."""

WHOLE: Final = {"utilization": "utilization", "idle": "units", "launch": "latency", "memory": "latency"}
"""Aspect of a run alone -> what its share divides."""


def find_facts(scope: Scope, metric: str, strengths: Sequence[Strength]) -> Facts:
    """Return the facts of a ranking by `metric`: the best run, an unavailable run that is better, what limits the first
    runs, a row per run, and caveats.
    """
    rows = rank(scope, metric)
    among = set(list_choosable(scope, scope.evaluated_ids))
    choice = choose([row for row in rows if row.run_id in among])
    facts = (
        choice,
        *find_beyond(scope, rows, [choice]),
        *_limit(strengths, choice),
        *list_entries(rows),
        *find_own_caveats(scope, [choice], metric),
    )
    return Facts(asked=(metric,), runs=scope.subjects({}), facts=facts)


def _limit(rows: Sequence[Strength], choice: Choice) -> Iterator[Share]:
    """Yield the aspects of the first runs alone that are strengths or weaknesses: utilization, idle units, and time in
    launches and in memory.
    """
    for run_id in choice.runs[:MOST_LIMITED]:
        for row in rows:
            if row.run_id == run_id and row.aspect in WHOLE and row.verdict != EVEN:
                name = row.unit_name if row.aspect == "idle" else row.aspect
                yield Share(runs=(run_id,), metric=WHOLE[row.aspect], name=name, share=row.value)
