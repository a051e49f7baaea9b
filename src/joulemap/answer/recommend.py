"""A recommendation: what keeps every limit, best first, and what misses which limit by how much."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from joulemap.answer.answer import RunAnswer
from joulemap.answer.candidate import (
    BATCH_NOTE,
    analyze_each,
    assume,
    count_candidates,
    describe_candidates,
    describe_limit,
    describe_unknown,
    metric_columns,
    name_beside,
    name_candidate,
    name_columns,
    plan_candidates,
    read_usage,
    select_rows,
    show_metric,
)
from joulemap.answer.run import limit_columns
from joulemap.answer.scope import describe_advantage, describe_chance, find_scope
from joulemap.domain.default import CANDIDATES, LIMITS, USAGE
from joulemap.domain.metric import METRIC, METRIC_NAMES, MetricName
from joulemap.domain.settings import Limits, check_name
from joulemap.domain.table import Table
from joulemap.plan.hold import holding_runs
from joulemap.present.cell import show, show_chance, show_doubt, show_plain
from joulemap.present.document import Document, Grid, Lines, Section, Text, grid, say_rest
from joulemap.row.cost import AssumedNumber
from joulemap.row.recommend import RankedConfiguration, Violation
from joulemap.store.query import fetch, start
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.domain.settings import Settings, Usage
    from joulemap.plan.source import Source

FIGURES: Final[tuple[MetricName, ...]] = (
    "latency", "energy_per_inference", "throughput", "power", "memory", "price", "purchase",
)  # fmt: skip
"""Shown beside the objective, unless it is one of them."""

MISS_NOTE: Final = (
    "infeasible ones are in the order of their largest miss, relative to its limit: value / limit - 1, "
    "for throughput limit / value - 1"
)


@frozen(kw_only=True)
class RecommendAnswer(RunAnswer):
    """Every configuration of a model against limits: the best that keep them, and how far the others are."""

    objective: MetricName
    limits: Limits
    rows: Table[RankedConfiguration]
    """The best first; then what misses a limit, the nearest first."""
    violations: Table[Violation]
    assumptions: Table[AssumedNumber]
    """What cost and carbon rest on."""

    @property
    def best(self) -> RankedConfiguration | None:
        """The first of those that keep every limit, if any does."""
        return next((row for row in self.rows if row.rank == 1), None)

    @property
    def best_published(self) -> RankedConfiguration | None:
        """The first of those whose numbers are neither projections nor estimates."""
        return next((row for row in self.rows if row.published_rank == 1), None)

    @property
    def best_available(self) -> RankedConfiguration | None:
        """The first of those that can be bought or rented, at a price that is no guess."""
        return next((row for row in self.rows if row.available_rank == 1), None)

    @property
    def nearest_miss(self) -> RankedConfiguration | None:
        """Where none keeps every limit, the one whose worst miss is the smallest."""
        if any(row.status in ("feasible", "unranked") for row in self.rows):
            return None
        return next((row for row in self.rows if row.miss_rank == 1), None)

    @property
    def nearest_published_miss(self) -> RankedConfiguration | None:
        """Likewise, of those whose numbers are neither projections nor estimates."""
        if self.nearest_miss is None:
            return None
        return next((row for row in self.rows if row.status == "infeasible" and not row.is_projection), None)

    @property
    def nearest_available_miss(self) -> RankedConfiguration | None:
        """Likewise, of those that can be bought or rented."""
        if self.nearest_miss is None:
            return None
        return next((row for row in self.rows if row.status == "infeasible" and row.is_available), None)

    def data(self) -> dict[str, Any]:
        """Return what programs get, with the limits as they were understood and the rows that matter most."""
        rows = super().data()
        names = (
            "best", "best_available", "best_published", "nearest_miss", "nearest_available_miss",
            "nearest_published_miss",
        )  # fmt: skip
        by_run = {row["run_id"]: row for row in rows["rows"]}
        return {
            **rows,
            "objective": self.objective,
            "objective_meaning": METRIC[self.objective].meaning,
            "limits": [
                {"limit_name": name, "bound": bound, "unit": METRIC[name].unit, "meaning": describe_limit(name, bound)}
                for name, bound in self.limits.bounds
            ],
            "feasible_count": len(select_rows(self.rows, "feasible")),
            **{name: by_run[row.run_id] if (row := getattr(self, name)) else None for name in names},
        }

    def document(self, *, limit: int = 10, repeated: Sequence[str] = ()) -> Document:
        """Return it with `limit` rows of what keeps the limits and of what misses one."""
        feasible, infeasible = select_rows(self.rows, "feasible"), select_rows(self.rows, "infeasible")
        limits = Lines(describe_limit(name, bound) for name, bound in self.limits.bounds)
        first = (self.best, self.best_available, self.best_published, self.nearest_miss)
        chosen = [row for row in first if row is not None]
        sections = (
            Section("Limits", limits if limits.texts else Text("none")),
            Section("Recommendation", Lines(self.describe_best())),
            Section(f"Feasible ({len(feasible):,})", self._feasible(feasible, limit)),
            Section(f"Infeasible ({len(infeasible):,}), nearest first", self._infeasible(infeasible, limit)),
            assume(self.assumptions, self.objective),
        )
        metric = METRIC[self.objective]
        return self._compose(
            f"{self.scope.model}: {metric.best} {metric.meaning} among {count_candidates(len(self.rows))}",
            sections,
            self.rows,
            notes=self._notes(infeasible),
            steps=analyze_each(self.scope, chosen, repeated),
        )

    def describe_best(self) -> list[str]:
        """Return what to choose, or the nearest miss where nothing fits.

        Beside what cannot be bought stands the best that can, beside a projection the best published one.
        """
        best = self.best
        if best is None:
            return self._describe_miss()
        beside = name_beside(best, self.best_available, self.best_published)
        return [
            f"{self._tell(best)}{self._against()}",
            *self._sure(best),
            *(f"{label}: {self._tell_beside(row) if row else 'none keeps every limit'}" for label, row in beside),
        ]

    def _tell_beside(self, row: RankedConfiguration) -> str:
        return f"{self._tell(row)} ({show(row.objective_ratio, 'objective_ratio')} of that)"

    def _tell(self, row: RankedConfiguration) -> str:
        value = show_metric(self.objective, row.objective_value)
        return f"{name_candidate(self.scope, row)}: {METRIC[self.objective].meaning} {value}"

    def _sure(self, best: RankedConfiguration) -> list[str]:
        """Return how sure the recommendation is, and that it keeps the limits."""
        if best.probability_best is None:
            return []
        rivals = [name_candidate(self.scope, row) for row in self.rows if row.likely_best and row is not best]
        told = describe_chance(best.probability_best, rivals)
        lines = [f"how sure: {told}{'' if rivals else ' that no other is better'}"]
        if best.probability_kept is not None:
            lines.append(f"that it keeps its limits: {show_chance(best.probability_kept)}")
        return lines

    def _against(self) -> str:
        second = next((row for row in self.rows if row.rank == 2), None)
        if second is None or second.objective_ratio is None:
            return ""
        return f", {describe_advantage(second.objective_ratio, name_candidate(self.scope, second))}"

    def _describe_miss(self) -> list[str]:
        nearest = self.nearest_miss
        if nearest is None:
            return [f"{METRIC[self.objective].meaning} is not known of any configuration that keeps the limits"]
        beside = name_beside(nearest, self.nearest_available_miss, self.nearest_published_miss)
        return [
            "nothing keeps every limit",
            f"nearest: {self._describe_one_miss(nearest)}",
            *(
                f"{label.replace('best', 'nearest')}: {self._describe_one_miss(row)}"
                for label, row in beside
                if row is not None
            ),
        ]

    def _describe_one_miss(self, row: RankedConfiguration) -> str:
        besides = _find_failed_besides(row)
        more = f"; it misses {' and '.join(besides)} too" if besides else ""
        assert row.worst_limit is not None
        bound = show_metric(row.worst_limit, row.worst_bound)
        has = show_metric(row.worst_limit, row.worst_value)
        miss = f"by {_percent(row)} ({has} against {bound})" if has else f"of {bound}: its price is not known"
        return f"{name_candidate(self.scope, row)} misses {METRIC[row.worst_limit].label} {miss}{more}"

    def _feasible(self, rows: Table[RankedConfiguration], limit: int) -> tuple[Grid | Text, ...]:
        metric = METRIC[self.objective]
        drawn = grid(
            rows,
            (
                ("rank", "rank"),
                *name_columns(self.scope),
                (metric.label, lambda row: show_metric(self.objective, row.objective_value)),
                ("80 %", lambda row: show_doubt(row.objective_half_width)),
                ("of the best", "objective_ratio"),
                ("best", lambda row: "" if row.probability_best is None else show_chance(row.probability_best)),
                *metric_columns(FIGURES, (self.objective,)),
                *limit_columns(rows.rows[:limit]),
            ),
            limit=limit,
            keep=("hardware", "precision", "batch", metric.label, "of the best", "best"),
            projected=self.scope.projected,
        )
        return (drawn, *say_rest(len(rows), limit, "configurations"))

    def _infeasible(self, rows: Table[RankedConfiguration], limit: int) -> tuple[Grid | Text, ...]:
        drawn = grid(
            rows,
            (
                *name_columns(self.scope),
                ("misses most", lambda row: METRIC[row.worst_limit].label if row.worst_limit else ""),
                ("by", _percent),
                ("has", lambda row: _show_worst(row, row.worst_value) or "not known"),
                ("limit", lambda row: _show_worst(row, row.worst_bound)),
                ("also misses", lambda row: ", ".join(_find_failed_besides(row))),
            ),
            limit=limit,
            keep=("precision", "batch", "misses most", "by", "has", "limit"),
            projected=self.scope.projected,
        )
        return (drawn, *say_rest(len(rows), limit, "configurations"))

    def _notes(self, infeasible: Table[RankedConfiguration]) -> list[str]:
        unpriced = [row for row in infeasible if row.violation_fraction is None]
        return [
            BATCH_NOTE,
            *([MISS_NOTE] if infeasible.rows else []),
            *describe_unknown(self.scope, select_rows(self.rows, "unranked").rows, "without a rank"),
            *describe_unknown(self.scope, unpriced, "outside a limit on the price"),
            *describe_candidates(self.scope, self.rows.rows),
        ]


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
    """Return the configurations that keep the limits, best first, and how far the others are from them.

    Configurations are those of `pareto`. Where none keeps the limits, `nearest_miss` is the one whose largest
    relative violation is the smallest. Raises as `compare`.
    """
    check_name("objective", objective, METRIC_NAMES)
    used = read_usage(usage)
    plan = plan_candidates(model, settings, is_money=objective == "cost")
    with holding_runs(source, plan, needs_catalogue=True) as runs:
        connection = runs.connection
        bounds: dict[str, Any] = {"run_ids": list(runs.ids), **limits.parameters}
        rows = start(connection, RankedConfiguration, **bounds, objective=objective, **used)
        scope = find_scope(runs)
        answer = RecommendAnswer(
            scope=scope,
            objective=objective,
            limits=limits,
            violations=fetch(connection, Violation, **bounds),
            assumptions=fetch(connection, AssumedNumber, **used),
            rows=rows(),
        )
    scope.check_evaluated()
    return answer


def _find_failed_besides(row: RankedConfiguration) -> list[str]:
    """The limits that it misses besides the one that it misses most."""
    return [METRIC[name].label for name in METRIC if name in row.failed.split(", ") and name != row.worst_limit]
