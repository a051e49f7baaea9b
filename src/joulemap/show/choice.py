"""Words for choices and causes: the decision of a comparison, and its reasons."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, cast

import attrs

from joulemap.ask.decision import decide
from joulemap.ask.fact import Choice, Decision, Entry, Facts, Lead, Refusal, Subject
from joulemap.domain.metric import METRIC, TIE_RATIO, MetricName
from joulemap.show.caveat import show_middle
from joulemap.show.present.cell import is_tied, show, show_chance
from joulemap.show.present.template import Template
from joulemap.show.run_name import drop_settings, join_names, name_all, name_first, name_run
from joulemap.show.word import read_words

MOST_WORDS: Final = 25
"""Maximum words of a first line; a long first clause stands alone, because the table marks the other winner."""

MOST_TIED: Final = 4
"""Number of tied chips above which tables mark no chip as the winner."""

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
    "latency": Template("is {ratio:x} {faster}[ than {rival}]"),
    "throughput": Template("has {ratio:x} {more} {noun}[ than {rival}]"),
    "utilization": Template("has {ratio:x} {more} {noun}[ than {rival}]"),
    "edp": Template("has {ratio:x} {less} {noun}[ than {rival}]"),
    "edp_per_inference": Template("has {ratio:x} {less} {noun}[ than {rival}]"),
    "memory": Template("needs {ratio:x} {less} {noun}[ than {rival}]"),
    "power": Template("draws {ratio:x} {less} {noun}[ than {rival}]"),
    "price": Template("costs {ratio:x} {less} per hour[ than {rival}]"),
    "purchase": Template("costs {ratio:x} {less} to buy[ than {rival}]"),
    "cost": Template("costs {ratio:x} {less} per {per}[ than {rival}]"),
    "carbon": Template("emits {ratio:x} {less} CO2 per {per}[ than {rival}]"),
}
"""Metric -> clause on a clear winner or, with the other words of `DEGREES`, on the other run."""


LESS: Final = Template("uses {ratio:x} {less} {noun}[ than {rival}]")
MORE: Final = Template("has {ratio:x} {more} {noun}[ than {rival}]")
"""Clause by a metric that has none of its own, and by one of which more is better."""

DEGREES: Final = {
    True: {"less": "less", "more": "more", "faster": "faster", "lower": "lower"},
    False: {"less": "more", "more": "less", "faster": "slower", "lower": "higher"},
}
"""Words of a clause by whether it is about the better run."""

GOAL: Final = {"latency": "speed"}
"""Metric -> what a run is taken for, if that is not its name."""

SURE: Final = Template("{clause}[ ({chance} sure)]")
LEADS: Final = Template("leads on {noun}[ ({chance} sure)]")
TIED: Final = Template("is statistically tied with {tied} on {noun}[ ({chance} likely best)]")
ALMOST: Final = Template("matches {rival} on {noun}")

TAKE: Final = Template("Take {name}: it {clauses:and}[; {tie}]")
BEST: Final = Template("{name} {clauses:and}[; {tie}]")
TIE: Final = Template("{noun} is a tie")
ALIKE: Final = Template("{noun} is the same")
TRADE: Final = Template("{name} for {noun}, {rival} for {other}: {name} {clauses:and}")
EITHER: Final = Template("{name} or {rival}: a tie on {nouns:and}[ ({chance} for {name})]")
ANY: Final = Template("Take {name}: the {best} {noun}, {value}")
OTHERS: Final = Template("{head}; {count:n other} may be as good")
OTHER: Final = Template("{head}; {name} may be as good")
CHEAPER: Final = Template("{head}; take the cheaper, or measure both")
AT_HAND: Final = Template("{head}; take the one at hand")
PAID: Final = ("cost", "price", "purchase")
"""Metrics by which a tie is no question of the price."""

CHEAPEST: Final = Template("{head}, so take the cheapest, or measure")
SAME: Final = Template("{names} have the same {noun}")
ONLY: Final = Template("{name} uses {energy} and takes {latency} per batch[; {refused:n other chip} cannot run this]")
ALONE: Final = Template("{name} is the only chip that was compared[; {noun}: {value}]")
BEYOND: Final = Template("the projected {name} {clause}, but cannot be bought")


def fits(line: str) -> bool:
    """Return whether a first line is short enough to be read at a glance."""
    return line.count(" ") < MOST_WORDS


def finish(lines: Sequence[str], run: Subject | None = None) -> str:
    """Return the first line that is short enough, or else the last one, as a sentence; `run` is what to take."""
    line = next((one for one in lines if fits(one)), lines[-1])
    return line + ("." if run is None or run.is_available else ", but cannot be bought.")


def describe_answer(facts: Facts) -> str:
    """Return the first line: the decision, or the values of the only run."""
    choices = facts.of(Choice)
    decided = [one for one in choices if facts.runs[one.runs[0]].is_available or one is choices[0]]
    if decided:
        return describe_choices(decided, facts.runs)
    entry = facts.of(Entry)[0]
    shown = {name: show_middle(entry.values[name]) for name in ("energy", "latency")}
    run = facts.runs[entry.runs[0]]
    refused = {chip for one in facts.of(Refusal) if one.runs for chip in one.hardware} - {run.hardware}
    return ONLY(name=name_run(run), refused=len(refused) or None, **shown) + "."


def describe_choices(
    choices: Sequence[Choice], runs: Mapping[int, Subject], add: Template | None = None, **more: Any
) -> str:
    """Return a line on what to take by the first one or two metrics, by how much it wins, and how surely.

    `add` extends the line by the values `more`, unless the line then becomes too long.
    """
    decision = decide([_merge_alike(one, runs) for one in choices[:2]])
    taken, _ = decision.runs
    if len({runs[one].settings for one in decision.runs}) < 2:
        runs = drop_settings(runs, (*decision.runs, *decision.alike))
    lines = _list_heads(decision, choices[0], runs)
    if add is not None:
        lines = [*(add(head=line, **more) for line in lines), *lines]
    return finish(lines, runs[taken])


def _merge_alike(choice: Choice, runs: Mapping[int, Subject]) -> Choice:
    """Return a choice among names: runs of one name, such as the best batch of a chip by each metric, are one."""
    firsts: dict[str, int] = {}
    known = {run_id: firsts.setdefault(name_run(run), run_id) for run_id, run in sorted(runs.items())}

    def merge(ids: Iterable[int]) -> tuple[int, ...]:
        return tuple(dict.fromkeys(known[one] for one in ids))

    further = {known[one]: told for one, told in choice.further.items()}
    tied, equal = merge(choice.tied), merge(choice.equal)
    return attrs.evolve(choice, runs=merge(choice.runs), further=further, tied=tied, equal=equal)


def _list_heads(decision: Decision, choice: Choice, runs: Mapping[int, Subject]) -> list[str]:
    """Return the decision in words, the fullest first."""
    leads, (taken, rival) = decision.leads, decision.runs
    nouns = [name_metric(one.metric, choice.per) for one in leads]
    given = {"name": name_run(runs[taken]), "rival": name_run(runs[rival])}
    if decision.is_trade:
        goals = [GOAL.get(one.metric, noun) for one, noun in zip(leads, nouns, strict=True)]
        clauses = [[describe_lead(one, "", choice.per, is_sure=one in sure) for one in leads]
                   for sure in (leads, leads[:1], ())]  # fmt: skip
        return [TRADE(noun=goals[0], other=goals[1], clauses=some, **given) for some in clauses]
    told = [one for one in leads if not one.is_tied]
    if not told:
        return _list_ties(decision, choice, runs, nouns)
    tied = [(one, noun) for one, noun in zip(leads, nouns, strict=True) if one.is_tied]
    tie = next(((ALIKE if one.ratio == 1.0 else TIE)(noun=noun) for one, noun in tied), "")
    form = TAKE if runs[taken].is_available else BEST
    clauses = [
        [describe_lead(one, given["rival"] if one is told[0] else "", choice.per, is_sure=one in sure) for one in some]
        for some, sure in ((told, told), (told, told[:1]), (told[:1], told[:1]))
    ]
    heads = [form(tie=tie, clauses=some, **given) for some in clauses]
    names = name_all(runs, decision.alike)
    rest = OTHERS if len(names) > 1 else OTHER
    return [*(rest(head=head, count=len(names), name=names[0]) for head in heads[:1] if names), *heads]


def _list_ties(decision: Decision, choice: Choice, runs: Mapping[int, Subject], nouns: Sequence[str]) -> list[str]:
    """Return the words on a tie by every metric, with what to do about it."""
    name, names = name_first(runs, decision), name_all(runs, decision.alike)
    advice = AT_HAND if choice.metric in PAID else CHEAPER
    if all(one.ratio == 1.0 for one in decision.leads):
        return [advice(head=SAME(names=join_names([name, *names]), noun=join_names(nouns)))]
    if len(names) < 2:
        chance = choice.probability if choice.runs[0] == decision.runs[0] else None
        head = EITHER(name=name, rival=names[0], nouns=nouns, chance=show_chance(chance))
        return [advice(head=head), head]
    known = METRIC.get(cast("MetricName", choice.metric))
    best = known.best if known else "lowest"
    head = OTHERS(head=ANY(name=name, best=best, noun=nouns[0], value=show_value(choice)), count=len(names))
    return [(AT_HAND if advice is AT_HAND else CHEAPEST)(head=head), head]


def describe_lead(lead: Lead, rival: str, per: str, *, is_sure: bool = True) -> str:
    """Return the clause on a run that is compared with another one by a metric; an empty `rival` is not named."""
    noun = name_metric(lead.metric, per)
    if lead.ratio is None:
        return LEADS(noun=noun, chance="")
    if lead.ratio < TIE_RATIO:
        return ALMOST(rival=rival or "it", noun=noun)
    known = METRIC.get(cast("MetricName", lead.metric))
    own = BETTER if known else read_words().better
    better = own.get(lead.metric, MORE if known and known.is_higher_better else LESS)
    clause = better(ratio=lead.ratio, rival=rival, noun=noun, per=per, **DEGREES[lead.is_better])
    return SURE(clause=clause, chance=show_chance(lead.probability) if is_sure else "")


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


def describe_choice(choice: Choice, runs: Mapping[int, Subject], rival: str | None = None) -> str:
    """Return the clause on the winner by one metric, without its subject; `rival` replaces the name of the next run."""
    noun = name_metric(choice.metric, choice.per)
    if len(choice.runs) < 2 or choice.ratio is None:
        return LEADS(noun=noun, chance="")
    other = runs[choice.runs[1]]
    if choice.tied or (choice.ratio >= TIE_RATIO and is_tied(choice.probability)):
        tied, chance = join_names(name_all(runs, choice.tied)), show_chance(choice.probability)
        return TIED(noun=noun, chance=chance, tied=tied) if tied else LEADS(noun=noun, chance=chance)
    (lead,) = decide([choice]).leads
    return describe_lead(lead, name_run(other) if rival is None else rival, choice.per)


def describe_alone(facts: Facts, run_id: int) -> str:
    """Return the line on the only chip that was compared, with its value if the answer is about one model."""
    run, choices = facts.runs[run_id], [one for one in facts.of(Choice) if not one.model]
    values = {"noun": name_metric(choices[0].metric), "value": show_value(choices[0])} if choices else {"noun": ""}
    return finish([ALONE(name=name_run(run), **values)], run)


def describe_beyond(facts: Facts) -> list[str]:
    """Return a line on hardware that cannot be bought and would win; empty without any."""
    runs = facts.runs
    beyond = [
        one
        for one in facts.of(Choice)[1:]
        if not runs[one.runs[0]].is_available and (runs[one.runs[0]].is_named or not one.tied)
    ]
    return [BEYOND(name=name_first(runs, one), clause=describe_choice(one, runs)) for one in beyond[:1]]
