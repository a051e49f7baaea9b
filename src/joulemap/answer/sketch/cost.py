"""Costs as a sketch: what a million inferences cost, by what is paid for."""

from __future__ import annotations

from joulemap.answer.candidate import name_candidate
from joulemap.answer.cost import WAYS, CostAnswer
from joulemap.answer.sketch.choice import Choice
from joulemap.answer.sketch.interval import find_ends
from joulemap.present.document import Section
from joulemap.present.sketch import Axis, Bar, Bars, cut_bars


def sketch(answer: CostAnswer, choice: Choice) -> Section:
    """Return the cheapest configuration of each hardware as bars with intervals."""
    bars = []
    for row in answer.rows:
        if row.is_best_of_hardware and row.usd_per_million is not None:
            low, high = find_ends(row.usd_per_million, row.usd_half_width)
            parts = (row.hardware_usd_per_million, row.energy_usd_per_million, row.host_usd_per_million)
            bars.append(
                Bar(
                    label=f"{name_candidate(answer.scope, row)}, {WAYS[row.way]}",
                    value=row.usd_per_million,
                    low=low,
                    high=high,
                    parts=tuple(part or 0.0 for part in parts),
                )
            )
    shown, rest = cut_bars(bars, choice.limit, "hardware")
    drawn = Bars(
        title="Cost of a million inferences, each hardware at its cheapest",
        axis=Axis(label="cost of a million inferences", unit="USD"),
        bars=shown,
        parts=("hardware, or all of a rent", "energy", "host"),
        notes=rest,
    )
    return Section("Sketch", drawn)
