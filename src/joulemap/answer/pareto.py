"""Compute the Pareto front of configurations in two metrics."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

import attrs

from joulemap.answer.candidate import (
    BATCH_NOTE,
    CandidateAnswer,
    describe_use,
    list_metrics,
    plan_candidates,
)
from joulemap.ask.candidate import read_usage
from joulemap.ask.fact import Facts
from joulemap.ask.pareto import find_facts
from joulemap.ask.scope import opening_scope
from joulemap.domain.default import CANDIDATES, USAGE, price_at_wall
from joulemap.domain.metric import METRIC, METRIC_NAMES, MetricName
from joulemap.domain.settings import Settings, Usage, check_name
from joulemap.domain.table import Table
from joulemap.generated.cost import AssumedNumber
from joulemap.generated.pareto import ParetoPoint
from joulemap.plan.source import Source
from joulemap.show.page import Figures
from joulemap.show.pareto import describe_answer, describe_beyond, list_reasons
from joulemap.show.present.cell import show, show_ends
from joulemap.show.present.document import Document, FieldCell, Grid, Section
from joulemap.show.present.picture import Picture, make_intervals
from joulemap.show.present.template import Template
from joulemap.show.run import show_limit
from joulemap.store.query import fetch, start
from joulemap.system.errors import UsageError
from joulemap.system.record import frozen

ABOUT: Final = Template("{x.meaning} against {y.meaning} of {count:n configuration}[, {use}]")
DRAWN_ABOUT: Final = Template("{y.meaning} over {x.meaning}")

PLACED: Final = Template(
    "hardware | *precision= | *batch= | runtime= | *{x.label} x_value | {x_range} x_range? | *{y.label} y_value | "
    "{y_range} y_range? | *front confidence probability_front? | "
)
RANGE: Final = Template("{label} range")
LIMITED: Final = "throughput limit throughput_limit?"
DOMINATED_BY: Final = Template(
    "*dominated by dominated_by | ratio of {x.label} x_ratio | ratio of {y.label} y_ratio | "
    "dominating points dominator_count"
)
CONFIGURATIONS_NOUN: Final = "configurations"

if TYPE_CHECKING:
    from joulemap.ask.check import CheckedRow

FRONT_TITLE: Final = Template("Front ({count})")
PROJECTED_TITLE: Final = Template("On the front if available ({count})")
DOMINATED_TITLE: Final = Template("Dominated ({count:#})")

DOMINATED_NOTE: Final = "dominated: another configuration is at least as good in both metrics and better in one"
FRONT_NOTE: Final = (
    "front confidence: fraction of Monte Carlo samples in which no other configuration is better in both metrics"
)

SHOWN: Final[tuple[MetricName, ...]] = ("latency", "energy_per_inference", "throughput", "power", "memory")
"""Metrics shown in addition to the two metrics of the front."""

SHOWN_FRONT: Final = 8
"""Default number of configurations per table."""


@frozen(kw_only=True)
class ParetoAnswer(CandidateAnswer):
    """Every configuration of a model in two metrics: the front, and the configurations that it dominates."""

    x: MetricName
    y: MetricName
    rows: Table[ParetoPoint]
    """One row per configuration, with the front first."""
    facts: Facts
    """The front, its ends and caveats, from which all sentences are made."""

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
        from joulemap.show.figure.figure import describe_metric

        front = self.select("front")
        if not front.rows:
            return ()
        x, y = METRIC[self.x], METRIC[self.y]
        texts = {**describe_metric(x, "x_"), **describe_metric(y, "y_"), "label": self._drawn_name}
        subject = self._name_model(DRAWN_ABOUT(x=x, y=y))
        return (self._draw_figure("pareto", self.rows, subject, self.describe_front(), texts),)

    def document(self, *, limit: int = SHOWN_FRONT, repeated: Sequence[str] = ()) -> Document:
        """Return the document with `limit` rows of the front, including both ends, and of dominated configurations."""
        front, dominated = self.select("front"), self.select("dominated")
        projections = self.select("projection")
        is_money = "cost" in (self.x, self.y) and bool(self.rows.rows)
        more = list_metrics(SHOWN, (self.x, self.y)) + LIMITED
        kept = spread_evenly(front.rows, limit)
        deciding = self._lay_points(kept, "", limit)
        about = ABOUT(
            count=sum(row.x_value is not None for row in self.rows),
            use=describe_use(self.assumptions, self.rows[0].pay) if is_money else "",
            **self._metrics,
        )
        return self._compose_facts(
            self.facts,
            (Section("", deciding.out_of(len(front), len(kept), CONFIGURATIONS_NOUN)),),
            self.rows,
            title=self._title(about, common=self._list_common(deciding)),
            answer=self.describe_front(),
            reasons=list_reasons(self.facts),
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
        """Return the number of configurations on the front, and its two ends, in one sentence."""
        return describe_answer(self.facts)

    def _lay_points(self, rows: Iterable[ParetoPoint], columns: str, limit: int) -> Grid:
        """Return a grid of configurations: values and intervals in both metrics, with the intervals drawn."""
        x, y = self._metrics.values()
        ranges = {name: RANGE(label=metric.label) for name, metric in (("x_range", x), ("y_range", y))}
        listed = tuple(rows)
        drawn = self._lay(
            self.rows.with_rows(listed),
            PLACED(x=x, y=y, **ranges) + columns,
            ranked=f"{x.label} | {y.label}",
            limit=limit,
            noun=CONFIGURATIONS_NOUN,
            x_value=FieldCell(x.column, lambda row: show(row.x_value, x.column, x.unit)),
            y_value=FieldCell(y.column, lambda row: show(row.y_value, y.column, y.unit)),
            x_range=lambda row: show_ends(row.x_value, x.unit, row.x_half_width),
            y_range=lambda row: show_ends(row.y_value, y.unit, row.y_half_width),
            throughput_limit=show_limit,
        )
        pictures = [
            Picture(kind="interval", after=heading, rows=make_intervals(ends), unit=metric.unit)
            for heading, metric, ends in (
                (ranges["y_range"], y, [(row.y_value, row.y_half_width) for row in listed[:limit]]),
                (ranges["x_range"], x, [(row.x_value, row.x_half_width) for row in listed[:limit]]),
            )
            if heading in drawn.headings
        ]
        return attrs.evolve(drawn, pictures=tuple(pictures))

    def _steps(self, front: Table[ParetoPoint], repeated: Sequence[str]) -> list[list[str]]:
        """Return follow-up commands: compare both ends of the front, and analyze each end."""
        ends = [*front.rows[:1], *front.rows[1:][-1:]]
        steps = self._analyze_each(ends, repeated)
        return [self._compare_both(ends[0], ends[1], repeated), *steps] if len(ends) > 1 else steps

    def _notes(self) -> list[str]:
        projections = [row for row in self.rows if not row.is_available and row.status in ("projection", "dominated")]
        is_placed = any(not row.is_available for row in self.select("front"))
        return [
            *describe_beyond(self.facts),
            DOMINATED_NOTE,
            FRONT_NOTE,
            BATCH_NOTE,
            *([] if is_placed else self._describe_unranked(projections)),
            *self._describe_terms(),
        ]


One = TypeVar("One")


def spread_evenly(rows: Sequence[One], count: int) -> tuple[One, ...]:
    """Return `count` rows at even distances, including the first and the last; all rows if there are fewer."""
    if len(rows) <= count or count < 2:
        return tuple(rows[:count])
    return tuple(rows[round(step * (len(rows) - 1) / (count - 1))] for step in range(count))


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
    with opening_scope(source, plan_candidates(model, settings), needs_catalogue=True, has_ledger=False) as scope:
        connection, ids = scope.connection, list(scope.run_ids)
        rows = start(connection, ParetoPoint, run_ids=ids, x=x, y=y, **used, **pay, takes_all=settings.takes_all)
        assumptions = fetch(connection, AssumedNumber, **used)
        scope.check_evaluated()
        table = rows()
        facts = find_facts(scope, table.rows, x, y)
        return ParetoAnswer(scope=scope, x=x, y=y, rows=table, assumptions=assumptions, facts=facts)
