"""Words on an energy-delay product: what makes most of it, and what would reduce it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from joulemap.ask.fact import Change, Choice, Entry, Facts, Share
from joulemap.present.cell import show_quantity
from joulemap.present.template import Template
from joulemap.show.choice import MOST_WHY, describe_beyond, describe_choices
from joulemap.show.run_name import name_run

ALONE: Final = Template("{name} has an energy x delay of {edp}[; {share:%} of it in {count} of {total} subgraphs]")
BESIDE: Final = Template("{head}; {share:%} of that on {name} in {count} of {total} subgraphs")
ON: Final = Template("on {name}, {line}")

WINS: Final = Template("least energy x delay of {total:n subgraph}: {wins:list}")
WIN: Final = Template("{count} on {name}")
PATTERN: Final = Template("largest fusion pattern: {name}, {share:%} in {count:n subgraph}")

CHANGE: Final[Mapping[str, Template]] = {
    "roofline": Template("with every subgraph at its roofline: {saving:%} less ({after})"),
    "no_memory_wait": Template("without waiting for memory: at most {saving:%} less"),
    "full_units": Template("without padding and partly filled waves: at most {saving:%} less"),
    "no_launch": Template("without the fixed cost of kernels: {saving:%} less"),
    "no_static": Template("without static power: {saving:%} less"),
    "no_control": Template("without control energy: {saving:%} less"),
    "launch": Template("without launches by the host (`--runtime graph`): {saving:%} less"),
    "halving": Template("with half the energy and time of {name}: {saving:%} less"),
    "fusion": Template("fusion saves {saving:%} of {before} with one kernel per operator"),
    "cost": Template("fusion costs {more:%} more than {before} with one kernel per operator"),
}
"""Cause of a change -> what it saves. Fusion that does not save is a `cost`."""


def describe_product(facts: Facts) -> str:
    """Return the first line: the product of one run or the least of several, and the subgraphs that make half."""
    half = next(one for one in facts.of(Share) if one.level == "subgraph" and one.metric == "edp")
    entry = facts.of(Entry)[0]
    name = name_run(facts.runs[half.runs[0]])
    given: dict[str, Any] = {"count": half.count, "total": half.total, "share": half.share, "name": name}
    if choices := facts.of(Choice):
        return describe_choices(choices[:1], facts.runs, BESIDE if half.total > 1 else None, **given)
    edp = entry.values["edp"]
    shown = given if half.total > 1 else {**given, "count": None, "total": None, "share": None}
    return ALONE(edp=show_quantity(edp.value, edp.unit), **shown) + "."


def list_reasons(facts: Facts) -> list[str]:
    """Return lines on which chip has the least product of most subgraphs, what would save most, and concentration."""
    changes = [describe_change(one) for one in facts.of(Change)]
    if facts.of(Choice):
        own = name_run(facts.runs[facts.of(Entry)[0].runs[0]])
        changes = [ON(name=own, line=line) for line in changes]
    return [*describe_beyond(facts), *_describe_wins(facts), *changes, *_describe_pattern(facts)][:MOST_WHY]


def describe_change(change: Change) -> str:
    """Return what a change saves of the product."""
    before, after = change.before, change.after
    is_cost = change.cause == "fusion" and after.value > before.value
    return CHANGE["cost" if is_cost else change.cause](
        saving=1.0 - after.value / before.value,
        more=after.value / before.value - 1.0,
        before=show_quantity(before.value, before.unit),
        after=show_quantity(after.value, after.unit),
        name=str(change.values.get("name", "")),
    )


def _describe_wins(facts: Facts) -> Iterator[str]:
    wins = [one for one in facts.of(Share) if one.metric == "wins"]
    if wins and wins[0].total > 1:
        named = [WIN(count=one.count, name=name_run(facts.runs[one.runs[0]])) for one in wins]
        yield WINS(total=wins[0].total, wins=named)


def _describe_pattern(facts: Facts) -> Iterator[str]:
    for one in facts.of(Share):
        if one.level == "pattern":
            yield PATTERN(name=one.name, share=one.share, count=one.count)
