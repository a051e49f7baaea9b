"""A front as a sketch: every configuration in two metrics, those of the front with letters and intervals."""

from __future__ import annotations

from joulemap.answer.candidate import name_candidate, show_metric
from joulemap.answer.pareto import ParetoAnswer
from joulemap.answer.sketch.choice import Choice
from joulemap.answer.sketch.interval import find_ends, make_axis
from joulemap.present.document import Section
from joulemap.present.sketch import Chart, Curve, Point
from joulemap.row.pareto import ParetoPoint


def sketch(answer: ParetoAnswer, choice: Choice) -> Section:  # noqa: ARG001
    """Return the configurations that have a place."""
    front, others = [], []
    for row in answer.rows:
        point = _place(row)
        if point is None:
            continue
        if row.status == "front":
            told = f"{show_metric(answer.x, row.x_value)}, {show_metric(answer.y, row.y_value)}"
            front.append(Curve(name=f"{name_candidate(answer.scope, row)}: {told}", points=(point,)))
        else:
            others.append(Point(x=point.x, y=point.y))
    x, y = make_axis(answer.x), make_axis(answer.y)
    beaten = (f"· {len(others):,} that others beat",) if others else ()
    notes = ("letters: the front; lines from them: 80 % intervals", *beaten)
    chart = Chart(
        title=f"{y.label.capitalize()} against {x.label}",
        x=x,
        y=y,
        curves=(Curve(points=tuple(others)), *front),
        notes=notes,
    )
    return Section("Sketch", chart)


def _place(row: ParetoPoint) -> Point | None:
    if row.x_value is None or row.y_value is None:
        return None
    x_low, x_high = find_ends(row.x_value, row.x_half_width)
    y_low, y_high = find_ends(row.y_value, row.y_half_width)
    return Point(x=row.x_value, y=row.y_value, x_low=x_low, x_high=x_high, y_low=y_low, y_high=y_high)
