"""Sketches of sensitivities, and of the changes that flip a winner."""

from __future__ import annotations

from joulemap.answer.flip import FlipAnswer
from joulemap.answer.sensitivity import Sensitivity, SensitivityAnswer
from joulemap.answer.sketch.choice import Choice
from joulemap.answer.sketch.interval import make_axis
from joulemap.domain.metric import METRIC
from joulemap.present.cell import show_quantity, show_share
from joulemap.present.document import Section
from joulemap.present.sketch import Axis, Bar, Bars, cut_bars


def sketch(answer: FlipAnswer | SensitivityAnswer, choice: Choice) -> Section:
    """Return what constants do to a figure, or to a winner."""
    if isinstance(answer, FlipAnswer):
        return sketch_flips(answer, choice.limit)
    return sketch_spans(answer, choice.limit)


def sketch_spans(answer: SensitivityAnswer, limit: int) -> Section:
    """Return between which ends each constant moves the metric, the widest first, for each hardware."""
    label, unit = METRIC[answer.metric].label, METRIC[answer.metric].unit
    drawn = []
    for name in dict.fromkeys(row.hardware for row in answer.rows):
        rows = [row for row in answer.of(name) if row.span_fraction]
        base = rows[0].metric_value if rows else None
        bars, rest = cut_bars(map(_span, rows), limit, "constants")
        told = f"{label} {show_quantity(base, unit)}, and what it is between the ends of each constant"
        drawn.append(
            Bars(
                title=f"{answer.scope.mark(name)}: {told}",
                axis=make_axis(answer.metric),
                bars=bars,
                has_zero=False,
                mark=base,
                interval="├─●─┤ between the ends of the constant; the share is that span",
                notes=rest,
            )
        )
    return Section("Sketch", drawn)


def _span(row: Sensitivity) -> Bar:
    ends = [end for end in (row.metric_low, row.metric_value, row.metric_high) if end is not None]
    return Bar(
        label=row.constant,
        value=row.metric_value,
        low=min(ends, default=None),
        high=max(ends, default=None),
        text=show_share(row.span_fraction),
    )


def sketch_flips(answer: FlipAnswer, limit: int) -> Section:
    """Return by which factor each constant would flip the winner, beside one spread of it."""
    bars, rest = cut_bars(
        (
            Bar(
                label=f"{row.constant} of {'both' if row.hardware is None else answer.scope.mark(row.hardware)}",
                value=row.flip_ratio,
                low=row.low_ratio,
                high=row.high_ratio,
            )
            for row in answer.rows
            if row.flip_ratio is not None
        ),
        limit,
        "constants",
    )
    drawn = Bars(
        title=f"Factor of each constant at which {METRIC[answer.metric].label} of both is alike",
        axis=Axis(label="factor", unit="x", is_log=True),
        bars=bars,
        has_zero=False,
        mark=1.0,
        interval="● both are alike; ├─┤ one spread of the constant, around what it is",
        notes=rest,
    )
    return Section("Sketch", drawn)
