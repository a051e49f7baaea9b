"""Compare several models on several chips."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any, Final

import attrs

from joulemap.answer.base import RunAnswer
from joulemap.answer.compare.contest import WINNER, drop_winner, lay_across
from joulemap.ask.fact import Entry, Facts
from joulemap.ask.scope import opening_scope
from joulemap.ask.win import find_models
from joulemap.domain.default import SETTINGS
from joulemap.domain.metric import METRIC, PART_METRICS, PartMetricName
from joulemap.domain.settings import RunDivision, Settings, check_name
from joulemap.domain.table import Table
from joulemap.generated.compare import ModelFigure
from joulemap.plan.run import plan_runs
from joulemap.plan.source import Source
from joulemap.show.page import Drawings
from joulemap.show.present.document import Document, Grid, Section, show_under
from joulemap.show.present.picture import Picture, make_intervals
from joulemap.show.present.template import Template
from joulemap.show.run import title_runs
from joulemap.show.win import describe_models, list_model_reasons
from joulemap.store.query import fetch
from joulemap.system.record import frozen

MODELS_TITLE: Final = Template("{metric} of each model")
FIGURES: Final = (
    "model | hardware | status | *energy energy_j | *latency latency_s | power average_power_w | "
    "utilization compute_utilization_fraction | throughput throughput_per_s | energy x delay edp_js | "
    "memory peak_memory_bytes | operations per joule ops_per_j"
)
STEPS_OF_MODELS: Final = (
    Template("compare {model} --level subgraph --hardware {some} --metric {metric} {repeated}"),
    Template("compare {models} --level detailed --hardware {best} {repeated}"),
)

SHOWN_HARDWARE: Final = 4
"""Maximum chips that the follow-up command compares by subgraph."""


@frozen(kw_only=True)
class ModelsAnswer(RunAnswer):
    """Comparison of several models on one or several chips."""

    metric: PartMetricName
    rows: Table[ModelFigure]
    """Value of each model on each chip, best chip of a model first."""
    facts: Facts
    """Best chip of each model, wins of each chip, models of each chip, and caveats, from which all sentences are made.
    """

    def data(self) -> dict[str, Any]:
        """Return the data for machine formats."""
        return {**super().data(), "metric": self.metric}

    def document(self, *, repeated: Sequence[str] = ()) -> Document:
        """Return the document; csv contains the rows."""
        return self._compose_facts(
            self.facts,
            (show_under("", self._cross(), *self._count_left_out()),),
            self.rows,
            title=attrs.evolve(title_runs(self.scope), about=MODELS_TITLE(metric=METRIC[self.metric].label)),
            answer=self.describe_best(),
            reasons=list_model_reasons(self.facts),
            details=(Section("Figures (per batch)", self._lay(self.rows, FIGURES)),),
            steps=self._steps(repeated),
        )

    def describe_best(self) -> str:
        """Return the decision in one sentence."""
        return describe_models(self.facts)

    def sketched(self, _by: RunDivision, /) -> Drawings:
        """Return a text drawing: for each model, the ratio of each chip to the best chip."""
        return (self._sketch("models", self.rows, {"quantity": METRIC[self.metric].label}),)

    def _cross(self) -> Grid:
        """Return a grid with a row per model, a column per chip, the best chip, and the interval of its value."""
        contests = [list(rows) for _, rows in groupby(self.rows, lambda row: row.workload_id)]
        drawn = lay_across(contests, self._mark, ("model",), lambda row: (row.model,), WINNER[:1])
        if len({row.hardware for row in self.rows}) < 2:
            drawn = drop_winner(drawn, 1)
        values = {one.runs[0]: one.values[self.metric] for one in self.facts.of(Entry)}
        firsts = [next((values[row.run_id] for row in contest if row.run_id in values), None) for contest in contests]
        marks = make_intervals([(one.value, one.half_width) if one is not None else (None, None) for one in firsts])
        if not any(one is not None and one.half_width for one in firsts):
            return drawn
        unit = METRIC[self.metric].unit
        drawing = Picture(kind="interval", after=drawn.headings[-1], rows=marks, unit=unit, yields=True)
        return attrs.evolve(drawn, pictures=(drawing,))

    def _steps(self, repeated: Sequence[str]) -> list[list[str]]:
        answered = sorted((row for row in self.rows if row.status == "ok"), key=lambda row: not row.is_available)
        hardware = list(dict.fromkeys(self.scope.spell(row.hardware) for row in answered))
        return [
            one.words(
                model=self.rows[0].model,
                models=self.scope.models,
                some=",".join(hardware[:SHOWN_HARDWARE]),
                best=hardware[0],
                metric=self.metric,
                repeated=repeated,
            )
            for one in STEPS_OF_MODELS
        ]


def compare_models(
    source: Source, models: Sequence[str], settings: Settings = SETTINGS, *, metric: PartMetricName = "energy"
) -> ModelsAnswer:
    """Compare several models on each chip by a metric: rank the chips for each model, and the models on each chip.

    Raises like `compare`.
    """
    check_name("metric", metric, PART_METRICS)
    settings.check_single("compare")
    with opening_scope(source, plan_runs(models, settings)) as scope:
        scope.check_evaluated()
        rows = fetch(scope.connection, ModelFigure, run_ids=list(scope.run_ids), metric=metric)
        return ModelsAnswer(scope=scope, metric=metric, rows=rows, facts=find_models(scope, rows.rows, metric))
