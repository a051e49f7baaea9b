"""Pictures of the page as data: places from 0 to 1, and the texts beside them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

from joulemap.ask import Quantity, Term
from joulemap.physics import TOLD_APART
from joulemap.show import show_chance, show_ends, show_quantity, show_share
from joulemap.show.present.category import CATEGORY, name_category
from joulemap.show.present.cell import show_signed
from joulemap.system import FJ_PER_J
from joulemap.wing.tab import show
from joulemap.wing.tab.axis import Axis

Block = dict[str, Any]
"""Picture as JSON; `kind` says how it is drawn."""


def draw_intervals(heading: str, rows: Sequence[tuple[str, Quantity, str]]) -> Block:
    """Return values with intervals on one logarithmic axis; rows have name, value and mark: `best`, `tied` or none."""
    ends = [_find_ends(value) for _, value, _ in rows]
    axis = Axis.over((one for pair in ends for one in pair), rows[0][1].unit)
    return {
        "kind": "intervals",
        "heading": heading,
        "ticks": axis.ticks,
        "rows": [
            {
                "name": name,
                "mark": mark,
                "places": [axis.place(low), axis.place(value.value), axis.place(high)],
                "value": show_quantity(value.value, value.unit),
                "range": show_ends(value.value, value.unit, value.half_width),
                "numbers": [low, value.value, high],
            }
            for (name, value, mark), (low, high) in zip(rows, ends, strict=True)
        ],
    }


def _find_ends(value: Quantity) -> tuple[float, float]:
    factor = math.exp(value.half_width or 0.0)
    return value.value / factor, value.value * factor


def draw_parts(rows: Sequence[tuple[str, Mapping[str, int]]]) -> Block:
    """Return the energy of each chip in femtojoules, divided by category."""
    names = [name for name in CATEGORY if any(parts.get(name) for _, parts in rows)]
    drawn = []
    for name, parts in rows:
        whole = sum(parts.values())
        shares = [parts.get(one, 0) / whole for one in names]
        value = show_quantity(whole / FJ_PER_J, "J")
        drawn.append({"name": name, "shares": shares, "texts": [show_share(one) for one in shares], "value": value})
    return {
        "kind": "parts",
        "heading": show.PARTS,
        "keys": names,
        "names": [name_category(one) for one in names],
        "rows": drawn,
    }


def draw_front(rows: Sequence[tuple[str, float, float, float]]) -> Block:
    """Return chips by latency and energy; rows have name, latency in s, energy in J, and the probability of each to be
    on the front.
    """
    x, y = Axis.over((row[1] for row in rows), "s"), Axis.over((row[2] for row in rows), "J")
    points, lowest = [], math.inf
    for name, latency, energy, chance in sorted(rows, key=lambda row: (row[1], row[2])):
        is_front, lowest = energy < lowest, min(lowest, energy)
        points.append(
            {
                "name": name,
                "x": x.place(latency),
                "y": y.place(energy),
                "is_front": is_front,
                "is_likely": is_front and chance >= TOLD_APART,
                "text": show.ON_FRONT(
                    name=name,
                    latency=show_quantity(latency, "s"),
                    energy=show_quantity(energy, "J"),
                    chance=show_chance(chance) if is_front else "",
                ),
            }
        )
    return {"kind": "front", "heading": show.FRONT, "x": x.ticks, "y": y.ticks, "points": points, "legend": show.LEGEND}


def draw_waterfall(names: Sequence[str], ends_fj: Sequence[int], terms: Sequence[Term]) -> Block:
    """Return the steps from one energy to another, which follow each other and end at the second exactly."""
    places = list(accumulate((term.exact or 0 for term in terms), initial=ends_fj[0]))
    largest = max(*places, *ends_fj)
    ends = [
        {"name": name, "from": 0.0, "to": energy / largest, "value": show_quantity(energy / FJ_PER_J, "J")}
        for name, energy in zip(names, ends_fj, strict=True)
    ]
    steps = [
        {
            "name": name_category(term.name),
            "from": before / largest,
            "to": after / largest,
            "sides": [show_quantity(one.value, one.unit) for one in term.amounts],
            "value": show_signed(term.difference.value, term.difference.unit),
            "exact": str(term.exact),
        }
        for term, before, after in zip(terms, places, places[1:], strict=False)
    ]
    first, second = names
    heading = show.WATERFALL(first=first, second=second)
    return {"kind": "waterfall", "heading": heading, "ends": ends, "steps": steps}
