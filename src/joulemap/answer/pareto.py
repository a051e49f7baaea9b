"""Compute the Pareto front of configurations in two metrics."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

from joulemap.answer.answer import Figures
from joulemap.answer.candidate import (
    BATCH_NOTE,
    CONFIGURATIONS,
    CandidateAnswer,
    describe_use,
    find_chip,
    first_of_each,
    list_metrics,
    plan_candidates,
    read_usage,
    show_metric,
)
from joulemap.answer.scope import find_scope
from joulemap.domain.default import CANDIDATES, USAGE, price_at_wall
from joulemap.domain.doubt import TOLD_APART
from joulemap.domain.metric import METRIC, METRIC_NAMES, MetricName
from joulemap.domain.settings import Settings, Usage, check_name
from joulemap.domain.table import Table
from joulemap.plan.hold import holding_runs
from joulemap.plan.source import Source
from joulemap.present.cell import show_interval
from joulemap.present.document import Document, FieldCell, Grid, Section
from joulemap.present.template import Template
from joulemap.row.cost import AssumedNumber
from joulemap.row.pareto import ParetoPoint
from joulemap.store.query import fetch, start
from joulemap.system.errors import UsageError
from joulemap.system.record import frozen

TITLE: Final = Template("{model}: {x.meaning} against {y.meaning}[, {use}]")
DRAWN_TITLE: Final = Template("{model}: {y.meaning} over {x.meaning}")

FRONT: Final = Template("{count} of {all} are on the Pareto front{among}: from {first} to {last}.")
END: Final = Template("{name} at {x} and {y}")
ONE: Final = Template("{name} beats every other configuration{among}, with {x} and {y}.")
ALONE: Final = Template("{name} is the only configuration{among}: {x} and {y}.")
AMONG: Final = " of available chips"
NOTHING: Final = Template("No configuration has a known {x.meaning} and a known {y.meaning}.")

PLACED: Final = Template("*{x.label} x_value | *{y.label} y_value | *front confidence probability_front | ")
LIMITED: Final = "throughput limit throughput_limit?"
DOMINATED_BY: Final = Template(
    "*dominated by dominated_by | ratio of {x.label} x_ratio | ratio of {y.label} y_ratio | "
    "dominating points dominator_count"
)
CONFIGURATIONS_NOUN: Final = "configurations"

PROJECTIONS: Final = Template(
    "{count:n configuration} of unavailable hardware would be on the front: {names} (--all includes them)"
)

if TYPE_CHECKING:
    from joulemap.answer.check import CheckedRow

ON_FRONT: Final = Template(
    "{count} of the {front:n configuration} {verb} on the front with over {least:chance} confidence"
)
IS, ARE = "is", "are"
ON_FRONT_BESIDE: Final = Template(
    "{count:n configuration outside the predicted front has|configurations outside the predicted front have} "
    "at least 50 % probability of being on it"
)
UNBEATEN: Final = Template("{probability_front:chance} confidence that no configuration beats it")

FRONT_TITLE: Final = Template("Front ({count})")
PROJECTED_TITLE: Final = Template("On the front if available ({count})")
DOMINATED_TITLE: Final = Template("Dominated ({count:#})")

DOMINATED_NOTE: Final = "dominated: another configuration is at least as good in both metrics and better in one"
FRONT_NOTE: Final = (
    "front confidence: fraction of Monte Carlo samples in which no other configuration is better in both metrics"
)
WITHOUT_PLACE: Final = "not placed"

SHOWN: Final[tuple[MetricName, ...]] = ("latency", "energy_per_inference", "throughput", "power", "memory")
"""Metrics shown in addition to the two metrics of the front."""

EVEN: Final = 0.5
"""Probability of being on the front from which a dominated configuration counts as a likely member."""


@frozen(kw_only=True)
class ParetoAnswer(CandidateAnswer):
    """Every configuration of a model in two metrics: the front, and the configurations that it dominates."""

    x: MetricName
    y: MetricName
    rows: Table[ParetoPoint]
    """One row per configuration, with the front first."""

    @property
    def checked(self) -> Sequence[CheckedRow]:
        """Runs on the front."""
        return self.select("front").rows

    def data(self) -> dict[str, Any]:
        """Return the data for machine formats, including the names of both metrics."""
        metrics = {"x": self.x, "x_meaning": METRIC[self.x].meaning, "y": self.y, "y_meaning": METRIC[self.y].meaning}
        return {**metrics, **super().data()}

    def figures(self) -> Figures:
        """Return a figure of all configurations in both metrics, with the front marked; empty without a front."""
        from joulemap.figure.figure import describe_metric

        front = self.select("front")
        if not front.rows:
            return ()
        x, y = METRIC[self.x], METRIC[self.y]
        texts = {**describe_metric(x, "x_"), **describe_metric(y, "y_"), "label": self._drawn_name}
        subject = DRAWN_TITLE(model=self.scope.model, x=x, y=y)
        return (self._draw_figure("pareto", self.rows, subject, self.describe_front(), texts),)

    def document(self, *, limit: int = 10, repeated: Sequence[str] = ()) -> Document:
        """Return the document with `limit` rows of the front, including both ends, and of dominated configurations."""
        front, dominated = self.select("front"), self.select("dominated")
        projections = self.select("projection")
        is_money = "cost" in (self.x, self.y) and bool(self.rows.rows)
        more = list_metrics(SHOWN, (self.x, self.y)) + LIMITED
        kept = spread_evenly(front.rows, limit)
        deciding = self._lay_points(kept, "", limit)
        return self._compose(
            TITLE(
                model=self._subject,
                use=describe_use(self.assumptions, self.rows[0].pay) if is_money else "",
                **self._metrics,
            ),
            (Section("", deciding.out_of(len(front), len(kept), CONFIGURATIONS_NOUN)),),
            self.rows,
            answer=self.describe_front(),
            chosen=[row.run_id for row in (*front.rows[:1], *front.rows[-1:])],
            insights=self._insights(projections),
            sure=self._describe_uncertainty(front),
            details=(
                Section(FRONT_TITLE(count=len(front)), self._lay_points(front, more, limit)),
                Section(PROJECTED_TITLE(count=len(projections)), self._lay_points(projections, more, limit)),
                Section(
                    DOMINATED_TITLE(count=len(dominated)),
                    self._lay_points(dominated, DOMINATED_BY(**self._metrics), limit),
                ),
                self._assume(self.x, self.y),
            ),
            notes=self._notes(),
            steps=self._steps(front, repeated),
        )

    @property
    def _metrics(self) -> dict[str, Any]:
        return {"x": METRIC[self.x], "y": METRIC[self.y]}

    def describe_front(self) -> str:
        """Return the headline: the number of configurations on the front, and the configurations at its two ends."""
        front = self.select("front")
        if not front.rows:
            return NOTHING(**self._metrics)
        among = "" if any(not row.is_available for row in front) else AMONG
        ends = [
            {"name": self.name(row), "x": show_metric(self.x, row.x_value), "y": show_metric(self.y, row.y_value)}
            for row in (front[0], front[-1])
        ]
        if len(front) == 1:
            others = [row for row in self.rows if row.status == "dominated" and (row.is_available or not among)]
            return (ONE if others else ALONE)(among=among, **ends[0])
        first, last = (END(**end) for end in ends)
        every = CONFIGURATIONS(count=sum(row.x_value is not None for row in self.rows))
        return FRONT(count=len(front), all=every, among=among, first=first, last=last)

    def _lay_points(self, rows: Iterable[ParetoPoint], columns: str, limit: int) -> Grid:
        x, y = self._metrics.values()
        return self._lay_rows(
            rows,
            PLACED(x=x, y=y) + columns,
            limit,
            ranked=f"{x.label} | {y.label}",
            x_value=FieldCell(x.column, lambda row: show_interval(row.x_value, x.unit, row.x_half_width)),
            y_value=FieldCell(y.column, lambda row: show_interval(row.y_value, y.unit, row.y_half_width)),
        )

    def _insights(self, projections: Table[ParetoPoint]) -> list[str]:
        """Return sentences on configurations omitted for lack of a price, and on unavailable ones."""
        lines = self._describe_left_out(self.select("unplaced"))
        if projections.rows:
            names = ", ".join(self.scope.mark(find_chip(row)) for row in first_of_each(projections))
            lines.append(PROJECTIONS(count=len(projections), names=names))
        return lines

    def _describe_uncertainty(self, front: Table[ParetoPoint]) -> str:
        """Return how many configurations are surely on the front, and how many dominated ones are likely on it."""
        brackets = self.scope.describe_spread(has_brackets=True, among=[row.hardware for row in front])
        known = [row for row in self.rows if row.probability_front is not None]
        if not known:
            return brackets if front.rows else ""
        if len(front) == 1:
            return f"{UNBEATEN(front[0])}; {brackets}" if len(known) > 1 else brackets
        stays = sum(1 for row in front if (row.probability_front or 0.0) > TOLD_APART)
        comes = sum(1 for row in known if row.status == "dominated" and (row.probability_front or 0.0) >= EVEN)
        verb = IS if stays < 2 else ARE
        sure = ON_FRONT(count=stays or "none", front=len(front), verb=verb, least=TOLD_APART)
        return "; ".join((sure, *([ON_FRONT_BESIDE(count=comes)] if comes else []), brackets))

    def _steps(self, front: Table[ParetoPoint], repeated: Sequence[str]) -> list[list[str]]:
        """Return follow-up commands: compare both ends of the front, and analyze each end."""
        ends = [*front.rows[:1], *front.rows[1:][-1:]]
        steps = self._analyze_each(ends, repeated)
        return [self._compare_both(ends[0], ends[1], repeated), *steps] if len(ends) > 1 else steps

    def _notes(self) -> list[str]:
        projections = [row for row in self.rows if not row.is_available and row.status in ("projection", "dominated")]
        is_placed = any(not row.is_available for row in self.select("front"))
        return [
            DOMINATED_NOTE,
            FRONT_NOTE,
            BATCH_NOTE,
            *self._describe_unknown(self.select("unplaced").rows, WITHOUT_PLACE),
            *([] if is_placed else self._describe_unranked(projections)),
            *self._describe(),
        ]


One = TypeVar("One")


def spread_evenly(rows: Sequence[One], count: int) -> tuple[One, ...]:
    """Return `count` rows at even distances, including the first and the last; all rows if there are fewer."""
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

    Combines hardware (the whole catalogue by default), power modes, precisions, runtimes and batch sizes (by default 1,
    8 and 32 on chips for data centres, else 1). Runs that are not stored are evaluated. Raises like `compare`.
    """
    for name in (x, y):
        check_name("metric", name, METRIC_NAMES)
    if x == y:
        raise UsageError(f"both metrics are {x}: a front needs two")
    settings = price_at_wall(settings, (x, y))
    used, pay = read_usage(usage, settings)
    with holding_runs(source, plan_candidates(model, settings), needs_catalogue=True, has_ledger=False) as runs:
        connection = runs.connection
        ids = list(runs.ids)
        rows = start(connection, ParetoPoint, run_ids=ids, x=x, y=y, **used, **pay, takes_all=settings.takes_all)
        scope, assumptions = find_scope(runs), fetch(connection, AssumedNumber, **used)
        answer = ParetoAnswer(scope=scope, x=x, y=y, rows=rows(), assumptions=assumptions)
    scope.check_evaluated()
    return answer
