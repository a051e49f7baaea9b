"""Configurations to choose from: what is planned and paid, the best of each chip, and what is statistically tied."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, Final, Protocol, TypeVar, cast

import attrs

from joulemap.ask.answer import RunAnswer, fetch_tables
from joulemap.ask.decision import PAID, choose, find_decision
from joulemap.ask.fact import Caveat, Choice, Facts, Quantity
from joulemap.ask.finding import Finding
from joulemap.ask.scope import Scope
from joulemap.catalog.sheet import find_region, find_scenario
from joulemap.domain.default import ALONE, CANDIDATES, find_batches
from joulemap.domain.hardware_ref import HardwareRef
from joulemap.domain.metric import METRIC, TIE_RATIO, MetricName
from joulemap.domain.settings import WAY_OF, Limits, Pay, Settings
from joulemap.domain.table import Table, first_of_each, group
from joulemap.generated.compare import PairChance
from joulemap.generated.cost import AssumedNumber
from joulemap.plan.budget import apply_scenario
from joulemap.plan.model_name import find_precisions
from joulemap.plan.price import price_parameters
from joulemap.plan.run import Plan, plan_selected
from joulemap.plan.selection import Selection, select_hardware
from joulemap.plan.workload import choose_batches
from joulemap.store.query import fetch
from joulemap.system.record import frozen

MOST_ENTRIES: Final = 10
"""Maximum chips that entries and rules cover."""

LEAST_SHARE: Final = 0.01
"""Share of a value below which its host is no caveat."""

HOURS: Final = 24
"""Hours per day."""

NO_FACTS: Final = Facts(asked=(), runs={}, facts=())
"""Facts of an answer whose tables alone are known."""


class Candidate(Protocol):
    """Row of a query that ranks configurations."""

    @property
    def hardware(self) -> str:
        """Hardware at its power mode."""

    @property
    def run_id(self) -> int:
        """Id of the run."""


Row = TypeVar("Row", bound=Candidate)


def plan_candidates(model: str, settings: Settings, rate_per_s: float = 0.0) -> Plan:
    """Plan every configuration: the product of hardware, power modes, precisions, runtimes and batch sizes.

    A quantized checkpoint uses its published precisions unless others are requested. A use case such as a camera takes
    one input at a time; otherwise, each chip runs at the default batch sizes of its deployment. At a fixed rate, power
    modes above the power budget are included, because their average power may still fit. They are excluded if the
    source also limits short pulses. Raises like `plan_runs`.
    """
    is_own_budget = settings.power_budget_w is None and bool(settings.scenario)
    limits_pulses = is_own_budget and find_scenario(settings.scenario).is_pulse
    selection = select_hardware(settings, "every mode", is_capped=not rate_per_s or limits_pulses)
    batch, each = choose_each_batch((model,), settings, selection, is_single=bool(rate_per_s))
    published = None
    if settings.precision == CANDIDATES.precision and not settings.weight_precision:
        published = find_precisions(model)
    precision, weights = published or (settings.precision, settings.weight_precision)
    settings = attrs.evolve(settings, batch=batch, precision=precision, weight_precision=weights)
    return plan_selected((model,), settings, selection, each)


def choose_each_batch(
    models: Sequence[str], settings: Settings, selection: Selection, *, is_single: bool = False
) -> tuple[tuple[int, ...], dict[str, tuple[int, ...]]]:
    """Return the batch sizes of a choice among hardware, and id of hardware -> its default batch sizes.

    The mapping is empty if the settings, the inputs or the models fix the batch size, if all inputs come one at a
    time, or if hardware is named: then all hardware runs at the same batch sizes.
    """
    fixed = choose_batches(models, settings, ALONE if is_single or is_use_case(settings) else ())
    if fixed or settings.inputs:
        return fixed, {}
    asked = apply_scenario(settings).deployment
    each = {entry.id: find_batches(entry.deployment, asked) for entry, _ in selection.pairs}
    return tuple(sorted({one for sizes in each.values() for one in sizes})), {} if settings.hardware else each


def is_use_case(settings: Settings) -> bool:
    """Return True if inputs come one at a time, at the rate that is asked: outside of data centres, as in a camera."""
    deployment = apply_scenario(settings).deployment
    return bool(deployment) and "datacenter" not in deployment


def drop_idle_hours(settings: Settings) -> Settings:
    """Return the settings with utilization 1, so that only busy hours cost; a utilization that the site states is
    kept.
    """
    site = settings.site
    return settings if site.utilization else attrs.evolve(settings, site=attrs.evolve(site, utilization=1.0))


def pay_as(settings: Settings, pay: Pay | None) -> Settings:
    """Return the settings with the way of paying of a question's limit, unless the question itself states one.

    A way or a kind of seller that always holds, because a file states it, gives way.
    """
    site = settings.site
    if pay is None or (site.pay and not site.is_standing("pay")):
        return settings
    gives_way = site.is_standing("seller") and WAY_OF.get(site.seller or "") != pay
    changed = attrs.evolve(site, pay=pay, seller=None if gives_way else site.seller)
    return attrs.evolve(settings, site=changed)


def find_payment(settings: Settings, usual: Pay = "rented") -> Pay:
    """Return the way of paying that a question compares: the usual one, unless the question itself states one.

    It is about buying if the prices that it states itself, in no file, are all purchase prices, or if its deployments
    or scenario exclude data centres. The way never depends on the hardware, so that another candidate cannot change the
    costs of the others.
    """
    site = settings.site
    if site.pay:
        return site.pay
    if site.seller:
        return cast("Pay", WAY_OF[site.seller])
    if asked := [price for price in site.prices if price.is_asked]:
        return "bought" if all(price.usd_per_hour is None for price in asked) else "rented"
    return "bought" if is_use_case(settings) else usual


NUMBERS: Final = (
    "utilization", "lifetime_years", "hours_per_year", "pue", "usd_per_kwh", "gco2_per_kwh", "host_share",
)  # fmt: skip
"""Fields of a site that queries take as numbers."""


def read_usage(settings: Settings, usual: Pay = "rented") -> tuple[dict[str, Any], dict[str, Any]]:
    """Return two sets of query parameters: the numbers and region of a site, and its payment.

    A number of -1 selects the catalogue's assumption. Payment is the way to pay, the kind of seller and given prices.
    Raises UnknownNameError for an unknown region or unknown hardware.
    """
    site = settings.site
    numbers = {name: getattr(site, name) for name in NUMBERS}
    given: dict[str, Any] = {name: -1.0 if value is None else float(value) for name, value in numbers.items()}
    paid, _ = price_parameters(site.prices)
    payment = {"pay": find_payment(settings, usual), "seller": site.seller or "", **paid}
    return {**given, "region": find_region(site.region).region if site.region else ""}, payment


def find_busy_hours(assumptions: Table[AssumedNumber]) -> float:
    """Return the busy hours per day that a cost assumes."""
    return next(row.value for row in assumptions if row.assumption == "utilization") * HOURS


def fetch_candidates(
    scope: Scope, answer: type[RunAnswer], units: Mapping[str, str], but: Collection[str] = (), **given: Any
) -> dict[str, Any]:
    """Return field -> table for an answer about candidates, without the fields in `but`; `given` holds parameters.

    `units` maps columns of the rows whose unit depends on the question to it. Raises like `fetch_tables`, and
    UnsupportedError if no run has a result.
    """
    tables = fetch_tables(scope.connection, answer, but, takes_all=scope.settings.takes_all, **given)
    scope.check_evaluated()
    rows = tables["rows"]
    columns = tuple(attrs.evolve(one, unit=units.get(one.name, one.unit)) for one in rows.columns)
    return {**tables, "rows": attrs.evolve(rows, columns=columns)}


def read_chip(hardware: str) -> str:
    """Return the name of hardware without its power mode."""
    return HardwareRef.read(hardware).label


def find_chip(row: Candidate) -> str:
    """Return the hardware of a configuration without its power mode."""
    return read_chip(row.hardware)


def list_first(rows: Iterable[Row]) -> list[Row]:
    """Return the first row of each chip."""
    return list(first_of_each(rows, find_chip).values())


def list_ids(rows: Iterable[Candidate]) -> tuple[int, ...]:
    """Return the runs of rows."""
    return tuple(row.run_id for row in rows)


def find_lost(rows: Iterable[Any]) -> Iterator[tuple[str, list[Any]]]:
    """Yield each reason for which rows lack a price, and these rows; it is empty if only other sellers have one."""
    yield from group(rows, lambda row: "" if row.is_elsewhere else row.reason).items()


def lack_price(reason: str, rows: Iterable[Candidate], value: Quantity | None = None, weight: float = 0.0) -> Caveat:
    """Return the caveat on chips that a missing price leaves out; `value` is that of the best of them."""
    values = {"reason": reason, "value": value}
    return Caveat(
        kind="unpriced" if reason else "elsewhere", runs=list_ids(list_first(rows)), values=values, weight=weight
    )


def count_host(
    run_id: int, ratio: float, quantity: str, host: str | None, whole: str | None, most: float = math.inf
) -> Iterator[Finding]:
    """Yield the assumed host that a value includes, if it counts; `ratio` is the value over that without the host.

    From the ratio `most` on, it is stated as a factor, and no longer as a share to add.
    """
    if ratio - 1.0 >= LEAST_SHARE:
        share, factor = (round(ratio - 1.0, 3), None) if ratio < most else (None, round(ratio, 1))
        values = {"quantity": quantity, "host": host, "whole": whole, "share": share, "factor": factor}
        yield Finding(kind="counted", run_id=run_id, values=values, bias=-math.log(ratio))


@frozen(kw_only=True)
class CandidateAnswer(RunAnswer):
    """Configurations to choose from; `rows` has one row per configuration, or one per configuration and way to pay."""

    is_billed: ClassVar[bool] = True

    rows: Table[Any]
    assumptions: Table[AssumedNumber]
    """Assumed inputs of cost and carbon."""
    facts: Facts = NO_FACTS
    """Decision, what could change it, and caveats, from which all sentences are made."""

    @property
    def stated(self) -> Table[AssumedNumber] | None:
        """Assumptions behind the metrics that were asked for; None if no metric uses them."""
        return self.assumptions if {"cost", "carbon"} & {*self.facts.asked} else None

    def select(self, *statuses: str) -> Table[Any]:
        """Return the rows with one of these statuses."""
        return self.rows.with_rows(row for row in self.rows if row.status in statuses)


@frozen(kw_only=True)
class RankedAnswer(CandidateAnswer):
    """Configurations ranked by one metric, unlike those of a Pareto front."""

    value_column: ClassVar[str] = "objective_value"
    half_width_column: ClassVar[str] = "objective_half_width"
    chance_column: ClassVar[str] = "probability_best"
    """Column with the probability that a configuration is the best."""
    better_column: ClassVar[str] = "probability_better"
    """Column with the probability that a configuration is better than the best one."""
    likely_column: ClassVar[str] = "likely_best"

    objective: MetricName
    limits: Limits
    per: str
    """Unit of work of the model, such as an inference."""

    @cached_property
    def pair(self) -> list[Any]:
        """Configuration to take, and the one that it is compared with, if there is one; empty without a ranking."""
        decision = find_decision(self.facts)
        rows = {row.run_id: row for row in reversed(self.ranked)}
        return [] if decision is None else [rows[one] for one in decision.runs]

    @property
    def tied_pair(self) -> list[Any]:
        """Both configurations of the decision if they may be equally good; empty otherwise."""
        return self.pair if any(len(one.close) > 1 for one in self.facts.of(Choice)[:1]) else []

    @property
    def best(self) -> Any:
        """Configuration to take: an available one, unless none is; None without a ranking."""
        return next(iter(self.pair), None)

    @property
    def unranked(self) -> list[Any]:
        """Configurations with a value that are not ranked, because their hardware can be neither bought nor rented."""
        raise NotImplementedError

    @property
    def projection(self) -> Any:
        """Best unavailable configuration; None unless it is better than the best available one."""
        first = next((row for row in self.unranked if not row.is_available), None)
        ratio = self.compare(first, self.ranked[0]) if first is not None and self.ranked else None
        return first if ratio is not None and ratio >= TIE_RATIO else None

    @cached_property
    def ranked(self) -> list[Any]:
        """Best configuration of each chip, best first."""
        return list_first(row for row in self.rows if row.rank is not None)

    @property
    def chances(self) -> Mapping[str, float]:
        """Chip -> probability that one of its configurations is the best; that of the best chip is at most the
        probability with which its first configuration beats each other chip's, however many configurations it has.
        """
        by_chip: dict[str, float] = {}
        for row in self.rows:
            if (chance := getattr(row, self.chance_column)) is not None:
                by_chip[find_chip(row)] = by_chip.get(find_chip(row), 0.0) + chance
        for best in self.ranked[:1] if by_chip else ():
            behind = (getattr(row, self.better_column) for row in self.ranked[1:])
            own = find_chip(best)
            by_chip[own] = min((by_chip[own], *(1.0 - one for one in behind if one is not None)))
        return by_chip

    def read(self, row: Any) -> float:
        """Return the value of a configuration; 0 if it is unknown."""
        return getattr(row, self.value_column) or 0.0

    def find_value(self, row: Any) -> Quantity:
        """Return the value of a configuration with its interval."""
        return Quantity(self.read(row), METRIC[self.objective].unit, getattr(row, self.half_width_column))

    def compare(self, row: Any, other: Any) -> float | None:
        """Return the factor by which a configuration is better than another; None if a value is unknown."""
        own, rival = self.read(row), self.read(other)
        if METRIC[self.objective].is_higher_better:
            own, rival = rival, own
        return rival / own if own else None

    def choose(self) -> list[Choice]:
        """Return the ranking of the best configuration of each chip, that of tied ones by the metric that breaks the
        tie, which none does of costs, then an unavailable configuration that would be better.
        """
        if not self.ranked:
            return []
        rows = {row.run_id: row for row in self.ranked}
        behind = {run_id: getattr(row, self.better_column) for run_id, row in rows.items()}
        chance = self.chances.get(find_chip(self.ranked[0])) if len(rows) > 1 else None
        choice = choose(
            self.objective,
            {run_id: self.find_value(row) for run_id, row in rows.items()},
            lambda _, other: None if behind[other] is None else 1.0 - behind[other],
            chance=chance,
            per=self.per,
        )
        choices = [attrs.evolve(choice, runs=choice.runs[:MOST_ENTRIES])]
        close = {run_id: rows[run_id] for run_id in (choice.run, *choice.tied, *choice.equal)}
        if len(close) > 1 and self.objective not in PAID:
            choices.append(self._break_tie(close))
        beyond = self.projection
        if beyond is not None:
            pair = {row.run_id: self.find_value(row) for row in (beyond, rows[choice.run])}
            choices.append(choose(self.objective, pair, lambda *_: None, per=self.per))
        return choices

    def _break_tie(self, rows: Mapping[int, Any]) -> Choice:
        """Return the ranking of tied configurations by speed, if energy decides, or else by energy."""
        decided = METRIC[self.objective]
        is_energy = decided.energy_power != 0.0 == decided.latency_power
        speed: MetricName = "throughput" if len({row.batch for row in rows.values()}) > 1 else "latency"
        name: MetricName = speed if is_energy else "energy_per_inference"
        chances = fetch(self.scope.connection, PairChance, run_ids=list(rows), metric=name)
        odds = {(row.run_id, row.other_run_id): row.probability_better for row in chances}
        values = {
            one: Quantity(getattr(row, METRIC[name].column) or 0.0, METRIC[name].unit) for one, row in rows.items()
        }
        return choose(name, values, lambda one, other: odds.get((one, other)), per=self.per)
