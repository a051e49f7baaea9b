"""Figures of fleets: what each takes, how its queue grows with the rate, what it does over the hours of a day."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import attrs

from joulemap.answer.computed import make_table
from joulemap.answer.fleet.row import OK, FleetRow, LevelRow, QueueRow, Sizing, first_of_each, show_carried
from joulemap.domain.table import Table
from joulemap.figure.figure import Figure, make_figure

SHOWN: Final = 3
"""Fleets whose queue is looked at: of different hardware, the best."""


def look_at_queues(ordered: Sequence[Sizing]) -> Table[QueueRow]:
    """Return how the queues of the best fleets grow with the rate."""
    watched = {one.row.label: one.watch for one in ordered}
    shown = first_of_each(one.row for one in ordered if one.row.status == OK)[:SHOWN]
    return make_table("fleet queue", QueueRow, [one for row in shown for one in watched[row.label]()])


def draw_fleets(
    subject: str,
    told: str,
    fleets: Table[FleetRow],
    queue: Table[QueueRow],
    at_rates: Table[LevelRow],
) -> Iterator[Figure]:
    """Yield what fleets take, their queues, and where there are several rates what they do at each.

    `fleets` are the best of each hardware in their order; `told` is what is said of them.
    """
    if not fleets.rows:
        return
    best = [row.label for row in fleets.rows[:SHOWN]]
    yield make_figure("fleet", fleets, subject, told)
    growth = "; ".join(_tell_growth(row) for row in fleets.rows[:SHOWN])
    for quantity in dict.fromkeys(row.quantity for row in queue):
        rows = tuple(row for row in queue if row.quantity == quantity)
        yield make_figure("queue", attrs.evolve(queue, rows=rows), f"{subject}: {quantity}", growth)
    rates = tuple(row for row in at_rates if row.label in best)
    if len({row.rate_per_s for row in rates}) > 1:
        yield make_figure("day", attrs.evolve(at_rates, rows=rates), subject)


def _tell_growth(row: FleetRow) -> str:
    carried = f"{row.label} carries {show_carried(row.carried_ratio)} the highest rate"
    verb = "fail" if " and " in row.fails_first else "fails"
    return f"{carried}; grown by half, {row.fails_first} {verb} first" if row.fails_first else carried
