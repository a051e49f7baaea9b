"""Words for a Pareto front: its size and its two ends."""

from __future__ import annotations

from typing import Final, cast

from joulemap.ask.fact import Caveat, Entry, Facts, Front
from joulemap.domain.metric import METRIC, MetricName
from joulemap.show.caveat import describe_caveat
from joulemap.show.present.cell import show
from joulemap.show.present.template import Template
from joulemap.show.run_name import join_names, name_all, name_run

FRONT: Final = Template("{count} configurations are on the front, from {first} to {last}.")
END: Final = Template("{name} ({x}, {y})")
ONE: Final = Template("{end} beats every other configuration.")
ALONE: Final = Template("{end} is the only configuration.")
NOTHING: Final = Template("No configuration has a known {x} and a known {y}.")
LOST: Final = ("unpriced", "elsewhere")
"""Kinds of caveats on hardware that a missing price leaves out."""

BEYOND: Final = Template("{names}, which cannot be bought, would be on the front ({count:n configuration})")


def describe_answer(facts: Facts) -> str:
    """Return the first line: the number of configurations on the front, and its ends."""
    front = next((one for one in facts.of(Front) if one.is_available), None)
    if front is None:
        x, y = (METRIC[name].meaning for name in facts.asked if name in METRIC)
        return NOTHING(x=x, y=y)
    entries = {one.runs[0]: one for one in facts.of(Entry)}
    first, last = (
        END(
            name=name_run(facts.runs[one]),
            **{at: _show(entries[one], name) for at, name in zip("xy", front.metrics, strict=True)},
        )
        for one in (front.runs[0], front.runs[-1])
    )
    if len(front.runs) == 1:
        return (ALONE if front.count < 2 else ONE)(end=first)
    return FRONT(count=len(front.runs), first=first, last=last)


def _show(entry: Entry, name: str) -> str:
    metric = METRIC[cast("MetricName", name)]
    return show(entry.values[name].value, metric.column, metric.unit)


def describe_beyond(facts: Facts) -> list[str]:
    """Return a line on unavailable hardware that would be on the front; empty without any."""
    beyond = [one for one in facts.of(Front) if not one.is_available]
    return [BEYOND(names=join_names(name_all(facts.runs, one.runs)), count=len(one.runs)) for one in beyond]


def list_reasons(facts: Facts) -> list[str]:
    """Return lines on why: named hardware that a missing price leaves out, or that would be on the front."""
    is_named = any(one.is_named for one in facts.runs.values())
    lost = [describe_caveat(one, facts.runs) for one in facts.of(Caveat) if one.kind in LOST]
    return [*lost, *describe_beyond(facts)] if is_named else []
