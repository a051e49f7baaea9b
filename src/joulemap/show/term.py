"""Words for the terms of a difference between two runs: its causes, the other way, and the ends of its range."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from joulemap.ask.cause import (
    HOST,
    IDLE,
    MOST,
    MOST_ALONG,
    RESIDUAL,
    ROLE,
    list_causes,
    list_parts,
    pick_causes,
)
from joulemap.ask.decision import decide
from joulemap.ask.fact import LEADING, Choice, Entry, Facts, Quantity, Subject, Term
from joulemap.domain.role import ROLES
from joulemap.show.caveat import show_middle, tell_ranges
from joulemap.show.choice import MOST_WHY, describe_beyond, describe_choice
from joulemap.show.present.category import name_category
from joulemap.show.present.cell import show_ends, show_plain, show_quantity, show_share, show_units
from joulemap.show.present.template import Template
from joulemap.show.run_name import name_first, name_run

RATE: Final = Template("{name} attains {rate:ops/s} on {count:n inference} ({time:s})")
SI_WORDS: Final[Mapping[str, str]] = {"B": "byte", "J": "joule", "s": "second"}

PLURALS: Final[Mapping[str, str]] = {"launch": "launches"}

CLASS_NOTE: Final = Template("{architecture}, {topic}: {text} ({source})")

FEW: Final = 2
"""Number of lines on causes from which no subgraph is named."""

MOST_TIED_WHY: Final = 2
"""Maximum lines on why two runs that are tied differ."""

ITSELF: Final = Template("{name} is compared with itself, so nothing differs")
IN_PART: Final = Template("in {part}, {line}")
MOSTLY_OF: Final = Template("{line}, mostly {cause}")
LARGEST: Final = Template("{line}; the largest {part} is {cause}")

ACTIVITIES: Final[Mapping[str, str]] = {
    "compute": "computing",
    "memory": "waiting for memory",
    "launch": "kernel launches",
    "latency": "latency",
}
"""Category of time -> what the chip does during it."""

PLACES: Final = Template("{noun}: {more}, {less}")
ALONG: Final = Template("{noun} {verb} {share} of the gap: {more}, {less}[ ({remark})]")
AGAINST: Final = Template("{noun} {takes} {share} of the gap back: {more}, {less}[ ({remark})]")
ABSOLUTE: Final = Template("{noun} {takes} {amount} more on {name}: {more}, {less}")
SINGULAR: Final = (
    "static power",
    "static power of the host",
    "instruction fetch and scheduling",
    "the assumed host",
    "idle power",
)
PLURAL: Final = ("registers", "links", "board losses", "kernel launches")
"""Nouns of roles that are no plurals, and of categories that are."""

SIDE: Final = Template("{amount} on {name}[ ({units})]")
DURING: Final = Template("{price} for {count}[ per {per}]")
AT_RATE: Final = Template("{count} at {price}")
OPERANDS: Final = Template("{price} of kernel operands")
"""Rate of bytes across the boundaries of kernels, many of which caches serve: no bandwidth of a memory."""
PASSES: Final = Template("{count} ({passes} per MAC of the model)")
PER: Final = Template("{price} each")
NONE: Final = Template("none on {name}")
NOUNS: Final = {HOST: "the assumed host", IDLE: "idle power"}
"""Term beside the roles -> its name."""
BOTTLENECK: Final = Template("more subgraphs on {name}")
ENERGY_AND_TIME: Final = Template("energy makes {energy:%} of the difference, time {time:%}")
OPPOSED: Final = Template("{along} makes the difference, and {against} reduces it")
LEADER: Final = Template(
    "{name}[ and {alike:n equal subgraph}] of {total:n subgraph}: [{share:%} of the gap][{amount}][ {each}]"
)
TRAFFIC: Final = Template("off-chip traffic: {a}, {b}")
ON: Final = Template("{amount} on {name}")
RANGE: Final = Template("{range} on {name}")


def describe_difference(facts: Facts) -> str:
    """Return the first line: which run needs less, and the category that makes most of the difference."""
    choice: Choice = facts.of(Choice)[0]
    if len(choice.runs) < 2:
        line = ITSELF(name=name_first(facts.runs, choice))
    else:
        line = f"{name_first(facts.runs, choice)} {describe_choice(choice, facts.runs)}"
        terms = list_parts(facts.of(Term))
        known = [one for one in terms if one.name != RESIDUAL]
        first = next(iter(pick_causes(terms, 1)), None)
        if first is not None and first.part > 0.0 and not choice.tied and not choice.equal:
            is_largest = first is known[0]
            part = "part of the architecture" if not is_largest else "part" if first is terms[0] else "known cause"
            is_most = is_largest and first.part >= MOST and facts.runs[choice.run].is_available
            if is_largest or first.part >= LEADING:
                line = (MOSTLY_OF if is_most else LARGEST)(line=line, part=part, cause=name_term(first))
    whole = IN_PART(part=facts.part, line=line) if facts.part else line
    return f"{whole[0].upper() if facts.part else whole[0]}{whole[1:]}."


def name_term(term: Term) -> str:
    """Return the name of what a term divides by: an energy category, a kind of time or a part of memory."""
    return f"{term.name} time" if term.quantity == "time" else name_category(term.name)


def describe_ranges(facts: Facts) -> str:
    """Return the range of each run, whose value the table states; empty without ranges."""
    spans = [
        RANGE(range=show_ends(value.value, value.unit, value.half_width), name=name_first(facts.runs, one))
        for one in facts.of(Entry)
        if (value := one.values.get(facts.asked[0])) is not None and value.half_width
    ]
    return tell_ranges(spans)


def list_reasons(facts: Facts) -> list[str]:
    """Return at most three lines on why: the largest causes, the largest one against them, and the subgraph that
    contributes most if there are few causes. A tie has at most two.
    """
    choice: Choice = facts.of(Choice)[0]
    is_close = bool(choice.tied or choice.equal)
    most = MOST_TIED_WHY if is_close else MOST_WHY
    lines = [] if is_close else _describe_quantities(facts)
    lines += describe_causes(facts, most - len(lines))
    if len(lines) < FEW:
        count = len(list_parts(facts.of(Term)))
        lines += [line for one in facts.of(Term) if (line := _describe_other(one, facts.runs, count))]
    return list(dict.fromkeys(lines))[:most]


def describe_gap(facts: Facts) -> list[str]:
    """Return lines on why a run wins: the causes of the gap, and hardware that cannot be bought and would win."""
    beyond = describe_beyond(facts)
    return [*describe_causes(facts, MOST_WHY - len(beyond)), *beyond]


def describe_causes(facts: Facts, most: int = MOST_ALONG) -> list[str]:
    """Return lines on the causes that tell a difference (see `pick_causes`); without causes, on rates."""
    choices = [one for one in facts.of(Choice) if len(one.runs) > 1]
    is_close = bool(choices) and all(one.is_tied for one in decide(choices, facts.runs).leads)
    shown = pick_causes(list_causes(facts), most)
    cancel = any(abs(one.part) > 1.0 for one in shown)
    rates = [_describe_rates(one, facts) for one in facts.of(Term) if one.level == "work"]
    return [describe_term(one, facts.runs, is_close=is_close, cancel=cancel) for one in shown] or rates


def _describe_rates(term: Term, facts: Facts) -> str:
    """Return the line on how much each of two configurations computes at a time, and how fast."""
    sides = zip(term.runs, term.prices, term.counts, term.amounts, strict=True)
    told = [
        RATE(name=name_run(facts.runs[run]), rate=rate.value, count=round(count.value), time=time.value)
        for run, rate, count, time in sides
        if rate is not None and count is not None
    ]
    return ", ".join(told[::-1])


def _describe_quantities(facts: Facts) -> list[str]:
    """Return how much energy and time make of a difference in energy x delay; empty for other metrics."""
    shares = {one.name: one.part for one in facts.of(Term) if one.level == "quantity"}
    if not shares:
        return []
    along = [name for name, share in shares.items() if share >= 0.0]
    against = [name for name in shares if name not in along]
    if against and along:
        return [OPPOSED(along=along[0], against=against[0])]
    return [ENERGY_AND_TIME(energy=shares.get("energy", 0.0), time=shares.get("time", 0.0))]


def _describe_other(term: Term, runs: Mapping[int, Subject], count: int) -> str:
    """Return the line on a term that is no part of the sum: a subgraph, or off-chip traffic."""
    if term.level == "traffic":
        sides = [
            ON(amount=show_middle(one), name=name_run(runs[run_id]))
            for one, run_id in zip(term.amounts, term.runs, strict=True)
        ]
        return TRAFFIC(a=sides[0], b=sides[1])
    if term.level != "subgraph" or not count:
        return ""
    exceeds = abs(term.part) > 1.0
    return LEADER(
        name=term.name,
        alike=term.alike or None,
        total=term.total,
        share=None if exceeds else term.part,
        amount=show_quantity(abs(term.difference.value), term.difference.unit) if exceeds else "",
        each="each" if term.alike else "",
    )


def describe_term(term: Term, runs: Mapping[int, Subject], *, is_close: bool = False, cancel: bool = False) -> str:
    """Return the line on a cause with its share of the difference: count x price of both runs as far as these explain
    it, the larger run first. Runs that are not told apart have no share, and terms that `cancel` have an amount.
    """
    names = [name_run(runs[run_id]) for run_id in term.runs]
    sides = [_describe_side(term, side, name) for side, name in enumerate(names)]
    is_more_in_b = term.amounts[1].value > term.amounts[0].value
    more, less = sides[::-1] if is_more_in_b else sides
    has_none = min(one.value for one in term.amounts) == 0.0
    is_bottleneck = term.quantity == "time" and not term.is_shared and not has_none
    noun, share = _name_cause(term), term.part
    is_plural = noun in PLURAL if term.level != ROLE else noun not in SINGULAR
    form = PLACES if is_close else ABSOLUTE if cancel else AGAINST if share < 0.0 else ALONG
    ends = [one.value for one in term.amounts]
    return form(
        noun=noun, more=more, less=less,
        verb="are" if is_plural else "is",
        share=show_share(abs(share)),
        amount=show_quantity(abs(ends[1] - ends[0]), term.amounts[0].unit),
        name=names[is_more_in_b],
        takes="take" if is_plural else "takes",
        remark=BOTTLENECK(name=names[is_more_in_b]) if is_bottleneck else "",
    )  # fmt: skip


def _name_cause(term: Term) -> str:
    if term.level == "role":
        return ROLES[term.name].noun if term.name in ROLES else NOUNS.get(term.name, term.name)
    return ACTIVITIES[term.name] if term.quantity == "time" else name_term(term)


def _describe_side(term: Term, side: int, name: str) -> str:
    """Return what one run spends, as count x price as far as these explain the difference."""
    amount = term.amounts[side]
    if not amount.value:
        return NONE(name=name)
    count = term.counts[side] if term.counts else None
    price = term.prices[side] if term.prices else None
    text = _multiply(term, side, count, price) or show_middle(amount)
    return SIDE(amount=text, name=name, units=show_units(*term.units[side]) if term.units else "")


def _multiply(term: Term, side: int, count: Quantity | None, price: Quantity | None) -> str:
    """Return a count and a price as text; empty without either."""
    counted = show_count(count) if count is not None else ""
    if counted and term.passes and (passes := term.passes[side]):
        counted = PASSES(count=counted, passes=show_plain(passes))
    if price is None:
        return counted
    is_rate = price.unit not in ("J", "W", "s", "")
    priced = show_share(price.value) if not price.unit else show_middle(price)
    priced = OPERANDS(price=priced) if price.unit == "B/s" else priced
    if counted:
        form = DURING if price.unit == "W" else AT_RATE
        return form(count=counted, price=priced, **({"per": term.per or None} if form is DURING else {}))
    return priced if is_rate or price.unit in ("W", "") else PER(price=priced)


def show_count(count: Quantity) -> str:
    """Return a count with its unit, or with its noun in the number that it asks for."""
    if count.unit in SI_WORDS:
        return show_middle(count)
    shown = show_quantity(count.value, "").strip() if count.value >= 1.0 else show_plain(count.value)
    return f"{shown} {count.unit if shown == '1' else PLURALS.get(count.unit, f'{count.unit}s')}"
