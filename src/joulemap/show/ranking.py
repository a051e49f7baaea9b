"""Words for a ranking: the best chip by one metric, and what limits it and the next one."""

from __future__ import annotations

from typing import Final

from joulemap.ask.fact import Choice, Facts, Share
from joulemap.show.choice import MOST_WHY, describe_alone, describe_beyond, describe_choices
from joulemap.show.present.template import Template
from joulemap.show.run_name import name_run

LIMITED: Final = Template("{name} {limits:and}")
TIMES: Final = {
    "launch": Template("spends {share:%} of the time in kernel launches"),
    "memory": Template("spends {share:%} of the time waiting for memory"),
}
"""Part of the time -> its clause."""
UTILIZATION: Final = Template("reaches {share:%} of its compute peak")
IDLE: Final = Template("leaves its {name}s idle {share:%} of the time")


def describe_answer(facts: Facts) -> str:
    """Return the first line: the best run, its lead over the next one, and how sure that is."""
    choice = facts.of(Choice)[0]
    if len(choice.runs) > 1:
        return describe_choices([choice], facts.runs)
    return describe_alone(facts, choice.runs[0])


def list_reasons(facts: Facts) -> list[str]:
    """Return lines on why: what limits the first runs, and named hardware that cannot be bought and would win."""
    clauses: dict[int, list[str]] = {}
    for one in facts.of(Share):
        clauses.setdefault(one.runs[0], []).append(_describe_limit(one))
    lines = [LIMITED(name=name_run(facts.runs[run_id]), limits=limits) for run_id, limits in clauses.items()]
    return [*lines, *describe_beyond(facts)][:MOST_WHY]


def _describe_limit(one: Share) -> str:
    """Return the clause on a share of the time, of the compute peak, or of the units."""
    template = {"utilization": UTILIZATION, "units": IDLE}.get(one.metric) or TIMES[one.name]
    return template(name=one.name, share=one.share)
