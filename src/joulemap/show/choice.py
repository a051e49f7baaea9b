"""Words for choices and causes: the decision of a comparison, and its reasons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from joulemap.ask.decision import PAID, decide
from joulemap.ask.fact import Choice, Decision, Entry, Facts, Lead, Refusal, Subject
from joulemap.domain.metric import METRIC, TIE_RATIO
from joulemap.show.caveat import show_middle
from joulemap.show.present.cell import is_tied, show, show_chance, show_count, show_plain, show_span
from joulemap.show.present.template import Template
from joulemap.show.present.text import count_numbers
from joulemap.show.run_name import drop_settings, join_names, name_all, name_first, name_run
from joulemap.show.word import read_words

MOST_WORDS: Final = 25
"""Maximum words of a first line; a long first clause stands alone, because the table marks the other winner."""

MOST_NUMBERS: Final = 5
"""Maximum numbers of a first line; the digits of a name are none."""

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

GOAL: Final = {"latency": "speed", "energy_per_inference": "energy", "edp_per_inference": "energy x delay"}
"""Metric -> what a run is taken for, if that is not its name."""

SURE: Final = Template("{clause}[ ({chance} sure)]")
LEADS: Final = Template("leads on {noun}[ ({chance} sure)]")
AMONG_BEST: Final = Template("is among the best on {noun}")
TIED: Final = Template("is statistically tied with {tied} on {noun}[ ({chance} likely best)]")
ALMOST: Final = Template("matches {rival} on {noun}")

AT: Final = Template("[At {settings:list}: ]{head}")
"""Line with the settings that both runs of a trade-off share."""

TAKE: Final = Template("Take {name}: it {clauses:and}[; {tie} is a tie][; {same} is the same]")
BEST: Final = Template("{name} {clauses:and}[; {tie} is a tie][; {same} is the same]")
AMONG: Final = Template("A tie on {noun}[ ({chance} for {best})]: take {name}, which {clauses:and}")
AMONG_SAME: Final = Template("The same {noun}: take {name}, which {clauses:and}")
"""Line on runs that are tied by the deciding metric, and of which another metric tells which one to take."""
TRADE: Final = Template("{name} for {noun}, {rival} for {other}: {name} {clauses:and}")
EITHER: Final = Template("{name} or {rival}: a tie on {noun}[ ({chance} for {name})][ and {other}]")
SOLD_ALONE: Final = Template("Take {name}: of these chips, it alone can be bought")
ANY: Final = Template("Take {name}: the {best} {noun}, {value}[ ({chance} likely best)]")
OTHERS: Final = Template("{head}; {names} may be as good[ on {noun}]")
CHEAPER: Final = Template("{head}; take the cheaper")
ANY_OF: Final = Template("{head}; take either, or measure both")
TIES: Final = Template("{name} for {own:and}, {rival} for {others:and}, {count} ties: {name} {clauses:and}")
TAKE_TIED: Final = Template("Take {name}[, unless {other} costs less]: it {clauses:and}, {count} ties")
BEST_TIED: Final = Template("{name} {clauses:and}, {count} ties")
"""Lines on two runs that are tied by several metrics: each is predicted to be better by one, or one by all; the run to
take is the cheaper one where a price is known.
"""

SAME: Final = Template("{names} have the same {noun}")
ONLY: Final = Template("{name} uses {energy} and takes {latency} per batch")
ALONE: Final = Template("{name} is the only chip that was compared[; {noun}: {value}]")
NOT_SOLD: Final = ", but cannot be bought."
NONE_SOLD: Final = "; none can be bought."
UNSOLD: Final = Template("; {name} cannot be bought.")
"""End of a sentence that names further runs behind the one to take."""
BEYOND: Final = Template("{name} {clause}, but cannot be bought")


def fits(line: str) -> bool:
    """Return whether a first line is short enough to be read at a glance."""
    return line.count(" ") < MOST_WORDS and count_numbers(line) <= MOST_NUMBERS


def finish(lines: Sequence[str], run: Subject | None = None, unsold: str = NOT_SOLD) -> str:
    """Return the first line that is short enough, or else the last one, as a sentence.

    `run` is what to take, and `unsold` the end of a sentence on what cannot be bought.
    """
    line = next((one for one in lines if fits(one)), lines[-1])
    return line + ("." if run is None or run.is_available else unsold)


def describe_answer(facts: Facts) -> str:
    """Return the first line: the decision, or the values of the only run."""
    if choices := facts.of(Choice):
        return describe_choices(choices, facts.runs)
    entry = facts.of(Entry)[0]
    shown = {name: show_middle(entry.values[name]) for name in ("energy", "latency")}
    return ONLY(name=name_run(facts.runs[entry.run]), **shown) + "."


def describe_choices(choices: Sequence[Choice], runs: Mapping[int, Subject], *add: Template, **more: Any) -> str:
    """Return a line on what to take by the first one or two metrics, by how much it wins, and how surely.

    Each of `add` extends the line by the values `more`; the first one with which it is short enough does.
    """
    decision = decide(choices, runs)
    taken, name = decision.run, name_run(runs[decision.run])  # with its settings, even if its rivals share them
    settings = runs[taken].settings
    shared: tuple[str, ...] = ()
    if len({runs[one].settings for one in decision.runs}) < 2:
        runs = drop_settings(runs, (*decision.runs, *decision.alike))
        if decision.is_trade and not any(runs[one].settings for one in decision.runs):
            shared, name = settings, name_run(runs[taken])
    lines = _list_heads(decision, runs, name) if len(decision.runs) > 1 else [SOLD_ALONE(name=name)]
    lines = [*(one(head=line, **more) for one in add for line in lines), *lines]
    lines = [AT(settings=shared, head=one) for one in lines]
    ties = [one.is_tied for one in decision.leads]
    unsold = UNSOLD(name=name_run(runs[taken])) if decision.alike or any(ties) else NOT_SOLD
    return finish(lines, runs[taken], NONE_SOLD if all(ties) else unsold)


def _list_heads(decision: Decision, runs: Mapping[int, Subject], name: str) -> list[str]:
    """Return the decision in words, the fullest first."""
    leads, (taken, rival), choice = decision.leads, decision.runs, decision.choice
    nouns = [name_metric(one.metric, choice.per) for one in leads]
    given = {"name": name, "rival": name_run(runs[rival]), "noun": nouns[0]}
    told = [one for one in leads if not one.is_tied]
    if not told:
        return _list_ties(decision, runs, nouns)
    goals = [GOAL.get(one.metric, noun) for one, noun in zip(leads, nouns, strict=True)]
    form = TRADE if decision.is_trade else TAKE if runs[taken].is_available else BEST
    if leads[0].is_tied and form is TAKE:
        form = AMONG_SAME if leads[0].ratio == 1.0 else AMONG
        given["noun"] = join_names([noun for one, noun in zip(leads, nouns, strict=True) if one.is_tied])
        given |= {"best": name_run(runs[choice.run]), "chance": show_chance(choice.probability)}
    elif decision.is_trade:
        given |= {"noun": goals[0], "other": goals[1]}
    tie, same = ([noun for one, noun in zip(leads, nouns, strict=True) if one.is_tied and (one.ratio == 1.0) == is_same]
                 for is_same in (False, True))  # fmt: skip
    given |= {"tie": join_names(tie), "same": join_names(same)}
    than = "" if decision.is_trade else given["rival"]
    clauses = [
        [
            describe_lead(
                one,
                than if one is told[0] else "",
                choice.per,
                is_sure=one in sure,
                has_range=one is told[0] and ranged,
            )
            for one in some
        ]
        for some, sure, ranged in (
            (told, told, True),
            (told, told[:1], True),
            (told, told, False),
            (told, told[:1], False),
            (told, (), False),
            (told[: 2 * decision.is_trade or 1], (), False),
        )
    ]
    heads = [form(**{**given, "clauses": some}) for some in clauses]
    names = name_all(runs, decision.alike)
    noun = goals[0] if decision.is_trade else ""
    return [*(OTHERS(head=head, names=_count(names), noun=noun) for head in heads if names), *heads]


def _count(names: Sequence[str]) -> str:
    """Return the only name, or the number of several."""
    return names[0] if len(names) == 1 else show_count(len(names), "other")


def _list_ties(decision: Decision, runs: Mapping[int, Subject], nouns: Sequence[str]) -> list[str]:
    """Return the words on a tie by every metric, first with what to do about it if a cheaper run can be bought."""
    taken, choice = decision.run, decision.choice
    names = name_all(runs, dict.fromkeys((*decision.alike, *decision.runs[1:])))
    name, is_first = name_run(runs[taken]), choice.run == taken
    chance = show_chance(choice.probability if is_first else None)
    if len(names) > 1 and any(one.ratio != 1.0 for one in decision.leads):
        known = METRIC.get(choice.metric)
        given = {"best": known.best if known else "lowest", "noun": nouns[0], "value": show_value(choice)}
        heads = [ANY(name=name, chance=some, **given) for some in (chance, "")]
        return [OTHERS(head=head, names=_count(names), noun="") for head in heads]
    is_sold, has_price = runs[taken].is_available, not PAID.isdisjoint(one.metric for one in decision.leads)
    has_price |= len({runs[one].hardware for one in decision.runs}) < 2
    if all(one.ratio == 1.0 for one in decision.leads):
        heads = [SAME(names=join_names([name, *names]), noun=join_names(nouns))]
    elif len(nouns) < 2 or len(names) > 1:
        heads = [EITHER(name=name, rival=names[0], noun=nouns[0], other=join_names(nouns[1:]), chance=chance)]
    else:
        return _list_split_ties(decision, name, names[0], nouns, has_price=has_price, is_sold=is_sold)
    return [(ANY_OF if has_price else CHEAPER)(head=one) for one in heads if is_sold] + heads


def _list_split_ties(
    decision: Decision, name: str, rival: str, nouns: Sequence[str], *, has_price: bool, is_sold: bool
) -> list[str]:
    """Return the words on two runs that are tied by each of several metrics, by which each is predicted to be better
    than the other one.
    """
    leads, per = sorted(decision.leads, key=lambda one: not one.is_better), decision.choice.per
    goals = {one.metric: GOAL.get(one.metric, noun) for one, noun in zip(decision.leads, nouns, strict=True)}
    is_ahead = {one.metric: one.is_better or (one.ratio or 1.0) < TIE_RATIO for one in leads}
    is_split = len({*is_ahead.values()}) > 1 and not (has_price and is_sold)
    few = (
        [next(one for one in leads if is_ahead[one.metric] == side) for side in (True, False)]
        if is_split
        else leads[:2]
    )
    form = TIES if is_split else TAKE_TIED if is_sold else BEST_TIED
    given = {"name": name, "rival": rival, "other": "" if has_price else rival}
    lines = []
    for some, sure in ((leads, leads), (leads, leads[:1]), (few, few[:1])):
        own, others = ([goals[one.metric] for one in some if is_ahead[one.metric] == side] for side in (True, False))
        than = [rival if one is some[0] and not is_split else "" for one in some]
        clauses = [describe_lead(one, also, per, is_sure=one in sure) for one, also in zip(some, than, strict=True)]
        count = "both" if len(some) == len(decision.runs) else "all"
        lines.append(form(**given, own=own, others=others, clauses=clauses, count=count))
    return [CHEAPER(head=one) for one in lines] if is_split and is_sold and not has_price else lines


def describe_lead(lead: Lead, rival: str, per: str, *, is_sure: bool = True, has_range: bool = False) -> str:
    """Return the clause on a run that is compared with another one by a metric; an empty `rival` is not named."""
    noun = name_metric(lead.metric, per)
    if lead.ratio is None:
        return AMONG_BEST(noun=noun)
    if lead.ratio < TIE_RATIO:
        return ALMOST(rival=rival or "it", noun=noun)
    known = METRIC.get(lead.metric)
    own = BETTER if known else read_words().better
    better = own.get(lead.metric, MORE if known and known.is_higher_better else LESS)
    words = DEGREES[lead.is_better]
    if has_range and lead.ends is not None:
        span = show_span(*(show_plain(float(f"{end:.2g}")) for end in lead.ends))
        words = {name: f"({span}) {word}" for name, word in words.items()}
    clause = better(ratio=lead.ratio, rival=rival, noun=noun, per=per, **words)
    return SURE(clause=clause, chance=show_chance(lead.probability) if is_sure else "")


def describe_best(facts: Facts) -> str:
    """Return the line on the first choice, or on the only run."""
    choice = facts.of(Choice)[0]
    if len(choice.runs) < 2:
        return describe_alone(facts)
    return describe_choices([choice], facts.runs)


def show_value(choice: Choice) -> str:
    """Return the value of the winner, a share in percent."""
    known = METRIC.get(choice.metric)
    return show(choice.value.value, known.column if known else "", choice.value.unit)


def name_metric(metric: str, per: str = "inference") -> str:
    """Return the name of a metric of the core, or of a wing, in a sentence; `per` is the unit of work."""
    if metric in SPOKEN:
        return SPOKEN[metric](per=per)
    known = METRIC.get(metric)
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


def describe_alone(facts: Facts) -> str:
    """Return the line on the only chip that was compared, with its value if the answer is about one model."""
    choices = [one for one in facts.of(Choice) if not one.model]
    refused = {run_id for one in facts.of(Refusal) for run_id in one.runs}
    ran = [one for run_id, one in facts.runs.items() if run_id not in refused]
    run = facts.runs[choices[0].run] if choices else ran[0]
    if run.is_available and any(not one.is_available for one in ran):
        return finish([SOLD_ALONE(name=name_run(run))])
    values = {"noun": name_metric(choices[0].metric), "value": show_value(choices[0])} if choices else {"noun": ""}
    return finish([ALONE(name=name_run(run), **values)], run)


def describe_beyond(facts: Facts) -> list[str]:
    """Return a line on hardware that cannot be bought and would win; empty without any."""
    runs = facts.runs
    is_sold = any(runs[one.run].is_available for one in facts.of(Choice)[:1])
    beyond = [
        one
        for one in facts.of(Choice)[1:]
        if is_sold
        and not runs[one.run].is_available
        and (runs[one.run].is_named or not (one.tied or is_tied(one.probability)))
    ]
    return [BEYOND(name=name_first(runs, one), clause=describe_choice(one, runs)) for one in beyond[:1]]
