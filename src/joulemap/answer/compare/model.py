"""Several models against several hardware."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from joulemap.answer.answer import RunAnswer
from joulemap.answer.scope import holding_scope, join_words
from joulemap.domain.default import SETTINGS
from joulemap.domain.metric import METRIC, PART_METRICS, PartMetricName
from joulemap.domain.settings import RunDivision, check_name
from joulemap.domain.table import Table
from joulemap.plan.run import plan_runs
from joulemap.present.cell import show_quantity
from joulemap.present.document import Document, Grid, Section, show_under
from joulemap.row.compare import ModelFigure
from joulemap.store.query import fetch
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.domain.settings import Settings
    from joulemap.figure.figure import Drawing
    from joulemap.plan.source import Source


FIGURES: Final = (
    "model", "hardware", "status", "energy_j", "latency_s", "average_power_w", "compute_utilization_fraction",
    "throughput_per_s", "edp_js", "peak_memory_bytes", "ops_per_j",
)  # fmt: skip
"""What is shown of each model on each hardware."""


@frozen(kw_only=True)
class ModelsAnswer(RunAnswer):
    """Several models on one or several hardware."""

    metric: PartMetricName
    rows: Table[ModelFigure]
    """Model by model, the best hardware first."""

    def data(self) -> dict[str, Any]:
        """Return what programs get, with the sentences."""
        return {**super().data(), "metric": self.metric, "insights": self.insights()}

    def document(self, *, repeated: Sequence[str] = ()) -> Document:
        """Return it; csv holds the rows."""
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
            sure=self.scope.say_spread(),
            notes=self.scope.describe_refusals() + self.scope.describe(),
            steps=self._steps(repeated),
        )

    def sketched(self, _by: RunDivision, /) -> tuple[Drawing, ...]:
        """Return how near each hardware is to the best for each model."""
        from joulemap.figure.figure import make_drawing

        return (make_drawing("models", self.rows, {"quantity": METRIC[self.metric].label}),)

    def _cross(self) -> Grid:
        """Return a row per model and a column per hardware, with the best one."""
        hardware = list(dict.fromkeys(row.hardware for row in sorted(self.rows, key=lambda row: row.run_id)))
        cells: list[tuple[str, ...]] = []
        marked, winners = set(), Counter[str]()
        has_beside = any(row.hardware_rank == 1 and not row.is_available for row in self.rows)
        for _, group in groupby(self.rows, lambda row: row.workload_id):
            rows = {row.hardware: row for row in group}
            first = next(iter(rows.values()))
            best = "" if first.value is None else self.scope.mark(first.hardware)
            winners[best] += 1
            marked |= {
                (len(cells), 1 + hardware.index(row.hardware))
                for row in rows.values()
                if row.value is not None and row.value == first.value and len(hardware) > 1
            }
            cells.append(
                (
                    first.model,
                    *(
                        show_quantity(rows[name].value, rows[name].unit) or "unsupported" if name in rows else ""
                        for name in hardware
                    ),
                    *((f"{first.tied_count} alike" if first.tied_count > 1 else best,) if len(hardware) > 1 else ()),
                    *((self._available(rows.values()),) if has_beside else ()),
                )
            )
        names = tuple(map(self.scope.mark, hardware))
        return Grid(
            headings=(
                "model",
                *names,
                *(("best",) if len(hardware) > 1 else ()),
                *(("best available",) if has_beside else ()),
            ),
            rows=tuple(cells),
            keep=(*sorted(names, key=lambda name: -winners[name]), "best", "best available"),
            best=frozenset(marked),
        )

    def say_best(self) -> str:
        """Return who is best for how many models: of what can be had, then what would be if it could."""
        groups = [list(rows) for _, rows in groupby(self.rows, lambda row: row.workload_id)]
        first = next(iter(self.insights()), "")
        if all(rows[0].is_available for rows in groups) or not first:
            return f"{first}." if first else ""
        had = Counter(map(self._available, groups))
        beyond = Counter(self.scope.mark(rows[0].hardware) for rows in groups if not rows[0].is_available)
        told, projected = (
            join_words([f"{name} for {count}" for name, count in counts.most_common()]) for counts in (had, beyond)
        )
        least = f"Least {METRIC[self.metric].label} of {len(groups)} models, of what can be had"
        return f"{least}: {told}. If it could be had: {projected}."

    def _available(self, rows: Iterable[ModelFigure]) -> str:
        """Return the best hardware of a model that can be bought."""
        best = next((row for row in rows if row.value is not None and row.is_available), None)
        return self.scope.mark(best.hardware) if best else "none"

    def insights(self) -> list[str]:
        """Return who is best for how many models, and what separates the models on each hardware."""
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
    """Return several models on each hardware, ranked both ways by a metric; raises as `compare`."""
    check_name("metric", metric, PART_METRICS)
    settings.check_single("compare")
    with holding_scope(source, plan_runs(models, settings)) as (scope, connection, ids):
        rows = fetch(connection, ModelFigure, run_ids=ids, metric=metric)
        return ModelsAnswer(scope=scope, metric=metric, rows=rows)
