"""Compare several models on several hardware."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any, Final

import attrs

from joulemap.answer.answer import Drawings, RunAnswer
from joulemap.answer.compare.contest import lay_across, tell_available
from joulemap.answer.scope import holding_scope
from joulemap.domain.default import SETTINGS
from joulemap.domain.metric import METRIC, PART_METRICS, PartMetricName
from joulemap.domain.settings import RunDivision, Settings, check_name
from joulemap.domain.table import Table
from joulemap.plan.run import plan_runs
from joulemap.plan.source import Source
from joulemap.present.document import Document, Grid, Section, show_under
from joulemap.row.compare import ModelFigure
from joulemap.store.query import fetch
from joulemap.system.record import frozen

FIGURES: Final = (
    "model", "hardware", "status", "energy_j", "latency_s", "average_power_w", "compute_utilization_fraction",
    "throughput_per_s", "edp_js", "peak_memory_bytes", "ops_per_j",
)  # fmt: skip
"""Columns shown of each model on each hardware."""


@frozen(kw_only=True)
class ModelsAnswer(RunAnswer):
    """Several models on one or several hardware."""

    metric: PartMetricName
    rows: Table[ModelFigure]
    """Rows by model, then by metric, best hardware first."""

    def data(self) -> dict[str, Any]:
        """Return the data for machine formats, with the sentences."""
        return {**super().data(), "metric": self.metric, "insights": self.insights()}

    def document(self, *, repeated: Sequence[str] = ()) -> Document:
        """Return the document; csv holds the rows."""
        label = METRIC[self.metric].label
        return self._compose(
            self.scope.title,
            (
                show_under(
                    f"{label.capitalize()} of each model on each hardware", self._cross(), *self.scope.say_left_out()
                ),
            ),
            self.rows,
            answer=self.say_best(),
            insights=self.insights()[1:],
            details=(Section("Figures (per batch)", self._show(self.rows, FIGURES)),),
            steps=self._steps(repeated),
        )

    def sketched(self, _by: RunDivision, /) -> Drawings:
        """Return the ratio of each hardware to the best one, for each model."""
        return (self._sketch("models", self.rows, {"quantity": METRIC[self.metric].label}),)

    def _cross(self) -> Grid:
        """Return a grid with one row per model and one column per hardware, and the best one."""
        contests = [list(rows) for _, rows in groupby(self.rows, lambda row: row.workload_id)]
        several = len({row.hardware for row in self.rows}) > 1
        drawn = lay_across(contests, self.scope, ("model",), lambda row: (row.model,), ("best",))
        return (
            drawn
            if several
            else attrs.evolve(drawn, headings=drawn.headings[:2], rows=tuple(cells[:2] for cells in drawn.rows))
        )

    def say_best(self) -> str:
        """Return the number of models that each hardware is best for, available hardware first, then projections."""
        contests = [list(rows) for _, rows in groupby(self.rows, lambda row: row.workload_id)]
        first = next(iter(self.insights()), "")
        what = f"{METRIC[self.metric].label} of {len(contests)} models"
        return (first and tell_available(contests, self.scope, what, "for")) or (f"{first}." if first else "")

    def insights(self) -> list[str]:
        """Return the number of wins of each hardware, and the spread between models on each."""
        least = f"has the least {METRIC[self.metric].label}"
        answered = [row for row in self.rows if row.value is not None]
        hardware = {row.hardware: row for row in answered}
        lines = []
        if len(hardware) > 1 and all(row.tied_count == 1 for row in answered if row.hardware_rank == 1):
            lines += [
                f"{self.scope.mark(row.hardware)} {least} for {row.hardware_won_count} of {row.model_count} models"
                for row in sorted(hardware.values(), key=lambda row: (-row.hardware_won_count, row.hardware))
                if row.hardware_won_count
            ]
        for name in hardware:
            rows = sorted(
                (row for row in answered if row.hardware == name), key=lambda row: (row.model_rank or 0, row.model)
            )
            if len(rows) > 1 and (ratio := rows[-1].model_ratio) is not None and ratio > 1.0:
                lines.append(
                    f"on {self.scope.mark(name)}, {rows[0].model} {least}, {rows[-1].model} {ratio:.3g}x as much"
                )
        return lines

    def _steps(self, repeated: Sequence[str]) -> list[list[str]]:
        hardware = list(dict.fromkeys(self.scope.spell(row.hardware) for row in self.rows if row.status == "ok"))
        some = ["--hardware", ",".join(hardware[:4]), "--metric", self.metric]
        return [
            ["compare", self.rows[0].model, "--level", "subgraph", *some, *repeated],
            ["compare", *self.scope.models, "--level", "detailed", "--hardware", hardware[0], *repeated],
        ]


def compare_models(
    source: Source, models: Sequence[str], settings: Settings = SETTINGS, *, metric: PartMetricName = "energy"
) -> ModelsAnswer:
    """Compare several models on each hardware, ranked both ways by a metric; raises as `compare`."""
    check_name("metric", metric, PART_METRICS)
    settings.check_single("compare")
    with holding_scope(source, plan_runs(models, settings)) as (scope, connection, ids):
        rows = fetch(connection, ModelFigure, run_ids=ids, metric=metric)
        return ModelsAnswer(scope=scope, metric=metric, rows=rows)
