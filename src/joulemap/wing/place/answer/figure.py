"""Figures of a placement: candidates side by side, a batch over time, and the energy difference of a mixture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from joulemap.show.figure.figure import make_figure
from joulemap.show.present.template import Template
from joulemap.show.waterfall import draw_bars, form_bars
from joulemap.system.units import FJ_PER_J

if TYPE_CHECKING:
    from joulemap.domain.table import Table
    from joulemap.show.page import Figures
    from joulemap.wing.place.answer.row import EventRow, PlacementRow
    from joulemap.wing.place.generated.row import PlacementDifference


TIMELINE: Final = Template("{title}: {placement}, {form}")
TIMES: Final = Template("{name} {seconds:s}")
ENERGY: Final = Template("{title}: energy per batch")
ALONE: Final = Template("A {placement} alone")
MIXTURE: Final = Template("B {placement}, {form}")
ACTION: Final = Template("{device}: {component} {action}")


def draw(
    title: str,
    why: str,
    rows: Table[PlacementRow],
    timeline: Table[EventRow],
    differences: Table[PlacementDifference],
) -> Figures:
    """Return figures of the placements, their timelines and their energy difference."""
    drawn = [make_figure("placement", rows, title, why)]
    for placement, form in dict.fromkeys((row.placement, row.form) for row in timeline):
        events = tuple(row for row in timeline if (row.placement, row.form) == (placement, form))
        subject = TIMELINE(title=title, placement=placement, form=form)
        drawn.append(make_figure("timeline", timeline.with_rows(events), subject, _add_times(events)))
    if differences.rows:
        run = [row for row in rows if row.copy_s is not None]
        alone, mixed = (next(row for row in run if (row.form == "alone") is is_alone) for is_alone in (True, False))
        start = sum(row.first_fj for row in differences)
        end = start + sum(row.difference_fj for row in differences)
        ends = [(ALONE(alone), start), (MIXTURE(mixed), end)]
        bars = form_bars(ends, [(ACTION(row), row.difference_fj) for row in differences], "J", FJ_PER_J)
        drawn.append(draw_bars(bars, "energy", ENERGY(title=title), ""))
    return tuple(drawn)


def _add_times(events: Sequence[EventRow]) -> str:
    """Return a text with the total time of each device and of the copies in one batch."""
    taken: dict[str, float] = {}
    for row in events:
        name = row.device if row.kind == "subgraph" else "copies"
        taken[name] = taken.get(name, 0.0) + row.taken_s
    return ", ".join(TIMES(name=name, seconds=seconds) for name, seconds in taken.items())
