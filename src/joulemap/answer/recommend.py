"""Recommend the configurations that meet every limit, best first, and rank the others by their violations."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import attrs

from joulemap.answer.candidate import (
    BATCH_NOTE,
    CandidateAnswer,
    count_candidates,
    describe_had,
    describe_kept,
    describe_limit,
    describe_projection,
    describe_use,
    find_chip,
    first_of_each,
    metric_columns,
    plan_candidates,
    read_usage,
    show_metric,
)
from joulemap.answer.run import limit_columns
from joulemap.answer.scope import find_scope
from joulemap.domain.default import CANDIDATES, LIMITS, USAGE
from joulemap.domain.metric import METRIC, METRIC_NAMES, MetricName
from joulemap.domain.settings import Limits, Settings, Usage, check_name
from joulemap.domain.table import Table
from joulemap.plan.hold import holding_runs
from joulemap.plan.source import Source
from joulemap.present.cell import show_chance, show_doubt, show_plain
from joulemap.present.document import Document, Grid, Made, Section, Shown
from joulemap.row.cost import AssumedNumber
from joulemap.row.recommend import RankedConfiguration, Violation
from joulemap.store.query import fetch, start
from joulemap.system.record import frozen

FIGURES: Final[tuple[MetricName, ...]] = (
    "latency", "energy_per_inference", "throughput", "power", "memory", "price", "purchase",
)  # fmt: skip
"""Metrics shown in addition to the objective."""

MISS_NOTE: Final = (
    "what misses a limit is in the order of its largest miss, relative to the limit: value / limit - 1, "
    "for throughput limit / value - 1"
)

CHANCE_NOTE: Final = "best: how sure it is that one of the configurations of the hardware is the best of all"


POWER_NOTE: Final = "--max-power limits the power of the chip and its host: the same host as in the ranking by energy"

HOST_NOTE: Final = (
    "an energy that is ranked or limited is that of the board and its host. A USB or M.2 chip has a host by itself, "
    "whose static power counts from one batch to the next as with --host. Another chip adds the share that fleet and "
    "cost use, a complete computer nothing. A host that --host counts is in the energy already. The run and its "
    "energy_j stay those of the board; compare, pareto and explain count a host with --host only"
)

POWER: Final[Shown[RankedConfiguration]] = ("power with host", "total_power_w")
"""Column with the power that a power limit applies to."""

TOTALS: Final[Mapping[MetricName, str]] = {
    "energy": "total_energy_j",
    "energy_per_inference": "total_energy_per_inference_j",
}
"""Metric of an energy limit -> column that the limit applies to."""

HOST: Final[Shown[RankedConfiguration]] = ("host energy", "host_energy_per_inference_j")
"""Column with the host's energy per inference, which the ranked value includes."""

SHOWN_LIMITS: Final = 2
"""Maximum limited metrics whose columns stay visible on narrow terminals."""


@frozen(kw_only=True)
class RecommendAnswer(CandidateAnswer):
    """Every configuration of a model under limits: the best that meet them, and the violations of the others."""

    objective: MetricName
    limits: Limits
    rows: Table[RankedConfiguration]
    """Rows by rank, best first; then those that violate a limit, nearest first."""
    violations: Table[Violation]

    @property
    def projection(self) -> RankedConfiguration | None:
        """Best unavailable configuration, if it is better than the best available one."""
        rows = (row for row in self.rows if row.status == "feasible" and row.rank is None)
        first = next(rows, None)
        return first if first is not None and (first.objective_ratio or 1.0) < 1.0 else None

    @property
    def nearest_miss(self) -> RankedConfiguration | None:
        """Configuration with the smallest worst violation; None if any meets every limit."""
        if any(row.status in ("feasible", "unranked") for row in self.rows):
            return None
        return next((row for row in self.rows if row.miss_rank == 1), None)

    @property
    def counts_hosts(self) -> bool:
        """True if the objective of any configuration includes a host outside its run."""
        return any(row.hostless_value != row.objective_value for row in self.rows)

    @property
    def best_without_host(self) -> RankedConfiguration | None:
        """Best of the ranked configurations without hosts; None without a ranking."""
        sign = -1.0 if METRIC[self.objective].is_higher_better else 1.0
        ranked = [
            (sign * row.hostless_value, row.rank, row)
            for row in self.rows
            if row.rank is not None and row.hostless_value is not None
        ]
        return min(ranked)[2] if ranked else None

    @property
    def shortfall(self) -> str:
        """Line on why the limits are not met; empty if an available configuration meets them all.

        Hardware that can be neither bought nor rented counts only if nothing else was requested.
        """
        best = self.best
        can_have_others = any(row.is_available and row.status == "infeasible" for row in self.rows)
        is_kept = best is not None and (best.is_available or self.scope.settings.takes_all or not can_have_others)
        is_unknown = best is None and self.nearest_miss is None
        return "" if is_kept or is_unknown or not self.limits.bounds else self.describe_best()

    @property
    def other_way(self) -> RankedConfiguration | None:
        """Cheapest configuration in the unranked way of paying; None if both are ranked, or for another objective."""
        kept = [row for row in self.rows if row.status in ("feasible", "unranked") and row.is_available]
        priced = [row for row in kept if _pay_otherwise(row) is not None]
        return min(priced, key=lambda row: _pay_otherwise(row) or 0.0, default=None) if self._is_money else None

    @property
    def _is_money(self) -> bool:
        return self.objective == "cost"

    @property
    def _limits_energy(self) -> bool:
        return any(name in TOTALS for name, _ in self.limits.bounds)

    @property
    def _use(self) -> str:
        """Payment and utilization, if the objective is cost; empty otherwise."""
        return describe_use(self.assumptions, self.rows[0].pay) if self._is_money and self.rows.rows else ""

    def data(self) -> dict[str, Any]:
        """Return the data for machine formats, with the parsed limits and the most important rows."""
        rows = super().data()
        names = ("best", "projection", "nearest_miss", "other_way", "best_without_host")
        by_run = {row["run_id"]: row for row in rows["rows"]}
        return {
            **rows,
            "objective": self.objective,
            "objective_meaning": METRIC[self.objective].meaning,
            "limits": [
                {"limit_name": name, "bound": bound, "unit": METRIC[name].unit, "meaning": describe_limit(name, bound)}
                for name, bound in self.limits.bounds
            ],
            "feasible_count": len(self.select("feasible")),
            **{name: by_run[row.run_id] if (row := getattr(self, name)) else None for name in names},
        }

    def document(self, *, limit: int = 10, repeated: Sequence[str] = ()) -> Document:
        """Return the document with `limit` rows that meet the limits and `limit` rows that violate one."""
        feasible, infeasible = self.select("feasible"), self.select("infeasible")
        told = attrs.evolve(feasible, rows=tuple(row for row in feasible if self._is_shown(row)))
        each = attrs.evolve(told, rows=tuple(first_of_each(told)))
        far = attrs.evolve(infeasible, rows=tuple(row for row in infeasible if self._is_shown(row)))
        missed = Section(f"Miss a limit ({len(far):,}), the nearest first", self._infeasible(far, limit))
        metric = METRIC[self.objective]
        among = f"{'with host ' if self.counts_hosts else ''}among {count_candidates(len(self.rows))}"
        return self._compose(
            ", ".join(filter(None, (f"{self.scope.model}: {metric.best} {metric.meaning} {among}", self._use))),
            (Section("", self._deciding(each, limit)) if each.rows else missed,),
            self.rows,
            answer=self.describe_best(),
            chosen=[row.run_id for row in (self.best, self.projection, self.nearest_miss) if row is not None],
            insights=self._insights(),
            sure=self._sure(),
            details=(
                *(
                    (Section(f"Every configuration ({len(told):,})", self._feasible(told, limit)), missed)
                    if each.rows
                    else ()
                ),
                self._assume(self.objective),
            ),
            notes=self._notes(infeasible),
            steps=self._steps(repeated),
        )

    def _is_shown(self, row: RankedConfiguration) -> bool:
        """Return whether tables for people show a row: it has a rank, or its hardware was named."""
        return row.rank is not None or row.miss_rank is not None or bool(self.scope.settings.hardware)

    def describe_best(self) -> str:
        """Return the headline: the best configuration, or the nearest miss if none meets the limits."""
        best, nearest = self.best, self.nearest_miss
        if best is None and nearest is None:
            return f"{METRIC[self.objective].meaning} is not known of any configuration that keeps the limits"
        kept = describe_kept(self.limits)
        if best is None:
            assert nearest is not None
            return f"nothing has {kept}; nearest: {self._describe_one_miss(nearest)}"
        pay = best.pay if self._is_money else ""
        first = f"{METRIC[self.objective].best} {METRIC[self.objective].meaning}"
        decision = self._describe_decision(best)
        within = f" with {kept}" if kept else ""
        if self.scope.settings.takes_all:
            return f"{self._tell(best)}, the {first}{within}{decision}"
        if not best.is_available:
            return f"nothing of {describe_had(pay)}{within}; if it could be, {self._tell(best)}, the {first}{decision}"
        if all(row.rank == 1 for row in self.rows if row.rank):
            return f"{self._tell(best)}: the only configuration{within}"
        if len(set(map(find_chip, self.rows))) == 1:
            return f"{self._tell(best)}, its {first}{within}{decision}"
        is_alone = len({find_chip(row) for row in self.rows if row.rank}) == 1
        alone = "; no other hardware keeps that" if is_alone and kept else ""
        return f"{self._tell(best)}, the {first} of {describe_had(pay)}{within}{alone}{decision}"

    def _tell(self, row: RankedConfiguration) -> str:
        way = f" {row.way}" if self._is_money else ""
        value, alone = row.objective_value, row.hostless_value
        host = f" with {_name_host(row)} ({self._show_objective(alone)} without)" if alone != value else ""
        return f"{self.name(row)}{way}: {self._show_objective(value)}{host}"

    def _show_objective(self, value: float | None) -> str:
        return show_metric(self.objective, value)

    def _describe_decision(self, best: RankedConfiguration) -> str:
        """Return the clause on the hardware that would be first without hosts; empty if it is the same."""
        other = self.best_without_host
        if other is None or find_chip(other) == find_chip(best):
            return ""
        alone, whole = self._show_objective(other.hostless_value), self._show_objective(other.objective_value)
        return f"; without hosts {self.name(other)} would be first: {alone} alone, {whole} with {_name_host(other)}"

    def _warn_unhosted(self, headline: str, chosen: Collection[int] | None) -> str:
        return "" if self.counts_hosts or chosen is None else self.scope.warn_unhosted(headline)

    def _insights(self) -> list[str]:
        """Return sentences on the other way of paying, on missing prices and on better, unavailable configurations."""
        lines, projection, other = [], self.projection, self.other_way
        if other is not None:
            value = show_metric("cost", _pay_otherwise(other))
            way = "rented" if other.pay == "bought" else "bought"
            lines.append(f"{way} instead, {self.name(other)} at best: {value} (--pay {way})")
        lines += self._tell_left_out("unranked")
        if projection is not None and projection.objective_ratio:
            lines.append(describe_projection(self._tell(projection), 1.0 / projection.objective_ratio))
        return lines

    def _sure(self) -> str:
        """Return the confidence in the recommendation, and in its meeting the limits."""
        best = self.best
        if best is None or best.probability_best is None:
            return ""
        chances = self._chances("probability_best")
        lines = [line for line in (self._tell_standing(self._find_rivals("likely_best"), chances),) if line]
        if best.probability_kept is not None:
            lines.append(f"{show_chance(best.probability_kept)} that it keeps its limits")
        if self._is_money and best.price_half_width:
            lines.append(f"its price ({best.told}) counts as {show_doubt(best.price_half_width)}")
        return "; ".join(lines)

    def _steps(self, repeated: Sequence[str]) -> list[list[str]]:
        """Return the next commands: why none fits, how the best two differ, or where the energy of the best goes."""
        best, nearest = self.best, self.nearest_miss
        chosen = [row for row in (best, nearest, self.projection) if row is not None]
        steps = self._analyze_each(chosen, repeated)
        if best is None and nearest is not None and nearest.worst_limit is not None:
            other = "latency" if nearest.worst_limit != "latency" else "energy_per_inference"
            pair = ["--x", nearest.worst_limit, "--y", other]
            return [["pareto", self.scope.model, *pair, *repeated], *steps]
        return [*self._compare_first(self._find_rivals("likely_best"), repeated), *steps]

    def _describe_one_miss(self, row: RankedConfiguration) -> str:
        besides = _find_failed_besides(row)
        more = f"; it misses {' and '.join(besides)} too" if besides else ""
        assert row.worst_limit is not None
        bound = show_metric(row.worst_limit, row.worst_bound)
        has = show_metric(row.worst_limit, row.worst_value)
        miss = f"by {_percent(row)} ({has} against {bound})" if has else f"of {bound}: its price is not known"
        return f"{self.name(row)} misses {METRIC[row.worst_limit].label} {miss}{more}"

    def _deciding(self, rows: Table[RankedConfiguration], limit: int) -> tuple[Grid, ...]:
        """Return a grid of each hardware at its best configuration, with the limited metrics."""
        chances = self._chances("probability_best")
        bounded = tuple(self._bounded())
        held = tuple(heading for heading, _ in bounded[:SHOWN_LIMITS])
        return self._ranked(rows, limit, "hardware", lambda row: chances.get(find_chip(row)), bounded, held)

    def _bounded(self) -> Iterator[Shown[RankedConfiguration]]:
        """Yield the columns of limited metrics, except the objective; power includes the host."""
        for name, _ in self.limits.bounds:
            if name == "power":
                yield POWER
            elif name == self.objective:
                continue
            elif name in TOTALS:
                yield f"{METRIC[name].label} with host", TOTALS[name]
            else:
                yield from metric_columns((name,), (self.objective,))

    def _feasible(self, rows: Table[RankedConfiguration], limit: int) -> tuple[Grid, ...]:
        compared = () if self.limits.max_power_w is None else (POWER,)
        figures = (*metric_columns(FIGURES, (self.objective,)), *compared, *limit_columns(rows.rows[:limit]))
        return self._ranked(rows, limit, "configurations", lambda row: row.probability_best, figures)

    def _ranked(
        self,
        rows: Table[RankedConfiguration],
        limit: int,
        noun: str,
        chance: Callable[[RankedConfiguration], float | None],
        figures: Iterable[Shown[RankedConfiguration]],
        held: Sequence[str] = (),
    ) -> tuple[Grid, ...]:
        """Return a grid of rows with objective, `chance` to be best, and `figures`; headings in `held` never fold."""
        metric = METRIC[self.objective]
        label = f"{metric.label} with host" if self.counts_hosts else metric.label
        field = "objective_value" if self.counts_hosts else metric.column
        parts: tuple[Shown[RankedConfiguration], ...] = (
            (metric.label, Made(metric.column, lambda row: self._show_objective(row.hostless_value))),
            HOST,
        )
        several: tuple[Shown[RankedConfiguration], ...] = (
            ("of the best", "objective_ratio"),
            ("best", lambda row: show_chance(chance(row))),
        )
        columns: tuple[Shown[RankedConfiguration], ...] = (
            *((("way", "way"),) if self._is_money and rows[0].pay == "both" else ()),
            (label, Made(field, lambda row: self._show_objective(row.objective_value))),
            *(parts if self.counts_hosts else ()),
            ("80 %", lambda row: show_doubt(row.objective_half_width)),
            *(several if len(rows) > 1 else ()),
            *((("price", "told"),) if self._is_money else ()),
            *figures,
        )
        return self._draw(
            rows, columns, limit, (label, "80 %", "best", "of the best"), noun, (label, *held), self._is_best
        )

    def _infeasible(self, rows: Table[RankedConfiguration], limit: int) -> tuple[Grid, ...]:
        columns: tuple[Shown[RankedConfiguration], ...] = (
            ("misses most", lambda row: METRIC[row.worst_limit].label if row.worst_limit else ""),
            ("by", _percent),
            ("has", lambda row: _show_worst(row, row.worst_value) or "not known"),
            ("limit", lambda row: _show_worst(row, row.worst_bound)),
            ("also misses", lambda row: ", ".join(_find_failed_besides(row))),
        )
        return self._draw(rows, columns, limit, ("misses most", "by", "has", "limit"), ranked=("misses most", "by"))

    def _notes(self, infeasible: Table[RankedConfiguration]) -> list[str]:
        unpriced = [row for row in infeasible if row.violation_fraction is None]
        return [
            BATCH_NOTE,
            *([CHANCE_NOTE] if self.best else []),
            *([MISS_NOTE] if infeasible.rows else []),
            *([HOST_NOTE] if self.counts_hosts or self._limits_energy else []),
            *([POWER_NOTE] if self.limits.max_power_w is not None else []),
            *self._tell_unknown(self.select("unranked").rows, "without a rank"),
            *self._tell_unknown(unpriced, "outside a limit on the price"),
            *self._tell_unranked(row for row in self.rows if row.status == "feasible" and row.rank is None),
            *self._describe(),
        ]


def _pay_otherwise(row: RankedConfiguration) -> float | None:
    """Return the cost in the unranked way of paying; None without a price, or if both ways are ranked."""
    return {"rented": row.bought_usd_per_million, "bought": row.rented_usd_per_million}.get(row.pay)


def _name_host(row: RankedConfiguration) -> str:
    """Return the host that is counted with a configuration, or the share that replaces it."""
    if row.assumed_host:
        return f"{row.assumed_host} as its assumed host"
    share = (row.host_energy_per_inference_j or 0.0) / (row.energy_per_inference_j or 1.0)
    return f"a host assumed to add {show_plain(share * 100.0)} %"


def _percent(row: RankedConfiguration) -> str:
    return "" if row.violation_fraction is None else f"{show_plain(row.violation_fraction * 100)} %"


def _show_worst(row: RankedConfiguration, value: float | None) -> str:
    return show_metric(row.worst_limit, value) if row.worst_limit else ""


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

    Configurations are those of `pareto`. If none meets the limits, `nearest_miss` is the one whose largest relative
    violation is the smallest, and `shortfall` describes it. Raises as `compare`.
    """
    check_name("objective", objective, METRIC_NAMES)
    used, pay = read_usage(attrs.evolve(usage, pay=usage.pay or limits.pay))
    plan = plan_candidates(model, settings)
    with holding_runs(source, plan, needs_catalogue=True, has_ledger=False) as runs:
        connection = runs.connection
        bounds: dict[str, Any] = {"run_ids": list(runs.ids), **limits.parameters}
        rows = start(
            connection, RankedConfiguration, **bounds, objective=objective, **used, **pay, takes_all=settings.takes_all
        )
        scope = find_scope(runs)
        answer = RecommendAnswer(
            scope=scope,
            objective=objective,
            limits=limits,
            violations=fetch(connection, Violation, **bounds, host_share=used["host_share"]),
            assumptions=fetch(connection, AssumedNumber, **used),
            rows=rows(),
        )
    scope.check_evaluated()
    return answer


def _find_failed_besides(row: RankedConfiguration) -> list[str]:
    """Return the limits that a configuration violates besides the worst one."""
    return [METRIC[name].label for name in METRIC if name in row.failed.split(", ") and name != row.worst_limit]
