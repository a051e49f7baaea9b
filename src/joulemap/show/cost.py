"""Words and tables of costs: the cheapest chip, the other way of paying, the break-even, prices, and carbon by grid."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from joulemap.ask.answer import INFERENCE
from joulemap.ask.candidate import find_chip
from joulemap.ask.cost import PRICE, PRICES, CostAnswer
from joulemap.ask.decision import find_decision
from joulemap.ask.fact import Choice, Decision, Entry, Facts, Quantity, Turn
from joulemap.ask.scope import vary
from joulemap.domain.column import Col
from joulemap.domain.metric import TIE_RATIO
from joulemap.generated.cost import CostOption
from joulemap.show.candidate import (
    BOUND,
    CONFIGURATIONS,
    FACTOR,
    LIMIT,
    ask_next,
    describe_limits,
    describe_lost,
    describe_unranked,
    describe_use,
    draw_candidates,
    is_best,
    mark_ranked,
    show_assumptions,
    show_odds,
    title_candidates,
)
from joulemap.show.caveat import show_middle
from joulemap.show.choice import finish
from joulemap.show.column import derived, show_table
from joulemap.show.fact import tell
from joulemap.show.page import Asked, Figures, Page, compose_runs
from joulemap.show.present.cell import Number, mark_projected, show, show_chance, show_plain
from joulemap.show.present.document import Document, Grid, Section
from joulemap.show.present.template import Template, join_clauses
from joulemap.show.recommend import show_life
from joulemap.show.run_name import name_first, name_run

CHEAPEST: Final = Template(
    "{verb} {name}: {cost} per million {unit}[, {ratio:x} less than {other} {rival}][ ({chance} sure)]"
)
TIED: Final = Template("{verb} {name}: {cost} per million {unit}; {others} may be as cheap")
EITHER: Final = Template(
    "{verb} {name}: {cost} per million {unit}[ ({chance} likely cheapest)];[ {other}] {rival} may be as cheap"
)
PROJECTED: Final = "Projected"
"""Word in place of a verb for hardware that cannot be bought."""

OTHERS: Final = Template("{count:n other}")
ONLY: Final = Template("{verb} {name}: {cost} per million {unit}")
SERVES: Final = Template("{name} costs {price} and serves {rate:1/s}")
BELOW: Final = Template("{head}; {verb} {name} for fewer than {volume} {unit} in all")
NO_PRICE: Final = Template("No {price} is known for any of these chips.")
SELLER_PRICE: Final = Template("{kind} price")

VERBS: Final[Mapping[str, tuple[str, str]]] = {"rented": ("rent", "renting"), "bought": ("buy", "buying")}
"""Way of paying -> its verb, plain and after a comparison."""

SCALES: Final = ((1e12, "trillion"), (1e9, "billion"), (1e6, "million"), (1e3, "thousand"))
"""Number -> its name, largest first."""

BEYOND: Final = Template("{name}, which cannot be bought, would cost {ratio:x} less")

ABOUT: Final = Template("cost of a million {unit}[, {limits:list}], {use}")
IN_RENT: Final = "in the rent"
NO_HOST: Final = "none needed"
ENERGY_ON: Final = Template("{energy} on {name}")
CO2_ON: Final = Template("CO2 on {name}")
GRIDS: Final = Template("CO2 of a million {unit} on each grid[ ({energies:list})]")
UNOFFERED: Final = "Hardware without such a price, each at its lowest energy"
LIMITED_NOTE: Final = Template("{limits:list}: {count} left out")


def describe_answer(answer: CostAnswer) -> str:
    """Return the first line: the cheapest chip to rent or to buy, by how much and how surely, and up to which volume
    another one is cheaper.
    """
    facts = answer.facts
    decision = find_decision(facts)
    if decision is None:
        price = SELLER_PRICE(kind=answer.seller) if answer.seller else PRICES.get(answer.pay, PRICE)
        return NO_PRICE(price=price)
    head = describe_decision(decision, facts)
    return finish([*_list_longer(head, decision, facts), head], facts.runs[decision.run])


def describe_decision(decision: Decision, facts: Facts) -> str:
    """Return the clause on the chip to take, and how it is paid for."""
    runs, choice, lead = facts.runs, decision.choice, decision.leads[0]
    ways = _find_ways(facts)
    name, *others = (name_run(runs[one]) for one in decision.runs)
    verb, *other_verbs = (VERBS[ways[one]] for one in decision.runs)
    given = {
        "verb": verb[0].capitalize() if runs[decision.run].is_available else PROJECTED,
        "name": name,
        "cost": show_middle(facts.find_values(decision.run)["cost"]),
        "unit": f"{choice.per}s",
        "rival": next(iter(others), ""),
    }
    if not others or lead.ratio is None:
        return ONLY(**given)
    if len(decision.choice.close) > 2:
        return TIED(others=OTHERS(count=len(choice.close) - 1), **given)
    ((plain, more),) = other_verbs
    if lead.is_tied:
        chance = show_chance(choice.probability if lead.is_better else None)
        return EITHER(other=plain if plain != verb[0] else None, chance=chance, **given)
    ratio = lead.ratio if lead.ratio >= TIE_RATIO else None
    return CHEAPEST(ratio=ratio, other=more, chance=show_chance(lead.probability), **given)


def _list_longer(head: str, decision: Decision, facts: Facts) -> Iterator[str]:
    """Yield the clause with the volume below which another option is cheaper."""
    choice, way = decision.choice, _find_ways(facts)[decision.run]
    for one in facts.of(Turn):
        is_own = one.run == decision.run and one.values["way"] == way
        if one.values.get("case") == "within" and isinstance(one.after, float) and is_own:
            verb = VERBS[str(one.values["other_way"])][0]
            name = name_run(facts.runs[one.runs[1]])
            yield BELOW(head=head, volume=spell_count(one.after), unit=f"{choice.per}s", verb=verb, name=name)


def _find_ways(facts: Facts) -> Mapping[int, str]:
    """Return run -> way of paying."""
    return {one.run: way for one in facts.of(Entry) for way in VERBS if way in one.values}


def spell_count(value: float) -> str:
    """Return a large number in words, such as `84 billion`."""
    scale, name = next(((scale, name) for scale, name in SCALES if value >= scale), (1.0, ""))
    return f"{show_plain(float(f'{value / scale:.2g}'))} {name}".strip()


def list_reasons(facts: Facts) -> list[str]:
    """Return lines on why: the other way of paying, the break-even, and named hardware that is left out."""
    beyond = describe_beyond(facts) if facts.is_named else []
    return [*describe_lost(facts), *_compare_prices(facts), *describe_even(facts), *beyond]


def _compare_prices(facts: Facts) -> list[str]:
    """Return a line on what the cheapest two chips cost and serve; empty for one chip."""
    decision = find_decision(facts)
    pair = () if decision is None else decision.runs
    sides = [
        SERVES(
            name=name_first(facts.runs, one),
            price=next(show_middle(one.values[way]) for way in VERBS if way in one.values),
            rate=one.values["throughput"].value,
        )
        for one in facts.of(Entry)
        if one.run in pair
    ]
    return ["; ".join(sides)] if len(sides) > 1 else []


def _show_time(turn: Turn) -> Mapping[str, Any]:
    time = turn.values.get("time")
    life = turn.values.get("life")
    return {
        "time": show_life(time) if isinstance(time, Quantity) else None,
        **{name: spell_count(one) for name, one in (("after", turn.after), ("life", life)) if isinstance(one, float)},
    }


EVEN: Final = {
    "same": Template("{way} {run} and {other_way} {rival} cost the same at any volume"),
    "never": Template("{other_way} {rival} is cheaper than {way} {run} at any volume"),
    "within": Template(
        "break-even at {after} {per}s[ ({time} of one chip)]: {other_way} {rival} is cheaper below, {way} {run} above"
    ),
    "beyond": Template(
        "{other_way} {rival} is cheaper than {way} {run} at any volume: the break-even at {after} {per}s is beyond the "
        "{life} of one {run}'s lifetime"
    ),
    "worn": Template(
        "{other_way} {rival} is cheaper than {way} {run} up to {life} {per}s, the lifetime of one {rival}; the "
        "break-even at {after} is beyond it"
    ),
}
"""Case of a break-even -> its sentence; `rival` is the option that is cheaper at a low volume."""


def describe_even(facts: Facts) -> list[str]:
    """Return a line on the break-even of two options; empty without one."""
    per = next((one.per for one in facts.of(Choice)), INFERENCE)
    return [
        tell(EVEN[str(one.values["case"])], one, facts, per=per, **_show_time(one)) for one in facts.turns("inferences")
    ]


def describe_beyond(facts: Facts) -> list[str]:
    """Return a line on unavailable hardware that would be cheaper; empty without any."""
    beyond = [one for one in facts.of(Choice)[1:] if one.metric == "cost" and one.ratio]
    return [BEYOND(name=name_first(facts.runs, one), ratio=one.ratio) for one in beyond]


def describe_limits_kept(answer: CostAnswer) -> list[str]:
    """Return a line on the configurations that the limits excluded."""
    count = len({*answer.scope.run_ids} - {row.run_id for row in answer.rows})
    shown = describe_limits(answer.limits, LIMIT)
    return [LIMITED_NOTE(limits=shown, count=CONFIGURATIONS(count=count))] if shown else []


def list_notes(answer: CostAnswer) -> list[str]:
    """Return notes on limits and on chips that are not ranked."""
    return [
        *describe_limits_kept(answer),
        *describe_beyond(answer.facts),
        *describe_unranked(answer, answer.unranked),
    ]


def show_grids(answer: CostAnswer) -> list[Section]:
    """Return the section with a row per region and the carbon of each configuration."""
    if not answer.grid:
        return []
    drawn, varied = {row.run_id: row for row in answer.grid}, vary(answer.grid)
    names = {
        run: " ".join((mark_projected(row.hardware, answer.projected), *varied[run])) for run, row in drawn.items()
    }
    energies = [ENERGY_ON(energy=show(row.kwh_per_million, "", "kWh"), name=names[run]) for run, row in drawn.items()]
    grams = {(row.region, row.run_id): row.gco2_per_million for row in answer.grid}
    headings = [CO2_ON(name=name) for name in names.values()]
    lines = tuple(
        (
            row.region,
            row.name,
            Number(row.year),
            Number(f"{row.gco2_per_kwh:.3g} g/kWh"),
            *(show(grams[row.region, run], "", "g") for run in names),
        )
        for row in {row.region: row for row in answer.grid}.values()
    )
    grid = Grid(headings=("region", "grid", "year", "grid intensity", *headings), rows=lines, keep=("grid", *headings))
    return [Section(GRIDS(unit=f"{answer.per}s", energies=energies), grid)]


def draw(answer: CostAnswer) -> Figures:
    """Return a figure with the cost by component of each chip's cheapest configuration; empty without any price."""
    if answer.best is None:
        return ()
    told = join_clauses([describe_answer(answer), *describe_even(answer.facts)])
    use = describe_use(answer.assumptions, answer.pay, answer.kind)
    return draw_candidates(answer, "cost", answer.shown, use, told, ", {way}")


def _show_usd(value: float | None) -> str:
    return show(value, "", "USD")


def show_costs(answer: CostAnswer, most: int) -> list[Section]:
    """Return the section of the cheapest configuration of each chip."""
    of, best, chances, shown = CostOption, answer.best, answer.chances, answer.shown
    ratio: Col[CostOption] = derived("ratio", lambda row: FACTOR(ratio=best and answer.compare(best, row)))
    sure = of.is_best_of_hardware.by(
        lambda row: "" if len(shown) < 2 else show_odds(answer, chances.get(find_chip(row)), best, row)
    )
    columns = (
        of.hardware,
        of.precision.or_common.kept,
        of.batch.or_common.kept,
        of.runtime.or_common,
        of.way.if_varied.kept,
        of.usd_per_million.ranking.kept,
        of.usd_half_width.ends_of(of.usd_per_million).drawn,
        ratio.kept,
        of.price.kept,
        sure.if_any,
        of.price_text,
        of.gco2_per_million,
    )
    return show_table(
        answer,
        "",
        shown,
        columns,
        noun="chips",
        limit=most,
        stays=is_best(answer),
        change=lambda drawn: mark_ranked(answer, drawn, shown, most, "cost"),
    )


def list_details(answer: CostAnswer, most: int) -> Iterator[Section]:
    """Yield the tables behind that of the costs: parts of the cost, prices, chips without one, grids, assumptions."""
    of, shown, best = CostOption, answer.shown, is_best(answer)
    runtime = of.runtime if len(answer.scope.runtimes) > 1 else None
    named = (of.hardware, of.precision.kept, of.batch.kept, runtime)
    figures = (of.throughput_per_s, of.latency_s, of.kwh_per_million.kept, of.gco2_per_million)
    energy = of.energy_usd_per_million.by(
        lambda row: _show_usd(row.energy_usd_per_million) if row.way == "bought" else IN_RENT
    )
    host = of.host_usd_per_million.by(
        lambda row: (
            IN_RENT if row.way == "rented" else _show_usd(row.host_usd_per_million) if row.host_share_ratio else NO_HOST
        )
    )
    costs = (of.way.kept, of.usd_per_million.ranking.kept, of.hardware_usd_per_million.kept, energy, host)
    parts = (*named, *costs, *figures)
    yield from show_table(answer, "Parts of the cost", shown, parts, noun="chips", limit=most, stays=best)
    prices = (
        of.hardware.by(lambda row: mark_projected(find_chip(row), answer.projected)), of.price.kept,
        of.price_basis.kept, of.price_half_width.kept, of.price_text.kept, of.price_source.kept, of.price_note,
    )  # fmt: skip
    yield from show_table(answer, "Prices", shown, prices, noun="chips", limit=most)
    yield from show_table(answer, UNOFFERED, answer.unoffered, (*named, *figures), noun="chips", limit=most)
    yield from show_grids(answer)
    yield from show_assumptions(answer)


def draw_cost(answer: CostAnswer, asked: Asked) -> Document:
    """Return the document of costs."""
    most, use = asked.most(6), describe_use(answer.assumptions, answer.pay, answer.kind)
    about = ABOUT(unit=f"{answer.per}s", limits=describe_limits(answer.limits, BOUND), use=use)
    best = answer.best or next((row for row in answer.rows if row.status != "unsupported"), None)
    return compose_runs(
        answer,
        answer.facts,
        show_costs(answer, most),
        answer.rows,
        title=title_candidates(answer, about, answer.shown.rows),
        headline=describe_answer(answer),
        reasons=list_reasons(answer.facts),
        details=list_details(answer, most),
        notes=list_notes(answer),
        steps=ask_next(answer, (), [best] if best is not None else [], asked.repeated),
    )


PAGES: Final = {CostAnswer: Page[CostAnswer](draw=draw_cost, draw_figures=draw)}
