"""Compare one model on several chips: the best chip for each goal, a row per chip, and causes of differences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import attrs

from joulemap.answer.base import RunAnswer
from joulemap.ask.compare import find_facts
from joulemap.ask.fact import Facts
from joulemap.ask.scope import Scope, opening_scope
from joulemap.domain.default import SETTINGS
from joulemap.domain.hardware_ref import HardwareRef
from joulemap.domain.metric import METRIC, PartMetricName
from joulemap.domain.settings import Settings
from joulemap.domain.table import Column, Table
from joulemap.generated.compare import Comparison, Insight, Recommendation
from joulemap.physics.record.weight import spell_precision
from joulemap.plan.run import plan_runs
from joulemap.plan.selection import name_configuration
from joulemap.plan.source import Source
from joulemap.show.choice import describe_answer, list_reasons
from joulemap.show.page import Figures, drop_options, keep_database
from joulemap.show.present.cell import show_units
from joulemap.show.present.document import Document, Grid, Section, choose_rows, show_under
from joulemap.show.present.template import Template
from joulemap.show.run import title_runs
from joulemap.store.query import fetch, fetch_none, start, start_none
from joulemap.system.errors import UnsupportedError
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.ask.check import CheckedRow

SUMMARY_COLUMNS: Final = Template(
    "hardware | *precision precision! | *batch batch! | *runtime runtime! | {label} {energy} | "
    "energy range -{energy}:energy_half_width | [*{ratio_heading} {ratio} | ]placement placement? | "
    "latency latency_s | latency range -latency_s:latency_half_width | *energy x delay edp_js | "
    "throughput throughput_per_s= | *power average_power_w= | utilization compute_utilization_fraction= | "
    "overhead overhead_fraction= | memory peak_memory_bytes= | busy units units_used_count="
)
RATIO_TO: Final = Template("ratio to {baseline}")
BEST_TITLE: Final = "Best of all hardware"
BEST_OF_GOAL: Final = (
    "goal | *best hardware | confidence of being best probability_best | *value | *advantage advantage_ratio | "
    "next best runner_up | "
    "best available available_hardware | value of best available available_value"
)
DISTRIBUTION: Final = Template("query run edp.distribution -p run_id={run_id} {database}")
STEPS_OF_ONE: Final = (Template("analyze {model} {hardware} {repeated}"), DISTRIBUTION)
STEPS_OF_VARIANT: Final = (
    Template("analyze {model} {hardware} {precision} --batch {row.batch} --runtime {row.runtime} {others}"),
    Template("edp {model} {hardware} {precision} --batch {row.batch} --runtime {row.runtime} {others}"),
)
STEPS_OF_PAIR: Final = (
    Template("{question} {model} {rival} {best} {repeated}[ --metric {other_metric}]"),
    DISTRIBUTION,
    Template("query run {query} -p run_ids={run_ids} -p metric={metric} {database}"),
)

JUDGED: Final = (
    Column(name="probability_best", type="DOUBLE", meaning="probability of the least energy per inference"),
    Column(name="fastest_probability", type="DOUBLE", meaning="probability of the least latency"),
    Column(name="likely_best", type="BOOLEAN", meaning="true for the least energy, or a tie with it"),
    Column(name="likely_fastest", type="BOOLEAN", meaning="true for the least latency, or a tie with it"),
)
"""Columns that a figure's rows have in addition to the query's columns."""

SHOWN: Final = 10
"""Default number of chips in a table."""

POWER: Final = Template("{power:W}{host}")
AND_HOST: Final = " + host"


@frozen(kw_only=True)
class CompareAnswer(RunAnswer):
    """One model on several chips, and the best hardware for each goal."""

    recommendations: Table[Recommendation]
    """Best configuration for each goal among all hardware; empty for a single run."""
    available: Table[Recommendation]
    """Best available configuration for each goal; of all hardware if fewer than two chips are available."""
    rows: Table[Comparison]
    """Figures of each run, lowest energy per inference first; unsupported configurations are last."""
    insights: Table[Insight]
    """Comparison of the lowest-energy run with each other run, nearest first."""
    facts: Facts
    """Decision, causes, rows and caveats, from which all sentences are made."""
    metric: PartMetricName
    """Metric that decides."""

    @property
    def varying(self) -> tuple[str, ...]:
        """Settings that differ between rows (precision, batch or runtime); tables state them in each row."""
        names = ("precision", "batch", "runtime")
        return tuple(name for name in names if len({getattr(row, name) for row in self.rows}) > 1)

    @property
    def answered(self) -> tuple[Comparison, ...]:
        """Rows of runs that were not refused."""
        return tuple(row for row in self.rows if row.status == "ok")

    @property
    def checked(self) -> Sequence[CheckedRow]:
        """Runs that were not refused."""
        return self.answered

    @property
    def _each(self) -> str:
        return " per inference" if "batch" in self.varying else ""

    def document(self, *, limit: int = SHOWN, repeated: Sequence[str] = ()) -> Document:
        """Return the document with `limit` rows; csv contains all rows."""
        figures = self._figures(limit)
        return self._compose_facts(
            self.facts,
            (show_under("", figures, *self._count_left_out()), *self._list_further(limit)),
            self.rows,
            title=attrs.evolve(title_runs(self.scope), about=", ".join((*self._describe_per(), *figures.common))),
            answer=self.describe_best(),
            reasons=list_reasons(self.facts),
            details=(
                Section(
                    BEST_TITLE,
                    self._lay(self.recommendations, BEST_OF_GOAL, goal=lambda row: METRIC[row.goal].label),
                ),
            ),
            steps=self._steps(repeated),
        )

    def _list_further(self, _limit: int, /) -> tuple[Section, ...]:
        """Return sections below the table; none by default."""
        return ()

    def _describe_per(self) -> list[str]:
        """Return what the figures refer to, unless every batch has one sample."""
        if self._each:
            return ["all but energy per batch"]
        return ["per batch"] if any(row.batch > 1 for row in self.rows) else []

    def figures(self) -> Figures:
        """Return a figure with the energy and latency of each chip and their intervals."""
        quantity = METRIC["energy_per_inference" if self._each else "energy"].meaning
        texts = {"quantity": quantity, "per": "batch" if self._each else ""}
        return (self._draw_figure("comparison", self._judged(), None, self.describe_best(), texts),)

    def describe_best(self) -> str:
        """Return the decision in one sentence."""
        return describe_answer(self.facts)

    def _judged(self) -> Table[tuple[Any, ...]]:
        """Return the rows with additional columns: for energy and for latency, the probability of each run to be best,
        and whether it ties with the best.
        """
        goals = {row.goal: row for row in self.recommendations}
        energy, latency = goals.get("energy_per_inference", goals.get("energy")), goals.get("latency")
        least, fastest = (
            dict(zip(goal.ranked_ids, goal.probabilities, strict=True)) if goal else {} for goal in (energy, latency)
        )
        labels = {row.label for row in self.rows}
        best, first = ({goal.hardware, *goal.rivals} if goal else labels for goal in (energy, latency))
        return self.rows.with_columns(
            JUDGED,
            (
                (least.get(row.run_id), fastest.get(row.run_id), row.label in best, row.label in first)
                for row in self.rows
            ),
        )

    def _figures(self, limit: int) -> Grid:
        """Return a grid of the first `limit` rows and of the best hardware for each metric."""
        winners = {row.hardware for row in self.available if row.tied_count == 1}
        energy = "energy_per_inference_j" if self._each else "energy_j"
        label = "energy per inference" if self._each else "energy"
        baseline = next(row.baseline_hardware for row in self.rows if row.baseline_hardware)

        def stays(row: Comparison) -> bool:
            return row.label in winners

        rows = self.answered
        if not self.scope.settings.hardware and not self.scope.settings.takes_all:
            rows = tuple(sorted(rows, key=lambda row: not row.is_available))  # what can be had comes first
        shown = choose_rows(rows, limit, stays)
        is_shown = any(
            row.energy_ratio == row.latency_ratio == 1.0 for row in shown
        )  # the baseline is divided by itself
        ratio = "ratio" if is_shown else RATIO_TO(baseline=self._mark(baseline))
        columns = SUMMARY_COLUMNS(
            label=label, energy=energy, ratio="energy_ratio" if len(self.answered) > 1 else "", ratio_heading=ratio
        )
        drawn = self._lay(
            self.rows.with_rows(rows),
            columns,
            ranked=f"{label} | latency",
            keep=f"{ratio} | energy range | latency range",
            pictures="energy range | latency range",
            limit=limit,
            noun="configurations" if self.varying else "chips",
            stays=stays,
            average_power_w=lambda row: show_power(self.scope, row.hardware, row.average_power_w),
            units_used_count=lambda row: show_units(row.units_used_count, row.units_total_count, row.unit_name),
        )
        best, tied = self._mark_best(shown, drawn.headings, label)
        return attrs.evolve(drawn, best=best, tied=tied)

    def _mark_best(
        self, shown: Sequence[Comparison], headings: Sequence[str], energy: str
    ) -> tuple[frozenset[tuple[int, int]], frozenset[tuple[int, int]]]:
        """Return two sets of cells as (row, column): the best cell of each column, and the cells tied with it."""
        best, tied = set(), set()
        for goal in self.available:
            heading = energy if goal.goal in ("energy", "energy_per_inference") else METRIC[goal.goal].label
            if heading not in headings or goal.tied_count == len(self.scope.evaluated_ids):
                continue
            column = headings.index(heading)
            value = METRIC[goal.goal].column
            for index, row in enumerate(shown):
                if row.label == goal.hardware:
                    best.add((index, column))
                elif row.label in goal.rivals or (row.is_available and getattr(row, value) == goal.value):
                    tied.add((index, column))
        return frozenset(best), frozenset(tied)

    def _steps(self, repeated: Sequence[str]) -> list[list[str]]:
        best, *others = self.answered
        metric = self.metric
        steps = STEPS_OF_VARIANT if self.varying else STEPS_OF_PAIR if others else STEPS_OF_ONE
        goal = self.available[0] if others else None
        rival = (next(iter(goal.rivals), goal.runner_up or others[0].hardware)) if goal else ""
        winner = goal.hardware if goal else ""
        is_close = goal is not None and bool(goal.rivals) and metric != "memory" and self.scope.can_flip(rival, winner)
        values = {row.hardware: getattr(row, METRIC[metric].column, None) for row in self.answered}
        if not self.varying and rival in values and values[rival] == values.get(winner):
            steps = STEPS_OF_ONE  # two equal runs have no difference to explain and no order to flip
        spelled = {"hardware": best.hardware, "rival": rival, "best": winner}
        return [
            one.words(
                row=best,
                model=self.scope.model,
                **{name: self.scope.spell(hardware) for name, hardware in spelled.items()},
                question="flip" if is_close else "explain",
                metric=metric,
                other_metric="" if metric == "energy" else metric,  # energy is the default of both commands
                query="compare.part" if metric == "memory" else "compare.winner",
                run_id=best.run_id,
                run_ids=",".join(str(row.run_id) for row in self.answered),
                precision=spell_precision(best.precision),
                others=drop_options(repeated, ("--precision", "--weight-precision", "--batch", "--runtime")),
                repeated=repeated,
                database=keep_database(repeated),
            )
            for one in steps
        ]


def show_power(scope: Scope, hardware: str, power_w: float | None) -> str:
    """Return a power for a table cell, marked if it omits the host that the hardware needs."""
    if power_w is None:
        return ""
    label = HardwareRef.read(hardware).label
    is_alone = scope.hosts.get(label) == "" and label not in scope.at_wall
    return POWER(power=power_w, host=AND_HOST if is_alone else "")


def compare(
    source: Source, model: str, settings: Settings = SETTINGS, *, metric: PartMetricName = "energy", baseline: str = ""
) -> CompareAnswer:
    """Compare a model on several chips: named chips, those of an architecture or deployment, or the default four.

    `model` is a known name, `path/to/file.py:factory`, `path/to/model.pt2`, `timm:NAME`, `hf:NAME`, or an `nn.Module`
    followed by example inputs, here and in every question. Keywords are the fields of `Settings`. Ratios are relative
    to `baseline`, by default the available run with the lowest energy per inference; `metric` decides. A chip that
    cannot run the configuration is an `unsupported` row with its reason. Raises UnknownNameError, UsageError,
    ModelError, CatalogueError or DatabaseError; UnsupportedError if no hardware can run it.
    """
    plan = plan_runs((model,), settings)
    baseline = name_configuration(baseline, settings) if baseline else ""
    with opening_scope(source, plan) as scope:
        scope.check_evaluated()
        connection = scope.connection
        rows = start(connection, Comparison, run_ids=list(scope.run_ids), baseline=baseline)
        compared = rows()
        scope = scope.narrow(row.run_id for row in compared)  # all else follows from the rows
        ids = list(scope.run_ids)
        is_choice = len(scope.evaluated_ids) > 1  # a single run has no competitor
        find = start if is_choice else start_none
        had = [row.run_id for row in compared if row.is_available or settings.takes_all]
        among = had if len(set(had) & set(scope.evaluated_ids)) > 1 else ids
        others = among if among != ids else []
        insights = find(connection, Insight, run_ids=among)
        recommended = (fetch if is_choice else fetch_none)(connection, Recommendation, run_ids=ids, among_ids=others)
        recommendations = recommended.with_rows(row for row in recommended if not row.is_among)
        available = recommended.with_rows(row for row in recommended if row.is_among or not others)
        explained = insights()
        facts = find_facts(scope, compared.rows, available, recommendations, explained, metric)
        scope.read()
    answer = CompareAnswer(
        scope=scope,
        recommendations=recommendations,
        available=available,
        insights=explained,
        rows=compared,
        facts=facts,
        metric=metric,
    )
    if baseline and all(row.hardware != baseline or row.status != "ok" for row in answer.rows):
        raise UnsupportedError(f"the baseline {baseline} is not among the compared hardware that can run the model")
    return answer
