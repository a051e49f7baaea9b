"""A front: what no other configuration beats in two metrics, and who beats the rest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import attrs

from joulemap.answer.answer import RunAnswer
from joulemap.answer.candidate import (
    BATCH_NOTE,
    analyze_each,
    assume,
    count_candidates,
    describe_candidates,
    describe_unknown,
    metric_columns,
    name_candidate,
    name_columns,
    plan_candidates,
    read_usage,
    select_rows,
    show_metric,
    template_candidate,
)
from joulemap.answer.run import limit_columns
from joulemap.answer.scope import find_scope
from joulemap.domain.default import CANDIDATES, USAGE
from joulemap.domain.metric import METRIC, METRIC_NAMES, MetricName
from joulemap.domain.settings import check_name
from joulemap.domain.table import Table
from joulemap.plan.hold import holding_runs
from joulemap.present.cell import show_chance, show_doubt
from joulemap.present.document import Document, Grid, Section, Shown, Text, grid, say_rest
from joulemap.row.cost import AssumedNumber
from joulemap.row.pareto import ParetoPoint
from joulemap.store.query import fetch, start
from joulemap.system.errors import UsageError
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.domain.settings import Settings, Usage
    from joulemap.figure.figure import Figure
    from joulemap.plan.source import Source

SHOWN: Final[tuple[MetricName, ...]] = ("latency", "energy_per_inference", "throughput", "power", "memory")
"""Shown beside the two metrics, unless it is one of them."""


CHANCE: Final[Shown[ParetoPoint]] = (
    "on the front",
    lambda row: "" if row.probability_front is None else show_chance(row.probability_front),
)
"""Column of how probable it is that nothing beats a point."""


@frozen(kw_only=True)
class ParetoAnswer(RunAnswer):
    """Every configuration of a model in two metrics: the front, and who beats the rest."""

    x: MetricName
    y: MetricName
    rows: Table[ParetoPoint]
    """The front first."""
    assumptions: Table[AssumedNumber]
    """What cost and carbon rest on."""

    def data(self) -> dict[str, Any]:
        """Return what programs get, with what the metrics are."""
        metrics = {"x": self.x, "x_meaning": METRIC[self.x].meaning, "y": self.y, "y_meaning": METRIC[self.y].meaning}
        return {**metrics, **super().data()}

    def figures(self) -> tuple[Figure, ...]:
        """Return every configuration in both metrics, the front marked; none where the front is empty."""
        from joulemap.figure.figure import make_figure, tell_metric

        front = select_rows(self.rows, "front")
        if not front.rows:
            return ()
        x, y = METRIC[self.x], METRIC[self.y]
        ends = [f"{name_candidate(self.scope, row)} ({self._place_text(row)})" for row in (front[0], front[-1])]
        told = (
            f"{len(front)} of {count_candidates(len(self.rows))} are on the front: {' to '.join(dict.fromkeys(ends))}"
        )
        texts = {**tell_metric(x, "x_"), **tell_metric(y, "y_"), "label": template_candidate(self.scope)}
        subject = self.scope.bounded(f"{self.scope.model}: {y.meaning} over {x.meaning}")
        return (make_figure("pareto", self.rows, subject, told, texts),)

    def _place_text(self, row: ParetoPoint) -> str:
        return f"{show_metric(self.x, row.x_value)}, {show_metric(self.y, row.y_value)}"

    def document(self, *, limit: int = 20, repeated: Sequence[str] = ()) -> Document:
        """Return it with `limit` rows of the front and of what it beats."""
        front, dominated = select_rows(self.rows, "front"), select_rows(self.rows, "dominated")
        sections = (
            Section(f"Front ({len(front)})", self._front(front, limit)),
            self._available(front, limit),
            Section(f"Dominated ({len(dominated):,})", self._dominated(dominated, limit)),
            assume(self.assumptions, self.x, self.y),
        )
        return self._compose(
            f"{self.scope.model}: {METRIC[self.x].meaning} against {METRIC[self.y].meaning}, "
            f"{count_candidates(len(self.rows))}",
            sections,
            self.rows,
            notes=self._notes(),
            steps=analyze_each(self.scope, [*front.rows[:1], *front.rows[-1:]], repeated),
        )

    def _placed(self) -> tuple[Shown[ParetoPoint], ...]:
        return (
            *name_columns(self.scope),
            (METRIC[self.x].label, lambda row: show_metric(self.x, row.x_value)),
            (f"80 % of {METRIC[self.x].label}", lambda row: show_doubt(row.x_half_width)),
            (METRIC[self.y].label, lambda row: show_metric(self.y, row.y_value)),
            (f"80 % of {METRIC[self.y].label}", lambda row: show_doubt(row.y_half_width)),
        )

    def _front(self, front: Table[ParetoPoint], limit: int) -> tuple[Grid | Text, ...]:
        if not front.rows:
            return (Text("empty: no configuration has both figures"),)
        columns = (
            *self._placed(),
            CHANCE,
            *metric_columns(SHOWN, (self.x, self.y)),
            *limit_columns(front.rows[:limit]),
        )
        return self._draw(front, columns, limit, ())

    def _available(self, front: Table[ParetoPoint], limit: int) -> Section:
        """Return the front of what can be bought, where the front of all has something else; empty otherwise."""
        found = sorted((row for row in self.rows if row.is_available_front), key=self._place)
        best = attrs.evolve(self.rows, rows=tuple(found))
        has_others = any(not row.is_available for row in front)
        none = (Text("empty: nothing that can be bought or rented has both figures"),)
        blocks = (self._front(best, limit) if best.rows else none) if has_others else ()
        return Section(f"Front of what can be bought or rented ({len(best)})", blocks)

    def _place(self, row: ParetoPoint) -> tuple[float, float]:
        """Return where a point stands in the order of the front."""
        signs = (-1.0 if METRIC[name].is_higher_better else 1.0 for name in (self.x, self.y))
        x, y = (sign * (value or 0.0) for sign, value in zip(signs, (row.x_value, row.y_value), strict=True))
        return x, y

    def _dominated(self, dominated: Table[ParetoPoint], limit: int) -> tuple[Grid | Text, ...]:
        columns: tuple[Shown[ParetoPoint], ...] = (
            *self._placed(),
            CHANCE,
            ("dominated by", "dominated_by"),
            (f"better {METRIC[self.x].label}", "x_ratio"),
            (f"better {METRIC[self.y].label}", "y_ratio"),
            ("of the front", "dominator_count"),
        )
        return self._draw(dominated, columns, limit, ("dominated by",))

    def _draw(
        self, rows: Table[ParetoPoint], columns: tuple[Shown[ParetoPoint], ...], limit: int, keep: tuple[str, ...]
    ) -> tuple[Grid | Text, ...]:
        kept = ("precision", "batch", METRIC[self.x].label, METRIC[self.y].label, CHANCE[0], *keep)
        drawn = grid(rows, columns, limit=limit, keep=kept, projected=self.scope.projected)
        return (drawn, *say_rest(len(rows), limit, "configurations"))

    def _notes(self) -> list[str]:
        return [
            "dominated: another configuration is at least as good in both and better in one",
            "on the front: in how many of the draws of what may be measured no other is better in both",
            BATCH_NOTE,
            *describe_unknown(self.scope, select_rows(self.rows, "unplaced").rows, "without a place"),
            *describe_candidates(self.scope, self.rows.rows),
        ]


def pareto(
    source: Source,
    model: str,
    settings: Settings = CANDIDATES,
    *,
    x: MetricName = "latency",
    y: MetricName = "energy_per_inference",
    usage: Usage = USAGE,
) -> ParetoAnswer:
    """Return which configurations no other beats in both metrics, and who beats the rest.

    Hardware (all of the catalogue where none is named), each of its power modes, precisions, runtimes and batches
    (1, 8 and 32 where none is named) are combined. What is not stored is evaluated. Raises as `compare`.
    """
    for name in (x, y):
        check_name("metric", name, METRIC_NAMES)
    if x == y:
        raise UsageError(f"both metrics are {x}: a front needs two")
    used = read_usage(usage)
    with holding_runs(source, plan_candidates(model, settings), needs_catalogue=True) as runs:
        connection = runs.connection
        rows = start(connection, ParetoPoint, run_ids=list(runs.ids), x=x, y=y, **used)
        scope, assumptions = find_scope(runs), fetch(connection, AssumedNumber, **used)
        answer = ParetoAnswer(scope=scope, x=x, y=y, rows=rows(), assumptions=assumptions)
    scope.check_evaluated()
    return answer
