"""Facts of a cost: the cheapest chip, the other way of paying, the break-even, limits, and caveats on prices."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from joulemap.ask.candidate import MOST_ENTRIES, add_chances, choose_first, find_chip, find_likelier, list_first
from joulemap.ask.fact import Caveat, Choice, Entry, Facts, Limit, Quantity, Turn, Value
from joulemap.ask.finding import Finding
from joulemap.ask.rule import find_caveats
from joulemap.ask.scope import Scope
from joulemap.domain.metric import METRIC
from joulemap.domain.offer import TERMS
from joulemap.domain.settings import Limits
from joulemap.generated.cost import BreakEven, CostOption

CHANCE: Final = "probability_cheapest"
"""Column with the probability that a configuration is the cheapest."""

YEAR_S: Final = 365.0 * 24.0 * 3600.0

LEAST_SHARE: Final = 0.01
"""Share of a cost below which its host is no caveat."""

GIVEN: Final = "given"
"""Basis of a price that the question gives; it is exact."""

PRICES: Final[Mapping[str, str]] = {"rented": "rental price", "bought": "purchase price", "both": "price"}
"""Way of paying -> price that it needs."""


def find_facts(
    scope: Scope,
    rows: Sequence[CostOption],
    even: BreakEven | None,
    *,
    limits: Limits,
    missed: Iterable[int],
    per: str,
) -> Facts:
    """Return the facts of a cost: the cheapest chip, an unavailable chip that would be cheaper, turns, limits, a row
    per chip, and caveats. `missed` are the runs beyond the limits, and `per` is the unit of work of the model.
    """
    ranked = list_first(row for row in rows if is_asked(row) and row.rank is not None)
    best = next(iter(ranked), None)
    choices = [_choose(ranked, rows, per)] if best is not None else []
    chances = add_chances(rows, CHANCE)
    least = read_usd(ranked[0]) if ranked else 0.0
    likelier = [
        caveat
        for one in choices
        for caveat in find_likelier(one, ranked, chances, lambda row: read_usd(row) / least if least else 1.0)
    ]
    projection = find_projection(rows, best)
    beyond = [_prefer(projection, best, per)] if projection is not None and best is not None else []
    shown = ranked[:MOST_ENTRIES]
    turns = [*_turn_way(rows, best), *_turn_volume(even)]
    ids = {row.run_id for row in shown} | {one for fact in (*choices, *beyond) for one in (*fact.runs[:2], *fact.tied)}
    weighed = scope.narrow(ids)
    caveats = find_caveats(weighed, choices, metric="cost", but=("host",), more=_find_prices(shown))
    return Facts(
        asked=("cost",),
        runs=scope.subjects({}),
        facts=(
            *choices,
            *beyond,
            *turns,
            *_bound(limits, {scope.outlines[one].hardware for one in missed}),
            *map(_enter, shown),
            *likelier,
            *_find_elsewhere(rows),
            *_lack_price(rows),
            *caveats,
        ),
    )


def is_asked(row: CostOption) -> bool:
    """Return True for a cost in the way of paying that is asked for."""
    return row.status == "ok" and (row.pay == "both" or row.way == row.pay)


def find_projection(rows: Iterable[CostOption], best: CostOption | None) -> CostOption | None:
    """Return the cheapest unavailable configuration; None unless it is cheaper than the best available one."""
    hidden = (row for row in rows if is_asked(row) and row.is_alike and not row.is_available and row.rank is None)
    projection = next(hidden, None)
    is_cheaper = projection is not None and best is not None and read_usd(projection) < read_usd(best)
    return projection if is_cheaper else None


def find_other_way(rows: Iterable[CostOption]) -> CostOption | None:
    """Return the cheapest available configuration in the way of paying that is not ranked; None if both ways are."""
    others = (row for row in rows if row.status == "ok" and row.is_alike and not is_asked(row))
    return next((row for row in others if row.is_available), None)


def find_unoffered(rows: Sequence[CostOption]) -> list[CostOption]:
    """Return each available chip without a price in the asked way of paying, in its lowest-energy configuration."""
    priced = {find_chip(row) for row in rows if is_asked(row)}
    others = [row for row in rows if row.status != "unsupported" and row.is_available and find_chip(row) not in priced]
    return list_first(sorted(others, key=lambda row: row.kwh_per_million or 0.0))


def read_usd(row: CostOption) -> float:
    """Return the cost of a million inferences in US dollars; 0 without a price."""
    return row.usd_per_million or 0.0


def judge_break_even(row: BreakEven) -> tuple[str, str, float]:
    """Return the case of a break-even, the chip that wears out first, and its lifetime in inferences.

    The chip is `A` or `B`; empty if neither is bought. The case is `within` if the break-even comes before a chip wears
    out. It is `worn` if the option that is cheaper at low volume wears out first, otherwise `beyond`.
    """
    lives = {"A": row.inferences_per_life_a, "B": row.inferences_per_life_b}
    life, worn = min(((life, side) for side, life in lives.items() if life is not None), default=(0.0, ""))
    return "within" if row.is_within_life else "worn" if worn == row.cheaper_below else "beyond", worn, life


def _value(row: CostOption) -> Quantity:
    return Quantity(read_usd(row), METRIC["cost"].unit, row.usd_half_width)


def _choose(ranked: Sequence[CostOption], rows: Sequence[CostOption], per: str) -> Choice:
    """Return the cheapest configuration, the cheapest of each other chip, and the chips that are statistically tied."""
    best, *others = ranked
    return choose_first(
        ranked,
        add_chances(rows, CHANCE),
        (row for row in rows if row.likely_cheapest),
        read_usd,
        others[0].probability_cheaper if others else None,
        metric="cost",
        value=_value(best),
        ratio=read_usd(others[0]) / read_usd(best) if others and read_usd(best) else None,
        per=per,
    )


def _prefer(row: CostOption, best: CostOption, per: str) -> Choice:
    """Return the choice of an unavailable configuration over the cheapest available one."""
    ratio = read_usd(best) / read_usd(row) if read_usd(row) else None
    return Choice(runs=(row.run_id, best.run_id), metric="cost", value=_value(row), ratio=ratio, per=per)


def _turn_way(rows: Sequence[CostOption], best: CostOption | None) -> Iterator[Turn]:
    """Yield the cheapest chip in the other way of paying, and its cost relative to that of the cheapest."""
    other = find_other_way(rows)
    if other is not None:
        ratio = read_usd(best) / read_usd(other) if best is not None and read_usd(other) else None
        runs = (other.run_id, *((best.run_id,) if best is not None else ()))
        before = best.way if best is not None else other.pay
        yield Turn(runs=runs, axis="pay", before=before, after=other.way, value=_value(other), ratio=ratio)


def _turn_volume(even: BreakEven | None) -> Iterator[Turn]:
    """Yield the number of inferences from which the option with the higher initial price is cheaper."""
    if even is None:
        return
    options = {"A": (even.run_a, even.way_a), "B": (even.run_b, even.way_b)}
    below = even.cheaper_below or "A"
    above = even.cheaper_above or next(side for side in options if side != below)
    case, worn, life = judge_break_even(even)
    if even.break_even_inferences is None:
        case = "never" if even.cheaper_below else "same"
    values: dict[str, Value] = {"case": case, "way": options[above][1], "other_way": options[below][1]}
    if even.break_even_inferences is not None:
        time = None if even.break_even_years is None else Quantity(even.break_even_years * YEAR_S, "s")
        values |= {"time": time, "life": life, "worn": options[worn][0] if worn else None}
    runs = (options[above][0], options[below][0])
    yield Turn(runs=runs, axis="inferences", after=even.break_even_inferences, metric="cost", values=values)


def _bound(limits: Limits, missed: set[str]) -> Iterator[Limit]:
    """Yield the limits; each counts the chips with a configuration beyond any of them."""
    for name, bound in limits.bounds:
        yield Limit(runs=(), metric=name, bound=Quantity(bound, METRIC[name].unit), missed_count=len(missed))


def _enter(row: CostOption) -> Entry:
    """Return the cost of a chip and its price."""
    price = Quantity(row.price or 0.0, row.price_unit or "", row.price_half_width)
    return Entry(runs=(row.run_id,), values={"cost": _value(row), "price": price})


def _find_prices(rows: Sequence[CostOption]) -> Iterator[Finding]:
    """Yield the price of each chip with its interval, its kind of seller if others have another, and its host."""
    kinds = {row.seller_kind for row in rows if row.seller_kind}
    for row in rows:
        hardware, electricity, host = (
            one or 0.0 for one in (row.hardware_usd_per_million, row.energy_usd_per_million, row.host_usd_per_million)
        )
        if row.price_half_width and hardware:
            price = Quantity(row.price or 0.0, row.price_unit or "", row.price_half_width)
            doubt = (
                row.price_half_width * hardware / (hardware + electricity)
            )  # a price moves only its part of the cost
            yield Finding(kind="priced", run_id=row.run_id, values={"price": price}, doubt=doubt)
        if row.price_basis == GIVEN:
            yield Finding(kind="given", run_id=row.run_id, values={})
        if row.seller_kind and len(kinds) > 1:
            yield Finding(kind="sold", run_id=row.run_id, values={"seller": TERMS[row.seller_kind]})
        alone = read_usd(row) - host
        if alone > 0.0 and host / alone >= LEAST_SHARE:
            values: Mapping[str, Value] = {
                "quantity": "cost", "host": None, "whole": None, "share": round(host / alone, 3), "factor": None,
            }  # fmt: skip
            yield Finding(kind="counted", run_id=row.run_id, values=values, bias=math.log(alone / read_usd(row)))


def _find_elsewhere(rows: Sequence[CostOption]) -> Iterator[Caveat]:
    """Yield the available chips that only sellers of another kind offer."""
    chips = list_first(row for row in rows if is_asked(row) and not row.is_alike and row.is_available)
    if chips:
        yield Caveat(kind="elsewhere", runs=tuple(row.run_id for row in chips), values={})


def _lack_price(rows: Sequence[CostOption]) -> Iterator[Caveat]:
    """Yield the available chips without a price in the asked way of paying."""
    chips = find_unoffered(rows)
    if chips:
        values = {"price": PRICES[chips[0].pay]}
        yield Caveat(kind="unoffered", runs=tuple(row.run_id for row in chips), values=values)
