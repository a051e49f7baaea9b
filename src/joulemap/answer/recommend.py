"""Recommend the configurations that meet every limit, best first, and rank the others by their violations."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final

import attrs

from joulemap.answer.candidate import (
    AVAILABLE,
    BATCH_NOTE,
    CHEAPEST,
    CONFIGURATIONS,
    HOURS,
    KEPT,
    LIMIT,
    PRICE_DOUBT,
    PROJECTION,
    SHOWN_DOUBTED,
    SOLD,
    WITH_HOST,
    RankedAnswer,
    describe_limits,
    describe_use,
    find_chip,
    find_fixed_rate,
    find_limited,
    first_of_each,
    list_metrics,
    name_direction,
    plan_candidates,
    read_usage,
    show_given,
    show_life,
    show_metric,
    show_price_span,
)
from joulemap.answer.engine import INFERENCES
from joulemap.answer.scope import find_scope
from joulemap.catalog.sheet import find_scenario
from joulemap.domain.default import CANDIDATES, LIMITS, USAGE, price_at_wall
from joulemap.domain.doubt import TIE_RATIO
from joulemap.domain.host import is_part
from joulemap.domain.metric import METRIC, METRIC_NAMES, Metric, MetricName
from joulemap.domain.settings import Limits, Settings, Usage, check_name
from joulemap.domain.table import Table
from joulemap.plan.hold import holding_runs
from joulemap.plan.run import Plan
from joulemap.plan.source import Source
from joulemap.present.cell import join_names, show_chance, show_interval, show_plain
from joulemap.present.document import Document, FieldCell, Grid, Section
from joulemap.present.template import Template, join_texts
from joulemap.row import Row
from joulemap.row.cost import AssumedNumber
from joulemap.row.recommend import RankedConfiguration, Violation
from joulemap.store.query import fetch, fetch_all, fetch_none
from joulemap.system.record import frozen

TITLE: Final = Template(
    "{model}: {metric.best} {metric.meaning}[ at {rate}] among {count}[ ({refused:#} cannot run)][, {use}]"
)
PLUS_HOST: Final = " plus host"

BEST: Final = Template(
    "[With {kept}, ]{name} has the {metric.best} {metric.meaning}[ at {rate}][ among {sold}][ ({doubt})]: {value}"
    "[, {ratio:x} {way} than {next}][, within 0.5 % of {equal}]."
)
ONLY: Final = Template(
    "{name} is the only [{available} ]configuration[ with {kept}]; its {metric.meaning}[ at {rate}] is {value}."
)
ONLY_AVAILABLE: Final = "available"
NOT_SOLD: Final = Template(
    "[No available configuration has {kept}. ][{none}. ]{name}{but} would have the {metric.best} {metric.meaning}"
    "[ at {rate}]: {value}."
)
BUT: Final = " is not available, but"
NONE_RUNS: Final = "No available chip can run the model in any configuration"
NONE_SOLD: Final = "None of these chips can be bought or rented on its own"
NOTHING: Final = Template(
    "No configuration has {kept}. The nearest{available} is {name}: {miss}"
    "[; it also exceeds the limit on {others:and}]."
)
OF_AVAILABLE: Final = " available one"
FACTOR: Final = Template("{ratio:x}")
PAID_NAME: Final = Template("{way} {name}")
UNKNOWN: Final = Template("No configuration that meets the limits has a known {metric.meaning}.")
MISSED: Final = Template("its {metric.label} is {value}, {ratio:x} the limit of {bound}")
MISSED_LEAST: Final = Template("its {metric.label} is {value}; the limit of {bound} is {ratio:x} as much")
MISSED_PRICE: Final = Template(
    "its price is not known, so the limit of {bound} on its {metric.label} cannot be checked"
)
ALONE: Final = "No other hardware meets the limits."
HOST: Final = Template("The value includes {host}; for the chip alone, it would be {alone}.")
ASSUMED_HOST: Final = Template("{assumed_host} as the assumed host")
ASSUMED_REST: Final = Template("the assumed static power of {assumed_host} for the rest of its {whole}")
HOST_SHARE: Final = Template("a host that is assumed to add {percent:plain} %")
LIFE: Final = Template("{name} draws {power:W} on average, without sensor and radio: {life} on {battery}")
HOSTLESS: Final = Template("Without hosts, {name} would be best, at {alone}; with {host}, it would be at {whole}.")

DECIDING: Final = Template(
    "[{way} | ]*{label} objective_value | [{parts} | ]ratio to best objective_ratio! | *confidence probability_best? | "
    "[{price} | ]"
)

if TYPE_CHECKING:
    from joulemap.answer.check import CheckedRow
PARTS: Final = Template("{label} without host {column}[ | {host} host_energy_per_inference_j]")
HOST_ENERGY: Final = "host energy"
IDLE: Final = "idle energy idle_energy_per_inference_j | busy busy_fraction | "
PAY: Final = "payment way!"
PRICE: Final = "price told"
TOTALS: Final = {
    "power": "power with host total_power_w | ",
    "energy": "energy with host total_energy_j | ",
    "energy_per_inference": "energy per inference with host total_energy_per_inference_j | ",
    "purchase": "purchase price with host total_purchase_usd | ",
}
"""Metric -> column that includes the host; limits on the metric apply to this column."""
MEAN_POWER: Final = Template("average power at {rate}{with_host} total_power_w | ")
EVERY: Final = Template("Every configuration ({count:#})")
LIMITED: Final = "throughput limit throughput_limit?"
MISSES: Final = Template(
    "Configurations that miss a limit ({count:#}), nearest first[; {more:#} more, of unavailable "
    "hardware, are not shown]"
)
MISSING: Final = (
    "*missed limit worst_limit | *excess violation_fraction | *value worst_value | *limit worst_bound | "
    "also missed failed"
)
NOT_KNOWN: Final = "not known"

OTHER_WAY: Final = Template("{name} is {cheapest}: {value} (--pay {way})")
KEEPS: Final = Template("{name} meets the limits with {probability_kept:chance} probability")

CHANCE_NOTE: Final = (
    "confidence: probability that a chip is the best, in any of its configurations; under `Every configuration`, "
    "probability that this configuration is the best"
)
MISS_NOTE: Final = (
    "configurations that miss a limit are ordered by their largest relative miss: value / limit - 1, or "
    "limit / value - 1 for throughput"
)
HOST_NOTE: Final = (
    "Rankings and limits by energy or power include a host, unlike compare, pareto and explain. For USB and M.2 "
    "accelerators this is the static power of the host's board (`cost` counts an idle host at the wall instead); for a "
    "part of a module or SoC, it is the static power of the rest of it. For other chips it is the share that fleet and "
    "cost use; complete computers need none. `--host` selects the host"
)
RATE_NOTE: Final = Template(
    "{inputs} arrive at a fixed {rate}: energy and power include the idle power of chip and host between {inputs}. "
    "Average power = {label} x rate; `busy` is rate / throughput"
)
POWER_NOTE: Final = "--max-power limits the power of the chip and its host, the same host as in the ranking by energy"
WITHOUT_RANK: Final = "not ranked"
BEYOND_PRICE: Final = "outside the price limit"

STEP_RATE: Final = Template("recommend {model} --scenario {scenario} --min-throughput 10/s {repeated}")
STEP_TRADE: Final = Template("pareto {model} --x {limit} --y {other} {repeated}")

FIGURES: Final[tuple[MetricName, ...]] = (
    "latency", "energy_per_inference", "throughput", "power", "memory", "price", "purchase",
)  # fmt: skip
"""Metrics shown in addition to the objective."""

SHOWN_LIMITS: Final = 2
"""Maximum limited metrics whose columns stay visible on narrow terminals."""


@frozen(kw_only=True)
class RecommendAnswer(RankedAnswer):
    """Every configuration of a model under limits: those that meet the limits, and the violations of the others."""

    rated_columns: ClassVar[str] = IDLE
    """Columns of each configuration at a fixed rate, in the syntax of `lay`."""

    objective: MetricName
    limits: Limits
    rate_per_s: float = 0.0
    """Fixed rate in inferences per second; 0 if the chip runs at full speed."""
    rows: Table[RankedConfiguration]
    """Configurations by rank, best first, then those that violate a limit, smallest violation first."""
    violations: Table[Violation]

    @property
    def projection(self) -> RankedConfiguration | None:
        """Best unavailable configuration; None unless it is better than the best available one."""
        rows = (row for row in self.rows if row.status == "feasible" and row.rank is None)
        first = next(rows, None)
        return first if first is not None and (first.objective_ratio or 1.0) * TIE_RATIO <= 1.0 else None

    @property
    def nearest_miss(self) -> RankedConfiguration | None:
        """Configuration whose largest violation of a limit is smallest; None if any configuration meets every limit."""
        if any(row.status in ("feasible", "unranked") for row in self.rows):
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
    def _beside_boundary(self) -> str:
        return PLUS_HOST if self.counts_hosts else ""

    @property
    def best_without_host(self) -> RankedConfiguration | None:
        """Ranked configuration that would be best if hosts were not counted; None without a ranking."""
        sign = -1.0 if METRIC[self.objective].is_higher_better else 1.0
        ranked = [
            (sign * row.hostless_value, row.rank, row)
            for row in self.rows
            if row.rank is not None and row.hostless_value is not None
        ]
        return min(ranked)[2] if ranked else None

    @property
    def shortfall(self) -> str:
        """Sentence on why the limits are not met; empty if an available configuration meets them all.

        Hardware that can be neither bought nor rented counts only if nothing else was requested.
        """
        best = self.best
        can_have_others = any(row.is_available and row.status == "infeasible" for row in self.rows)
        is_kept = best is not None and (best.is_available or self.scope.settings.takes_all or not can_have_others)
        is_unknown = best is None and self.nearest_miss is None
        return "" if is_kept or is_unknown or not self.limits.bounds else self.describe_best()

    @property
    def other_way(self) -> RankedConfiguration | None:
        """Cheapest configuration in the way of paying that is not ranked.

        None if both ways are ranked, or if the objective is no cost.
        """
        kept = [row for row in self.rows if row.status in ("feasible", "unranked") and row.is_available]
        priced = [row for row in kept if _find_other_cost(row) is not None]
        return min(priced, key=lambda row: _find_other_cost(row) or 0.0, default=None) if self._is_money else None

    @property
    def _is_money(self) -> bool:
        return self.objective == "cost"

    def data(self) -> dict[str, Any]:
        """Return the data for machine formats, with the limits. The best configurations are separate records."""
        rows = super().data()
        names = ("best", "projection", "nearest_miss", "other_way", "best_without_host")
        by_run = {row["run_id"]: row for row in rows["rows"]}
        return {
            **rows,
            "objective": self.objective,
            "objective_meaning": METRIC[self.objective].meaning,
            "limits": [
                {"limit_name": name, "bound": bound, "unit": METRIC[name].unit, "meaning": meaning}
                for (name, bound), meaning in zip(
                    self.limits.bounds, describe_limits(self.limits, LIMIT, self._rate), strict=True
                )
            ],
            "rate_per_s": self.rate_per_s,
            "feasible_count": len(self.select("feasible")),
            **{name: by_run[row.run_id] if (row := getattr(self, name)) else None for name in names},
        }

    @property
    def _metric(self) -> Metric:
        return METRIC[self.objective]

    @property
    def _rate(self) -> str:
        return show_metric("throughput", self.rate_per_s) if self.rate_per_s else ""

    @property
    def _rated(self) -> str:
        """Text of the fixed rate; empty if the objective does not depend on the rate."""
        return self._rate if self._metric.energy_power else ""

    def document(self, *, limit: int = 10, repeated: Sequence[str] = ()) -> Document:
        """Return the document with `limit` rows that meet the limits and `limit` rows that violate one."""
        feasible, infeasible = self.select("feasible"), self.select("infeasible")
        shown = [row for row in feasible if self._is_shown(row)]
        far = [row for row in infeasible if self._is_shown(row)]
        missed = Section(MISSES(count=len(far), more=len(infeasible) - len(far) or None), self._show_missed(far, limit))
        title = TITLE(
            model=self._subject,
            metric=self._metric,
            rate=self._rated or None,
            count=CONFIGURATIONS(count=len(self.rows)),
            refused=len(self.select("unsupported")) or None,
            use=describe_use(self.assumptions, self.rows[0].pay) if self._is_money and self.rows.rows else "",
        )
        named = (self.best, self._next, self.projection, self.nearest_miss)
        every = Section(EVERY(count=len(shown)), self._show_every(shown, limit))
        return self._compose(
            title,
            (Section("", self._show_deciding(first_of_each(shown), limit)) if shown else missed,),
            self.rows,
            answer=self.describe_best(),
            chosen=[row.run_id for row in named if row is not None],
            insights=self._insights(),
            sure=self._describe_uncertainty(),
            details=(*((every, missed) if shown else ()), self._assume(self.objective)),
            notes=self._notes(infeasible),
            steps=self._steps(repeated),
        )

    def _is_shown(self, row: RankedConfiguration) -> bool:
        """Return whether tables for display show a row: it has a rank, or its hardware was named by the caller."""
        return row.rank is not None or row.miss_rank is not None or bool(self.scope.settings.hardware)

    @property
    def _next(self) -> RankedConfiguration | None:
        """Best configuration of the second-best hardware; None if there is none."""
        chip = find_chip(self.best) if self.best is not None else ""
        return next((row for row in self.rows if row.rank and find_chip(row) != chip), None)

    def describe_best(self) -> str:
        """Return the headline: the best configuration, or the nearest miss if none meets the limits."""
        best, nearest, second = self.best, self.nearest_miss, self._next
        kept = join_names(describe_limits(self.limits, KEPT, self._rate))
        if best is None and nearest is None:
            return UNKNOWN(metric=self._metric)
        if best is None:
            assert nearest is not None
            first = next((row for row in self.rows if row.status == "infeasible"), nearest)
            available = "" if first.is_available else OF_AVAILABLE
            return NOTHING(name=self.name(nearest), kept=kept, available=available, **self._describe_miss(nearest))
        ranked = [row for row in self.rows if row.rank]
        is_own = len(set(map(find_chip, self.rows))) == 1 or self.scope.settings.takes_all
        ratio = None if second is None else second.objective_ratio
        is_equal = ratio is not None and ratio < TIE_RATIO
        text = BEST if best.is_available or self.scope.settings.takes_all else NOT_SOLD
        is_unserved = text is NOT_SOLD and not any(
            row.is_available and row.status in ("feasible", "infeasible", "unranked") for row in self.rows
        )
        is_sold = any(row.is_available for row in self.rows)
        is_only = text is BEST and all(row.rank == 1 for row in ranked)
        chances = self._chances("probability_best") if second is not None else {}
        sentence = (ONLY if is_only else text)(
            name=self._name(best),
            metric=self._metric,
            rate=self._rated or None,
            available=ONLY_AVAILABLE if len(self.select("feasible")) > 1 else None,
            sold=None if is_own else SOLD(way=best.pay) if self._pays_one_way else AVAILABLE,
            kept="" if is_unserved else kept,
            none=("" if not is_unserved else NONE_RUNS if is_sold else NONE_SOLD),
            but="" if is_unserved and not is_sold else BUT,
            value=self._show_objective(best.objective_value, best.objective_half_width),
            ratio=None if is_equal else ratio,
            way=name_direction(self._metric),
            next=None if second is None else self.scope.mark(second.hardware),
            equal=self.scope.mark(second.hardware) if second is not None and is_equal else None,
            doubt=self._describe_doubt(self._find_rivals("likely_best"), chances),
        )
        is_alone = text is BEST and kept and second is None and not is_own and len(ranked) > 1
        lines = [sentence, ALONE if is_alone else "", self._describe_host(best), self._describe_hostless(best)]
        return join_texts(" ", filter(None, lines))

    @property
    def _pays_one_way(self) -> bool:
        return self._is_money and self.rows[0].pay != "both"

    def _name(self, row: RankedConfiguration) -> str:
        """Return the name of a configuration; for a cost with several ways of paying, the name states the way."""
        if not self._is_money or not row.way:
            return self.name(row)
        return self.name(row) if self._pays_one_way else PAID_NAME(way=row.way.capitalize(), name=self.name(row))

    def _show_objective(self, value: float | None, half_width: float | None = None) -> str:
        if self.objective == "cost" and half_width is None:
            return show_metric(self.objective, value)
        return show_interval(value, self._metric.unit, half_width)

    def _describe_host(self, row: RankedConfiguration) -> str:
        """Return a sentence on the host that the value of a row includes; empty if it includes none."""
        if row.hostless_value == row.objective_value:
            return ""
        return HOST(host=self._name_host(row), alone=self._show_objective(row.hostless_value))

    def _describe_hostless(self, best: RankedConfiguration) -> str:
        """Return a sentence on the chip that would be best if hosts were not counted; empty if it is the best chip
        anyway.
        """
        other = self.best_without_host
        if other is None or find_chip(other) == find_chip(best):
            return ""
        alone, whole = self._show_objective(other.hostless_value), self._show_objective(other.objective_value)
        return HOSTLESS(name=self.name(other), alone=alone, whole=whole, host=self._name_host(other))

    def _name_host(self, row: RankedConfiguration) -> str:
        """Return the host counted with a configuration, or the assumed share of a host's energy."""
        slot = self.scope.slots.get(row.hardware, "")
        if row.assumed_host:
            return ASSUMED_REST(row, whole=slot.partition(" ")[0]) if is_part(slot) else ASSUMED_HOST(row)
        alone_j = (row.energy_per_inference_j or 0.0) + (row.idle_energy_per_inference_j or 0.0)  # idle at a given rate
        share = (row.host_energy_per_inference_j or 0.0) / (alone_j or 1.0)
        return HOST_SHARE(percent=share * 100.0)

    def _warn_unhosted(self, headline: str, chosen: Collection[int] | None) -> str:
        return "" if self.counts_hosts or chosen is None else self.scope.warn_unhosted(headline)

    def _insights(self) -> list[str]:
        """Return sentences on the other way of paying, on missing prices and on better, unavailable configurations."""
        lines, projection, other = [], self.projection, self.other_way
        if other is not None:
            way = "rented" if other.pay == "bought" else "bought"
            value = show_metric("cost", _find_other_cost(other))
            lines.append(OTHER_WAY(cheapest=CHEAPEST[way], way=way, name=self.name(other), value=value))
        lines += self._describe_left_out(self.select("unranked"))
        lines += self._describe_unpriced()
        lines += self._describe_life()
        if projection is not None and projection.objective_ratio:
            values = {"label": self._metric.label, "way": name_direction(self._metric)}
            value = self._show_objective(projection.objective_value)
            ratio = 1.0 / projection.objective_ratio
            lines.append(PROJECTION(name=self.name(projection), ratio=ratio, value=value, **values))
        return lines

    def _describe_unpriced(self) -> list[str]:
        """Return a sentence on chips whose price is unknown, so that a limit on it leaves them out, and their best."""
        rows = [row for row in self.rows if row.status == "infeasible" and row.violation_fraction is None]
        sign = -1.0 if self._metric.is_higher_better else 1.0
        others = [
            (sign * row.objective_value, row.run_id, row)
            for row in rows
            if row.failed_count == 1 and row.is_available and row.objective_value is not None
        ]
        if not others:
            return self._describe_left_out(rows)
        best = min(others)[2]
        return self._describe_left_out(
            rows, best, self._show_objective(best.objective_value, best.objective_half_width)
        )

    def _describe_life(self) -> list[str]:
        """Return a sentence on the scenario's battery life at the fixed rate; empty without a battery or a rate."""
        scenario, best = self.scope.settings.scenario, self.best
        battery = find_scenario(scenario).battery if scenario else None
        if battery is None or best is None or not self.rate_per_s or not best.total_power_w:
            return []
        life = show_life(battery.value / best.total_power_w / HOURS)
        origin = battery.source.removesuffix(f", {battery.basis}")
        return [LIFE(name=self.name(best), power=best.total_power_w, battery=origin, life=life)]

    def _describe_uncertainty(self) -> str:
        """Return the meaning of the intervals, why the most probable winner is not first, and the chance to meet the
        limits.
        """
        best = self.best
        if best is None or best.probability_best is None:
            return ""
        chances = self._chances("probability_best")
        among = [row.hardware for row in first_of_each(filter(self._is_shown, self.rows))[:SHOWN_DOUBTED]]
        standing = self.scope.describe_spread(has_brackets=True, among=among)
        rank = self._explain_rank(chances, "objective_half_width")
        kept = "" if best.probability_kept is None else KEEPS(best, name=self.scope.mark(best.hardware))
        price = self._describe_price(best) if self._is_money and best.price_half_width else ""
        return "; ".join(filter(None, (standing, rank, kept, price)))

    def _describe_price(self, row: RankedConfiguration) -> str:
        """Return the price of a configuration with its interval."""
        is_rented = row.way == "rented"
        price, unit = (row.price_cloud_usd_per_hour, "USD/h") if is_rented else (row.price_purchase_usd, "USD")
        span = show_price_span(price or 0.0, unit, row.price_half_width)
        return PRICE_DOUBT(name=self.scope.mark(find_chip(row)), price=span)

    def _steps(self, repeated: Sequence[str]) -> list[list[str]]:
        """Return follow-up commands: show the trade-off if no configuration fits, otherwise compare the best two.

        Commands that analyze the best configurations follow.
        """
        best, nearest = self.best, self.nearest_miss
        chosen = [row for row in (best, nearest, self.projection) if row is not None]
        steps = self._analyze_each(chosen, repeated)
        if best is None and nearest is not None and nearest.worst_limit is not None:
            other = "latency" if nearest.worst_limit != "latency" else "energy_per_inference"
            values = {"model": self.scope.model, "limit": nearest.worst_limit, "other": other, "repeated": repeated}
            return [STEP_TRADE.words(**values), *steps]
        scenario = self.scope.settings.scenario
        if scenario and find_scenario(scenario).battery is not None and not self.rate_per_s:
            values = {"model": self.scope.model, "scenario": scenario, "repeated": repeated}
            steps = [STEP_RATE.words(**values), *steps]
        return [*self._compare_first(self._find_rivals("likely_best"), repeated), *steps]

    def _describe_miss(self, row: RankedConfiguration) -> dict[str, Any]:
        """Return template values for a configuration's largest violation of a limit, and for its other violations."""
        assert row.worst_limit is not None
        metric, value = find_limited(row.worst_limit), show_metric(row.worst_limit, row.worst_value)
        miss = ((MISSED_LEAST if metric.is_higher_better else MISSED) if value else MISSED_PRICE)(
            metric=metric,
            ratio=1.0 + (row.violation_fraction or 0.0),
            value=value,
            bound=show_given(row.worst_limit, row.worst_bound or 0.0),
        )
        return {"miss": miss, "others": _list_other_misses(row)}

    def _show_deciding(self, rows: Sequence[RankedConfiguration], limit: int) -> Grid:
        """Return a grid of these rows, one per chip, with the objective, the confidence and the limited metrics."""
        chances = self._chances("probability_best")
        bounded = [
            self._show_mean_power() if name == "power" and self._rate else TOTALS.get(name) or list_metrics((name,))
            for name, _ in self.limits.bounds
            if name != self.objective or (name == "power" and self._rate)
        ]
        held = [column.rsplit(maxsplit=2)[0] for column in bounded[:SHOWN_LIMITS] if column]
        return self._show_ranked(
            rows,
            "".join(bounded),
            limit,
            {row.run_id: chances.get(find_chip(row)) for row in rows},
            noun="chips",
            held=held,
        )

    def _show_mean_power(self) -> str:
        return MEAN_POWER(rate=self._rate, with_host=WITH_HOST if self.counts_hosts else "")

    def _show_every(self, rows: Sequence[RankedConfiguration], limit: int) -> Grid:
        power = self._show_mean_power() if self._rate else TOTALS["power"] if self.limits.max_power_w else ""
        figures = list_metrics(FIGURES, (self.objective,)) + power + LIMITED
        return self._show_ranked(rows, figures, limit, {row.run_id: row.probability_best for row in rows})

    def _show_ranked(
        self,
        rows: Sequence[RankedConfiguration],
        figures: str,
        limit: int,
        chances: dict[int, float | None],
        *,
        noun: str = "configurations",
        held: Sequence[str] = (),
        **shown: Any,
    ) -> Grid:
        """Return a grid of rows with objective, confidence and the columns `figures`; headings in `held` never fold.
        `shown` holds further options of `lay`.
        """
        rated = f"{self._metric.label} at {self._rated}" if self._rated else self._metric.label
        label = f"{rated}{WITH_HOST}" if self.counts_hosts else rated
        host = HOST_ENERGY if self._metric.unit == "J" else ""
        parts = PARTS(label=rated, column=self._metric.column, host=host) if self.counts_hosts else ""
        return self._lay_rows(
            rows,
            DECIDING(label=label, parts=parts, way=PAY if self._is_money else "", price=PRICE if self._is_money else "")
            + (self.rated_columns if self._rate else "")
            + figures,
            limit,
            noun=noun,
            ranked=" | ".join((label, *held)),
            stays=self._is_best,
            objective_value=FieldCell(
                "objective_value" if self.counts_hosts else self._metric.column,
                lambda row: self._show_objective(row.objective_value, row.objective_half_width),
            ),
            **({self._metric.column: lambda row: self._show_objective(row.hostless_value)} if parts else {}),
            **shown,
            probability_best=lambda row: show_chance(chances[row.run_id]) if len(rows) > 1 else "",
            objective_ratio=self._show_ratio,
        )

    def _show_ratio(self, row: RankedConfiguration) -> str:
        """Return a value divided by the best value, as a factor such as 1.2x; empty without a value."""
        if row.objective_ratio is None:
            return ""
        return FACTOR(ratio=1.0 / row.objective_ratio if self._metric.is_higher_better else row.objective_ratio)

    def _show_missed(self, rows: Sequence[RankedConfiguration], limit: int) -> Grid:
        return self._lay_rows(
            rows,
            MISSING,
            limit,
            ranked="missed limit | excess",
            worst_limit=lambda row: find_limited(row.worst_limit).label if row.worst_limit else "",
            violation_fraction=_percent,
            worst_value=lambda row: (row.worst_limit and show_metric(row.worst_limit, row.worst_value)) or NOT_KNOWN,
            worst_bound=lambda row: show_given(row.worst_limit, row.worst_bound or 0.0) if row.worst_limit else "",
            failed=lambda row: ", ".join(_list_other_misses(row)),
        )

    def _describe_rate(self) -> str:
        """Return a note on the meaning of energy and power at a fixed rate."""
        return RATE_NOTE(rate=self._rate, inputs=INFERENCES, label=METRIC["energy_per_inference"].label)

    def _notes(self, infeasible: Table[RankedConfiguration]) -> list[str]:
        unpriced = [row for row in infeasible if row.violation_fraction is None]
        limits_energy = any(name in ("energy", "energy_per_inference") for name, _ in self.limits.bounds)
        return [
            BATCH_NOTE,
            *([CHANCE_NOTE] if self._next else []),
            *([MISS_NOTE] if infeasible.rows else []),
            *([HOST_NOTE] if self.counts_hosts or limits_energy else []),
            *([self._describe_rate()] if self._rate else []),
            *([POWER_NOTE] if self.limits.max_power_w is not None else []),
            *self._describe_unknown(self.select("unranked").rows, WITHOUT_RANK),
            *self._describe_unknown(unpriced, BEYOND_PRICE),
            *self._describe_unranked(row for row in self.rows if row.status == "feasible" and row.rank is None),
            *(attrs.evolve(self, scope=self.scope.without_hostless()) if self.counts_hosts else self)._describe(),
        ]


def _find_other_cost(row: RankedConfiguration) -> float | None:
    """Return the cost in the way of paying that is not ranked; None without a price, or if both ways are ranked."""
    return {"rented": row.bought_usd_per_million, "bought": row.rented_usd_per_million}.get(row.pay)


def _percent(row: RankedConfiguration) -> str:
    return "" if row.violation_fraction is None else f"{show_plain(row.violation_fraction * 100)} %"


def _list_other_misses(row: RankedConfiguration) -> list[str]:
    """Return one text per violated limit, except the limit with the largest violation."""
    return [find_limited(name).label for name in METRIC if name in row.failed.split(", ") and name != row.worst_limit]


def recommend(
    source: Source,
    model: str,
    settings: Settings = CANDIDATES,
    *,
    objective: MetricName = "energy_per_inference",
    limits: Limits = LIMITS,
    usage: Usage = USAGE,
) -> RecommendAnswer:
    """Return the configurations that meet the limits, best first, and the violations of the others.

    The configurations are the same as in `pareto`. If none meets the limits, `nearest_miss` is the configuration with
    the smallest worst relative violation, and `shortfall` describes it. Raises like `compare`.
    """
    rate_per_s = find_fixed_rate(settings, limits)
    return recommend_at_rate(source, model, settings, rate_per_s, objective=objective, limits=limits, usage=usage)


def recommend_at_rate(
    source: Source,
    model: str,
    settings: Settings,
    rate_per_s: float,
    *,
    objective: MetricName,
    limits: Limits,
    usage: Usage,
) -> RecommendAnswer:
    """Return the answer of `recommend` at a fixed rate in inferences per second; 0 if the chip runs at full speed."""
    check_name("objective", objective, METRIC_NAMES)
    settings = price_at_wall(settings, (objective,))
    used, pay = read_usage(attrs.evolve(usage, pay=usage.pay or limits.pay), settings)
    plan = plan_candidates(model, settings, rate_per_s)
    limits = _limit_rate(limits, plan, rate_per_s)
    with holding_runs(source, plan, needs_catalogue=True, has_ledger=False) as runs:
        connection = runs.connection
        bounds: dict[str, Any] = {"run_ids": list(runs.ids), **limits.parameters}
        more = {**used, **pay, "objective": objective, "takes_all": settings.takes_all, "rate_per_s": rate_per_s}
        scope = find_scope(runs)
        if limits.bounds:
            records: dict[str, type[Row]] = {"rows": RankedConfiguration, "violations": Violation}
            found = fetch_all(connection, records, **bounds, **more)
        else:
            found = {
                "rows": fetch(connection, RankedConfiguration, **bounds, **more),
                "violations": fetch_none(
                    connection, Violation, **bounds, host_share=used["host_share"], rate_per_s=rate_per_s
                ),
            }
        answer = RecommendAnswer(
            scope=scope,
            objective=objective,
            limits=limits,
            rate_per_s=rate_per_s,
            assumptions=fetch(connection, AssumedNumber, **used),
            **found,
        )
    scope.check_evaluated()
    return answer


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
