"""Words for a sweep over batch sizes: the decision, the batches from which another chip is best, and falls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

import attrs

from joulemap.ask.fact import Change, Choice, Entry, Facts, Limit, Subject, Turn
from joulemap.show.caveat import format_value
from joulemap.show.choice import describe_choice, describe_choices, name_metric
from joulemap.show.present.cell import show_quantity
from joulemap.show.present.template import Template
from joulemap.show.run_name import join_names, name_all, name_run

ALONE: Final = Template(
    "{name} uses {energy_per_inference} per inference (batch {energy_batch}) and reaches {throughput} (batch "
    "{throughput_batch})."
)
ONE_CHIP: Final = Template(
    "{name} uses the least energy per inference at batch {lean:range} and has its highest throughput at batch "
    "{busy:range}, depending on the model."
)
OF_MODELS: Final = {
    "energy_per_inference": Template("{name} uses the least energy per inference for {count} of {models} models"),
    "throughput": Template("{name} has the highest throughput for {count:n model}"),
}
"""Metric -> clause on the chip that is best for most models."""

COURSE: Final = Template("[{settings:list}: ]{nouns:and}: {course}")
ALWAYS: Final = Template("{name} is best at every batch")
FIRST: Final = Template("{name} is best from batch {batch}{turns}")
TURN: Final = Template(", {name} from batch {batch}[ ({remark})]")
TIED: Final = "statistically tied"
FORCED: Final = Template("which {previous} cannot run")

BEYOND_LIMIT: Final = Template("{names} exceed[{s}] {bound:s} at every batch; the nearest takes {value:s}")
ONE: Final = "s"

FALL: Final = Template(
    "{name}: throughput falls from {before:1/s} at batch {batch} to {after:1/s} at batch {last_batch}[, because "
    "{cause}]"
)
CAUSE: Final[Mapping[str, Template]] = {
    "spill": Template("activations spill off chip ({traffic_before} to {traffic_after} per inference)"),
    "clock": Template("the power cap lowers the clock to {clock_fraction:%}"),
}
"""Cause of a fall -> its clause."""

WHY: Final = ("energy_per_inference", "latency")
"""Metrics whose turns are among the reasons, for the model and settings of the decision; the others are notes."""

NOT_SOLD: Final = Template("{name}, which cannot be bought, {clause}")


def describe_answer(facts: Facts) -> str:
    """Return the first line: the best chip by energy and by throughput, or the values of the only chip."""
    choices = list_decided(facts)
    entries = facts.of(Entry)
    if len(entries) == 1:
        values = {name: show_quantity(one.value, one.unit).strip() for name, one in entries[0].values.items()}
        return ALONE(name=name_run(facts.runs[entries[0].runs[0]]), **values)
    models = list(dict.fromkeys(one.model for one in choices))
    if len(models) == 1:
        return describe_choices(choices, facts.runs)
    names = {name_run(facts.runs[one.runs[0]]) for one in entries}
    if len(names) == 1:
        lean, busy = (
            [f"{pick(one.values[name].value for one in entries):.0f}" for pick in (min, max)]
            for name in ("energy_batch", "throughput_batch")
        )
        return ONE_CHIP(name=names.pop(), lean=lean, busy=busy)
    clauses = []
    for metric, template in OF_MODELS.items():
        won = Counter(name_run(facts.runs[one.runs[0]]) for one in choices if one.metric == metric)
        name, count = won.most_common(1)[0]
        clauses.append(template(name=name, count=count, models=len(models)))
    return "; ".join(clauses) + "."


def list_reasons(facts: Facts) -> list[str]:
    """Return lines on why: chips beyond the limit, turns, falls, and named hardware that cannot be bought."""
    decided = list_decided(facts)
    beyond = [
        NOT_SOLD(name=name_run(facts.runs[one.runs[0]]), clause=describe_choice(one, facts.runs))
        for one in facts.of(Choice)
        if one not in decided and facts.runs[one.runs[0]].is_named
    ]
    falls = [describe_fall(one, facts.runs) for one in facts.of(Change)]
    limits = [describe_limit(one, facts.runs) for one in facts.of(Limit)]
    names = WHY if all(not one.model for one in decided) else WHY[:1]
    turns = list_turns(facts, names=names, settings=_find_settings(decided, facts.runs))
    return [*limits, *beyond[:1], *turns, *falls]


def list_other_turns(facts: Facts) -> list[str]:
    """Return the turns that are not among the reasons."""
    shown = list_reasons(facts)
    return [line for line in list_turns(facts) if line not in shown]


def _find_settings(choices: Sequence[Choice], runs: Mapping[int, Subject]) -> tuple[str, ...] | None:
    """Return the model and settings of the first choice, as turns name them; None without a choice."""
    first = next(iter(choices), None)
    return None if first is None else tuple(filter(None, (first.model, *runs[first.runs[0]].settings)))


def describe_limit(limit: Limit, runs: Mapping[int, Subject]) -> str:
    """Return a line on the chips that exceed a limit at every batch."""
    names = name_all(runs, limit.runs)
    value = limit.value.value if limit.value is not None else None
    is_one = ONE if len(names) == 1 else None
    return BEYOND_LIMIT(names=join_names(names), s=is_one, bound=limit.bound.value, value=value)


def list_turns(facts: Facts, *, names: Sequence[str] = (), settings: tuple[str, ...] | None = None) -> list[str]:
    """Return a line per course along the batches: the best chip of some metrics at small batches, and its successors.

    `names` restricts the metrics, `settings` the model and settings; a single group has no settings.
    """
    turns: dict[tuple[tuple[str, ...], str], list[Turn]] = {}
    for one in facts.of(Turn):
        if (not names or one.metric in names) and (settings is None or one.settings in ((), settings)):
            turns.setdefault((one.settings, one.metric or ""), []).append(one)
    nouns: dict[tuple[tuple[str, ...], str], list[str]] = {}
    for (group, metric), course in turns.items():
        nouns.setdefault((group, describe_course(course, facts.runs)), []).append(name_metric(metric))
    return [COURSE(settings=group, nouns=alike, course=course) for (group, course), alike in nouns.items()]


def describe_course(turns: Sequence[Turn], runs: Mapping[int, Subject]) -> str:
    """Return the clause on the turns of one metric, which start with the best run of the smallest batch."""
    first, *later = turns
    name = _name_chip(runs[first.runs[0]])
    if not later:
        return ALWAYS(name=name)
    moves = []
    for before, one in zip(turns, later, strict=False):
        forced = FORCED(previous=_name_chip(runs[before.runs[0]])) if one.is_forced else ""
        remark = TIED if one.is_tied else forced
        moves.append(TURN(name=_name_chip(runs[one.runs[0]]), batch=one.after, remark=remark))
    return FIRST(name=name, batch=first.after, turns="".join(moves))


def describe_fall(fall: Change, runs: Mapping[int, Subject]) -> str:
    """Return a line on a fall of throughput at large batches, with its cause."""
    given = {name: format_value(one) for name, one in fall.values.items()}
    cause = CAUSE[fall.cause](**given) if fall.cause else ""
    return FALL(
        name=name_run(runs[fall.runs[0]]),
        before=fall.before.value,
        after=fall.after.value,
        cause=cause,
        batch=given["batch"],
        last_batch=given["last_batch"],
    )


def _name_chip(run: Subject) -> str:
    """Return the name of a run without its settings, which the line states."""
    return name_run(attrs.evolve(run, settings=()))


def list_decided(facts: Facts) -> list[Choice]:
    """Return the choices of the first line: the first of each model and metric."""
    by_model: dict[tuple[str, str], Choice] = {}
    for one in facts.of(Choice):
        by_model.setdefault((one.model, one.metric), one)
    return list(by_model.values())
