"""A sweep as sketches: energy per inference and throughput over batches, a curve per hardware."""

from __future__ import annotations

from typing import Final

from joulemap.answer.sketch.choice import Choice
from joulemap.answer.sweep.answer import SweepAnswer
from joulemap.present.document import Section
from joulemap.present.sketch import Axis, Chart, Curve, Point
from joulemap.row.sweep import SweepPoint

MOST_MODELS: Final = 4

FIGURES: Final = (
    ("energy_per_inference_j", "energy per inference", "J"),
    ("throughput_per_s", "throughput", "1/s"),
)
"""Column, label and unit of each chart."""


def sketch(answer: SweepAnswer, choice: Choice) -> Section:  # noqa: ARG001
    """Return two charts for each of the first models."""
    models = list(dict.fromkeys(row.model for row in answer.points))
    charts = [
        _draw(answer, model, *figure, of=f" of {model}" if len(models) > 1 else "")
        for model in models[:MOST_MODELS]
        for figure in FIGURES
    ]
    return Section("Sketch", charts)


def _draw(answer: SweepAnswer, model: str, column: str, label: str, unit: str, *, of: str) -> Chart:
    settings = answer.scope.settings
    curves: dict[str, list[Point]] = {}
    for row in answer.points:
        value = getattr(row, column)
        if row.model == model and value is not None:
            varied = [
                *([row.precision] if len(answer.scope.precisions) > 1 else []),
                *([row.runtime] if len(settings.runtime) > 1 else []),
            ]
            name = " ".join((answer.scope.mark(row.hardware), *varied))
            curves.setdefault(name, []).append(Point(x=float(row.batch), y=value))
    return Chart(
        title=f"{label.capitalize()}{of} at each batch",
        x=Axis(label="batch", is_log=_spans(answer.points.rows)),
        y=Axis(label=label, unit=unit, is_log=True),
        curves=tuple(Curve(name=name, points=tuple(points), is_line=True) for name, points in curves.items()),
    )


def _spans(rows: tuple[SweepPoint, ...]) -> bool:
    """Return whether batches are apart by factors rather than by numbers."""
    batches = sorted({row.batch for row in rows})
    return len(batches) > 1 and batches[-1] >= 4 * batches[0]
