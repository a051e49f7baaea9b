"""Figures of a placement: candidates side by side, a batch over time, and the energy difference of a mixture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import attrs

from joulemap.answer.explain.waterfall import draw_steps, form_steps
from joulemap.figure.figure import make_figure
from joulemap.present.cell import show_quantity
from joulemap.system.units import FJ_PER_J

if TYPE_CHECKING:
    from joulemap.answer.answer import Figures
    from joulemap.domain.table import Table
    from joulemap.wing.place.answer.row import EventRow, PlacementRow
    from joulemap.wing.place.row import PlacementDifference


def draw(
    title: str,
    why: str,
    rows: Table[PlacementRow],
    timeline: Table[EventRow],
    differences: Table[PlacementDifference],
) -> Figures:
    """Return figures of the placements, their timelines and their energy difference."""
    drawn = [make_figure("placement", rows, title, why)]
    for way in dict.fromkeys((row.placement, row.form) for row in timeline):
        events = tuple(row for row in timeline if (row.placement, row.form) == way)
        told = attrs.evolve(timeline, rows=events)
        drawn.append(make_figure("timeline", told, f"{title}: {', '.join(way)}", _describe_events(events)))
    if differences.rows:
        run = [row for row in rows if row.copy_s is not None]
        names = [next(row for row in run if (row.form == "alone") is is_alone) for is_alone in (True, False)]
        start = sum(row.first_fj for row in differences)
        end = start + sum(row.difference_fj for row in differences)
        ends = [(f"A {names[0].placement} alone", start), (f"B {names[1].placement}, {names[1].form}", end)]
        terms = [(f"{row.device}: {row.component} {row.action}", row.difference_fj) for row in differences]
        steps = form_steps(ends, terms, "J", FJ_PER_J)
        drawn.append(draw_steps(steps, "energy", f"{title}: energy of a batch", ""))
    return tuple(drawn)


def _describe_events(events: Sequence[EventRow]) -> str:
    """Return the total time of each device and of copies in a batch."""
    taken: dict[str, float] = {}
    for row in events:
        name = row.device if row.kind == "subgraph" else "copies"
        taken[name] = taken.get(name, 0.0) + row.taken_s
    return ", ".join(f"{name} {show_quantity(seconds, 's')}" for name, seconds in taken.items())
