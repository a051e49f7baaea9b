"""Utilization as sketches: shares of peak and bandwidth, and each hardware under one common roof."""

from __future__ import annotations

from typing import Final

from joulemap.answer.sketch.choice import Choice
from joulemap.answer.utilization.answer import UtilizationAnswer
from joulemap.present.document import Section
from joulemap.present.sketch import Axis, Bar, Bars, Chart, Curve, Point, cut_bars

MOST_BARS: Final = 40

SHARES: Final = (
    ("compute_utilization_fraction", "Share of the peak"),
    ("bandwidth_utilization_fraction", "Share of the published off-chip bandwidth"),
)
"""Column and title of each sketch of bars."""

BEYOND: Final = 2.0
"""Factor by which the roof reaches beyond what stands under it."""


def sketch(answer: UtilizationAnswer, choice: Choice) -> Section:  # noqa: ARG001
    """Return the shares as bars, and the roofline that all hardware has where each has its own ridge and peak at 1."""
    bars = [_draw(answer, column, title) for column, title in SHARES]
    return Section("Sketch", (*bars, _draw_roofline(answer)))


def _draw(answer: UtilizationAnswer, column: str, title: str) -> Bars:
    bars, rest = cut_bars(
        (
            Bar(
                label=answer.scope.mark(row.hardware),
                value=getattr(row, column),
                text="unsupported" if row.status != "ok" else "",
            )
            for row in answer.rows
        ),
        MOST_BARS,
        "hardware",
    )
    return Bars(title=title, axis=Axis(label=title.lower(), unit="%", is_log=False), bars=bars, notes=rest)


def _draw_roofline(answer: UtilizationAnswer) -> Chart:
    named = [
        Curve(
            name=answer.scope.mark(row.hardware),
            points=(Point(x=row.ridge_ratio, y=row.attained_ops_per_s / row.peak_ops_per_s),),
        )
        for row in answer.rows
        if row.ridge_ratio and row.attained_ops_per_s and row.peak_ops_per_s
    ]
    places = [1.0, *(curve.points[0].x for curve in named)]
    least, most = min(places) / BEYOND, max(places) * BEYOND
    roof = (Point(x=least, y=least), Point(x=1.0, y=1.0), Point(x=most, y=1.0))
    return Chart(
        title="Roofline of all: intensity over the hardware's own ridge point, rate over its own peak",
        x=Axis(label="intensity over the ridge point; memory is the roof below 1x", unit="x", is_log=True),
        y=Axis(label="of the peak", unit="%", is_log=True),
        curves=(Curve(points=roof, is_line=True, has_points=False), *named) if named else (),
    )
