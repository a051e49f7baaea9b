"""Compute the cost of a million inferences on each chip, a break-even, carbon by grid, and the assumptions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import attrs

from joulemap.answer.answer import Figures
from joulemap.answer.candidate import (
    CHEAPEST,
    CONFIGURATIONS,
    DAYS_PER_YEAR,
    LIMIT,
    PAYING,
    PRICE_DOUBT,
    PROJECTION,
    SHOWN_DOUBTED,
    WAYS,
    RankedAnswer,
    describe_limits,
    describe_use,
    find_busy_hours,
    find_chip,
    first_of_each,
    name_direction,
    plan_candidates,
    read_usage,
    show_life,
    show_price_span,
)
from joulemap.answer.engine import count_in
from joulemap.answer.price import price_parameters
from joulemap.answer.scope import find_scope
from joulemap.domain.configuration import BOARD
from joulemap.domain.default import DEPLOYED, LIMITS, USAGE
from joulemap.domain.doubt import TIE_RATIO
from joulemap.domain.hardware_ref import HardwareRef
from joulemap.domain.metric import METRIC
from joulemap.domain.offer import MANY, TERMS
from joulemap.domain.settings import Limits, Price, Settings, Usage
from joulemap.domain.table import Table
from joulemap.plan.hold import holding_runs
from joulemap.plan.selection import name_configuration
from joulemap.plan.source import Source
from joulemap.present.cell import show, show_chance, show_interval
from joulemap.present.document import Document, Grid, Section
from joulemap.present.template import Template, join_clauses
from joulemap.row.cost import AssumedNumber, BreakEven, CostOption, GridFootprint
from joulemap.row.recommend import Violation
from joulemap.store.connection import Connection
from joulemap.store.query import fetch, start
from joulemap.system.errors import UnsupportedError, UsageError
from joulemap.system.record import frozen
from joulemap.system.units import format_si

TITLE: Final = Template("{model}, {runtime}: cost of a million {unit}, {use}")
DRAWN_TITLE: Final = Template("{model}: {use}")

BEST: Final = Template(
    "{name} is {cheapest}{available}[ ({doubt})]: {cost} per million {unit}"
    "[, {ratio:x} less than {next}][, within 0.5 % of {equal}]. "
    "[Electricity is {electricity:%} of the cost. ]Emissions: {carbon} of CO2 ({place})."
)
CHEAPEST_OF_BOTH: Final = "the cheapest option"
PAID_NAME: Final = Template("{paying} {name}")
CONFIGURED: Final = Template("{hardware} ({precision}, batch {batch}[, {runtime}])")
IF_AVAILABLE: Final = " but not available"
GIVEN_GRID: Final = "given grid"
AVERAGE_GRID: Final = Template("{region} average grid")
NO_PRICE: Final = Template("No {noun} is known for any of these chips.")
PRICE_NOUNS: Final = {"rented": "rental price", "bought": "purchase price"}
PRICE: Final = "price"
SELLER_PRICE: Final = Template("{kind} price")

DECIDING: Final = (
    "payment way! | *cost usd_per_million | *confidence is_best_of_hardware? | *price | *seller price_told"
)
COSTS: Final = (
    "*payment way | *cost usd_per_million | *hardware cost hardware_usd_per_million | "
    "energy cost energy_usd_per_million | host cost host_usd_per_million | "
)
FIGURES: Final = "throughput throughput_per_s | latency latency_s | *energy kwh_per_million | CO2 gco2_per_million"
PRICES: Final = (
    "hardware | *price | *basis price_basis | *uncertainty ±price_half_width | *seller price_told | "
    "*source price_source | product price_note"
)

if TYPE_CHECKING:
    from joulemap.answer.check import CheckedRow
IN_RENT: Final = "in the rent"
NO_HOST: Final = "none needed"

OTHER_WAY: Final = Template(
    "a {row.way} {name} costs {cost} per million {unit}[, {more:x} as much as the {best}]"
    "[, {less:x} less than the {best}]"
)
OTHER_WAY_ONLY: Final = Template("{name} is {cheapest}: {cost} (--pay {row.way})")
EVEN: Final = {
    "same": Template("{a} and {b} cost the same at any volume"),
    "never": Template("{below} is cheaper than {above} at any volume"),
    "within": Template(
        "break-even at {volume} {unit}[ ({time} of one bought chip, busy {busy_hours:plain} of 24 hours)]"
        ": {below} is cheaper below, {above} above"
    ),
    "beyond": Template(
        "{below} is cheaper than {above} at any volume: the break-even at {volume} {unit} is beyond the {life} of one "
        "{worn}'s lifetime"
    ),
    "worn": Template(
        "{below} is cheaper than {above} up to {life} {unit}, the lifetime of one {worn}; the break-even at {volume} "
        "is beyond it"
    ),
}
UNLIKE: Final = Template(
    "not ranked, because only {compared} are compared: {prices}[; and {more} more] (--seller chooses the kind)"
)
ON_DEMAND: Final = "on-demand prices"
MIXED: Final = Template(
    "prices are from each chip's cheapest kind of seller: {sellers:list} (--seller compares one kind)"
)
SOLD_BY: Final = Template("{name} {kind}")
UNPRICED: Final = Template("{count:n chip} left out, because no {noun} is known (see --details)")

PRICE_GIVEN: Final = Template("the price of {name} is given")

COSTS_TITLE: Final = "Parts of the cost"
PRICES_TITLE: Final = "Prices"
UNPRICED_TITLE: Final = "Hardware without such a price, each at its lowest energy"
CARBON_TITLE: Final = Template("CO2 of a million {unit} on each grid[ ({energies:list})]")
ENERGY_ON: Final = Template("{energy} on {name}")
CO2_ON: Final = Template("CO2 on {name}")
CARBON_HEADINGS: Final = ("region", "grid", "year", "grid intensity")

LIMITED_NOTE: Final = Template("{limits:list}: {count} left out")
SCOPE_NOTE: Final = (
    "the cost covers the item that the price refers to: chip, board or kit. If it is bought, electricity and a host "
    "are added; a rent includes both. Staff and carbon of manufacturing are not counted"
)
BOARD_NOTE: Final = "at the board, energy and carbon exclude the host and the power supply"
UTILIZATION_NOTE: Final = Template("the energy and rent of idle hours are spread over all {unit}")
PRICE_NOTE: Final = (
    "A price is the median over sellers of one kind. The interval is the spread of these prices, or, for a single "
    "seller, the usual spread of that kind. The interval is widened by a factor of 1.2 for published, "
    "1.3 for recalled and 2 for assumed prices. "
    "Two prices of one seller tend to err alike (correlation 0.37, estimated from the offers). A given price is exact. "
    "The view `offers` lists every offer with its date and source"
)
LATENCY_NOTE: Final = "latency is per batch; every inference waits for its whole batch"
IDLE_NOTE: Final = "idle power defaults to static power, which overestimates it"

SHOWN_UNLIKE: Final = 3
"""Maximum chips named in the note on other kinds of seller."""


@frozen(kw_only=True)
class CostAnswer(RankedAnswer):
    """Cost of a million inferences of a model on each configuration, rented or bought."""

    rows: Table[CostOption]
    """Cost of each configuration, cheapest first; configurations without a price are last."""
    break_evens: Table[BreakEven]
    """Break-even of two options: one row, or none if fewer than two have a price."""
    grid: Table[GridFootprint]
    """Carbon of a few configurations in every grid, the cleanest grid first."""
    limits: Limits
    """Limits on metrics; configurations beyond them are excluded."""
    seller: str
    """Requested kind of seller; empty for any."""

    @property
    def _unit(self) -> str:
        return count_in(self.scope.model)

    @property
    def checked(self) -> Sequence[CheckedRow]:
        """Cheapest run of each chip, cheapest first."""
        return [row for row in self.rows if row.status == "ok" and row.is_best_of_hardware]

    @property
    def projection(self) -> CostOption | None:
        """Cheapest unavailable configuration; None unless it is cheaper than the best available one."""
        best = self.best
        if best is None:
            return None
        rows = (row for row in self.rows if self._is_asked(row) and row.is_alike and not row.is_available)
        found = next((row for row in rows if row.rank is None), None)
        return found if found is not None and _usd(found) < _usd(best) else None

    @property
    def other_way(self) -> CostOption | None:
        """Cheapest available configuration in the way of paying that is not ranked; None if both ways are ranked."""
        found = (row for row in self.rows if row.status == "ok" and row.is_alike and not self._is_asked(row))
        return next((row for row in found if row.is_available), None)

    @property
    def break_even(self) -> BreakEven | None:
        """Requested break-even; None if fewer than two options have a price."""
        return self.break_evens[0] if self.break_evens.rows else None

    @property
    def pay(self) -> str:
        """Way of paying: rented, bought or both."""
        return self.rows[0].pay if self.rows.rows else ""

    @property
    def _kind(self) -> str:
        """Kind of seller whose prices are compared; empty for two ways of paying, or if no price states a kind."""
        asked = next((row for row in self.rows if self._is_asked(row) and row.compared_kind), None)
        return asked.compared_kind or "" if asked is not None and self.pay != "both" else ""

    @property
    def _noun(self) -> str:
        """Noun for the compared price, by kind of seller if one is requested, otherwise by way of paying."""
        return SELLER_PRICE(kind=self.seller) if self.seller else PRICE_NOUNS.get(self.pay, PRICE)

    def _is_asked(self, row: CostOption) -> bool:
        return row.status == "ok" and (row.pay == "both" or row.way == row.pay)

    def data(self) -> dict[str, Any]:
        """Return the data for machine formats. The best configurations and the break-even are separate records."""
        rows = super().data()
        names = ("best", "projection", "other_way")
        first = {name: row and row.record() for name in names for row in (getattr(self, name),)}
        found = rows.pop("break_evens")
        limits = {name: value for name, value in attrs.asdict(self.limits).items() if value is not None}
        return {**rows, "pay": self.pay, **first, "break_even": found[0] if found else None, "limits": limits}

    def figures(self) -> Figures:
        """Return a figure with the cost by component of each chip's cheapest configuration; empty without any price."""
        if self.best is None:
            return ()
        rows = self.rows.with_rows(self._each())
        finding = [self.describe_best(), self.describe_uncertainty(), *self.describe_break_even()]
        texts = {"label": f"{self._drawn_name}, {{way}}"}
        subject = DRAWN_TITLE(model=self.scope.model, use=describe_use(self.assumptions, self.pay, self._kind))
        return (self._draw_figure("cost", rows, subject, join_clauses(finding), texts),)

    def _each(self) -> list[CostOption]:
        """Return the cheapest configuration of each chip in the requested way of paying.

        Chips without a rank are included only if the caller named the hardware.
        """
        named = bool(self.scope.settings.hardware)
        asked = (row for row in self.rows if self._is_asked(row))
        return first_of_each(row for row in asked if row.rank is not None or named)

    def document(self, *, limit: int = 10, repeated: Sequence[str] = ()) -> Document:
        """Return the document with the cheapest configuration of each of `limit` chips; machine formats contain every
        configuration and way to pay.
        """
        priced, unpriced = self._each(), self._unpriced_each()
        title = TITLE(
            model=self._subject,
            runtime=self.scope.describe_runtime(),
            unit=self._unit,
            use=describe_use(self.assumptions, self.pay, self._kind),
        )
        return self._compose(
            title,
            (Section("", self._show_deciding(priced, limit)),),
            self.rows,
            answer=self.describe_best(),
            chosen=[row.run_id for row in (self.best, self._next) if row is not None],
            insights=self._insights(),
            sure=self.describe_uncertainty(),
            details=(
                Section(COSTS_TITLE, self._show_costs(priced, limit)),
                Section(PRICES_TITLE, self._show_prices(priced, limit)),
                Section(UNPRICED_TITLE, self._lay_rows(unpriced, FIGURES, limit, noun="chips")),
                self._show_grids(),
                self._assume("cost", "carbon"),
            ),
            notes=self._notes(priced),
            steps=self._steps(repeated),
        )

    def _unpriced_each(self) -> list[CostOption]:
        """Return each available chip without a price in the requested way of paying, in its lowest-energy
        configuration.
        """
        priced = {find_chip(row) for row in self.rows if self._is_asked(row)}
        others = (row for row in self.rows if row.status != "unsupported" and row.is_available)
        rows = [row for row in others if find_chip(row) not in priced]
        return first_of_each(sorted(rows, key=lambda row: row.kwh_per_million or 0.0))

    @property
    def _next(self) -> CostOption | None:
        """Cheapest configuration of the second-cheapest hardware; None if there is none."""
        return next(
            (row for row in self._each() if row.rank is not None and find_chip(row) != find_chip(self.best)), None
        )

    def describe_best(self) -> str:
        """Return the headline: the cheapest configuration, the margin, the confidence, and its carbon."""
        best = self.best
        if best is None:
            return NO_PRICE(noun=self._noun)
        second = self._next
        ratio = None if second is None else _usd(second) / _usd(best)
        is_equal = ratio is not None and ratio < TIE_RATIO
        other = None if second is None else self.scope.mark(second.hardware)
        grid = next((row for row in self.assumptions if row.assumption == "grid"), None)
        region = "" if grid is None else grid.note.partition(",")[0]
        share = (best.energy_usd_per_million or 0.0) / _usd(best) if _usd(best) else 0.0
        name, is_one_way = self._describe_configuration(best), self.pay != "both"
        chances = {} if second is None else self._chances("probability_cheapest")
        return BEST(
            row=best,
            name=name if is_one_way else PAID_NAME(paying=PAYING[best.way].capitalize(), name=name),
            cheapest=CHEAPEST[best.way] if is_one_way else CHEAPEST_OF_BOTH,
            available="" if best.is_available or self.scope.settings.takes_all else IF_AVAILABLE,
            cost=show_interval(best.usd_per_million, "USD", best.usd_half_width),
            unit=self._unit,
            ratio=None if is_equal else ratio,
            next=other,
            equal=other if is_equal else None,
            doubt=self._describe_doubt(self._find_rivals("likely_cheapest"), chances),
            electricity=share if best.way == "bought" else None,
            carbon=show(best.gco2_per_million, "", "g"),
            place=AVERAGE_GRID(region=region) if region else GIVEN_GRID,
        )

    def _describe_configuration(self, row: CostOption) -> str:
        """Return the name of a configuration for a sentence; it includes the runtime if several are compared."""
        return self._fill(CONFIGURED, row, runtime=row.runtime if self._has_runtimes else "")

    def _insights(self) -> list[str]:
        """Return sentences on the other way of paying, the break-even, missing prices and unavailable hardware."""
        best, other, projection = self.best, self.other_way, self.projection
        lines = []
        if other is not None:
            ratio = None if best is None else _usd(other) / _usd(best)
            values = {
                "row": other,
                "cheapest": CHEAPEST[other.way],
                "name": self._describe_configuration(other),
                "cost": _show_usd(other.usd_per_million),
                "unit": self._unit,
                "best": None if best is None else f"{best.way} {self.scope.mark(find_chip(best))}",
            }
            more = ratio if ratio is not None and ratio >= 1.0 else None
            less = 1.0 / ratio if ratio is not None and more is None else None
            lines.append(OTHER_WAY_ONLY(**values) if ratio is None else OTHER_WAY(more=more, less=less, **values))
        lines += [*self.describe_break_even(), *self._describe_sellers(), *self._describe_unlike()]
        if unpriced := self._unpriced_each():
            lines.append(UNPRICED(count=len(unpriced), noun=self._noun))
        if projection is not None and best is not None:
            metric, ratio = METRIC["cost"], _usd(best) / _usd(projection)
            values = {
                "label": metric.label,
                "way": name_direction(metric),
                "value": _show_usd(projection.usd_per_million),
            }
            lines.append(PROJECTION(name=self.name(projection), ratio=ratio, **values))
        return lines

    def _describe_sellers(self) -> list[str]:
        """Return a note on the kinds of seller of the cheapest chips; empty if all ranked chips have the same kind."""
        ranked = [row for row in self._each() if row.rank is not None and row.seller_kind]
        if len({row.seller_kind for row in ranked}) < 2:
            return []
        first = ranked[:SHOWN_UNLIKE]
        other = next(row for row in ranked if row.seller_kind != first[0].seller_kind)
        shown = first if any(row.seller_kind != first[0].seller_kind for row in first) else [first[0], other]
        sellers = [SOLD_BY(name=self.scope.mark(find_chip(row)), kind=TERMS[row.seller_kind or ""]) for row in shown]
        return [MIXED(sellers=sellers)]

    def _describe_unlike(self) -> list[str]:
        """Return a note on chips that only another kind of seller prices, so that they have no rank; empty if there are
        none.
        """
        rows = first_of_each(row for row in self.rows if self._is_asked(row) and not row.is_alike and row.is_available)
        if not rows:
            return []
        kinds = {row.way: row.compared_kind or "" for row in rows}
        compared = " and ".join(MANY[kind] if kind else ON_DEMAND for kind in kinds.values())
        prices = "; ".join(f"{self.scope.mark(find_chip(row))} {_describe_price(row)}" for row in rows[:SHOWN_UNLIKE])
        return [UNLIKE(compared=compared, prices=prices, more=max(0, len(rows) - SHOWN_UNLIKE) or None)]

    def _steps(self, repeated: Sequence[str]) -> list[list[str]]:
        """Return follow-up commands: compare the cheapest two configurations, and analyze the cheapest."""
        best = self.best or next((row for row in self.rows if row.status != "unsupported"), None)
        steps = self._analyze_each([best] if best else [], repeated)
        return [*self._compare_first(self._find_rivals("likely_cheapest"), repeated), *steps]

    def _show_deciding(self, rows: Sequence[CostOption], limit: int) -> Grid:
        """Return a grid of these configurations: cost, probability to be the cheapest, and price."""
        chances = self._chances("probability_cheapest")
        return self._lay_rows(
            rows,
            DECIDING,
            limit,
            noun="chips",
            ranked="cost",
            stays=self._is_best,
            usd_per_million=lambda row: show_interval(row.usd_per_million, "USD", row.usd_half_width),
            is_best_of_hardware=lambda row: show_chance(chances.get(find_chip(row))) if len(rows) > 1 else "",
            price=_show_price,
        )

    def _show_costs(self, rows: Sequence[CostOption], limit: int) -> Grid:
        return self._lay_rows(
            rows,
            COSTS + FIGURES,
            limit,
            noun="chips",
            ranked="cost",
            stays=self._is_best,
            energy_usd_per_million=lambda row: (
                _show_usd(row.energy_usd_per_million) if row.way == "bought" else IN_RENT
            ),
            host_usd_per_million=_show_host,
        )

    def describe_break_even(self) -> list[str]:
        """Return the volume from which one option is cheaper; empty without a break-even."""
        row, mark = self.break_even, self.scope.mark
        if row is None:
            return []
        names = {"A": f"{row.way_a} {mark(row.hardware_a)}", "B": f"{row.way_b} {mark(row.hardware_b)}"}
        below, above = names.get(row.cheaper_below or ""), names.get(row.cheaper_above or "")
        if row.break_even_inferences is None:
            other = next((one for one in names.values() if one != below), below)
            return [EVEN["never"](below=below, above=other) if below else EVEN["same"](a=names["A"], b=names["B"])]
        kind, worn, life = judge_break_even(row)
        return [
            EVEN[kind](
                volume=format_si(row.break_even_inferences, "").strip(),
                unit=self._unit,
                time=None if row.break_even_years is None else show_life(row.break_even_years * DAYS_PER_YEAR),
                busy_hours=find_busy_hours(self.assumptions),
                life=format_si(life, "").strip(),
                worn=mark(row.hardware_a if worn == "A" else row.hardware_b),
                below=below,
                above=above,
            )
        ]

    def _show_grids(self) -> Section:
        runs = {row.run_id: row for row in self.grid}
        names = {row.run_id: self.name(row) for row in self.rows if row.run_id in runs}
        grams = {(row.region, row.run_id): row.gco2_per_million for row in self.grid}
        chips = {row.run_id: self.scope.mark(find_chip(row)) for row in self.rows if row.run_id in runs}
        short = chips if len(set(chips.values())) == len(chips) else names
        energies = [
            ENERGY_ON(energy=show(row.kwh_per_million, "", "kWh"), name=short[run]) for run, row in runs.items()
        ]
        headings = [CO2_ON(name=names[run]) for run in runs]
        drawn = Grid(
            headings=(*CARBON_HEADINGS, *headings),
            rows=tuple(
                (row.region, row.name, str(row.year), f"{row.gco2_per_kwh:.3g} g/kWh",
                 *(show(grams[row.region, run], "", "g") for run in runs))
                for row in {row.region: row for row in self.grid}.values()
            ),
            keep=("grid", *headings),
        )  # fmt: skip
        return Section(CARBON_TITLE(unit=self._unit, energies=energies or None), drawn)

    def _show_prices(self, rows: Sequence[CostOption], limit: int) -> Grid:
        return self._lay(
            self.rows.with_rows(rows),
            PRICES,
            limit=limit,
            noun="chips",
            hardware=lambda row: self.scope.mark(find_chip(row)),
            price=_show_price,
        )

    def _notes(self, priced: Sequence[CostOption]) -> list[str]:
        projections = [row for row in self.rows if self._is_asked(row) and row.rank is None and row.is_alike]
        return [
            *self.describe_limits(),
            *self._describe_unranked(projections),
            SCOPE_NOTE,
            *([BOARD_NOTE] if BOARD in self.scope.boundaries else []),
            UTILIZATION_NOTE(unit=self._unit),
            PRICE_NOTE,
            LATENCY_NOTE,
            *([IDLE_NOTE] if any(row.idle_quantity == "static_power" for row in priced) else []),
            *self._describe(),
        ]

    def describe_limits(self) -> list[str]:
        """Return a line on the configurations that the limits excluded."""
        count = len(set(self.scope.run_ids) - {row.run_id for row in self.rows})
        shown = describe_limits(self.limits, LIMIT)
        return [LIMITED_NOTE(limits=shown, count=CONFIGURATIONS(count=count))] if shown else []

    def describe_uncertainty(self) -> str:
        """Return the meaning of the intervals, the reason if the most probable winner is not first, and the price's
        interval.

        Empty if nothing has a price.
        """
        best = self.best
        if best is None or best.probability_cheapest is None:
            return ""
        among = [row.hardware for row in self._each()[:SHOWN_DOUBTED]]
        sure = self.scope.describe_spread(has_brackets=True, among=among)
        rank = self._explain_rank(self._chances("probability_cheapest"), "usd_half_width")
        doubt = best.price_half_width
        name = self.scope.mark(find_chip(best))
        span = show_price_span(best.price or 0.0, best.price_unit or "", doubt or 0.0)
        price = PRICE_DOUBT(name=name, price=span) if doubt else PRICE_GIVEN(name=name)
        return "; ".join(filter(None, (sure, rank, price)))


def judge_break_even(row: BreakEven) -> tuple[str, str, float]:
    """Return the case of a break-even (a key of `EVEN`), the chip that wears out first, and its lifetime in inferences.

    The chip is `A` or `B`; empty if neither is bought. The case is `within` if the break-even comes before a chip wears
    out. It is `worn` if the option that is cheaper at low volume wears out first, otherwise `beyond`.
    """
    lives = {"A": row.inferences_per_life_a, "B": row.inferences_per_life_b}
    life, worn = min(((life, side) for side, life in lives.items() if life is not None), default=(0.0, ""))
    return "within" if row.is_within_life else "worn" if worn == row.cheaper_below else "beyond", worn, life


def _usd(row: CostOption) -> float:
    return row.usd_per_million or 0.0


def _show_usd(value: float | None) -> str:
    return show(value, "", "USD")


def _show_price(row: CostOption) -> str:
    return show(row.price, "", row.price_unit or "")


def _describe_price(row: CostOption) -> str:
    """Return a price with its seller and date, or its basis if the seller is unknown."""
    return f"{_show_price(row)}, {row.price_told or row.price_basis}"


def _show_host(row: CostOption) -> str:
    if row.way == "rented":
        return IN_RENT
    return _show_usd(row.host_usd_per_million) if row.host_share_ratio else NO_HOST


def cost(
    source: Source,
    model: str,
    settings: Settings = DEPLOYED,
    *,
    between: Sequence[str] = (),
    usage: Usage = USAGE,
    limits: Limits = LIMITS,
    prices: Sequence[Price] = (),
) -> CostAnswer:
    """Compute the cost of a million inferences on each configuration, rented or bought, with energy and carbon.

    The configurations are the same as in `pareto`. `between` names the two options of the break-even (`l4`,
    `l4:rented`, `epyc_9654:bought`), by default the cheapest bought and the cheapest rented one. Configurations beyond
    the limits are excluded; `prices` replace catalogue prices. Raises like `compare`; UsageError for an option without
    a price, UnsupportedError if no configuration meets the limits.
    """
    used, pay = read_usage(attrs.evolve(usage, pay=usage.pay or limits.pay), settings, prices)
    options, (paid, named) = _read_options(between), price_parameters(prices)
    plan = plan_candidates(model, settings)
    with holding_runs(source, plan, needs_catalogue=True, has_ledger=False) as runs:
        connection = runs.connection
        ids = _keep_limits(connection, runs.ids, limits, used["host_share"])
        evens = start(connection, BreakEven, run_ids=ids, **options, **used, **paid, seller=pay["seller"])
        scope, break_evens = find_scope(runs), evens()
        rows = fetch(connection, CostOption, run_ids=ids, **used, **paid, **named, **pay, takes_all=settings.takes_all)
        scope.check_evaluated()
        if not set(ids) & set(scope.evaluated_ids):
            limits_line = ", ".join(describe_limits(limits, LIMIT))
            raise UnsupportedError(
                f"no configuration meets the limits ({limits_line}); `joulemap recommend` shows the nearest"
            )
        if between and not break_evens.rows:
            raise UsageError(_missing_option(options, rows))
        hidden = {row.hardware for row in rows if not row.is_available}
        if not between and not settings.takes_all and any(row.is_available for row in rows):
            shown = (row for row in break_evens if not {row.hardware_a, row.hardware_b} & hidden)
            break_evens = break_evens.with_rows(shown)
        in_grids = {name: used[name] for name in used if name not in ("region", "gco2_per_kwh", "host_share")}
        return CostAnswer(
            scope=scope,
            rows=rows,
            break_evens=break_evens,
            grid=fetch(connection, GridFootprint, run_ids=_find_grid_runs(rows, break_evens), **in_grids),
            assumptions=fetch(connection, AssumedNumber, **used),
            limits=limits,
            seller=pay["seller"],
        )


def _keep_limits(connection: Connection, run_ids: Iterable[int], limits: Limits, host_share: float) -> list[int]:
    """Return the runs that meet every limit, and refused runs, which have no values to test."""
    ids = list(run_ids)
    if not limits.bounds:
        return ids
    missed = fetch(connection, Violation, run_ids=ids, **limits.parameters, host_share=host_share)
    outside = {row.run_id for row in missed}
    return [run_id for run_id in ids if run_id not in outside]


def _read_options(between: Sequence[str]) -> dict[str, str]:
    """Return the two options of a break-even as query parameters; UsageError unless there are two or none."""
    if not between:
        return {}
    if len(between) != 2:
        raise UsageError(f"a break-even is between two options, found {len(between)}: write A,B")
    options: dict[str, str] = {}
    for side, text in zip("ab", between, strict=True):
        hardware, colon, way = text.rpartition(":")
        if not colon or way not in WAYS:
            hardware, way = text, ""
        options |= {f"hardware_{side}": name_configuration(hardware), f"way_{side}": way}
    return options


def _missing_option(options: Mapping[str, str], rows: Table[CostOption]) -> str:
    """Return why a break-even cannot be computed: an option lacks a price or is not among the configurations."""
    for side in "ab":
        name, way = options[f"hardware_{side}"], options[f"way_{side}"]
        of_name = [row for row in rows if name in (row.hardware, HardwareRef.read(row.hardware).label)]
        if not of_name:
            return f"{name} is not among the configurations that are compared"
        if not any(row.status == "ok" and way in ("", row.way) for row in of_name):
            noun = PRICE_NOUNS.get(way, PRICE)
            return f"no {noun} of {name} is known: the catalogue has none, and none was given"
    return "the two options cannot be compared"


def _find_grid_runs(rows: Table[CostOption], break_evens: Table[BreakEven]) -> list[int]:
    """Return the ids of runs with carbon per grid: cheapest run, break-even pair and lowest-energy run."""
    known = [row for row in rows if row.kwh_per_million is not None]
    evaluated = [row for row in known if row.is_available] or known
    least = min(evaluated, key=lambda row: row.kwh_per_million or 0.0, default=None)
    pair = [run for even in break_evens for run in (even.run_a, even.run_b)]
    return list(dict.fromkeys([*(row.run_id for row in evaluated[:1]), *pair, *([least.run_id] if least else [])]))
