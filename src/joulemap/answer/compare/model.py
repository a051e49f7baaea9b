"""Compare several models on several chips."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby
from typing import Any, Final

import attrs

from joulemap.answer.answer import Drawings, RunAnswer
from joulemap.answer.compare import text
from joulemap.answer.compare.contest import count_of, count_wins, lay_across
from joulemap.answer.scope import holding_scope
from joulemap.domain.default import SETTINGS
from joulemap.domain.doubt import TIE_RATIO
from joulemap.domain.metric import METRIC, PART_METRICS, PartMetricName
from joulemap.domain.settings import RunDivision, Settings, check_name
from joulemap.domain.table import Table
from joulemap.plan.run import plan_runs
from joulemap.plan.source import Source
from joulemap.present.document import Document, Grid, Section, show_under
from joulemap.row.compare import ModelFigure, PairChance
from joulemap.store.query import fetch
from joulemap.system.record import frozen

SHOWN_HARDWARE: Final = 4
"""Maximum chips that the follow-up command compares by subgraph."""

CHANCES: Final = {"energy": "energy_per_inference", "latency": "latency", "edp": "edp_per_inference"}
"""Metric -> name of the metric that `compare.probability` expects."""


@frozen(kw_only=True)
class ModelsAnswer(RunAnswer):
    """Comparison of several models on one or several chips."""

    metric: PartMetricName
    rows: Table[ModelFigure]
    """Value of each model on each chip, best chip of a model first."""
    ties: frozenset[int] = frozenset()
    """Run ids: the best run of each model whose second-best run is statistically tied with it."""

    def data(self) -> dict[str, Any]:
        """Return the data for machine formats, including the sentences that people see."""
        return {**super().data(), "metric": self.metric, "insights": self.insights()}

    def document(self, *, repeated: Sequence[str] = ()) -> Document:
        """Return the document; csv contains the rows."""
        heading = text.MODELS_HEADING(metric=METRIC[self.metric].label.capitalize())
        return self._compose(
            self.scope.title,
            (show_under(heading, self._cross(), *self.scope.describe_left_out()),),
            self.rows,
            answer=self.describe_best(),
            insights=self.insights()[max(1, len(self._winners())) :],
            details=(Section(text.FIGURES_HEADING, self._lay(self.rows, text.FIGURES)),),
            steps=self._steps(repeated),
        )

    def sketched(self, _by: RunDivision, /) -> Drawings:
        """Return a text drawing: for each model, the ratio of each chip to the best chip."""
        return (self._sketch("models", self.rows, {"quantity": METRIC[self.metric].label}),)

    def _contests(self) -> list[list[ModelFigure]]:
        return [list(rows) for _, rows in groupby(self.rows, lambda row: row.workload_id)]

    def _cross(self) -> Grid:
        """Return a grid with one row per model, one column per chip, and a column with the best chip."""
        drawn = lay_across(self._contests(), self.scope, ("model",), lambda row: (row.model,), text.WINNER[:1])
        if len({row.hardware for row in self.rows}) > 1:
            return drawn
        return attrs.evolve(drawn, headings=drawn.headings[:2], rows=tuple(cells[:2] for cells in drawn.rows))

    def describe_best(self) -> str:
        """Return the headline: how many models each chip is best for, available hardware first."""
        insights = self.insights()
        wins = count_wins(self._contests(), self.scope, METRIC[self.metric].label, "model") if insights else ""
        if wins or not insights:
            return wins
        others = [self._fill(text.WINS, row, count=row.hardware_won_count) for row in self._winners()[1:]]
        return text.WON_BY(first=insights[0], others=others or None, near=self._list_near() or None)

    def _list_near(self) -> list[str]:
        """Return one text per model whose second-best chip is within 0.5 % of the best chip or statistically tied with
        it.
        """
        near = []
        for best, second in _find_leaders(self.rows):
            is_near = (second.hardware_ratio or math.inf) < TIE_RATIO
            if is_near or best.run_id in self.ties:
                line = text.NEAR if is_near else text.TIED_MODEL
                near.append(line(second=self.scope.mark(second.hardware), model=second.model))
        return near

    def _winners(self) -> list[ModelFigure]:
        """Return one row per winning chip, most wins first; empty if the best chips of any model have equal values."""
        answered = [row for row in self.rows if row.value is not None]
        hardware = {row.hardware: row for row in answered}
        if len(hardware) < 2 or any(row.tied_count > 1 for row in answered if row.hardware_rank == 1):
            return []
        won = (row for row in hardware.values() if row.hardware_won_count)
        return sorted(won, key=lambda row: (-row.hardware_won_count, row.hardware))

    def insights(self) -> list[str]:
        """Return sentences: how many models each chip is best for, and how much the models of one chip differ."""
        label = METRIC[self.metric].label
        answered = [row for row in self.rows if row.value is not None]
        hardware = {row.hardware: row for row in answered}
        lines: list[str] = []
        for row in self._winners():
            won = count_of(row.hardware_won_count, row.model_count, "model")
            lines.append(self._fill(text.WON_MODELS, row, label=label, won=won))
        for name in hardware:
            own = [row for row in answered if row.hardware == name]
            first, *_, last = sorted((*own, own[0]), key=lambda row: (row.model_rank or 0, row.model))
            if len(own) > 1 and last.model_ratio is not None and last.model_ratio > 1.0:
                names = {"hardware": self.scope.mark(name), "least": first.model, "most": last.model}
                lines.append(text.SPREAD(metric=label, ratio=last.model_ratio, **names))
        return lines

    def _steps(self, repeated: Sequence[str]) -> list[list[str]]:
        hardware = list(dict.fromkeys(self.scope.spell(row.hardware) for row in self.rows if row.status == "ok"))
        return [
            one.words(
                model=self.rows[0].model,
                models=self.scope.models,
                some=",".join(hardware[:SHOWN_HARDWARE]),
                best=hardware[0],
                metric=self.metric,
                repeated=repeated,
            )
            for one in text.STEPS_OF_MODELS
        ]


def _find_leaders(rows: Table[ModelFigure]) -> list[tuple[ModelFigure, ModelFigure]]:
    """Return the rows of the best and the second-best chip, for each model that runs on two or more chips."""
    pairs = []
    for _, contest in groupby(rows, lambda row: row.workload_id):
        ranked = {row.hardware_rank: row for row in contest if row.hardware_rank in (1, 2)}
        if len(ranked) == 2:
            pairs.append((ranked[1], ranked[2]))
    return pairs


def compare_models(
    source: Source, models: Sequence[str], settings: Settings = SETTINGS, *, metric: PartMetricName = "energy"
) -> ModelsAnswer:
    """Compare several models on each chip by a metric: rank the chips for each model, and the models on each chip.

    Raises like `compare`.
    """
    check_name("metric", metric, PART_METRICS)
    settings.check_single("compare")
    with holding_scope(source, plan_runs(models, settings)) as (scope, connection, ids):
        rows = fetch(connection, ModelFigure, run_ids=ids, metric=metric)
        pairs = {(best.run_id, second.run_id) for best, second in _find_leaders(rows)}
        led = sorted({one for pair in pairs for one in pair})
        chances = fetch(connection, PairChance, run_ids=led, metric=CHANCES[metric]) if pairs else ()
        ties = {one.run_id for one in chances if (one.run_id, one.other_run_id) in pairs and not one.is_told_apart}
        return ModelsAnswer(scope=scope, metric=metric, rows=rows, ties=frozenset(ties))
