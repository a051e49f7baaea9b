"""Templates: the only English of an answer. Values of facts fill them; `[...]` is left out without its value."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from joulemap.ask.fact import Cause, Caveat, Choice, Entry, Facts, Quantity, Refusal, Run
from joulemap.domain.doubt import TIE_RATIO
from joulemap.present.category import name_category
from joulemap.present.cell import is_tied, show_chance, show_interval, show_quantity
from joulemap.present.template import Template
from joulemap.show.name import join_names, name_all, name_run

MOST_WORDS: Final = 25
"""Maximum words of a first line; a long first clause stands alone, because the table marks the other winner."""

MOST_TIED: Final = 4
"""Number of tied chips above which no chip is called the winner."""

MOST_WHY: Final = 3
"""Maximum lines on causes."""

MOST_CAVEATS: Final = 2
"""Maximum caveats in the line on trust."""

MOST_OF_KIND: Final = 4
"""Maximum notes of one kind; more are counted."""

LEAST_MOVE: Final = 0.25
"""Minimum weight of a caveat in the line on trust, as a share of the logarithm of the deciding ratio."""

LEAST_WEIGHT: Final = 0.05
"""Minimum weight of a caveat in the line on trust: a factor of 1.05."""

COULD_REVERSE: Final = " (could reverse it)"

NOUN: Final[Mapping[str, str]] = {
    "energy": "energy", "energy_per_inference": "energy per inference", "latency": "latency", "memory": "memory",
    "edp": "energy x delay", "edp_per_inference": "energy x delay per inference",
}  # fmt: skip
"""Metric -> its name in a sentence."""

BETTER: Final[Mapping[str, Template]] = {
    "latency": Template("is {ratio:x} faster[ than {rival}]"),
    "edp": Template("has {ratio:x} less energy x delay[ than {rival}]"),
    "memory": Template("needs {ratio:x} less memory[ than {rival}]"),
    "": Template("uses {ratio:x} less {noun}[ than {rival}]"),
}
"""Metric -> clause on a clear winner."""

SURE: Final = Template("{clause}[ ({chance} sure)]")
LEADS: Final = Template("leads on {noun}[ ({chance} sure)]")
TIED: Final = Template("leads on {noun} ([{chance} sure, ]statistically tied with {tied})")
TIED_BOTH: Final = Template(
    "leads on {noun}[ ({chance} sure)] and {other}[ ({other_chance})], statistically tied with {tied} on both"
)
UNDECIDED: Final = Template(
    "{name} and {count} others are statistically tied on {noun}; {name} leads with {value}[ ({chance} sure)]"
)
SAME: Final = Template("{names} have the same {noun}")
ALMOST: Final = Template("matches {rival} on {noun}")
ONLY: Final = Template("{name} uses {energy} and takes {latency} per batch")
NOT_SOLD: Final = ", but cannot be bought"
BEYOND: Final = Template("{name}, which cannot be bought, {clause}")
SHARE_OF_GAP: Final = Template("{cause}: {share:%} of the gap to {other}")
AND_OF: Final = Template("{share:%} to {other}")
OUTWEIGHED: Final = Template("{name} saves {saved:J} against {other} in {cause}, and loses part of it elsewhere")
RANGES: Final = "80 % ranges"
MORE_OF_KIND: Final = Template("{count} more notes of the kind `{kind}`: --format json")
LEFT_OUT: Final = Template("left out: {reason}")

CAVEAT: Final[Mapping[str, Template]] = {
    "assumed": Template("{share_fraction:%} of the energy of {chips} is assumed[, mostly {mostly:category}]"),
    "borrowed": Template(
        "the range of {chips} is from other work, because this kind was not measured on that class of chip"
    ),
    "branched": Template(
        "Python code reads data[ at {places:few}], so other inputs may run other code[; {modules:n module} with "
        "weights never ran: {idle:few}]"
    ),
    "changed": Template("{chips}: {number}"),
    "fallback": Template("{helper} computes {operations:few} of {chips}: {share_fraction:%} of the time"),
    "host": Template("the energy of {chips} excludes a host (about +{host_ratio:set %}; `--host` adds one)"),
    "hosted": Template("energy and power of {chips} include the host {host}"),
    "meant": Template("{name} means {hardware}[; others: {others:few}]"),
    "narrow": Template("fp32 products of {chips} run in {precision} (`--matmul-precision highest` is true fp32)"),
    "overlapping": Template("{chips} starts a batch every {interval_s}, before the last one ends ({throughput_limit})"),
    "recalled": Template("{share_fraction:%} of the energy of {chips} uses published numbers that nobody checked"),
    "slowed": Template("the power cap slows {chips} to {clock_hz} ({clock_fraction:%} of the full clock)"),
    "traced": Template("traced: {text}"),
    "unattributed": Template("no counted action explains {share_fraction:%} of the energy of {chips}"),
    "uncalibrated": Template("no calibration for {chips}, so calibration may make part of the gap"),
    "uncounted": Template(
        'operations of {operators} x {name} are not counted, only bytes; @joulemap.formula("{name}") adds them'
    ),
    "unlisted": Template("it is unknown whether {chips} can run every operator"),
}
"""Kind of caveat -> its sentence, in the line on trust and among the notes."""


def format_value(value: Any) -> Any:
    """Return a value of a fact for a template."""
    return show_range(value) if isinstance(value, Quantity) else value or None


def show_range(value: Quantity) -> str:
    """Return a quantity with its interval: `36 mJ (22-58)`, the ends joined by a dash."""
    return show_interval(value.value, value.unit, value.half_width)


def describe_answer(facts: Facts) -> str:
    """Return the first line: the decision, or the values of the only run."""
    choices = facts.of(Choice)
    decided = [one for one in choices if facts.runs[one.runs[0]].is_available or one is choices[0]]
    if decided:
        return describe_choices(decided, facts.runs)
    entry = facts.of(Entry)[0]
    shown = {name: show_quantity(entry.values[name].value, entry.values[name].unit) for name in ("energy", "latency")}
    return ONLY(name=name_run(facts.runs[entry.runs[0]]), **shown) + "."


def describe_choices(choices: Sequence[Choice], runs: Mapping[int, Run]) -> str:
    """Return a line on the winner by each of the first two metrics, by how much, and how surely."""
    first, *others = choices[:2]
    name = name_run(runs[first.runs[0]])
    if len(first.tied) > MOST_TIED:
        given = {"value": show_quantity(first.value.value, first.value.unit), "chance": show_chance(first.probability)}
        return UNDECIDED(name=name, count=len(first.tied), noun=NOUN[first.metric], **given) + "."
    if first.equal:
        head = SAME(names=join_names(name_all(runs, first.equal)), noun=NOUN[first.metric])
    elif others and others[0].runs[0] == first.runs[0] and first.tied and set(others[0].tied) == set(first.tied):
        (other,) = others
        head = f"{name} " + TIED_BOTH(
            noun=NOUN[first.metric], chance=show_chance(first.probability), other=NOUN[other.metric],
            other_chance=show_chance(other.probability), tied=join_names(name_all(runs, first.tied)),
        )  # fmt: skip
        others = []
    else:
        head = f"{name} {describe_choice(first, runs)}"
    for other in others:
        is_same = other.runs[0] == first.runs[0] and not first.equal
        rival = "" if is_same and other.runs[:2] == first.runs[:2] else None
        clause = describe_choice(other, runs, rival)
        whole = f"{head} and {clause}" if is_same else f"{head}; {name_run(runs[other.runs[0]])} {clause}"
        head = whole if whole.count(" ") < MOST_WORDS else head
    return head + ("" if runs[first.runs[0]].is_available else NOT_SOLD) + "."


def describe_choice(choice: Choice, runs: Mapping[int, Run], rival: str | None = None) -> str:
    """Return the clause on the winner by one metric, without its subject."""
    chance, noun = show_chance(choice.probability), NOUN[choice.metric]
    if len(choice.runs) < 2 or choice.ratio is None:
        return LEADS(noun=noun, chance="")
    other = name_run(runs[choice.runs[1]])
    if choice.ratio < TIE_RATIO and not choice.tied:
        return ALMOST(rival=other, noun=noun)
    if choice.tied or is_tied(choice.probability):
        tied = join_names(name_all(runs, choice.tied))
        return TIED(noun=noun, chance=chance, tied=tied) if tied else LEADS(noun=noun, chance=chance)
    better = BETTER.get(choice.metric, BETTER[""])
    clause = better(ratio=choice.ratio, rival=other if rival is None else rival, noun=noun)
    return SURE(clause=clause, chance=chance)


def list_reasons(facts: Facts) -> list[str]:
    """Return lines on why: what the winner saves, and hardware that cannot be bought and would win."""
    choices = facts.of(Choice)
    beyond = [one for one in choices[1:] if not facts.runs[one.runs[0]].is_available]
    lines = [
        BEYOND(name=name_run(facts.runs[one.runs[0]]), clause=describe_choice(one, facts.runs))
        for one in beyond[:1]
        if facts.runs[one.runs[0]].is_named
    ]
    return [*describe_causes(facts.of(Cause)[:2], facts.runs), *lines][:MOST_WHY]


def describe_causes(causes: Iterable[Cause], runs: Mapping[int, Run]) -> list[str]:
    """Return one line per category: its share of the difference to each compared run."""
    lines: dict[str, list[str]] = {}
    for one in causes:
        own, other = (name_run(runs[run_id]) for run_id in one.runs)
        given = {"name": own, "other": other, "cause": name_category(one.name)}
        if one.share is None or one.share > 1.0:
            lines[f"{one.runs}"] = [OUTWEIGHED(saved=one.difference.value, **given)]
        elif found := lines.get(one.name):
            found.append(AND_OF(share=one.share, **given))
        else:
            lines[one.name] = [SHARE_OF_GAP(share=one.share, **given)]
    return [", ".join(parts) for parts in lines.values()]


def describe_caveat(caveat: Caveat, runs: Mapping[int, Run], among: Sequence[int] = ()) -> str:
    """Return the sentence on a caveat; `among` restricts it to these runs."""
    given = {name: format_value(value) for name, value in caveat.values.items()}
    ids = [one for one in caveat.runs if not among or one in among]
    return CAVEAT[caveat.kind](chips=join_names(name_all(runs, ids)), **given)


def describe_trust(facts: Facts) -> str:
    """Return one line: what ranges mean, and the caveats that could move this decision most."""
    asked = [one.values.get(name) for one in facts.of(Entry) for name in facts.asked]
    parts = [RANGES] if any(one is not None and one.half_width for one in asked) else []
    decided = next((one.runs[:2] for one in facts.of(Choice)), ())
    for caveat, could_reverse in rank_caveats(facts)[:MOST_CAVEATS]:
        parts.append(describe_caveat(caveat, facts.runs, decided) + (COULD_REVERSE if could_reverse else ""))
    return "; ".join(parts)


def rank_caveats(facts: Facts) -> list[tuple[Caveat, bool]]:
    """Return the caveats that could move the decision, heaviest first, one per kind, and if each could reverse it."""
    choice = next(iter(facts.of(Choice)), None)
    margin = math.log(choice.ratio) if choice is not None and choice.ratio and choice.ratio > 1.0 else 0.0
    found: dict[str, Caveat] = {}
    least = max(LEAST_WEIGHT, LEAST_MOVE * margin)
    for one in facts.of(Caveat):
        known = found.get(one.kind)
        if one.weight >= least and (known is None or (one.weight, one.move) > (known.weight, known.move)):
            found[one.kind] = one
    is_close = choice is not None and bool(choice.tied)
    ranked = sorted(found.values(), key=lambda one: -one.weight)
    return [(one, one.weight >= margin > 0.0 and not is_close) for one in ranked]


def list_notes(facts: Facts) -> list[str]:
    """Return refusals and caveats as notes, heaviest first; many of one kind are counted."""
    notes, counts = [LEFT_OUT(reason=one.reason) for one in facts.of(Refusal)], dict[str, int]()
    for one in facts.of(Caveat):
        counts[one.kind] = counts.get(one.kind, 0) + 1
        if counts[one.kind] <= MOST_OF_KIND:
            notes.append(describe_caveat(one, facts.runs))
    many = ((kind, count - MOST_OF_KIND) for kind, count in counts.items() if count > MOST_OF_KIND)
    return notes + [MORE_OF_KIND(kind=kind, count=count) for kind, count in many]
