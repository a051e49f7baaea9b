"""Cost of a million inferences on each chip: the cheapest, the other way of paying, a break-even, carbon by grid."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final, NoReturn

import attrs

from joulemap.ask.answer import count_in
from joulemap.ask.candidate import (
    MOST_ENTRIES,
    NO_FACTS,
    RankedAnswer,
    count_host,
    fetch_candidates,
    find_chip,
    list_first,
    list_ids,
    pay_as,
    plan_candidates,
    read_chip,
    read_usage,
)
from joulemap.ask.decision import list_sold
from joulemap.ask.fact import Caveat, Entry, Facts, Quantity, Turn, Value
from joulemap.ask.finding import Finding
from joulemap.ask.rule import find_caveats
from joulemap.ask.scope import opening_scope
from joulemap.domain.default import DEPLOYED, LIMITS
from joulemap.domain.metric import METRIC
from joulemap.domain.offer import TERMS, WAYS
from joulemap.domain.settings import Limits, Settings
from joulemap.domain.table import Table
from joulemap.generated.cost import BreakEven, CostOption, GridFootprint
from joulemap.generated.recommend import Violation
from joulemap.plan.price import price_parameters
from joulemap.plan.selection import name_configuration
from joulemap.plan.source import Source
from joulemap.store.query import fetch
from joulemap.system.errors import UnsupportedError, UsageError
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.ask.check import CheckedRow

YEAR_S: Final = 365.0 * 24.0 * 3600.0

GIVEN: Final = "given"
"""Basis of a price that the question gives; it is exact."""

PRICES: Final[Mapping[str, str]] = {"rented": "rental price", "bought": "purchase price"}
"""Way of paying -> price that it needs."""

PRICE: Final = "price"
"""Price of either way of paying."""


@frozen(kw_only=True)
class CostAnswer(RankedAnswer):
    """Cost of a million inferences of a model on each configuration, rented or bought."""

    value_column: ClassVar[str] = "usd_per_million"
    half_width_column: ClassVar[str] = "usd_half_width"
    chance_column: ClassVar[str] = "probability_cheapest"
    better_column: ClassVar[str] = "probability_cheaper"
    likely_column: ClassVar[str] = "likely_cheapest"

    rows: Table[CostOption]
    """Cost of each configuration, cheapest first; configurations without a price are last."""
    break_evens: Table[BreakEven]
    """Break-even of two options: one row, or none if fewer than two have a price."""
    grid: Table[GridFootprint]
    """Carbon of a few configurations in every grid, the cleanest grid first."""
    seller: str
    """Requested kind of seller; empty for any."""

    @property
    def checked(self) -> Sequence[CheckedRow]:
        """Cheapest run of each chip, cheapest first."""
        return [row for row in self.rows if row.status == "ok" and row.is_best_of_hardware]

    @property
    def break_even(self) -> BreakEven | None:
        """Requested break-even; None if fewer than two options have a price."""
        return next(iter(self.break_evens), None)

    @property
    def pay(self) -> str:
        """Way of paying: rented, bought or both."""
        return self.rows[0].pay if self.rows.rows else ""

    @property
    def kind(self) -> str:
        """Kind of seller whose prices are compared; empty for two ways of paying, or if no price states a kind."""
        kinds = (row.compared_kind for row in self.rows if is_asked(row) and row.compared_kind)
        return next(kinds, "") if self.pay != "both" else ""

    @property
    def unranked(self) -> list[CostOption]:
        """Configurations with a price that are not ranked, because their hardware can be neither bought nor rented."""
        return [row for row in self.rows if is_asked(row) and row.is_alike and row.rank is None]

    @property
    def shown(self) -> Table[CostOption]:
        """Cheapest configuration of each chip in the asked way of paying; of chips without a rank if they are named."""
        is_named = bool(self.scope.settings.hardware)
        asked = (row for row in self.rows if is_asked(row) and (row.rank is not None or is_named))
        return self.rows.with_rows(list_first(asked))

    @property
    def unoffered(self) -> Table[CostOption]:
        """Each available chip without a price in the asked way of paying, in its lowest-energy configuration."""
        priced = {find_chip(row) for row in self.rows if is_asked(row)}
        others = [row for row in self.rows if row.status != "unsupported" and row.is_available]
        unpriced = sorted((row for row in others if find_chip(row) not in priced), key=_read_energy)
        return self.rows.with_rows(list_first(unpriced))

    def data(self) -> dict[str, Any]:
        """Return the data for machine formats. The best configurations and the break-even are separate records."""
        rows = super().data()
        names = ("best", "projection")
        first = {name: row and row.record() for name in names for row in (getattr(self, name),)}
        evens = rows.pop("break_evens")
        limits = {name: value for name, value in attrs.asdict(self.limits).items() if value is not None}
        return {**rows, "pay": self.pay, **first, "break_even": evens[0] if evens else None, "limits": limits}


def is_asked(row: CostOption) -> bool:
    """Return True for a cost in the way of paying that is asked for."""
    return row.status == "ok" and (row.pay == "both" or row.way == row.pay)


def _read_energy(row: CostOption) -> float:
    return row.kwh_per_million or 0.0


def find_facts(answer: CostAnswer) -> Facts:
    """Return the facts of a cost: the cheapest chip, an unavailable chip that would be cheaper, turns, a row per
    chip, and caveats.
    """
    choices = answer.choose()
    answer = attrs.evolve(answer, facts=attrs.evolve(NO_FACTS, facts=tuple(choices)))
    scope, shown = answer.scope, answer.ranked[:MOST_ENTRIES]
    shown += [row for row in answer.pair if row not in shown]
    turns = [*_turn_volume(answer.break_even)]
    ids = {*list_ids(shown), *(one for fact in choices for one in (*fact.runs[:2], *fact.tied))}
    elsewhere = list_first(row for row in answer.rows if is_asked(row) and not row.is_alike and row.is_available)
    lost = list_ids(answer.unoffered)
    return Facts(
        asked=("cost",),
        runs=scope.subjects({}),
        facts=(
            *choices,
            *turns,
            *(Entry(runs=(row.run_id,), values=_read_values(row, answer)) for row in shown),
            *([Caveat(kind="elsewhere", runs=list_ids(elsewhere), values={})] if elsewhere else []),
            *([Caveat(kind="unoffered", runs=lost, values={"price": PRICES.get(answer.pay, PRICE)})] if lost else []),
            *find_caveats(scope.narrow(ids), choices, metric="cost", but=("host",), more=_find_prices(shown)),
        ),
    )


def _read_values(row: CostOption, answer: CostAnswer) -> dict[str, Quantity]:
    """Return the cost of a chip, its price by the way of paying, and its throughput."""
    rate = Quantity(row.throughput_per_s or 0.0, "1/s")
    return {"cost": answer.find_value(row), row.way: read_price(row), "throughput": rate}


def read_price(row: CostOption) -> Quantity:
    """Return the price of a chip with its interval."""
    return Quantity(row.price or 0.0, row.price_unit or "", row.price_half_width)


def judge_break_even(row: BreakEven) -> tuple[str, str, float]:
    """Return the case of a break-even, the chip that wears out first, and its lifetime in inferences.

    The chip is `A` or `B`; empty if neither is bought. The case is `within` if the break-even comes before a chip wears
    out. It is `worn` if the option that is cheaper at low volume wears out first, otherwise `beyond`.
    """
    lives = {"A": row.inferences_per_life_a, "B": row.inferences_per_life_b}
    life, worn = min(((life, side) for side, life in lives.items() if life is not None), default=(0.0, ""))
    return "within" if row.is_within_life else "worn" if worn == row.cheaper_below else "beyond", worn, life


def _turn_volume(even: BreakEven | None) -> Iterator[Turn]:
    """Yield the number of inferences from which the option with the higher initial price is cheaper."""
    if even is None:
        return
    options = {"A": (even.run_a, even.way_a), "B": (even.run_b, even.way_b)}
    below = even.cheaper_below or "A"
    above = even.cheaper_above or next(side for side in options if side != below)
    case, _, life = judge_break_even(even)
    if even.break_even_inferences is None:
        case = "never" if even.cheaper_below else "same"
    values: dict[str, Value] = {"case": case, "way": options[above][1], "other_way": options[below][1]}
    if even.break_even_inferences is not None:
        time = None if even.break_even_years is None else Quantity(even.break_even_years * YEAR_S, "s")
        values |= {"time": time, "life": life}
    runs = (options[above][0], options[below][0])
    yield Turn(runs=runs, axis="inferences", after=even.break_even_inferences, metric="cost", values=values)


def _find_prices(rows: Sequence[CostOption]) -> Iterator[Finding]:
    """Yield the price of each chip with its interval, its kind of seller if others have another, and its host."""
    kinds = {row.seller_kind for row in rows if row.seller_kind}
    for row in rows:
        hardware, electricity = row.hardware_usd_per_million or 0.0, row.energy_usd_per_million or 0.0
        if row.price_half_width and hardware:
            # a price moves only its part of the cost
            doubt = row.price_half_width * hardware / (hardware + electricity)
            yield Finding(kind="priced", run_id=row.run_id, values={"price": read_price(row)}, doubt=doubt)
        if row.price_basis == GIVEN:
            yield Finding(kind="given", run_id=row.run_id)
        if row.seller_kind and len(kinds) > 1:
            yield Finding(kind="sold", run_id=row.run_id, values={"seller": TERMS[row.seller_kind]})
        whole = row.usd_per_million or 0.0
        alone = whole - (row.host_usd_per_million or 0.0)
        if alone > 0.0:
            yield from count_host(row.run_id, whole / alone, "cost", None, None)


def cost(
    source: Source,
    model: str,
    settings: Settings = DEPLOYED,
    *,
    between: Sequence[str] = (),
    limits: Limits = LIMITS,
) -> CostAnswer:
    """Compute the cost of a million inferences on each configuration, rented or bought, with energy and carbon.

    The configurations are the same as in `pareto`, each rented or bought, whichever is cheaper. `between` names the two
    options of the break-even (`l4`, `l4:rented`, `epyc_9654:bought`), by default the cheapest bought and the cheapest
    rented one. Configurations beyond the limits are excluded; prices of the site replace those of the catalogue. Raises
    like `compare`; UsageError for an option without a price, UnsupportedError if no configuration meets the limits.
    """
    settings = pay_as(settings, limits.pay)
    used, pay = read_usage(settings, "both")
    options, named = _read_options(between), price_parameters(settings.site.prices)[1]
    with opening_scope(source, plan_candidates(model, settings), needs_catalogue=True, has_ledger=False) as scope:
        connection, ids = scope.connection, list(scope.run_ids)
        if limits.bounds:
            given = {"run_ids": ids, **limits.parameters, "host_share": used["host_share"]}
            outside = {row.run_id for row in fetch(connection, Violation, **given)}
            ids = [one for one in ids if one not in outside]  # refused runs have no values to test
        given = {"run_ids": ids, **options, **used, **named, **pay}
        tables = fetch_candidates(scope, CostAnswer, {}, ("grid",), **given)
        if not {*ids} & {*scope.evaluated_ids}:
            told = ", ".join(f"{METRIC[name].meaning}: {bound:g} {METRIC[name].unit}" for name, bound in limits.bounds)
            raise UnsupportedError(
                f"no configuration meets the limits ({told}); `joulemap recommend` shows the nearest"
            )
        rows, evens = tables["rows"], tables["break_evens"]
        if between and not evens.rows:
            _refuse_between(options, rows)
        hidden = {row.hardware for row in rows if not row.is_available}
        if not between and not settings.takes_all and any(row.is_available for row in rows):
            evens = evens.with_rows(row for row in evens if not {row.hardware_a, row.hardware_b} & hidden)
        known = [row for row in rows if row.kwh_per_million is not None]
        available = list_sold(known, lambda row: row.is_available)
        least = [min(available, key=_read_energy)] if available else []
        pair = [run for row in evens for run in (row.run_a, row.run_b)]
        drawn = dict.fromkeys([*list_ids(available[:1]), *pair, *list_ids(least)])
        numbers = {name: used[name] for name in used if name not in ("region", "gco2_per_kwh", "host_share")}
        answer = CostAnswer(
            scope=scope,
            **{**tables, "break_evens": evens},
            grid=fetch(connection, GridFootprint, run_ids=list(drawn), **numbers),
            objective="cost",
            limits=limits,
            per=count_in(model),
            seller=pay["seller"],
        )
        return attrs.evolve(answer, facts=find_facts(answer))


def _read_options(between: Sequence[str]) -> dict[str, str]:
    """Return the two options of a break-even as query parameters; UsageError unless there are two or none."""
    if len(between) not in (0, 2):
        raise UsageError(f"a break-even is between two options, found {len(between)}: write A,B")
    options: dict[str, str] = {}
    for side, text in zip("ab", between, strict=False):
        hardware, _, way = text.rpartition(":")
        if way not in WAYS or not hardware:
            hardware, way = text, ""
        options |= {f"hardware_{side}": name_configuration(hardware), f"way_{side}": way}
    return options


def _refuse_between(options: Mapping[str, str], rows: Table[CostOption]) -> NoReturn:
    """Raise UsageError on a break-even with an option that lacks a price or is not among the configurations."""
    for side in "ab":
        name, way = options[f"hardware_{side}"], options[f"way_{side}"]
        of_name = [row for row in rows if name in (row.hardware, read_chip(row.hardware))]
        if not of_name:
            raise UsageError(f"{name} is not among the configurations that are compared")
        if not any(row.status == "ok" and way in ("", row.way) for row in of_name):
            noun = PRICES.get(way, PRICE)
            raise UsageError(f"no {noun} of {name} is known: the catalogue has none, and none was given")
    raise UsageError("the two options cannot be compared")
