"""Words for the terms of a difference between two runs: its causes, the other way, and the ends of its range."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from joulemap.ask.fact import LEADING, Choice, Entry, Facts, Quantity, Subject, Term
from joulemap.domain.role import ROLES
from joulemap.show.caveat import RANGES
from joulemap.show.choice import MOST_WHY, describe_choices
from joulemap.show.present.category import name_category
from joulemap.show.present.cell import show_ends, show_plain, show_quantity, show_share, show_units
from joulemap.show.present.template import Template
from joulemap.show.run_name import name_run

BOUND: Final[Mapping[str, str]] = {"compute": "compute time", "memory": "memory time", "launch": "launch time"}
"""Category of time -> its name. Launches are one category; other time belongs to the bottleneck of its kernel."""

SI_WORDS: Final[Mapping[str, str]] = {"B": "byte", "J": "joule", "s": "second"}

CLASS_NOTE: Final = Template("{architecture}, {topic}: {text} ({source})")

SMALL: Final = 0.1
"""Share of all differences below which only the largest category has a line."""

FEW: Final = 2
"""Number of lines on causes from which no subgraph is named."""

MOST_ALONG: Final = 2
"""Maximum lines on causes in the direction of the difference."""

MOST_TIED_WHY: Final = 2
"""Maximum lines on why two runs that are tied differ."""

MOSTLY: Final = 0.5
"""Share of all differences from which a category makes most of it."""

CONSEQUENCE: Final = "regulator"
"""Role whose energy is a fixed share of the other roles' energy; no line names it as a cause."""

ITSELF: Final = Template("{name} is compared with itself, so nothing differs")
IN_PART: Final = Template("in {part}, {line}")
MOSTLY_OF: Final = Template("{line}, mostly {cause}")
LARGEST_IN: Final = Template("{line}; the largest part is {cause}")

ACTIVITIES: Final[Mapping[str, str]] = {
    "compute": "computing",
    "memory": "waiting for memory",
    "launch": "kernel launches",
}
"""Category of time -> what the chip does during it."""

LINE: Final = Template("{noun}: {more}, {less}[ ({remark})]")
AGAINST: Final = Template("against it, {line}")
SIDE: Final = Template("{amount} on {name}[ ({units})]")
WAY: Final = Template("{noun} {way} on {name}")
TIMES: Final = Template("{count} x {price}")
AT_RATE: Final = Template("{count} at {price}")
PASSES: Final = Template("{count} ({passes} per MAC of the model)")
PER: Final = Template("{price} each")
NONE: Final = Template("none on {name}")
BOTTLENECK: Final = Template("more subgraphs on {name}")
ENERGY_AND_TIME: Final = Template("energy makes {energy:%} of the difference, time {time:%}")
OPPOSED: Final = Template("{along} makes the difference, and {against} reduces it")
LEADER: Final = Template(
    "{name}[ and {alike:n equal subgraph}] of {total:n subgraph}: {share:%} of all differences[ {each}]"
)
EACH: Final = "each"
TRAFFIC: Final = Template("off-chip traffic: {a}, {b}")
ON: Final = Template("{amount} on {name}")
RANGE: Final = Template("{range} on {name}")
RANGES_ARE: Final = Template("{ranges}: {spans:list}")


def describe_difference(facts: Facts) -> str:
    """Return the first line: which run needs less, and the category that makes most of the difference."""
    choice: Choice = facts.of(Choice)[0]
    if len(choice.runs) < 2:
        line = ITSELF(name=name_run(facts.runs[choice.runs[0]]))
    else:
        line = describe_choices([choice], facts.runs)[:-1]
        first = next(iter(_find_terms(facts)), None)
        if first is not None and first.share and first.share > 0.0 and not choice.tied and not choice.equal:
            is_most = first.share >= MOSTLY and facts.runs[choice.runs[0]].is_available
            line = (MOSTLY_OF if is_most else LARGEST_IN)(line=line, cause=name_term(first))
    whole = IN_PART(part=facts.part, line=line) if facts.part else line
    return f"{whole[0].upper() if facts.part else whole[0]}{whole[1:]}."


def _find_terms(facts: Facts) -> list[Term]:
    """Return the terms that sum to the difference, largest first."""
    return [one for one in facts.of(Term) if one.level in ("category", "contributor")]


def name_term(term: Term) -> str:
    """Return the name of what a term divides by: an energy category, a kind of time or a part of memory."""
    return BOUND[term.name] if term.quantity == "time" else name_category(term.name)


def describe_ranges(facts: Facts) -> str:
    """Return the range of each run, whose value the table states; empty without ranges."""
    spans = [
        RANGE(range=show_ends(value.value, value.unit, value.half_width), name=name_run(facts.runs[one.runs[0]]))
        for one in facts.of(Entry)
        if (value := one.values.get(facts.asked[0])) is not None and value.half_width
    ]
    return RANGES_ARE(ranges=RANGES, spans=spans) if spans else ""


def list_reasons(facts: Facts) -> list[str]:
    """Return at most three lines on why: the largest causes, the largest one against them, and the subgraph that
    contributes most if there are few causes. A tie has at most two.
    """
    terms = _find_terms(facts)
    choice: Choice = facts.of(Choice)[0]
    reasons = [(one.share or 0.0, line) for one in terms if (line := describe_term(one, facts.runs))]
    against = [AGAINST(line=line) for share, line in sorted(reasons)[:1] if share <= -LEADING]
    along = [line for share, line in reasons if share > 0.0]
    large = [line for share, line in reasons if share >= SMALL]
    lines = _describe_quantities(facts) if not choice.tied and not choice.equal else []
    most = MOST_TIED_WHY if choice.tied else MOST_WHY
    lines += (large or along[:1])[: min(MOST_ALONG, max(0, most - len(lines) - len(against)))]
    lines += against
    if len(lines) < FEW:
        lines += [line for one in facts.of(Term) if (line := _describe_other(one, facts.runs, len(terms)))]
    return list(dict.fromkeys(lines))[:most]


def _describe_quantities(facts: Facts) -> list[str]:
    """Return how much energy and time make of a difference in energy x delay; empty for other metrics."""
    shares = {one.name: one.share or 0.0 for one in facts.of(Term) if one.level == "quantity"}
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
            ON(amount=show_quantity(one.value, one.unit), name=name_run(runs[run_id]))
            for one, run_id in zip(term.amounts, term.runs, strict=True)
        ]
        return TRAFFIC(a=sides[0], b=sides[1])
    if term.level != "subgraph" or not count:
        return ""
    return LEADER(
        name=term.name,
        alike=term.alike or None,
        total=term.total,
        share=term.share or 0.0,
        each=EACH if term.alike else "",
    )


def describe_term(term: Term, runs: Mapping[int, Subject]) -> str:
    """Return the line on a cause: count x price of both runs, the larger first.

    Empty for a mere consequence, and for amounts that neither explains, because the table states them.
    """
    amounts = term.role_amounts or term.amounts
    has_none = min(one.value for one in amounts) == 0.0 < max(one.value for one in amounts)
    has_cause = any((*term.counts, *term.prices)) and (term.is_shared or term.quantity == "time")
    if term.role == CONSEQUENCE or not (has_cause or has_none):
        return ""
    names = [name_run(runs[run_id]) for run_id in term.runs]
    sides = [_describe_side(term, amounts[side], side, name) for side, name in enumerate(names)]
    is_more_in_b = amounts[1].value > amounts[0].value
    more, less = sides[::-1] if is_more_in_b else sides
    is_bottleneck = term.quantity == "time" and not term.is_shared and not has_none
    remark = BOTTLENECK(name=names[is_more_in_b]) if is_bottleneck else ""
    return LINE(noun=_name_cause(term), more=more, less=less, remark=remark)


def _name_cause(term: Term) -> str:
    if term.quantity == "time":
        return ACTIVITIES[term.name]
    if term.role in ROLES:
        return ROLES[term.role].noun
    return term.role or name_term(term)


def _describe_side(term: Term, amount: Quantity, side: int, name: str) -> str:
    """Return what one run spends, as count x price as far as these explain the difference."""
    if not amount.value:
        return NONE(name=name)
    count = term.counts[side] if term.counts else None
    price = term.prices[side] if term.prices else None
    text = show_quantity(amount.value, amount.unit)
    if term.is_shared or term.quantity == "time":
        text = _multiply(term, side, count, price) or text
    return SIDE(amount=text, name=name, units=show_units(*term.units[side]) if term.units else "")


def list_ways(facts: Facts) -> list[str]:
    """Return notes on how the class of each run serves the roles that differ, if unlike most classes."""
    return [
        WAY(noun=_name_cause(term), way=way, name=name_run(facts.runs[run_id]))
        for term in _find_terms(facts)
        if term.ways and term.share and abs(term.share) >= SMALL
        for way, run_id in zip(term.ways, term.runs, strict=True)
        if way
    ]


def _multiply(term: Term, side: int, count: Quantity | None, price: Quantity | None) -> str:
    """Return a count and a price as text; empty without either."""
    counted = _show_count(count) if count is not None else ""
    if counted and term.passes and (passes := term.passes[side]):
        counted = PASSES(count=counted, passes=show_plain(passes))
    if price is None:
        return counted
    is_rate = price.unit not in ("J", "W", "s", "")
    priced = show_share(price.value) if not price.unit else show_quantity(price.value, price.unit)
    if counted:
        return (AT_RATE if is_rate else TIMES)(count=counted, price=priced)
    return priced if is_rate or price.unit in ("W", "") else PER(price=priced)


def _show_count(count: Quantity) -> str:
    if count.unit in SI_WORDS:
        return show_quantity(count.value, count.unit)
    return f"{show_quantity(count.value, '').strip()} {count.unit}s"
