"""Compute the Pareto front of configurations in two metrics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeVar

import attrs

from joulemap.answer.answer import Figures
from joulemap.answer.candidate import (
    BATCH_NOTE,
    CandidateAnswer,
    count_candidates,
    describe_use,
    find_chip,
    first_of_each,
    metric_columns,
    plan_candidates,
    read_usage,
    show_metric,
)
from joulemap.answer.run import limit_columns
from joulemap.answer.scope import find_scope
from joulemap.domain.default import CANDIDATES, USAGE
from joulemap.domain.doubt import TOLD_APART
from joulemap.domain.metric import METRIC, METRIC_NAMES, MetricName
from joulemap.domain.settings import Settings, Usage, check_name
from joulemap.domain.table import Table
from joulemap.plan.hold import holding_runs
from joulemap.plan.source import Source
from joulemap.present.cell import show_chance, show_doubt
from joulemap.present.document import Document, Grid, Made, Section, Shown
from joulemap.row.cost import AssumedNumber
from joulemap.row.pareto import ParetoPoint
from joulemap.store.query import fetch, start
from joulemap.system.errors import UsageError
from joulemap.system.record import frozen

SHOWN: Final[tuple[MetricName, ...]] = ("latency", "energy_per_inference", "throughput", "power", "memory")
"""Metrics shown in addition to the two of the front."""


CHANCE: Final[Shown[ParetoPoint]] = ("on the front", lambda row: show_chance(row.probability_front))
"""Column with the probability that no configuration dominates a point."""


@frozen(kw_only=True)
class ParetoAnswer(CandidateAnswer):
    """Every configuration of a model in two metrics: the front, and the configurations that it dominates."""

    x: MetricName
    y: MetricName
    rows: Table[ParetoPoint]
    """Rows with the front first."""

    def data(self) -> dict[str, Any]:
        """Return the data for machine formats, with the metrics."""
        metrics = {"x": self.x, "x_meaning": METRIC[self.x].meaning, "y": self.y, "y_meaning": METRIC[self.y].meaning}
        return {**metrics, **super().data()}

    def figures(self) -> Figures:
        """Return the figure of every configuration in both metrics with the front marked; empty without a front."""
        from joulemap.figure.figure import tell_metric

        front = self.select("front")
        if not front.rows:
            return ()
        x, y = METRIC[self.x], METRIC[self.y]
        texts = {**tell_metric(x, "x_"), **tell_metric(y, "y_"), "label": self._template}
        subject = f"{self.scope.model}: {y.meaning} over {x.meaning}"
        return (self._draw_figure("pareto", self.rows, subject, self.describe_front(), texts),)

    def document(self, *, limit: int = 10, repeated: Sequence[str] = ()) -> Document:
        """Return the document with `limit` rows of the front, including both ends, and of dominated configurations."""
        front, dominated = self.select("front"), self.select("dominated")
        projections = self.select("projection")
        money = {"cost"} & {self.x, self.y}
        use = f", {describe_use(self.assumptions, self.rows[0].pay)}" if money and self.rows.rows else ""
        return self._compose(
            f"{self.scope.model}: {METRIC[self.x].meaning} against {METRIC[self.y].meaning}{use}",
            (Section("", self._deciding(front, limit)),),
            self.rows,
            answer=self.describe_front(),
            chosen=[row.run_id for row in front],
            insights=self._insights(projections),
            sure=self._sure(front),
            details=(
                Section(f"Front ({len(front)})", self._front(front, limit)),
                Section(f"Would be on the front if available ({len(projections)})", self._front(projections, limit)),
                Section(f"Dominated ({len(dominated):,})", self._dominated(dominated, limit)),
                self._assume(self.x, self.y),
            ),
            notes=self._notes(),
            steps=self._steps(front, repeated),
        )

    def describe_front(self) -> str:
        """Return the size of the front, and its two ends."""
        front = self.select("front")
        if not front.rows:
            return f"no configuration has both {METRIC[self.x].meaning} and {METRIC[self.y].meaning}"
        had = "" if any(not row.is_available for row in front) else " that can be bought or rented"
        among = " of available hardware" if had else ""
        told = f"{len(front)} of {count_candidates(len(self.rows))} are on the Pareto front{among}"
        if len(front) == 1:
            return f"one configuration beats every other{had}: {self.name(front[0])}"
        ends = [
            f"{self.name(row)} ({show_metric(self.x, row.x_value)}, {show_metric(self.y, row.y_value)})"
            for row in (front[0], front[-1])
        ]
        return f"{told}: from {ends[0]} to {ends[1]}"

    def _deciding(self, front: Table[ParetoPoint], limit: int) -> tuple[Grid, ...]:
        """Return the front, sampled evenly from end to end if it is long."""
        kept = attrs.evolve(front, rows=spread_evenly(front.rows, limit))
        drawn = self._draw(kept, (*self._placed(), CHANCE), limit, self._kept, ranked=self._kept[:2])
        return tuple(one.out_of(len(front), len(kept), "configurations between them") for one in drawn)

    def _insights(self, projections: Table[ParetoPoint]) -> list[str]:
        """Return sentences on configurations left out for lack of a price, and on unavailable ones."""
        lines = self._tell_left_out("unplaced")
        if projections.rows:
            names = ", ".join(self.scope.mark(find_chip(row)) for row in first_of_each(projections))
            lines.append(
                f"if they could be bought, {len(projections)} more would be on the front: {names} (--all places them)"
            )
        return lines

    def _sure(self, front: Table[ParetoPoint]) -> str:
        """Return how many of the front are likely to stay on it, and how many others may be on it."""
        known = [row for row in self.rows if row.probability_front is not None]
        if not known:
            return ""
        if len(front) == 1:
            return f"{show_chance(front[0].probability_front)} that nothing beats it"
        stays = sum(1 for row in front if (row.probability_front or 0.0) > TOLD_APART)
        comes = sum(1 for row in known if row.status == "dominated" and (row.probability_front or 0.0) >= EVEN)
        verb = "are" if stays > 1 else "is"
        count = f"{stays or 'none'} of {len(front)} {verb}"
        sure = f"{count} on the front with more than {show_chance(TOLD_APART)} confidence"
        return f"{sure}; {comes} dominated ones are on it with 50 % or more" if comes else sure

    def _steps(self, front: Table[ParetoPoint], repeated: Sequence[str]) -> list[list[str]]:
        """Return the next commands: the comparison of both ends, and the analysis of each."""
        ends = [*front.rows[:1], *front.rows[1:][-1:]]
        steps = self._analyze_each(ends, repeated)
        return [self._compare_both(ends[0], ends[1], repeated), *steps] if len(ends) > 1 else steps

    def _placed(self) -> tuple[Shown[ParetoPoint], ...]:
        return (
            (METRIC[self.x].label, Made(METRIC[self.x].column, lambda row: show_metric(self.x, row.x_value))),
            ("80 %", lambda row: show_doubt(row.x_half_width)),
            (METRIC[self.y].label, Made(METRIC[self.y].column, lambda row: show_metric(self.y, row.y_value))),
            ("80 % of it", lambda row: show_doubt(row.y_half_width)),
        )

    def _front(self, front: Table[ParetoPoint], limit: int) -> tuple[Grid, ...]:
        more = (*metric_columns(SHOWN, (self.x, self.y)), *limit_columns(front.rows[:limit]))
        return self._draw(front, (*self._placed(), CHANCE, *more), limit, self._kept, ranked=self._kept[:2])

    def _dominated(self, dominated: Table[ParetoPoint], limit: int) -> tuple[Grid, ...]:
        columns: tuple[Shown[ParetoPoint], ...] = (
            *self._placed(),
            CHANCE,
            ("dominated by", "dominated_by"),
            (f"better {METRIC[self.x].label}", "x_ratio"),
            (f"better {METRIC[self.y].label}", "y_ratio"),
            ("of the front", "dominator_count"),
        )
        return self._draw(dominated, columns, limit, (*self._kept, "dominated by"), ranked=self._kept[:2])

    @property
    def _kept(self) -> tuple[str, ...]:
        return METRIC[self.x].label, METRIC[self.y].label, CHANCE[0]

    def _notes(self) -> list[str]:
        projections = [row for row in self.rows if not row.is_available and row.status in ("projection", "dominated")]
        placed = any(not row.is_available for row in self.select("front"))
        return [
            "dominated: another configuration is at least as good in both and better in one",
            "on the front: share of random draws within the errors in which no other configuration is better in both",
            BATCH_NOTE,
            *self._tell_unknown(self.select("unplaced").rows, "without a place"),
            *([] if placed else self._tell_unranked(projections)),
            *self._describe(),
        ]


One = TypeVar("One")

EVEN: Final = 0.5
"""Probability above which an event is as likely as not."""


def spread_evenly(rows: Sequence[One], count: int) -> tuple[One, ...]:
    """Return `count` rows at even distances, including the first and the last; all if there are no more."""
    if len(rows) <= count or count < 2:
        return tuple(rows[:count])
    return tuple(rows[round(place * (len(rows) - 1) / (count - 1))] for place in range(count))


def pareto(
    source: Source,
    model: str,
    settings: Settings = CANDIDATES,
    *,
    x: MetricName = "latency",
    y: MetricName = "energy_per_inference",
    usage: Usage = USAGE,
) -> ParetoAnswer:
    """Compute the Pareto front of configurations in two metrics, and the configurations that it dominates.

    Combines hardware (the whole catalogue by default), power modes, precisions, runtimes and batch sizes (1, 8 and 32
    by default). Runs that are not stored are evaluated. Raises as `compare`.
    """
    for name in (x, y):
        check_name("metric", name, METRIC_NAMES)
    if x == y:
        raise UsageError(f"both metrics are {x}: a front needs two")
    used, pay = read_usage(usage)
    with holding_runs(source, plan_candidates(model, settings), needs_catalogue=True, has_ledger=False) as runs:
        connection = runs.connection
        ids = list(runs.ids)
        rows = start(connection, ParetoPoint, run_ids=ids, x=x, y=y, **used, **pay, takes_all=settings.takes_all)
        scope, assumptions = find_scope(runs), fetch(connection, AssumedNumber, **used)
        answer = ParetoAnswer(scope=scope, x=x, y=y, rows=rows(), assumptions=assumptions)
    scope.check_evaluated()
    return answer
