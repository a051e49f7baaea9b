"""The winner of each subgraph or operator, and what each hardware is good at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, get_args

import attrs

from joulemap.answer.answer import RunAnswer
from joulemap.answer.compare.summary import SHOWN
from joulemap.answer.scope import Scope, holding_scope, join_words
from joulemap.domain.default import SETTINGS
from joulemap.domain.metric import METRIC, PART_METRICS, PartMetricName
from joulemap.domain.settings import ModelDivision, check_name
from joulemap.domain.table import Table
from joulemap.plan.run import plan_runs
from joulemap.present.cell import show_quantity
from joulemap.present.document import Document, Grid, Section, Text, say_rest
from joulemap.row.compare import Contender, Victory
from joulemap.store.query import fetch, start
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.domain.settings import Settings
    from joulemap.figure.figure import Figure
    from joulemap.plan.source import Source


SHOWN_WINNERS: Final = 4
"""Hardware that a figure tells in words."""


@frozen(kw_only=True)
class ContestAnswer(RunAnswer):
    """Who wins each subgraph or operator of models by a metric, and what each hardware wins."""

    by: ModelDivision
    metric: PartMetricName
    rows: Table[Contender]
    """Subgraph by subgraph or operator by operator, the least first."""
    victories: Table[Victory]
    """Hardware that wins most first."""

    def data(self) -> dict[str, Any]:
        """Return what programs get, with a sentence for each hardware that wins something."""
        return {**super().data(), "level": self.by, "metric": self.metric, "summary": self.sentences()}

    def document(self, *, limit: int = SHOWN, repeated: Sequence[str] = ()) -> Document:
        """Return it with `limit` rows of each model's table; programs get all."""
        workloads = [list(rows) for _, rows in groupby(self.rows, lambda row: row.workload_id)]
        sections = [
            Section(
                rows[0].model if len(workloads) > 1 else f"Each {self.by} on each hardware",
                (*lay_out(rows, self.scope, self.by, limit), *self.scope.say_left_out()),
                is_tight=True,
            )
            for rows in workloads
        ]
        winning = {self.scope.mark(row.hardware) for row in self.victories if row.hardware_won_count}
        start = self.say_best().startswith(self.sentences()[0])
        told = [line for line in self.sentences()[start:] if any(f"{name}: " in line for name in winning)]
        return self._compose(
            f"{self.scope.title}: {METRIC[self.metric].label} of each {self.by}",
            sections,
            self.rows,
            answer=self.say_best(),
            insights=told,
            sure=self.scope.say_spread(),
            notes=self.scope.describe_refusals() + self.scope.describe(),
            steps=self._steps(repeated),
        )

    def say_best(self) -> str:
        """Return who has the least of how many parts: of what can be had, then what would have if it could."""
        contests = [list(rows) for _, rows in groupby(self.rows, lambda row: (row.workload_id, row.part_index))]
        first = self.sentences()[0]
        if all(contest[0].is_available for contest in contests):
            return f"{first}."
        had = Counter(_name_available(contest, self.scope) for contest in contests)
        beyond = Counter(self.scope.mark(contest[0].hardware) for contest in contests if not contest[0].is_available)
        told, projected = (
            join_words([f"{name} in {count}" for name, count in counts.most_common()]) for counts in (had, beyond)
        )
        least = f"Least {METRIC[self.metric].label} of {len(contests)} {self.by}s, of what can be had"
        return f"{least}: {told}. If it could be had: {projected}."

    def sentences(self) -> list[str]:
        """Return a sentence for each hardware that wins something, made of the kinds that it wins."""
        several = len({row.workload_id for row in self.victories}) > 1
        lines = []
        for (_, hardware), group in groupby(self.victories, lambda row: (row.workload_id, row.hardware)):
            kinds = list(group)
            one = kinds[0]
            if not one.hardware_won_count and not one.hardware_tied_count:
                continue
            text = f"{one.model}: " if several else ""
            text += f"{self.scope.mark(hardware)}: {one.hardware_won_count} of {one.all_part_count} {self.by}s"
            text += "".join(f", {phrase}" for phrase in _phrases(kinds))
            if one.hardware_tied_count:
                text += f"; shares the least of {one.hardware_tied_count}"
            lines.append(text)
        return lines

    def figures(self) -> tuple[Figure, ...]:
        """Return for each model its subgraphs or operators against the hardware, with the winner of each."""
        from joulemap.figure.figure import make_figure

        ids = dict.fromkeys(row.workload_id for row in self.rows)
        texts = {"quantity": METRIC[self.metric].label, "part": self.by, "of": " of {model}" if len(ids) > 1 else ""}
        drawn = []
        for workload_id in ids:
            rows = tuple(row for row in self.rows if row.workload_id == workload_id)
            model = f"{rows[0].model}, " if len(ids) > 1 else ""
            subject = f"{model}{self.scope.bounded(self.scope.title)}: {METRIC[self.metric].label} of each {self.by}"
            told = [line for line in self.sentences() if not model or line.startswith(f"{rows[0].model}: ")]
            facts = "; ".join(told[:SHOWN_WINNERS])
            drawn.append(make_figure("heatmap", attrs.evolve(self.rows, rows=rows), subject, f"{facts}.", texts))
        return tuple(drawn)

    def _steps(self, repeated: Sequence[str]) -> list[list[str]]:
        model = self.scope.model
        hardware = [self.scope.spell(name) for name in dict.fromkeys(row.hardware for row in self.victories)]
        steps = []
        if len(hardware) > 1:
            steps.append(["explain", model, hardware[-1], hardware[0], "--metric", self.metric, *repeated])
        if hardware and self.by == "subgraph":
            steps.append(["analyze", model, hardware[0], "--level", "subgraph", *repeated])
        return steps


def lay_out(rows: Iterable[Contender], scope: Scope, by: ModelDivision, limit: int) -> tuple[Grid | Text, ...]:
    """Return a row for each of the largest subgraphs or operators of one workload, with a column per hardware."""
    listed = list(rows)
    hardware = list(dict.fromkeys(row.hardware for row in sorted(listed, key=lambda row: row.run_id)))
    contests = [list(group) for _, group in groupby(listed, lambda row: row.part_index)]
    has_beside = any(not contest[0].is_available for contest in contests)
    sums: dict[int, float] = {}
    for row in listed:
        sums[row.run_id] = sums.get(row.run_id, 0.0) + row.value
    weights = [sum(row.value / (sums[row.run_id] or 1.0) for row in contest) for contest in contests]
    largest = sorted(sorted(range(len(contests)), key=lambda place: -weights[place])[:limit])
    cells, best = [], set()
    for place, contest in enumerate(contests[index] for index in largest):
        first = contest[0]
        best |= {(place, 2 + hardware.index(row.hardware)) for row in contest if row.value == first.value}
        values = {row.hardware: show_quantity(row.value, row.unit) for row in contest}
        is_tied = first.tied_count > 1
        ratio = contest[1].ratio if len(contest) > 1 and not is_tied else None
        cells.append(
            (
                first.name,
                first.fusion_pattern if by == "subgraph" else first.kind,
                *(values.get(name, "") for name in hardware),
                f"{first.tied_count} alike" if is_tied else scope.mark(first.hardware),
                "" if ratio is None else f"{ratio:.3g}x",
                *((_name_available(contest, scope),) if has_beside else ()),
            )
        )
    names = tuple(map(scope.mark, hardware))
    wins = Counter(scope.mark(contest[0].hardware) for contest in contests)
    beside = ("best available",) if has_beside else ()
    headings = (by, "pattern" if by == "subgraph" else "kind", *names, "winner", "next", *beside)
    return (
        Grid(
            headings=headings,
            rows=tuple(cells),
            keep=(*sorted(names, key=lambda name: -wins[name]), "winner", "next", *beside),
            best=frozenset(best if len(hardware) > 1 else ()),
        ),
        *say_rest(len(contests), limit, f"{by}s"),
    )


def _name_available(contest: Iterable[Contender], scope: Scope) -> str:
    """Return the best hardware of a part that can be bought or rented."""
    return next((scope.mark(row.hardware) for row in contest if row.is_available), "none")


def _phrases(kinds: Sequence[Victory]) -> list[str]:
    phrases = []
    for verdict, word in (("all", "wins every"), ("most", "dominates"), ("some", "wins some")):
        won = [f"{row.kind} ({row.won_count} of {row.part_count})" for row in kinds if row.verdict == verdict]
        if won:
            phrases.append(f"{word} {', '.join(won)}")
    return phrases


def compare_parts(
    source: Source,
    models: Sequence[str],
    settings: Settings = SETTINGS,
    *,
    by: ModelDivision = "subgraph",
    metric: PartMetricName = "energy",
) -> ContestAnswer:
    """Return each subgraph or operator of the models on each hardware, and who wins it by a metric.

    Its edp is the share that adds up to the run's, its memory the bytes moved off chip. Raises as `compare`.
    """
    check_name("level", by, get_args(ModelDivision))
    check_name("metric", metric, PART_METRICS)
    settings.check_single("compare")
    with holding_scope(source, plan_runs(models, settings)) as (scope, connection, ids):
        rows = start(connection, Contender, run_ids=ids, level=by, metric=metric)
        victories = fetch(connection, Victory, run_ids=ids, level=by, metric=metric)
        return ContestAnswer(scope=scope, by=by, metric=metric, victories=victories, rows=rows())
