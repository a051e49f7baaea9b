"""Recommendation: the best configuration within limits or the nearest miss, what would change it, causes, caveats."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, cast

import attrs

from joulemap.ask.candidate import (
    MOST_ENTRIES,
    NO_FACTS,
    RankedAnswer,
    count_host,
    fetch_candidates,
    find_chip,
    find_lost,
    is_use_case,
    lack_price,
    list_first,
    list_ids,
    pay_as,
    plan_candidates,
    read_chip,
    read_usage,
)
from joulemap.ask.cause import BATCH, CATEGORY, HOST, IDLE, ROLE, compare_rates, find_causes, make_term, share_out
from joulemap.ask.decision import decide
from joulemap.ask.fact import Caveat, Choice, Entry, Facts, Limit, Quantity, Refusal, Supply, Term, Turn
from joulemap.ask.finding import Finding
from joulemap.ask.rule import UNKNOWN, find_caveats
from joulemap.ask.scope import VARYING, Scope, opening_scope, vary
from joulemap.catalog.sheet import find_scenario
from joulemap.domain.catalogue import Scenario
from joulemap.domain.default import CANDIDATES, LIMITS, price_at_wall
from joulemap.domain.host import name_whole
from joulemap.domain.metric import METRIC, METRIC_NAMES, TIE_RATIO, MetricName
from joulemap.domain.offer import WAY_UNITS
from joulemap.domain.settings import Limits, Pay, Settings, check_name
from joulemap.domain.table import Table
from joulemap.generated.recommend import RankedConfiguration, Violation
from joulemap.plan.run import Plan
from joulemap.plan.source import Source
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.ask.check import CheckedRow

TOTAL: Final[Mapping[str, str]] = {
    "power": "total_power_w", "energy": "total_energy_j", "energy_per_inference": "total_energy_per_inference_j",
    "purchase": "total_purchase_usd",
}  # fmt: skip
"""Metric -> column that includes the host; limits apply to it."""

MOST_SHARE: Final = 2.0
"""Factor from which a host is stated as a factor of the value, and no longer as a share to add."""

LEAST_KEPT: Final = 0.9
"""Probability of meeting the limits below which the decision rests on it."""

HOURS_S: Final = 3600.0


@frozen(kw_only=True)
class RecommendAnswer(RankedAnswer):
    """Every configuration of a model under limits: those that meet the limits, and the violations of the others."""

    rate_per_s: float = 0.0
    """Fixed rate in inferences per second; 0 if the chip runs at full speed."""
    rows: Table[RankedConfiguration]
    """Configurations by rank, best first, then those that violate a limit, smallest violation first."""
    violations: Table[Violation]

    @property
    def unranked(self) -> list[RankedConfiguration]:
        """Configurations within the limits without a rank, because their hardware can be neither bought nor rented."""
        return [row for row in self.select("feasible") if row.rank is None]

    @property
    def far(self) -> list[RankedConfiguration]:
        """Nearest configuration of each chip that misses a limit, nearest first."""
        return list_first(row for row in self.rows if row.miss_rank is not None)

    @property
    def nearest_miss(self) -> RankedConfiguration | None:
        """Configuration whose largest violation of a limit is smallest; None if any configuration meets every limit."""
        if self.select("feasible", "unranked").rows:
            return None
        return next((row for row in self.rows if row.miss_rank == 1), None)

    @property
    def checked(self) -> Sequence[CheckedRow]:
        """The recommended run, or the nearest miss."""
        decided = self.best or self.nearest_miss
        return () if decided is None else (decided,)

    @property
    def counts_hosts(self) -> bool:
        """True if the objective of any configuration includes the energy or power of a separate host."""
        return any(row.hostless_value != row.objective_value for row in self.rows)

    @property
    def best_without_host(self) -> RankedConfiguration | None:
        """Ranked configuration that would be best if hosts were not counted; None without a ranking."""
        ranked = [row for row in self.rows if row.rank is not None and row.hostless_value is not None]
        return min(ranked, key=lambda row: (self.order(row.hostless_value), row.rank or 0), default=None)

    @property
    def use_case(self) -> Scenario | None:
        """Scenario that the question names; None if it names none."""
        name = self.scope.settings.scenario
        return find_scenario(name) if name else None

    @property
    def misses_limits(self) -> bool:
        """True if the limits are not met. Hardware that can be neither bought nor rented counts only if nothing else
        was requested.
        """
        best = self.best
        if best is None:
            return self.nearest_miss is not None and bool(self.limits.bounds)
        can_have_others = any(row.is_available for row in self.select("infeasible"))
        is_kept = best.is_available or self.scope.settings.takes_all or not can_have_others
        return not is_kept and bool(self.limits.bounds)

    @cached_property
    def shown(self) -> Table[RankedConfiguration]:
        """Configurations within the limits: those with a rank, and those that the caller named."""
        return self._keep_shown("feasible")

    @property
    def shown_chips(self) -> Table[RankedConfiguration]:
        """Best shown configuration of each chip."""
        return self.rows.with_rows(list_first(self.shown))

    @property
    def missed(self) -> Table[RankedConfiguration]:
        """Configurations that miss a limit: those with a rank, and those that the caller named."""
        return self._keep_shown("infeasible")

    def _keep_shown(self, status: str) -> Table[RankedConfiguration]:
        is_named = bool(self.scope.settings.hardware)
        rows = self.select(status)
        return rows.with_rows(row for row in rows if is_named or (row.rank or row.miss_rank) is not None)

    def order(self, value: float | None) -> float:
        """Return a value of the objective as a number of which the lowest is the best."""
        return math.inf if value is None else -value if METRIC[self.objective].is_higher_better else value

    def data(self) -> dict[str, Any]:
        """Return the data for machine formats, with the limits. The best configurations are separate records."""
        rows = super().data()
        names = ("best", "projection", "nearest_miss", "best_without_host")
        by_run = {row["run_id"]: row for row in rows["rows"]}
        return {
            **rows,
            "objective": self.objective,
            "limits": [
                {"limit_name": name, "bound": bound, "unit": METRIC[name].unit} for name, bound in self.limits.bounds
            ],
            "rate_per_s": self.rate_per_s,
            "feasible_count": len(self.select("feasible")),
            **{name: by_run[row.run_id] if (row := getattr(self, name)) else None for name in names},
        }


def find_facts(answer: RecommendAnswer) -> Facts:
    """Return the facts of a recommendation: the choice, limits with the nearest miss, changes after which another
    configuration wins, the cause of the lead, rows and caveats.
    """
    choices = answer.choose()
    answer = attrs.evolve(answer, facts=attrs.evolve(NO_FACTS, facts=tuple(choices)))
    scope, rows, best, objective = answer.scope, answer.rows.rows, answer.best, answer.objective
    ranked, far = answer.ranked, answer.far
    limits = list(
        _bound(best if best is not None and (best.is_available or not far) else next(iter(far), None), answer)
    )
    decided: tuple[Choice | Limit | Turn, ...] = (*choices, *limits, *_turn(answer))
    own: tuple[Caveat | Refusal, ...] = (
        *_refuse(answer),
        *_find_kept(best),
        *_find_unpriced(answer),
    )
    pivotal = {row.run_id: row for row in (ranked or far)[:MOST_ENTRIES]}
    named = {one for fact in decided for one in fact.runs}
    pivotal |= {row.run_id: row for row in reversed(rows) if row.run_id in named - pivotal.keys()}
    weighed = scope.part(pivotal)
    missed = [Choice(runs=one.runs, metric=one.metric, value=one.value or one.bound) for one in limits if one.runs]
    caveats = find_caveats(
        weighed,
        choices[:1] or missed[:1],
        metric=objective,
        but=("host",) if answer.counts_hosts else (),
        more=[
            *(one for row in pivotal.values() for one in _find_host(row, weighed, answer)),
            *(one for row in pivotal.values() for one in _find_price(row, objective)),
        ],
    )
    alike = (one for fact in choices for one in (*fact.tied, *fact.equal))
    beside = (*(one for fact in own for one in fact.runs), *list_ids(answer.unranked[:1]))
    by = ("way", *VARYING) if rows and rows[0].pay == "both" else VARYING
    settings = vary(answer.select("feasible", "infeasible").rows or rows, by)
    return Facts(
        asked=tuple(dict.fromkeys((objective, *(name for name, _ in answer.limits.bounds)))),
        runs=scope.part(dict.fromkeys((*pivotal, *alike, *beside))).subjects(settings),
        facts=(
            *decided,
            *_explain(answer, choices),
            *_supply(answer),
            *(_enter(row, answer) for row in pivotal.values()),
            *own,
            *caveats,
        ),
    )


def _enter(row: RankedConfiguration, answer: RecommendAnswer) -> Entry:
    """Return the objective of a configuration and the metrics that limits apply to, with its host."""
    values: dict[str, Quantity] = {
        name: value for name, _ in answer.limits.bounds if (value := _read(row, name)) is not None
    }
    if row.objective_value is not None:
        values[answer.objective] = answer.find_value(row)
    if row.hostless_value is not None and row.hostless_value != row.objective_value:
        values["hostless"] = Quantity(row.hostless_value, METRIC[answer.objective].unit)
    return Entry(runs=(row.run_id,), values=values)


def _read(row: RankedConfiguration | None, name: MetricName) -> Quantity | None:
    """Return the metric that a limit applies to, with its host; None if it is unknown."""
    value = None if row is None else getattr(row, TOTAL.get(name, METRIC[name].column))
    return None if value is None else Quantity(float(value), METRIC[name].unit)


def _bound(row: RankedConfiguration | None, answer: RecommendAnswer) -> list[Limit]:
    """Return the limits, those that the configuration misses first, farthest first."""
    limits = []
    for name, bound in answer.limits.bounds:
        misses = [one for one in answer.violations if one.limit_name == name]
        own = next((one for one in misses if row is not None and one.run_id == row.run_id), None)
        fraction = 0.0 if own is None else own.violation_fraction
        others = {read_chip(one.hardware) for one in misses} - ({find_chip(row)} if row is not None else set())
        limits.append(
            Limit(
                runs=() if row is None else (row.run_id,),
                metric=name,
                bound=Quantity(bound, METRIC[name].unit),
                value=_read(row, name),
                miss=None if fraction is None else math.log1p(fraction),
                missed_count=len(others),
            )
        )
    return sorted(limits, key=lambda one: -math.inf if one.miss is None else -one.miss)


def _turn(answer: RecommendAnswer) -> Iterator[Turn]:
    """Yield what would make another configuration the best: no hosts, or a looser limit."""
    best, unit = answer.best, METRIC[answer.objective].unit
    if best is None:
        return
    alone = answer.best_without_host
    if alone is not None and find_chip(alone) != find_chip(best) and alone.hostless_value is not None:
        value, runs = Quantity(alone.hostless_value, unit), list_ids((alone, best))
        yield Turn(runs=runs, axis="host", before=answer.find_value(alone), value=value)
    near = [
        row
        for row in answer.rows
        if row.failed_count == 1 and row.violation_fraction and row.is_available and row.objective_value is not None
        if answer.order(row.objective_value) < answer.order(best.objective_value)
        if row.objective_ratio and row.objective_ratio * TIE_RATIO <= 1.0
    ]
    if near:
        first = min(near, key=lambda row: row.violation_fraction or 0.0)
        assert first.worst_limit is not None
        assert first.worst_value is not None
        limit = METRIC[first.worst_limit].unit
        yield Turn(
            runs=list_ids((first, best)),
            axis=first.worst_limit,
            before=Quantity(first.worst_bound or 0.0, limit),
            after=Quantity(first.worst_value, limit),
            value=answer.find_value(first),
            ratio=answer.compare(first, best),
        )


def _explain(answer: RecommendAnswer, choices: Sequence[Choice]) -> Iterator[Term]:
    """Yield the terms of the gap between the best two chips; hosts and idle time count too.

    The gap of a product of energy and time is that of the energies at the mean time, and that of the times at the mean
    energy.
    """
    if not choices or len(answer.ranked) < 2:
        return
    decision, rows = decide(choices), answer.pair
    pair, times = (rows[0].run_id, rows[1].run_id), [row.latency_s or 0.0 for row in rows]
    lead = next((one for one in decision.leads if not one.is_tied), decision.leads[0])
    metric = METRIC[cast("MetricName", lead.metric)]
    is_product = metric.unit == "Js"
    batches = [row.batch for row in rows]
    counts = (1, 1) if is_product and metric.per == BATCH else (batches[0], batches[1])
    divided = "energy_per_inference" if is_product else metric.name
    if not metric.energy_power:  # a price is no rate, and kinds of time would need ledgers
        yield from [compare_rates(answer.scope, pair)] if metric.name in ("latency", "throughput") else ()
        return
    terms = find_causes(answer.scope, pair, divided, counts)
    if metric.unit not in ("J", "Js") or metric.name != answer.objective:
        yield from terms
        return
    wholes = [answer.read(row) / (time if is_product else 1.0) for row, time in zip(rows, times, strict=True)]
    for name, field in ((HOST, "host"), (IDLE, "idle")):
        each = [getattr(row, f"{field}_energy_per_inference_j") or 0.0 for row in rows]
        amounts = [one * batch / count for one, batch, count in zip(each, batches, counts, strict=True)]
        if len({round(one / whole, 3) for one, whole in zip(amounts, wholes, strict=True)}) > 1:
            terms.append(make_term(pair, ROLE, "energy", name, amounts, "J"))  # else it follows from all else
    gap = wholes[1] * times[1] - wholes[0] * times[0]
    if not is_product or not gap:
        yield from share_out(terms)
        return
    share = (times[1] - times[0]) * sum(wholes) / 2.0 / gap
    yield make_term(pair, CATEGORY, "time", "latency", times, "s", share=share, is_shared=True)
    yield from share_out(terms, 1.0 - share)


def _supply(answer: RecommendAnswer) -> Iterator[Supply]:
    """Yield the life of the battery of a use case at a fixed rate."""
    best, case = answer.best, answer.use_case
    if best is None or case is None or case.battery is None or not answer.rate_per_s or not best.total_power_w:
        return
    life = Quantity(case.battery.value / best.total_power_w * HOURS_S, "s")
    yield Supply(runs=(best.run_id,), name=case.battery_name, power=Quantity(best.total_power_w, "W"), life=life)


def _find_host(row: RankedConfiguration, scope: Scope, answer: RecommendAnswer) -> Iterator[Finding]:
    """Yield the assumed host that a value includes; its effect on the order is the factor that it adds."""
    if row.objective_value and row.hostless_value:
        metric = METRIC[answer.objective]
        ratio = row.objective_value / row.hostless_value
        quantity = METRIC["energy"].label if metric.unit == "J" or metric.is_higher_better else metric.label
        whole = name_whole(scope.outlines[row.run_id].needs_host)
        yield from count_host(row.run_id, max(ratio, 1.0 / ratio), quantity, row.assumed_host, whole, MOST_SHARE)


def _find_price(row: RankedConfiguration, objective: MetricName) -> Iterator[Finding]:
    """Yield the price of a configuration in a ranking by cost, with its interval."""
    if objective == "cost" and row.price_half_width and row.way is not None:
        is_rented = row.way == "rented"
        price = row.price_cloud_usd_per_hour if is_rented else row.price_purchase_usd
        half_width = row.price_half_width if is_rented else row.bought_price_half_width
        value = Quantity(price or 0.0, WAY_UNITS[row.way], half_width)
        yield Finding(kind="priced", run_id=row.run_id, values={"price": value}, doubt=row.price_half_width)


def _find_kept(best: RankedConfiguration | None) -> Iterator[Caveat]:
    """Yield the probability that the best configuration meets the limits; a decision rests on a low one."""
    if best is not None and best.probability_kept is not None:
        weight = math.inf if best.probability_kept < LEAST_KEPT else 0.0
        values = {"probability": best.probability_kept}
        yield Caveat(kind="kept", runs=(best.run_id,), values=values, weight=weight)


def _find_unpriced(answer: RecommendAnswer) -> Iterator[Caveat]:
    """Yield the available chips that a missing price leaves out, with the best of them where they can be compared.

    Its weight is the logarithm of the factor by which that one is better than the best.
    """
    lost = (
        row
        for row in answer.rows
        if row.is_available and (row.status == "unranked" or (row.failed_count and row.violation_fraction is None))
    )
    for reason, alike in find_lost(lost):
        known = [row for row in alike if row.failed_count == 1 and row.objective_value is not None]
        first = min(known, key=lambda row: answer.order(row.objective_value), default=None)
        if first is None:
            yield lack_price(reason, alike, weight=UNKNOWN)
            continue
        ratio = answer.compare(first, answer.best) if answer.best is not None else None
        weight = UNKNOWN if answer.best is None else max(0.0, math.log(ratio or 1.0))
        yield lack_price(reason, (first, *alike), attrs.evolve(answer.find_value(first), half_width=None), weight)


def _refuse(answer: RecommendAnswer) -> Iterator[Refusal]:
    """Yield the refusal of available hardware, if the best configuration is unavailable and no other has a result."""
    refused = (row for row in answer.select("unsupported") if row.is_available)
    if answer.best is not None and not answer.best.is_available and not answer.far:
        yield from (Refusal(runs=(row.run_id,), reason=row.reason) for row in itertools.islice(refused, 1))


def recommend(
    source: Source,
    model: str,
    settings: Settings = CANDIDATES,
    *,
    objective: MetricName = "energy_per_inference",
    limits: Limits = LIMITS,
) -> RecommendAnswer:
    """Return the configurations that meet the limits, best first, and the violations of the others.

    The configurations are the same as in `pareto`. If none meets the limits, `nearest_miss` is the configuration with
    the smallest worst relative violation, and `misses_limits` is True. Raises like `compare`.
    """
    rate_per_s = limits.min_throughput_per_s or 0.0 if is_use_case(settings) else 0.0
    return recommend_at_rate(source, model, settings, rate_per_s, objective=objective, limits=limits)


def recommend_at_rate(
    source: Source,
    model: str,
    settings: Settings,
    rate_per_s: float,
    *,
    objective: MetricName,
    limits: Limits,
    per: str = "inference",
) -> RecommendAnswer:
    """Return the answer of `recommend` at a fixed rate in inferences per second; 0 if the chip runs at full speed.

    `per` is the unit of work of the model.
    """
    check_name("objective", objective, METRIC_NAMES)
    settings.site.check_ranked(objective)
    settings = price_at_wall(settings, (objective,))
    usual: Pay = "both" if objective == "cost" else "rented"
    settings = pay_as(settings, limits.pay)
    used, pay = read_usage(settings, usual)
    plan = plan_candidates(model, settings, rate_per_s)
    limits = _limit_rate(limits, plan, rate_per_s)
    with opening_scope(source, plan, needs_catalogue=True, has_ledger=False) as scope:
        asked: dict[str, Any] = {"objective": objective, "rate_per_s": rate_per_s}
        given = {"run_ids": list(scope.run_ids), **limits.parameters, **used, **pay, **asked}
        units = {"objective_value": METRIC[objective].unit}
        tables = fetch_candidates(scope, RecommendAnswer, units, **given)
        answer = RecommendAnswer(scope=scope, limits=limits, per=per, **asked, **tables)
        return attrs.evolve(answer, facts=find_facts(answer))


def _limit_rate(limits: Limits, plan: Plan, rate_per_s: float) -> Limits:
    """Return the limits, with the fixed rate as minimum throughput and the power budget as maximum average power."""
    if not rate_per_s:
        return limits
    budget = plan.selection.budget
    budget_w = budget.power_w if budget is not None and budget.is_mean else math.inf
    power_w = min(budget_w, limits.max_power_w or math.inf)
    return attrs.evolve(
        limits,
        min_throughput_per_s=max(limits.min_throughput_per_s or 0.0, rate_per_s),
        max_power_w=power_w if power_w < math.inf else None,
    )
