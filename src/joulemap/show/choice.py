"""Words for choices and causes: the decision of a comparison, and its reasons."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, cast

from joulemap.ask.fact import Cause, Choice, Entry, Facts, Refusal, Subject
from joulemap.domain.metric import METRIC, TIE_RATIO, MetricName
from joulemap.show.present.category import name_category
from joulemap.show.present.cell import is_tied, show, show_chance, show_quantity
from joulemap.show.present.template import Template
from joulemap.show.run_name import drop_settings, join_names, name_all, name_run
from joulemap.show.word import read_words

MOST_WORDS: Final = 25
"""Maximum words of a first line; a long first clause stands alone, because the table marks the other winner."""

MOST_TIED: Final = 4
"""Number of tied chips above which no chip is called the winner."""

MOST_WHY: Final = 3
"""Maximum lines on causes."""

SPOKEN: Final[Mapping[str, Template]] = {
    "energy_per_inference": Template("energy per {per}"),
    "edp_per_inference": Template("energy x delay per {per}"),
    "efficiency": Template("{per}s per joule"),
    "cost": Template("cost per million {per}s"),
    "carbon": Template("carbon per million {per}s"),
}
"""Metric -> its name in a sentence, where `per` is the unit of work; others are named by their label."""

BETTER: Final[Mapping[str, Template]] = {
    "latency": Template("is {ratio:x} faster[ than {rival}]"),
    "edp": Template("has {ratio:x} less {noun}[ than {rival}]"),
    "edp_per_inference": Template("has {ratio:x} less {noun}[ than {rival}]"),
    "memory": Template("needs {ratio:x} less {noun}[ than {rival}]"),
    "power": Template("draws {ratio:x} less {noun}[ than {rival}]"),
    "price": Template("costs {ratio:x} less per hour[ than {rival}]"),
    "purchase": Template("costs {ratio:x} less to buy[ than {rival}]"),
    "cost": Template("costs {ratio:x} less per {per}[ than {rival}]"),
    "carbon": Template("emits {ratio:x} less CO2 per {per}[ than {rival}]"),
}
"""Metric -> clause on a clear winner."""

LESS: Final = Template("uses {ratio:x} less {noun}[ than {rival}]")
MORE: Final = Template("reaches {ratio:x} the {noun}[ of {rival}]")
"""Clause on a clear winner by a metric that has none of its own and of which more is better."""

SURE: Final = Template("{clause}[ ({chance} sure)]")
LEADS: Final = Template("leads on {noun}[ ({chance} sure)]")
TIED: Final = Template("is statistically tied with {tied} on {noun}[ ({chance} likely best)]")
TIES: Final = Template("ties with {tied} on {noun}[ ({chance})]")
"""Clause after one that says what the probability is of."""
TIED_BOTH: Final = Template(
    "is statistically tied with {tied} on {noun}[ ({chance} likely best)] and {other}[ ({other_chance})]"
)
UNDECIDED: Final = Template("{name} and {count} others are statistically tied on {noun}: {value} ({first})")
SAME: Final = Template("{names} have the same {noun}")
ALMOST: Final = Template("matches {rival} on {noun}")
ONLY: Final = Template("{name} uses {energy} and takes {latency} per batch[; {refused:n other chip} cannot run this]")
ALONE: Final = Template("{name} is the only chip that was compared[; {noun}: {value}]")
NOT_SOLD: Final = ", but cannot be bought"
BEYOND: Final = Template("{name}, which cannot be bought, {clause}")
SHARE_OF_ALL: Final = Template("{cause}: {share:%} of all differences to {other}")
AND_OF: Final = Template("{share:%} to {other}")
IDLE: Final = {"idle": "idle power"}
"""Cause beside the categories of energy -> its name: the time between inferences at a fixed rate."""


def fits(line: str) -> bool:
    """Return whether a first line is short enough to be read at a glance."""
    return line.count(" ") < MOST_WORDS


def describe_answer(facts: Facts) -> str:
    """Return the first line: the decision, or the values of the only run."""
    choices = facts.of(Choice)
    decided = [one for one in choices if facts.runs[one.runs[0]].is_available or one is choices[0]]
    if decided:
        return describe_choices(decided, facts.runs)
    entry = facts.of(Entry)[0]
    shown = {name: show_quantity(entry.values[name].value, entry.values[name].unit) for name in ("energy", "latency")}
    run = facts.runs[entry.runs[0]]
    refused = {chip for one in facts.of(Refusal) if one.runs for chip in one.hardware} - {run.hardware}
    return ONLY(name=name_run(run), refused=len(refused) or None, **shown) + "."


def describe_choices(
    choices: Sequence[Choice], runs: Mapping[int, Subject], add: Template | None = None, **more: Any
) -> str:
    """Return a line on the winner by each of the first two metrics, by how much, and how surely.

    `add` extends the line by the values `more`, unless the line then becomes too long.
    """
    first, *others = choices[:2]
    name, noun = name_run(runs[first.runs[0]]), name_metric(first.metric, first.per)
    if len(first.tied) > MOST_TIED:
        given = {"value": show_value(first)}
        given["first"] = name_run(drop_settings(runs, (*first.runs[:1], *first.tied))[first.runs[0]])
        return UNDECIDED(name=name, count=len(first.tied), noun=noun, **given) + "."
    if first.equal:
        head = SAME(names=join_names(name_all(drop_settings(runs, first.equal), first.equal)), noun=noun)
    elif others and others[0].runs[0] == first.runs[0] and first.tied and set(others[0].tied) == set(first.tied):
        (other,) = others
        head = f"{name} " + TIED_BOTH(
            noun=noun, chance=show_chance(first.probability), other=name_metric(other.metric, other.per),
            other_chance=show_chance(other.probability), tied=join_names(name_all(runs, first.tied)),
        )  # fmt: skip
        others = []
    else:
        rivals = drop_settings(runs, (*first.runs[:2], *first.tied))
        head = f"{name} {describe_choice(first, rivals)}"
    for other in others:
        is_same = other.runs[0] == first.runs[0] and not first.equal
        rival = "" if is_same and other.runs[:2] == first.runs[:2] else None
        clause = describe_choice(other, runs, rival, is_second=bool(first.tied))
        whole = f"{head} and {clause}" if is_same else f"{head}; {name_run(runs[other.runs[0]])} {clause}"
        head = whole if fits(whole) else head
    head += "" if runs[first.runs[0]].is_available else NOT_SOLD
    whole = add(head=head, **more) if add is not None else head
    return (whole if fits(whole) else head) + "."


def describe_best(facts: Facts, add: Template | None = None, **more: Any) -> str:
    """Return the line on the first choice, or on the only run; see `describe_choices`."""
    choice = facts.of(Choice)[0]
    if len(choice.runs) < 2:
        return describe_alone(facts, choice.runs[0])
    return describe_choices([choice], facts.runs, add, **more)


def show_value(choice: Choice) -> str:
    """Return the value of the winner, a share in percent."""
    known = METRIC.get(cast("MetricName", choice.metric))
    return show(choice.value.value, known.column if known else "", choice.value.unit)


def name_metric(metric: str, per: str = "inference") -> str:
    """Return the name of a metric of the core, or of a wing, in a sentence; `per` is the unit of work."""
    if metric in SPOKEN:
        return SPOKEN[metric](per=per)
    known = METRIC.get(cast("MetricName", metric))
    return known.label if known else read_words().nouns[metric]


def describe_choice(
    choice: Choice, runs: Mapping[int, Subject], rival: str | None = None, *, is_second: bool = False
) -> str:
    """Return the clause on the winner by one metric, without its subject; `is_second` after another on a tie."""
    chance, noun = show_chance(choice.probability), name_metric(choice.metric, choice.per)
    if len(choice.runs) < 2 or choice.ratio is None:
        return LEADS(noun=noun, chance="")
    other = name_run(runs[choice.runs[1]])
    if choice.ratio < TIE_RATIO and not choice.tied:
        return ALMOST(rival=other, noun=noun)
    if choice.tied or is_tied(choice.probability):
        tied = join_names(name_all(runs, choice.tied))
        template = TIES if is_second else TIED
        return template(noun=noun, chance=chance, tied=tied) if tied else LEADS(noun=noun, chance=chance)
    known = METRIC.get(cast("MetricName", choice.metric))
    own = BETTER if known else read_words().better
    better = own.get(choice.metric, MORE if known and known.is_higher_better else LESS)
    clause = better(ratio=choice.ratio, rival=other if rival is None else rival, noun=noun, per=choice.per)
    return SURE(clause=clause, chance=show_chance(choice.lead_probability))


def describe_alone(facts: Facts, run_id: int) -> str:
    """Return the line on the only chip that was compared, with its value if the answer is about one model."""
    name, choices = name_run(facts.runs[run_id]), [one for one in facts.of(Choice) if not one.model]
    values = {"noun": name_metric(choices[0].metric), "value": show_value(choices[0])} if choices else {"noun": ""}
    return ALONE(name=name, **values) + ("" if facts.runs[run_id].is_available else NOT_SOLD) + "."


def list_reasons(facts: Facts) -> list[str]:
    """Return lines on why: what the winner saves, and hardware that cannot be bought and would win."""
    return [*describe_causes(facts.of(Cause)[:2], facts.runs), *describe_beyond(facts)][:MOST_WHY]


def describe_beyond(facts: Facts) -> list[str]:
    """Return a line on named hardware that cannot be bought and would win; empty without any."""
    beyond = [one for one in facts.of(Choice)[1:] if not facts.runs[one.runs[0]].is_available]
    return [
        BEYOND(name=name_run(facts.runs[one.runs[0]]), clause=describe_choice(one, facts.runs))
        for one in beyond[:1]
        if facts.runs[one.runs[0]].is_named
    ]


def describe_causes(causes: Iterable[Cause], runs: Mapping[int, Subject]) -> list[str]:
    """Return one line per category: its share of the difference to each compared run."""
    lines: dict[str, list[str]] = {}
    for one in causes:
        own, other = (name_run(runs[run_id]) for run_id in one.runs)
        given = {"name": own, "other": other, "cause": IDLE.get(one.name) or name_category(one.name)}
        if clauses := lines.get(one.name):
            clauses.append(AND_OF(share=one.share, **given))
        else:
            lines[one.name] = [SHARE_OF_ALL(share=one.share, **given)]
    return [", ".join(parts) for parts in lines.values()]
