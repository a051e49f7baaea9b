"""Words for a contrast of architecture classes: which uses the least energy, and where the classes spend theirs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

import attrs

from joulemap.ask.fact import Choice, Entry, Facts, Share
from joulemap.show.choice import MOST_WHY, describe_alone, describe_beyond, describe_choices
from joulemap.show.present.category import name_category
from joulemap.show.present.template import Template
from joulemap.show.run_name import name_run

CLASS: Final = Template("{architecture} ({hardware})")
MOSTLY: Final = Template("{head}; {share:%} is {part}")

ADDED: Final = Template("overhead takes {low:plain}x ({least}) to {high:plain}x ({most}) the energy of computing")
WAITING: Final = Template(
    "static power is most of the energy on {names:and}[; kernel launches take most of the time on {launching:and}]"
)
SPREAD: Final = Template("computing alone takes {low:J} ({least}) to {high:J} ({most}) per MAC")

DOMINANT: Final = 0.5
"""Share of an energy, or of a time, above which a part counts as its main cause."""


def name_classes(facts: Facts) -> Facts:
    """Return the facts with each run named by its class and hardware, or by its hardware if another has its class."""
    count = Counter(one.architecture for one in facts.runs.values())
    runs = {
        run_id: attrs.evolve(one, hardware=CLASS(one)) if count[one.architecture] == 1 else one
        for run_id, one in facts.runs.items()
    }
    return attrs.evolve(facts, runs=runs)


def describe_answer(facts: Facts) -> str:
    """Return the first line: the class with the least energy, by how much, how surely, and its largest part."""
    named, choice = name_classes(facts), facts.of(Choice)[0]
    if len(choice.runs) < 2:
        return describe_alone(named, choice.runs[0])
    own = next(one for one in facts.of(Share) if one.metric == "energy" and one.runs[0] == choice.runs[0])
    return describe_choices([choice], named.runs, MOSTLY, part=name_category(own.name), share=own.share)


def list_reasons(facts: Facts) -> list[str]:
    """Return lines on why: a named class that cannot be bought and would win, the overhead of each class, what waits,
    and the energy of computing alone; the last ones need several classes with MACs.
    """
    return [*describe_beyond(name_classes(facts)), *describe_contrast(facts)][:MOST_WHY]


def describe_contrast(facts: Facts) -> list[str]:
    """Return lines that compare the classes; empty for fewer than two, or a model without MACs."""
    entries = [one for one in facts.of(Entry) if "compute_per_mac" in one.values]
    if len(entries) < 2:
        return []
    added = sorted((one.values["overhead"].value, one.runs[0]) for one in entries if "overhead" in one.values)
    alone = sorted((one.values["compute_per_mac"].value, one.runs[0]) for one in entries)
    waiting = _list_dominant(facts, "energy", "static")
    launching = [run_id for run_id in _list_dominant(facts, "latency", "launch") if run_id in waiting]
    lines = []
    if added:
        (low, least), (high, most) = added[0], added[-1]
        ends = {"least": _name(facts, least), "most": _name(facts, most)}
        lines.append(ADDED(low=low, high=high, **ends))
    if waiting:
        lines.append(WAITING(names=_name_all(facts, waiting), launching=_name_all(facts, launching)))
    (low, least), (high, most) = alone[0], alone[-1]
    ends = {"least": _name(facts, least), "most": _name(facts, most)}
    return [*lines, SPREAD(low=low, high=high, **ends)]


def _list_dominant(facts: Facts, metric: str, name: str) -> list[int]:
    """Return the runs of which a part takes most."""
    shares = (one for one in facts.of(Share) if (one.metric, one.name) == (metric, name))
    return [one.runs[0] for one in shares if one.share >= DOMINANT]


def _name_all(facts: Facts, ids: Iterable[int]) -> list[str]:
    return [_name(facts, run_id) for run_id in ids]


def _name(facts: Facts, run_id: int) -> str:
    """Return the class of a run, or its hardware if another has its class."""
    run = facts.runs[run_id]
    is_alone = sum(one.architecture == run.architecture for one in facts.runs.values()) == 1
    return run.architecture if is_alone else name_run(run)
