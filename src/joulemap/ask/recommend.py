"""Facts of a recommendation: the best configuration within limits or the nearest miss, what would change it, causes,
and caveats.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import attrs

from joulemap.ask.candidate import (
    MOST_ENTRIES,
    add_chances,
    choose_first,
    find_chip,
    find_likelier,
    list_first,
    read_chip,
)
from joulemap.ask.fact import Cause, Caveat, Choice, Entry, Facts, Limit, Quantity, Refusal, Supply, Turn
from joulemap.ask.finding import Finding
from joulemap.ask.rule import UNKNOWN, find_caveats
from joulemap.ask.scope import VARYING, Scope, vary
from joulemap.domain.host import name_whole
from joulemap.domain.metric import METRIC, TIE_RATIO, MetricName
from joulemap.domain.settings import Limits
from joulemap.generated.compare import Insight
from joulemap.generated.recommend import RankedConfiguration, Violation
from joulemap.store.query import fetch
from joulemap.system.record import frozen

TOTAL: Final[Mapping[str, str]] = {
    "power": "total_power_w", "energy": "total_energy_j", "energy_per_inference": "total_energy_per_inference_j",
    "purchase": "total_purchase_usd",
}  # fmt: skip
"""Metric -> column that includes the host; limits apply to it."""

OTHER_PAY: Final[Mapping[str, str]] = {"rented": "bought", "bought": "rented"}
"""Way of paying that is ranked -> the other way."""

OTHER_COST: Final[Mapping[str, str]] = {"rented": "bought_usd_per_million", "bought": "rented_usd_per_million"}
"""Way of paying that is ranked -> column with the cost in the other way."""

MOST_SHARE: Final = 2.0
"""Factor from which a host is stated as a factor of the value, and no longer as a share to add."""

LEAST_SHARE: Final = 0.01
"""Share of a value below which its host is no caveat."""

LEAST_KEPT: Final = 0.9
"""Probability of meeting the limits below which the decision rests on it."""

HOURS_S: Final = 3600.0


@frozen(kw_only=True)
class Wanted:
    """Objective and limits of a recommendation."""

    objective: MetricName
    limits: Limits
    rate_per_s: float = 0.0
    """Fixed rate in inferences per second; 0 if the chip runs at full speed."""
    per: str = "inference"
    """Unit of work of the model."""
    battery: tuple[str, float] | None = None
    """Battery of the use case by its source, and its energy in Wh."""


def order(objective: MetricName, value: float | None) -> float:
    """Return a value of a metric as a number of which the lowest is the best."""
    return math.inf if value is None else -value if METRIC[objective].is_higher_better else value


def find_best(rows: Iterable[RankedConfiguration]) -> RankedConfiguration | None:
    """Return the best configuration within the limits; None if there is none."""
    return next((row for row in rows if row.rank == 1), None)


def find_nearest_miss(rows: Iterable[RankedConfiguration]) -> RankedConfiguration | None:
    """Return the configuration whose largest violation of a limit is smallest; None if any meets every limit."""
    listed = list(rows)
    if any(row.status in ("feasible", "unranked") for row in listed):
        return None
    return next((row for row in listed if row.miss_rank == 1), None)


def find_projection(rows: Iterable[RankedConfiguration]) -> RankedConfiguration | None:
    """Return the best unavailable configuration; None unless it is better than the best available one."""
    first = next((row for row in rows if row.status == "feasible" and row.rank is None), None)
    return first if first is not None and (first.objective_ratio or 1.0) * TIE_RATIO <= 1.0 else None


def find_without_host(rows: Iterable[RankedConfiguration], objective: MetricName) -> RankedConfiguration | None:
    """Return the ranked configuration that would be best if hosts were not counted; None without a ranking."""
    ranked = [row for row in rows if row.rank is not None and row.hostless_value is not None]
    return min(ranked, key=lambda row: (order(objective, row.hostless_value), row.rank or 0), default=None)


def find_other_way(rows: Iterable[RankedConfiguration], objective: MetricName) -> RankedConfiguration | None:
    """Return the cheapest configuration in the way of paying that is not ranked; None if both ways are ranked, or if
    the objective is no cost.
    """
    if objective != "cost":
        return None
    kept = [row for row in rows if row.status in ("feasible", "unranked") and row.is_available]
    priced = [row for row in kept if find_other_cost(row) is not None]
    return min(priced, key=lambda row: find_other_cost(row) or 0.0, default=None)


def find_other_cost(row: RankedConfiguration) -> float | None:
    """Return the cost in the way of paying that is not ranked; None without a price, or if both ways are ranked."""
    return getattr(row, OTHER_COST[row.pay]) if row.pay in OTHER_COST else None


def find_facts(
    scope: Scope, rows: Sequence[RankedConfiguration], violations: Iterable[Violation], wanted: Wanted
) -> Facts:
    """Return the facts of a recommendation: the choice, limits with the nearest miss, changes after which another
    configuration wins, the cause of the lead, rows and caveats.
    """
    ranked = list_first(row for row in rows if row.rank is not None)
    far = list_first(row for row in rows if row.miss_rank is not None)
    best = find_best(rows)
    decided = tuple(_decide(rows, ranked, far, list(violations), wanted))
    choices = [one for one in decided if isinstance(one, Choice)]
    chances = add_chances(rows, "probability_best")
    own: tuple[Caveat | Refusal, ...] = (
        *_refuse(rows, best, is_served=bool(far)),
        *_find_kept(best),
        *(
            caveat
            for one in choices
            for caveat in find_likelier(one, ranked, chances, lambda row: row.objective_ratio or 1.0)
        ),
        *_find_unpriced(rows, best, wanted),
    )
    pivotal = {row.run_id: row for row in (*ranked[:MOST_ENTRIES], *(() if ranked else far[:MOST_ENTRIES]))}
    named = {one for fact in decided for one in fact.runs}
    pivotal |= {row.run_id: row for row in reversed(rows) if row.run_id in named - pivotal.keys()}
    weighed = scope.part(pivotal)
    caveats = find_caveats(
        weighed,
        choices[:1] or [_weigh_miss(one) for one in decided if isinstance(one, Limit) and one.runs][:1],
        metric=wanted.objective,
        but=("host",) if counts_hosts(rows) else (),
        more=(*_find_hosts(pivotal.values(), weighed, wanted), *_find_prices(pivotal.values(), wanted)),
    )
    alike = (one for fact in choices for one in (*fact.tied, *fact.equal))
    unranked = (row.run_id for row in rows if row.status == "feasible" and row.rank is None)
    beside = (*(one for fact in own for one in fact.runs), *itertools.islice(unranked, 1))
    tried = [row for row in rows if row.status in ("feasible", "infeasible")]
    return Facts(
        asked=tuple(dict.fromkeys((wanted.objective, *(name for name, _ in wanted.limits.bounds)))),
        runs=scope.part(dict.fromkeys((*pivotal, *alike, *beside))).subjects(vary(tried or rows, _vary_by(rows))),
        facts=(
            *decided,
            *_explain(scope, ranked, wanted),
            *_supply(best, wanted),
            *(_enter(row, wanted) for row in pivotal.values()),
            *own,
            *caveats,
        ),
    )


def _decide(
    rows: Sequence[RankedConfiguration],
    ranked: Sequence[RankedConfiguration],
    far: Sequence[RankedConfiguration],
    misses: Sequence[Violation],
    wanted: Wanted,
) -> Iterator[Choice | Limit | Turn]:
    """Yield the choice, an unavailable configuration that would be better, the limits, and what would turn the choice.

    The limits are those of the nearest miss if no available configuration meets them.
    """
    best, projection = find_best(rows), find_projection(rows)
    if best is not None:
        yield _choose(ranked, rows, wanted)
        if projection is not None:
            yield _prefer(projection, best, wanted)
    is_met = best is not None and (best.is_available or not far)
    yield from _bound(best if is_met else next(iter(far), None), misses, wanted)
    if best is not None:
        yield from _turn(rows, best, wanted)


def counts_hosts(rows: Iterable[RankedConfiguration]) -> bool:
    """Return True if the objective of any configuration includes a separate host."""
    return any(row.hostless_value != row.objective_value for row in rows)


def _vary_by(rows: Sequence[RankedConfiguration]) -> tuple[str, ...]:
    """Return the settings that distinguish configurations; the way of paying is one if both ways are ranked."""
    return (*(("way",) if rows and rows[0].pay == "both" else ()), *VARYING)


def _choose(ranked: Sequence[RankedConfiguration], rows: Sequence[RankedConfiguration], wanted: Wanted) -> Choice:
    """Return the best configuration, the best of each other chip, and the chips that are statistically tied."""
    best, *others = ranked
    return choose_first(
        ranked,
        add_chances(rows, "probability_best"),
        (row for row in rows if row.likely_best),
        lambda row: row.objective_value or 0.0,
        others[0].probability_better if others else None,
        metric=wanted.objective,
        value=_value(best, wanted),
        ratio=others[0].objective_ratio if others else None,
        per=wanted.per,
    )


def _prefer(row: RankedConfiguration, best: RankedConfiguration, wanted: Wanted) -> Choice:
    """Return the choice of an unavailable configuration over the best available one."""
    return Choice(
        runs=(row.run_id, best.run_id),
        metric=wanted.objective,
        value=_value(row, wanted),
        ratio=1.0 / row.objective_ratio if row.objective_ratio else None,
        per=wanted.per,
    )


def _value(row: RankedConfiguration, wanted: Wanted) -> Quantity:
    return Quantity(row.objective_value or 0.0, METRIC[wanted.objective].unit, row.objective_half_width)


def _enter(row: RankedConfiguration, wanted: Wanted) -> Entry:
    """Return the objective of a configuration and the metrics that limits apply to, with its host."""
    values = {
        name: Quantity(float(value), METRIC[name].unit)
        for name, _ in wanted.limits.bounds
        if (value := getattr(row, TOTAL.get(name, METRIC[name].column))) is not None
    }
    objective = {wanted.objective: _value(row, wanted)} if row.objective_value is not None else {}
    is_hosted = row.hostless_value is not None and row.hostless_value != row.objective_value
    alone = {"hostless": Quantity(row.hostless_value or 0.0, METRIC[wanted.objective].unit)} if is_hosted else {}
    return Entry(runs=(row.run_id,), values=values | objective | alone)


def _bound(row: RankedConfiguration | None, misses: Sequence[Violation], wanted: Wanted) -> Iterator[Limit]:
    """Yield the limits, those that the configuration misses first, farthest first."""
    own = {one.limit_name: one for one in misses if row is not None and one.run_id == row.run_id}
    known = "" if row is None else find_chip(row)
    limits = []
    for name, bound in wanted.limits.bounds:
        unit, missed = METRIC[name].unit, own.get(name)
        value = None if row is None else getattr(row, TOTAL.get(name, METRIC[name].column))
        fraction = 0.0 if missed is None else missed.violation_fraction
        limit = Limit(
            runs=() if row is None else (row.run_id,),
            metric=name,
            bound=Quantity(bound, unit),
            value=None if value is None else Quantity(float(value), unit),
            miss=None if fraction is None else math.log1p(fraction),
            missed_count=len(
                {chip for one in misses if one.limit_name == name and (chip := read_chip(one.hardware)) != known}
            ),
        )
        limits.append(limit)
    yield from sorted(limits, key=lambda one: -math.inf if one.miss is None else -one.miss)


def _weigh_miss(limit: Limit) -> Choice:
    """Return a missed limit as a choice, against which caveats are weighed."""
    return Choice(runs=limit.runs, metric=limit.metric, value=limit.value or limit.bound)


def _turn(rows: Sequence[RankedConfiguration], best: RankedConfiguration, wanted: Wanted) -> Iterator[Turn]:
    """Yield what would make another configuration the best: another way of paying, no hosts, or a looser limit."""
    unit = METRIC[wanted.objective].unit
    other = find_other_way(rows, wanted.objective)
    if other is not None and (cost := find_other_cost(other)) is not None:
        runs = (other.run_id, best.run_id)
        yield Turn(runs=runs, axis="pay", before=other.pay, after=OTHER_PAY[other.pay], value=Quantity(cost, unit))
    alone = find_without_host(rows, wanted.objective)
    if alone is not None and find_chip(alone) != find_chip(best) and alone.hostless_value is not None:
        value = Quantity(alone.hostless_value, unit)
        yield Turn(runs=(alone.run_id, best.run_id), axis="host", before=_value(alone, wanted), value=value)
    near = [
        row
        for row in rows
        if row.failed_count == 1 and row.violation_fraction and row.is_available and row.objective_value is not None
        if order(wanted.objective, row.objective_value) < order(wanted.objective, best.objective_value)
        if row.objective_ratio and row.objective_ratio * TIE_RATIO <= 1.0
    ]
    if near:
        first = min(near, key=lambda row: (row.violation_fraction or 0.0, row.run_id))
        assert first.worst_limit is not None
        assert first.worst_value is not None
        limit = METRIC[first.worst_limit].unit
        yield Turn(
            runs=(first.run_id, best.run_id),
            axis=first.worst_limit,
            before=Quantity(first.worst_bound or 0.0, limit),
            after=Quantity(first.worst_value, limit),
            value=_value(first, wanted),
            ratio=1.0 / first.objective_ratio if first.objective_ratio else None,
        )


def _explain(scope: Scope, ranked: Sequence[RankedConfiguration], wanted: Wanted) -> Iterator[Cause]:
    """Yield the category of energy that differs most between the best two chips; hosts and idle time count too."""
    if wanted.objective not in ("energy", "energy_per_inference") or len(ranked) < 2:
        return
    best, rival = ranked[:2]
    wholes = [row.total_energy_per_inference_j for row in (best, rival)]
    if None in wholes or (rival.objective_ratio or 1.0) < TIE_RATIO:
        return
    gaps: dict[str, float] = {
        name: (getattr(rival, column) or 0.0) - (getattr(best, column) or 0.0)
        for name, column in (("host", "host_energy_per_inference_j"), ("idle", "idle_energy_per_inference_j"))
    }
    (row,) = fetch(scope.connection, Insight, run_ids=[best.run_id, rival.run_id])
    gross_j = sum(abs(gap_j) for gap_j in gaps.values())
    if row.category_share_fraction:
        own_j = row.category_difference_j / (1 if best.batch != rival.batch else best.batch)  # per inference
        gross_j += own_j / row.category_share_fraction
        if (best.energy_per_inference_j or 0.0) < (rival.energy_per_inference_j or 0.0):
            gaps[row.common_category] = own_j
    name, gap_j = max(gaps.items(), key=lambda one: one[1])
    if gap_j > 0.0:
        yield Cause(
            runs=(best.run_id, rival.run_id),
            metric=wanted.objective,
            name=name,
            difference=Quantity(gap_j, "J"),
            share=gap_j / gross_j,
        )


def _supply(best: RankedConfiguration | None, wanted: Wanted) -> Iterator[Supply]:
    """Yield the life of the battery of a use case at a fixed rate."""
    if best is not None and wanted.battery is not None and wanted.rate_per_s and best.total_power_w:
        name, energy_wh = wanted.battery
        life = Quantity(energy_wh / best.total_power_w * HOURS_S, "s")
        yield Supply(runs=(best.run_id,), name=name, power=Quantity(best.total_power_w, "W"), life=life)


def _find_hosts(shown: Iterable[RankedConfiguration], scope: Scope, wanted: Wanted) -> Iterator[Finding]:
    """Yield the assumed host that a value includes; its effect on the order is the factor that it adds."""
    is_energy = METRIC[wanted.objective].unit == "J" or METRIC[wanted.objective].is_higher_better
    for row in shown:
        whole, alone = order(wanted.objective, row.objective_value), order(wanted.objective, row.hostless_value)
        if not row.objective_value or not row.hostless_value or abs(whole / alone - 1.0) < LEAST_SHARE:
            continue
        needs = scope.outlines[row.run_id].needs_host
        ratio = max(whole / alone, alone / whole)
        values = {
            "quantity": METRIC["energy"].label if is_energy else METRIC[wanted.objective].label,
            "host": row.assumed_host,
            "whole": name_whole(needs),
            "share": round(ratio - 1.0, 3) if ratio < MOST_SHARE else None,
            "factor": round(ratio, 1) if ratio >= MOST_SHARE else None,
        }
        yield Finding(kind="counted", run_id=row.run_id, values=values, bias=-math.log(ratio))


def _find_prices(shown: Iterable[RankedConfiguration], wanted: Wanted) -> Iterator[Finding]:
    """Yield the prices of a ranking by cost, with their intervals."""
    for row in shown:
        if wanted.objective != "cost" or not row.price_half_width:
            continue
        is_rented = row.way == "rented"
        price = row.price_cloud_usd_per_hour if is_rented else row.price_purchase_usd
        value = Quantity(price or 0.0, "USD/h" if is_rented else "USD", row.price_half_width)
        yield Finding(kind="priced", run_id=row.run_id, values={"price": value}, doubt=row.price_half_width)


def _find_kept(best: RankedConfiguration | None) -> Iterator[Caveat]:
    """Yield the probability that the best configuration meets the limits; a decision rests on a low one."""
    if best is not None and best.probability_kept is not None:
        weight = math.inf if best.probability_kept < LEAST_KEPT else 0.0
        values = {"probability": best.probability_kept}
        yield Caveat(kind="kept", runs=(best.run_id,), values=values, weight=weight)


def _find_unpriced(
    rows: Sequence[RankedConfiguration], best: RankedConfiguration | None, wanted: Wanted
) -> Iterator[Caveat]:
    """Yield the available chips that a missing price leaves out, with the best of them where they can be compared."""
    lost = [
        row
        for row in rows
        if row.is_available and (row.status == "unranked" or (row.failed_count and row.violation_fraction is None))
    ]
    reasons: dict[str, list[RankedConfiguration]] = {}
    for row in lost:
        reasons.setdefault("" if row.is_elsewhere else row.reason, []).append(row)
    for reason, alike in reasons.items():
        known = [row for row in alike if row.failed_count == 1 and row.objective_value is not None]
        first = min(known, key=lambda row: (order(wanted.objective, row.objective_value), row.run_id), default=None)
        chips = list_first([first, *alike] if first is not None else alike)
        value = None if first is None else attrs.evolve(_value(first, wanted), half_width=None)
        yield Caveat(
            kind="elsewhere" if not reason else "unpriced",
            runs=tuple(row.run_id for row in chips),
            values={"reason": reason, "value": value},
            weight=_lead(first, best, wanted) if first is not None and best is not None else UNKNOWN,
        )


def _lead(row: RankedConfiguration, best: RankedConfiguration, wanted: Wanted) -> float:
    """Return the logarithm of the factor by which a configuration is better than the best; 0 if it is not."""
    own, other = row.objective_value, best.objective_value
    ratio = 1.0 if not own or not other else own / other if METRIC[wanted.objective].is_higher_better else other / own
    return max(0.0, math.log(ratio))


def _refuse(
    rows: Iterable[RankedConfiguration], best: RankedConfiguration | None, *, is_served: bool
) -> Iterator[Refusal]:
    """Yield the refusal of available hardware, if the best configuration is unavailable and no other has a result."""
    refused = (row for row in rows if row.status == "unsupported" and row.is_available)
    if best is not None and not best.is_available and not is_served:
        yield from (Refusal(runs=(row.run_id,), reason=row.reason) for row in itertools.islice(refused, 1))
