"""Words for the difference of two runs: which needs less, what makes most of it, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs

from joulemap.ask.explain import LEADING, ExplainAnswer
from joulemap.ask.fact import Choice, Entry, Facts, Quantity, Subject, Term
from joulemap.domain.metric import METRIC
from joulemap.domain.role import ROLES
from joulemap.domain.settings import BATCHES, DifferenceDivision
from joulemap.show.caveat import RANGES
from joulemap.show.choice import MOST_WHY, describe_choices
from joulemap.show.page import Figures
from joulemap.show.pair import (
    BOUND,
    DIVISIONS,
    EXACT_UNITS,
    SI_WORDS,
    choose_shares,
    lay_categories,
    name_pair,
    prove_energies,
    prove_metric,
    prove_terms,
)
from joulemap.show.present.category import name_category
from joulemap.show.present.cell import show_ends, show_plain, show_quantity, show_share, show_units
from joulemap.show.present.document import Lines
from joulemap.show.present.template import Template, join_clauses
from joulemap.show.run import find_conditions, title_runs
from joulemap.show.run_name import name_run
from joulemap.show.shape import Part, Shape
from joulemap.show.title import Title, bind

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


ABOUT: Final = Template("{quantity} of {a} (A) and {b} (B)")
OF_PART: Final = Template("subgraph {part}")
BY_SUBGRAPH: Final = "explain {model} {a} {b}[ --metric {metric}] --level subgraph"
INTO_SUBGRAPH: Final = "explain {model} {a} {b}[ --metric {metric}] --subgraph {part}"
INTO_ACTIONS: Final = "analyze {{model}} {{{one}}} --level subgraph --subgraph {{part}} --by action"
SWEEP: Final = "sweep {model} --hardware {a},{b} --batch {batches} --level crossing"
FLIP: Final = "flip {model} {a} {b}[ --metric {metric}]"

LIKELY: Final = 0.95
"""Probability of the winner below which the first follow-up command is `flip`."""

OF_SERVED: Final = {"logits", "communication"}
"""Purposes of work that occur only in served language models."""

OF_LANGUAGE: Final = {"attention", "cache", "experts", *OF_SERVED}
"""Purposes of work that occur only in language models."""

NAMED: Final = 4
"""Maximum categories with a row each on a screen; the others share one."""

LEAST_NAMED: Final = 0.02
"""Minimum share of all differences of a category with a row of its own on a screen."""

TABLES: Final[Mapping[DifferenceDivision, str]] = {
    "category": "categories",
    "purpose": "purposes",
    "role": "roles",
    "subgraph": "subgraphs",
}
"""Division -> table; that of actions depends on the metric."""


def title(answer: ExplainAnswer) -> Title:
    """Return the title: scope, metric, A and B."""
    name_a, name_b = name_pair(answer)
    return attrs.evolve(
        title_runs(answer.scope),
        beside=(OF_PART(part=answer.subgraph),) if answer.subgraph else (),
        about=ABOUT(quantity=METRIC[answer.metric].label, a=name_a, b=name_b),
    )


def choose(
    answer: ExplainAnswer, *, by: DifferenceDivision | None = None, repeated: Sequence[str] = (), **_: Any
) -> Mapping[str, Any]:
    """Return the shown parts, their columns of shares, and the steps.

    The default division is by category; for a pass of a served language model it is by purpose of the work.
    """
    metric, purposes = answer.metric, {row.purpose for row in answer.purposes}
    is_memory = metric == "memory"
    by = by or ("purpose" if OF_SERVED & purposes and not is_memory else "category")
    by = "action" if is_memory and by == "category" else by
    terms = "terms" if answer.metric_terms is None else "metric_terms"
    table = TABLES.get(by, terms)
    shares = choose_shares(answer)
    shown = ["brief"] if by == "category" else [table, "traffic"] if is_memory else [table]
    omitted = {
        "brief",
        "metric_terms" if terms == "terms" else "terms",
        *(() if metric in ("energy", "edp") else ("roles", "effects")),
        *(() if OF_LANGUAGE & purposes else ("purposes",)),
    }
    quantity = "bytes moved off chip" if is_memory else METRIC[metric].label
    return {
        "title": title(answer),
        "csv": "terms" if table == terms and not answer.metric_terms else table,
        "shown": shown,
        "omitted": omitted.difference(shown),
        "alone": "" if is_memory else table,  # its columns say what it is, and the notes that it is exact
        "is_alone": not is_memory,
        "has_reasons": by in ("category", "purpose") or is_memory,  # other divisions are the reasons
        "notes": [*list_ways(answer.facts), *([] if is_memory else _prove_alone(answer, by))],
        "spent": METRIC["energy" if is_memory else metric].label.capitalize(),
        "quantity": quantity.capitalize(),
        "mostly": "mostly | " if metric == "energy" else "",
        **shares,
        "star_share": f"*{shares['share']}" if shares["share"] else "",
        **_choose_steps(answer, repeated),
    }


def _prove_alone(answer: ExplainAnswer, by: DifferenceDivision) -> list[str]:
    """Return the check that the rows of the only shown table sum to the difference; empty for subgraphs."""
    if by == "category":
        return [prove_metric(answer, "rows of the table").text]
    if by == "purpose" and answer.metric != "edp":
        name = "latency_difference_fs" if answer.metric == "latency" else "energy_difference_fj"
        terms = (getattr(row, name) for row in answer.purposes)
        unit = EXACT_UNITS[answer.metric]
        return [prove_terms(answer, terms, answer.difference_exact, unit, "rows of the table").text]
    if by == "action" and answer.metric_terms is not None:
        return [prove_metric(answer).text] if answer.metric_terms else []
    return [prove_energies(answer, getattr(answer, TABLES.get(by, "terms"))).text] if by in ("role", "action") else []


def _choose_steps(answer: ExplainAnswer, repeated: Sequence[str]) -> dict[str, Any]:
    """Return the steps, first `flip` if the winner is uncertain, and the values of their slots."""
    total, subgraphs = answer.total, answer.subgraphs
    pair = [answer.scope.spell(name) for name in (total.hardware_a, total.hardware_b)]
    is_pair = pair[0] != pair[1]
    part = answer.subgraph
    if part:
        steps = [BY_SUBGRAPH, *(INTO_ACTIONS.format(one=one) for one in ("a", "b")[: 1 + is_pair])]
    elif not answer.difference_exact:
        steps = [SWEEP] if is_pair else []
    else:
        steps = [BY_SUBGRAPH]
        if answer.metric != "memory" and subgraphs.rows:
            part = subgraphs[0].name
            leads = len(subgraphs) > 1 and (subgraphs[0].share_fraction or 0.0) >= LEADING
            steps.insert(0 if leads else 1, INTO_SUBGRAPH)
        if is_pair and not {"--batch", "--input", "--calibration", "--boundary"} & set(repeated):
            first = next(iter(answer.categories), None)  # a larger batch spreads only static power and fixed time
            waits = first is not None and (first.quantity, first.category) in (("energy", "static"), ("time", "launch"))
            steps.insert(0 if waits else len(steps), SWEEP)
        is_close = is_pair and answer.probability is not None and answer.probability < LIKELY
        if is_close and answer.scope.can_flip(total.hardware_a, total.hardware_b):
            steps.insert(0, FLIP)
    named = {"a": pair[0], "b": pair[1], "part": part, "batches": ",".join(map(str, BATCHES))}
    return {"steps": steps, "row": total, **named, "metric": "" if answer.metric == "energy" else answer.metric}


def list_sentences(answer: ExplainAnswer) -> list[str]:
    """Return the decision and its reasons."""
    return [describe_difference(answer.facts), *list_reasons(answer.facts)]


def draw(answer: ExplainAnswer) -> Figures:
    """Return a waterfall figure from A through the causes to B."""
    from joulemap.show.waterfall import draw_waterfall

    subject = bind(title(answer), find_conditions(answer.scope))
    return (draw_waterfall(answer, subject, join_clauses(list_sentences(answer))),)


EXPLAIN: Final = Shape(
    first=describe_difference,
    why=list_reasons,
    trust=describe_ranges,
    choices=choose,
    words=lambda answer: {"sentences": list_sentences(answer)},
    draw=draw,
    csv="{csv}",
    limit=5,
    parts=(
        Part(
            table="brief",
            rows="categories",
            draw=lambda answer, *_, **__: lay_categories(answer, most=NAMED, least=LEAST_NAMED),
            is_brief=True,
        ),
        *DIVISIONS,
        Part(
            title="How these classes work",
            table="notes",
            draw=lambda answer, *_, **__: Lines(map(CLASS_NOTE, answer.notes)),
        ),
    ),
)

PAGES: Final = {ExplainAnswer: EXPLAIN}
