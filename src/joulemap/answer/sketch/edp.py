"""The energy-delay product as a sketch: how fast the largest shares add up to all of it."""

from __future__ import annotations

from typing import Any, Final

from joulemap.answer.edp.answer import EdpAnswer
from joulemap.answer.sketch.choice import Choice
from joulemap.domain.table import Table
from joulemap.present.cell import show_share
from joulemap.present.document import Section
from joulemap.present.sketch import Axis, Chart, Curve, Point

NAMED: Final = 10
"""Largest shares that have a letter."""


def sketch(answer: EdpAnswer, choice: Choice) -> Section:
    """Return the shares added up, the largest first, as a curve."""
    by = "operator" if choice.by == "operator" else "subgraph"
    rows: Table[Any] = answer.subgraphs if by == "subgraph" else answer.operators
    points = tuple(Point(x=float(row.rank), y=row.cumulative_fraction) for row in rows)
    named = [
        Curve(name=f"{row.name} {show_share(row.share_fraction)}", points=(point,))
        for row, point in zip(rows.rows[:NAMED], points, strict=False)
    ]
    chart = Chart(
        title=f"Share of energy x delay that the largest {by}s add up to",
        x=Axis(label=f"{by}s, the largest first", is_log=False),
        y=Axis(label="added up", unit="%", is_log=False),
        curves=(Curve(points=(Point(x=0.0, y=0.0), *points), is_line=True, has_points=False), *named),
    )
    return Section("Sketch", chart)
