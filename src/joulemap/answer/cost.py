"""Compute the cost of a million inferences on each chip, a break-even, carbon by grid, and the assumptions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import attrs

from joulemap.answer.candidate import (
    CONFIGURATIONS,
    LIMIT,
    RankedAnswer,
    describe_limits,
    describe_use,
    plan_candidates,
)
from joulemap.ask.candidate import add_chances, find_chip, list_first, read_usage
from joulemap.ask.cost import find_facts, find_other_way, find_projection, find_unoffered, is_asked
from joulemap.ask.engine import count_in
from joulemap.ask.fact import Choice, Facts
from joulemap.ask.price import price_parameters
from joulemap.ask.scope import opening_scope
from joulemap.domain.default import DEPLOYED, LIMITS, USAGE
from joulemap.domain.hardware_ref import HardwareRef
from joulemap.domain.offer import WAYS
from joulemap.domain.settings import Limits, Price, Settings, Usage
from joulemap.domain.table import Table
from joulemap.generated.cost import AssumedNumber, BreakEven, CostOption, GridFootprint
from joulemap.generated.recommend import Violation
from joulemap.physics.record.configuration import BOARD
from joulemap.plan.selection import name_configuration
from joulemap.plan.source import Source
from joulemap.show.choice import MOST_TIED
from joulemap.show.cost import describe_answer, describe_beyond, describe_break_even, list_reasons
from joulemap.show.page import Figures
from joulemap.show.present.cell import Number, show, show_chance
from joulemap.show.present.document import Document, Grid, Section, choose_rows
from joulemap.show.present.template import Template, join_clauses
from joulemap.store.connection import Connection
from joulemap.store.query import fetch, start
from joulemap.system.errors import UnsupportedError, UsageError
from joulemap.system.record import frozen

ABOUT: Final = Template("cost of a million {unit}[, {limits:list}], {use}")

PRICE_NOUNS: Final = {"rented": "rental price", "bought": "purchase price"}
PRICE: Final = "price"
SELLER_PRICE: Final = Template("{kind} price")

DECIDING: Final = (
    "hardware | *precision= | *batch= | runtime= | *payment way! | *cost usd_per_million | "
    "cost range -usd_per_million:usd_half_width | *ratio ratio | *price | confidence is_best_of_hardware? | "
    "seller price_text | CO2 gco2_per_million"
)
COSTS: Final = (
    "*payment way | *cost usd_per_million | *hardware cost hardware_usd_per_million | "
    "energy cost energy_usd_per_million | host cost host_usd_per_million | "
)
FIGURES: Final = "throughput throughput_per_s | latency latency_s | *energy kwh_per_million | CO2 gco2_per_million"
PRICES: Final = (
    "hardware | *price | *basis price_basis | *uncertainty ±price_half_width | *seller price_text | "
    "*source price_source | product price_note"
)

if TYPE_CHECKING:
    from joulemap.ask.check import CheckedRow
IN_RENT: Final = "in the rent"
NO_HOST: Final = "none needed"

BOUND: Final = Template("{metric.label} {word} {bound}")
FACTOR: Final = Template("{ratio:x}")

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

SHOWN: Final = 6
"""Default number of chips per table."""


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
    facts: Facts
    """Decision, turns, limits and caveats, from which all sentences are made."""
    per: str
    """Unit of work of the model, such as an inference."""

    @property
    def _unit(self) -> str:
        return f"{self.per}s"

    @property
    def checked(self) -> Sequence[CheckedRow]:
        """Cheapest run of each chip, cheapest first."""
        return [row for row in self.rows if row.status == "ok" and row.is_best_of_hardware]

    @property
    def projection(self) -> CostOption | None:
        """Cheapest unavailable configuration; None unless it is cheaper than the best available one."""
        return find_projection(self.rows, self.best)

    @property
    def other_way(self) -> CostOption | None:
        """Cheapest available configuration in the way of paying that is not ranked; None if both ways are ranked."""
        return find_other_way(self.rows)

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
        asked = next((row for row in self.rows if is_asked(row) and row.compared_kind), None)
        return asked.compared_kind or "" if asked is not None and self.pay != "both" else ""

    @property
    def _noun(self) -> str:
        """Noun for the compared price, by kind of seller if one is requested, otherwise by way of paying."""
        return SELLER_PRICE(kind=self.seller) if self.seller else PRICE_NOUNS.get(self.pay, PRICE)

    def data(self) -> dict[str, Any]:
        """Return the data for machine formats. The best configurations and the break-even are separate records."""
        rows = super().data()
        names = ("best", "projection", "other_way")
        first = {name: row and row.record() for name in names for row in (getattr(self, name),)}
        break_evens = rows.pop("break_evens")
        limits = {name: value for name, value in attrs.asdict(self.limits).items() if value is not None}
        return {
            **rows,
            "pay": self.pay,
            **first,
            "break_even": break_evens[0] if break_evens else None,
            "limits": limits,
        }

    def figures(self) -> Figures:
        """Return a figure with the cost by component of each chip's cheapest configuration; empty without any price."""
        if self.best is None:
            return ()
        rows = self.rows.with_rows(self._each())
        finding = [self.describe_best(), *self.describe_break_even()]
        texts = {"label": f"{self._drawn_name}, {{way}}"}
        use = describe_use(self.assumptions, self.pay, self._kind)
        subject = self._name_model(use)
        return (self._draw_figure("cost", rows, subject, join_clauses(finding), texts),)

    def _each(self) -> list[CostOption]:
        """Return the cheapest configuration of each chip in the requested way of paying.

        Chips without a rank are included only if the caller named the hardware.
        """
        named = bool(self.scope.settings.hardware)
        asked = (row for row in self.rows if is_asked(row))
        return list_first(row for row in asked if row.rank is not None or named)

    def document(self, *, limit: int = SHOWN, repeated: Sequence[str] = ()) -> Document:
        """Return the document with the cheapest configuration of each of `limit` chips; machine formats contain every
        configuration and way to pay.
        """
        priced, unpriced = self._each(), find_unoffered(self.rows.rows)
        deciding = self._show_deciding(priced, limit)
        about = ABOUT(
            unit=self._unit,
            limits=describe_limits(self.limits, BOUND),
            use=describe_use(self.assumptions, self.pay, self._kind),
        )
        return self._compose_facts(
            self.facts,
            (Section("", deciding),),
            self.rows,
            title=self._title(about, common=self._list_common(deciding)),
            answer=self.describe_best(),
            reasons=list_reasons(self.facts, self._unit),
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

    def describe_best(self) -> str:
        """Return the decision in one sentence: the cheapest chip, the margin and the confidence."""
        way = self.best.way if self.best is not None else ""
        return describe_answer(self.facts, self._unit, way=way, is_only_way=self.pay != "both", price=self._noun)

    def describe_break_even(self) -> list[str]:
        """Return the volume from which one option is cheaper; empty without a break-even."""
        return describe_break_even(self.facts, self._unit)

    def _steps(self, repeated: Sequence[str]) -> list[list[str]]:
        """Return follow-up commands: compare the cheapest two configurations, and analyze the cheapest."""
        best = self.best or next((row for row in self.rows if row.status != "unsupported"), None)
        steps = self._analyze_each([best] if best else [], repeated)
        return [*self._compare_first(self._find_rivals("likely_cheapest"), repeated), *steps]

    def _show_deciding(self, rows: Sequence[CostOption], limit: int) -> Grid:
        """Return a grid of these configurations: cost with its interval, ratio to the cheapest, and price."""
        chances = add_chances(self.rows, "probability_cheapest")
        least = self.best.usd_per_million if self.best is not None else None
        drawn = self._lay(
            self.rows.with_rows(rows),
            DECIDING,
            limit=limit,
            noun="chips",
            ranked="cost",
            stays=self._is_best,
            pictures="cost range",
            ratio=lambda row: FACTOR(ratio=row.usd_per_million / least) if least and row.usd_per_million else "",
            is_best_of_hardware=lambda row: show_chance(chances.get(find_chip(row))) if len(rows) > 1 else "",
            price=_show_price,
        )
        choice = next(iter(self.facts.of(Choice)), None)
        if choice is None or len(rows) < 2:
            return drawn
        column = drawn.headings.index("cost")
        shown = choose_rows(rows, limit, self._is_best)
        close = {*choice.tied, *choice.equal, *(choice.runs[:1] if len(choice.tied) > MOST_TIED else ())}
        best = {(at, column) for at, row in enumerate(shown) if row is self.best and row.run_id not in close}
        tied = {(at, column) for at, row in enumerate(shown) if row.run_id in close}
        return attrs.evolve(drawn, best=frozenset(best), tied=frozenset(tied))

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

    def _show_grids(self) -> Section:
        runs = {row.run_id: row for row in self.grid}
        names = {row.run_id: self.name(row) for row in self.rows if row.run_id in runs}
        grams = {(row.region, row.run_id): row.gco2_per_million for row in self.grid}
        chips = {row.run_id: self._mark(find_chip(row)) for row in self.rows if row.run_id in runs}
        short = chips if len(set(chips.values())) == len(chips) else names
        energies = [
            ENERGY_ON(energy=show(row.kwh_per_million, "", "kWh"), name=short[run]) for run, row in runs.items()
        ]
        headings = [CO2_ON(name=names[run]) for run in runs]
        drawn = Grid(
            headings=(*CARBON_HEADINGS, *headings),
            rows=tuple(
                (row.region, row.name, Number(row.year), Number(f"{row.gco2_per_kwh:.3g} g/kWh"),
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
            hardware=lambda row: self._mark(find_chip(row)),
            price=_show_price,
        )

    def _notes(self, priced: Sequence[CostOption]) -> list[str]:
        projections = [row for row in self.rows if is_asked(row) and row.rank is None and row.is_alike]
        return [
            *self.describe_limits(),
            *describe_beyond(self.facts),
            *self._describe_unranked(projections),
            SCOPE_NOTE,
            *([BOARD_NOTE] if BOARD in self.scope.boundaries else []),
            UTILIZATION_NOTE(unit=self._unit),
            PRICE_NOTE,
            LATENCY_NOTE,
            *([IDLE_NOTE] if any(row.idle_quantity == "static_power" for row in priced) else []),
            *self._describe_terms(),
        ]

    def describe_limits(self) -> list[str]:
        """Return a line on the configurations that the limits excluded."""
        count = len(set(self.scope.run_ids) - {row.run_id for row in self.rows})
        shown = describe_limits(self.limits, LIMIT)
        return [LIMITED_NOTE(limits=shown, count=CONFIGURATIONS(count=count))] if shown else []


def _show_usd(value: float | None) -> str:
    return show(value, "", "USD")


def _show_price(row: CostOption) -> str:
    return show(row.price, "", row.price_unit or "")


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
    per = count_in(model).removesuffix("s")
    return cost_per(source, model, settings, between=between, usage=usage, limits=limits, prices=prices, per=per)


def cost_per(
    source: Source,
    model: str,
    settings: Settings,
    *,
    between: Sequence[str],
    usage: Usage,
    limits: Limits,
    prices: Sequence[Price],
    per: str,
) -> CostAnswer:
    """Return the answer of `cost`, where `per` is the unit of work of the model, such as a frame."""
    used, pay = read_usage(attrs.evolve(usage, pay=usage.pay or limits.pay), settings, prices)
    options, (paid, named) = _read_options(between), price_parameters(prices)
    plan = plan_candidates(model, settings)
    with opening_scope(source, plan, needs_catalogue=True, has_ledger=False) as scope:
        connection = scope.connection
        ids = _keep_limits(connection, scope.run_ids, limits, used["host_share"])
        evens = start(connection, BreakEven, run_ids=ids, **options, **used, **paid, seller=pay["seller"])
        break_evens = evens()
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
        even = break_evens[0] if break_evens.rows else None
        facts = find_facts(scope, rows.rows, even, limits=limits, missed=set(scope.run_ids) - set(ids), per=per)
        return CostAnswer(
            scope=scope,
            rows=rows,
            facts=facts,
            per=per,
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
