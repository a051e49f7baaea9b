"""Recommend the configurations that meet every limit, best first, and rank the others by their violations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

import attrs

from joulemap.answer.candidate import (
    BATCH_NOTE,
    CONFIGURATIONS,
    LIMIT,
    RankedAnswer,
    describe_limits,
    describe_use,
    find_fixed_rate,
    find_limited,
    list_metrics,
    plan_candidates,
    show_given,
    show_metric,
)
from joulemap.ask.candidate import add_chances, find_chip, list_first, read_usage
from joulemap.ask.engine import INFERENCES
from joulemap.ask.fact import Choice, Facts
from joulemap.ask.recommend import (
    Wanted,
    counts_hosts,
    find_facts,
    find_nearest_miss,
    find_other_way,
    find_projection,
    find_without_host,
)
from joulemap.ask.scope import opening_scope
from joulemap.catalog.sheet import find_scenario
from joulemap.domain.default import CANDIDATES, LIMITS, USAGE, price_at_wall
from joulemap.domain.metric import METRIC, METRIC_NAMES, Metric, MetricName
from joulemap.domain.settings import Limits, Settings, Usage, check_name
from joulemap.domain.table import Row, Table
from joulemap.generated.cost import AssumedNumber
from joulemap.generated.recommend import RankedConfiguration, Violation
from joulemap.plan.run import Plan
from joulemap.plan.source import Source
from joulemap.show.choice import MOST_TIED
from joulemap.show.present.cell import number, show_chance, show_ends, show_plain
from joulemap.show.present.document import Document, FieldCell, Grid, Section, choose_rows
from joulemap.show.present.picture import Picture, make_intervals
from joulemap.show.present.template import Template
from joulemap.show.recommend import describe_recommendation, list_reasons
from joulemap.show.refusal import describe_unsupported
from joulemap.show.run import show_limit
from joulemap.store.query import fetch, fetch_all, fetch_none
from joulemap.system.record import frozen

ABOUT: Final = Template("{metric.best} {metric.meaning}[ at {rate}][, {limits:list}][, {use}]")
BOUND: Final = Template("{metric.label} {word} {bound}")
TRIED: Final = Template("{configurations} of {chips:n chip}")
PLUS_HOST: Final = " plus host"
FACTOR: Final = Template("{ratio:x}")

NAMED: Final = "hardware | *precision! | *batch! | *runtime! | "
DECIDING: Final = Template("{label} objective_value | range objective_half_width? | *ratio objective_ratio! | ")
RANGE: Final = "range"
KEEP: Final = "precision | batch | runtime | ratio | range"
"""Headings of columns that narrow terminals keep longest, most important first."""
BESIDE: Final = Template("confidence probability_best? | [{price} | ][{parts} | ]")

if TYPE_CHECKING:
    from joulemap.ask.check import CheckedRow
PARTS: Final = Template("{label} without host {column}[ | {host} host_energy_per_inference_j]")
HOST_ENERGY: Final = "host energy"
IDLE: Final = "idle energy idle_energy_per_inference_j | busy busy_fraction | "
PAY: Final = "payment way! | "
PRICE: Final = "price price_text"
TOTALS: Final = {
    "power": "power with host total_power_w | ",
    "energy": "energy with host total_energy_j | ",
    "energy_per_inference": "energy per inference with host total_energy_per_inference_j | ",
    "purchase": "purchase price with host total_purchase_usd | ",
}
"""Metric -> column that includes the host; limits on the metric apply to this column."""
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
    facts: Facts
    """Decision, limits, causes, rows and caveats, from which all sentences are made."""
    rows: Table[RankedConfiguration]
    """Configurations by rank, best first, then those that violate a limit, smallest violation first."""
    violations: Table[Violation]

    @property
    def projection(self) -> RankedConfiguration | None:
        """Best unavailable configuration; None unless it is better than the best available one."""
        return find_projection(self.rows)

    @property
    def nearest_miss(self) -> RankedConfiguration | None:
        """Configuration whose largest violation of a limit is smallest; None if any configuration meets every limit."""
        return find_nearest_miss(self.rows)

    @property
    def checked(self) -> Sequence[CheckedRow]:
        """The recommended run, or the nearest miss."""
        decided = self.best or self.nearest_miss
        return () if decided is None else (decided,)

    @property
    def counts_hosts(self) -> bool:
        """True if the objective of any configuration includes the energy or power of a separate host."""
        return counts_hosts(self.rows)

    @property
    def _beside_boundary(self) -> str:
        return PLUS_HOST if self.counts_hosts else ""

    @property
    def best_without_host(self) -> RankedConfiguration | None:
        """Ranked configuration that would be best if hosts were not counted; None without a ranking."""
        return find_without_host(self.rows, self.objective)

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
        return find_other_way(self.rows, self.objective)

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

    def document(self, *, limit: int = 6, repeated: Sequence[str] = ()) -> Document:
        """Return the document with `limit` rows that meet the limits and `limit` rows that violate one."""
        feasible, infeasible = self.select("feasible"), self.select("infeasible")
        shown = [row for row in feasible if self._is_shown(row)]
        far = [row for row in infeasible if self._is_shown(row)]
        missed = Section(MISSES(count=len(far), more=len(infeasible) - len(far) or None), self._show_missed(far, limit))
        precisions = {row.precision for row in self.rows if row.status != "unsupported"}
        about = ABOUT(
            metric=self._metric,
            rate=self._rated or None,
            limits=describe_limits(self.limits, BOUND),
            use=describe_use(self.assumptions, self.rows[0].pay) if self._is_money and self.rows.rows else "",
        )
        every = Section(EVERY(count=len(shown)), self._show_every(shown, limit))
        return self._compose_facts(
            self.facts,
            (Section("", self._show_deciding(list_first(shown), limit)) if shown else missed,),
            self.rows,
            title=self._title(about, precision=min(precisions) if len(precisions) == 1 else None),
            answer=self.describe_best(),
            reasons=list_reasons(self.facts),
            details=(*((every, missed) if shown else ()), self._assume(self.objective)),
            notes=self._notes(infeasible),
            steps=self._steps(repeated),
        )

    def _is_shown(self, row: RankedConfiguration) -> bool:
        """Return whether tables for display show a row: it has a rank, or its hardware was named by the caller."""
        return row.rank is not None or row.miss_rank is not None or bool(self.scope.settings.hardware)

    def describe_best(self) -> str:
        """Return the decision: the best configuration, or the nearest miss if none meets the limits."""
        return describe_recommendation(self.facts)

    def _show_objective(self, value: float | None) -> str:
        return show_metric(self.objective, value)

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

    def _show_deciding(self, rows: Sequence[RankedConfiguration], limit: int) -> Grid:
        """Return a grid of these rows, one per chip, with the objective, the limited metrics and the ratio."""
        chances = add_chances(self.rows, "probability_best")
        totals = {name: _head(name, column) if self.counts_hosts else column for name, column in TOTALS.items()}
        bounded = [
            totals.get(name) or list_metrics((name,)) for name, _ in self.limits.bounds if name != self.objective
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

    def _show_every(self, rows: Sequence[RankedConfiguration], limit: int) -> Grid:
        has_power = bool(self._rate or self.limits.max_power_w)
        figures = list_metrics(FIGURES, (self.objective, *(("power",) if has_power else ())))
        power = TOTALS["power"] if has_power else ""
        return self._show_ranked(
            rows, figures + power + LIMITED, limit, {row.run_id: row.probability_best for row in rows}
        )

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
        """Return a grid of rows with objective, ratio, confidence and the columns `figures`; headings in `held` never
        fold. `shown` holds further options of `lay`.
        """
        label = self._metric.label
        host = HOST_ENERGY if self._metric.unit == "J" else ""
        parts = PARTS(label=label, column=self._metric.column, host=host) if self.counts_hosts else ""
        beside = BESIDE(parts=parts, price=PRICE if self._is_money else "")
        drawn = self._lay(
            self.rows.with_rows(rows),
            NAMED
            + (PAY if self._is_money else "")
            + DECIDING(label=label)
            + figures
            + beside
            + (self.rated_columns if self._rate else ""),
            limit=limit,
            noun=noun,
            throughput_limit=show_limit,
            ranked=" | ".join((label, *held)),
            keep=KEEP,
            stays=self._is_best,
            objective_value=FieldCell(
                "objective_value" if self.counts_hosts else self._metric.column,
                lambda row: self._show_objective(row.objective_value),
            ),
            objective_half_width=lambda row: show_ends(
                row.objective_value, self._metric.unit, row.objective_half_width
            ),
            **({self._metric.column: lambda row: self._show_objective(row.hostless_value)} if parts else {}),
            **shown,
            probability_best=lambda row: show_chance(chances[row.run_id]) if len(rows) > 1 else "",
            objective_ratio=self._show_ratio,
        )
        chosen = choose_rows(rows, limit, self._is_best)
        return self._mark_best(attrs.evolve(drawn, pictures=self._draw(chosen, label)), chosen, label)

    def _draw(self, rows: Sequence[RankedConfiguration], label: str) -> tuple[Picture, ...]:
        """Return the intervals of the objective; empty without intervals."""
        if not any(row.objective_half_width for row in rows):
            return ()
        marks = make_intervals([(row.objective_value, row.objective_half_width) for row in rows])
        return (Picture(kind="interval", after=RANGE, of=label, rows=marks, unit=self._metric.unit),)

    def _mark_best(self, drawn: Grid, rows: Sequence[RankedConfiguration], label: str) -> Grid:
        """Return the grid with marks at the best value and at the values that are statistically tied with it."""
        choice = next(iter(self.facts.of(Choice)), None)
        if choice is None or len(rows) < 2:
            return drawn
        column = drawn.headings.index(label)
        is_open = len(choice.tied) > MOST_TIED or bool(choice.equal)
        close = {*choice.tied, *choice.equal, *(choice.runs[:1] if is_open else ())}
        best = {(index, column) for index, row in enumerate(rows) if row is self.best and row.run_id not in close}
        tied = {(index, column) for index, row in enumerate(rows) if row.run_id in close}
        return attrs.evolve(drawn, best=frozenset(best), tied=frozenset(tied))

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
        limits_energy = any(name in ("energy", "energy_per_inference") for name, _ in self.limits.bounds)
        return [
            TRIED(configurations=CONFIGURATIONS(count=len(self.rows)), chips=len(set(map(find_chip, self.rows)))),
            BATCH_NOTE,
            *([CHANCE_NOTE] if any(len(one.runs) > 1 for one in self.facts.of(Choice)) else []),
            *([MISS_NOTE] if infeasible.rows else []),
            *([HOST_NOTE] if self.counts_hosts or limits_energy else []),
            *([self._describe_rate()] if self._rate else []),
            *([POWER_NOTE] if self.limits.max_power_w is not None else []),
            *self._describe_unranked(row for row in self.rows if row.status == "feasible" and row.rank is None),
            *self._describe_terms(),
            *filter(None, [describe_unsupported(self.scope.refused_runs)]),
        ]


def _head(name: str, column: str) -> str:
    """Return a column under the label of its metric, where the title says that values include hosts."""
    return f"{METRIC[cast('MetricName', name)].label} {column.rpartition(' | ')[0].rpartition(' ')[2]} | "


@number
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
    per: str = "inference",
) -> RecommendAnswer:
    """Return the answer of `recommend` at a fixed rate in inferences per second; 0 if the chip runs at full speed.

    `per` is the unit of work of the model.
    """
    check_name("objective", objective, METRIC_NAMES)
    settings = price_at_wall(settings, (objective,))
    used, pay = read_usage(attrs.evolve(usage, pay=usage.pay or limits.pay), settings)
    plan = plan_candidates(model, settings, rate_per_s)
    limits = _limit_rate(limits, plan, rate_per_s)
    with opening_scope(source, plan, needs_catalogue=True, has_ledger=False) as scope:
        connection = scope.connection
        bounds: dict[str, Any] = {"run_ids": list(scope.run_ids), **limits.parameters}
        more = {**used, **pay, "objective": objective, "takes_all": settings.takes_all, "rate_per_s": rate_per_s}
        if limits.bounds:
            records: dict[str, type[Row]] = {"rows": RankedConfiguration, "violations": Violation}
            tables = fetch_all(connection, records, **bounds, **more)
        else:
            tables = {
                "rows": fetch(connection, RankedConfiguration, **bounds, **more),
                "violations": fetch_none(
                    connection, Violation, **bounds, host_share=used["host_share"], rate_per_s=rate_per_s
                ),
            }
        scope.check_evaluated()
        wanted = Wanted(
            objective=objective, limits=limits, rate_per_s=rate_per_s, per=per, battery=_find_battery(settings)
        )
        return RecommendAnswer(
            scope=scope,
            objective=objective,
            limits=limits,
            rate_per_s=rate_per_s,
            facts=find_facts(scope, tables["rows"].rows, tables["violations"], wanted),
            assumptions=fetch(connection, AssumedNumber, **used),
            **tables,
        )


def _find_battery(settings: Settings) -> tuple[str, float] | None:
    """Return the battery of the use case by its source, and its energy in Wh; None without a battery."""
    battery = find_scenario(settings.scenario).battery if settings.scenario else None
    return None if battery is None else (battery.source.removesuffix(f", {battery.basis}"), battery.value)


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
