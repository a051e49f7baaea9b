"""Compare one model on several chips: the best chip for each goal, a row per chip, and causes of differences."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, Final

import attrs

from joulemap.answer.answer import Figures, RunAnswer, drop_options, find_place
from joulemap.answer.compare import text
from joulemap.answer.run import overlaps
from joulemap.answer.scope import TIE_RATIO, describe_recalled, holding_scope
from joulemap.domain.default import SETTINGS
from joulemap.domain.doubt import TOLD_APART
from joulemap.domain.metric import METRIC, PartMetricName
from joulemap.domain.settings import Settings
from joulemap.domain.table import Column, Table
from joulemap.domain.weight import spell_precision
from joulemap.plan.run import plan_runs
from joulemap.plan.selection import name_configuration
from joulemap.plan.source import Source
from joulemap.present.category import OVERHEAD, name_category
from joulemap.present.cell import is_tied, show_share, show_units
from joulemap.present.document import Document, Grid, Section, choose_rows, show_under
from joulemap.present.template import join_texts
from joulemap.row.compare import Comparison, Insight, Recommendation
from joulemap.store.query import fetch, fetch_none, start, start_none
from joulemap.system.errors import UnsupportedError
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.answer.check import CheckedRow

DOUBTFUL: Final = 0.1
"""Unattributed share of an energy above which a note states the share."""

SHOWN_TIED: Final = 3
"""Maximum tied chips named in a sentence."""

SHOWN_INSIGHTS: Final = 3
"""Maximum sentences that compare the lowest-energy chip with another chip."""

FULL: Final = 0.9995
"""Minimum share of the full clock frequency that is shown as full clock."""

JUDGED: Final = (
    Column(name="probability_best", type="DOUBLE", meaning="probability of the least energy per inference"),
    Column(name="fastest_probability", type="DOUBLE", meaning="probability of the least latency"),
    Column(name="likely_best", type="BOOLEAN", meaning="true for the least energy, or a tie with it"),
    Column(name="likely_fastest", type="BOOLEAN", meaning="true for the least latency, or a tie with it"),
)
"""Columns that a figure's rows have in addition to the query's columns."""

SHOWN: Final = 10
"""Default number of chips in a table."""


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
        return text.EACH if "batch" in self.varying else ""

    def document(
        self, *, metric: PartMetricName = "energy", limit: int = SHOWN, repeated: Sequence[str] = ()
    ) -> Document:
        """Return the document with `limit` rows; csv contains all rows. `metric` selects the headline and follow-up
        commands.
        """
        return self._compose(
            self.scope.title,
            self._sections(limit),
            self.rows,
            answer=self.describe_best(metric),
            insights=[self._explain(row) for row in self._nearest() if row.energy_ratio >= TIE_RATIO][:SHOWN_INSIGHTS],
            sure=self.describe_uncertainty(),
            details=(
                Section(
                    text.BEST_TITLE,
                    self._lay(self.recommendations, text.BEST_OF_GOAL, goal=lambda row: METRIC[row.goal].label),
                ),
            ),
            notes=self._notes(),
            steps=self._steps(metric, repeated),
        )

    def _sections(self, limit: int) -> tuple[Section, ...]:
        """Return the sections of the document, each with at most `limit` rows and those of the best hardware."""
        title = text.TITLE(per=text.PER_INFERENCE if self._each else text.PER_BATCH)
        return (show_under(title, self._figures(limit), *self.scope.describe_left_out()),)

    def _describe_assumed(self, headline: str, chosen: Collection[int] | None) -> str:
        """Return the assumed share of the energies in a headline, counting only runs that the headline names."""
        goals = [goal for goal in self.available if goal.goal.startswith(("energy", "latency"))]
        named = {name for goal in goals for name in (goal.hardware, goal.runner_up)}
        ids = [row.run_id for row in self.answered if row.label in named and row.run_id is not None]
        return super()._describe_assumed(headline, ids if self.varying else chosen)

    def figures(self) -> Figures:
        """Return a figure with the energy and latency of each chip and their intervals."""
        quantity = METRIC["energy_per_inference" if self._each else "energy"].meaning
        texts = {"quantity": quantity, "per": "batch" if self._each else ""}
        return (self._draw_figure("comparison", self._judged(), "", self.describe_best(), texts),)

    def describe_best(self, metric: PartMetricName = "energy") -> str:
        """Return the headline: the best hardware for `metric`, for energy and for latency, with the confidence."""
        if not self.available.rows:
            (one,) = self.answered
            energy, latency = (one.energy_j, one.energy_half_width), (one.latency_s, one.latency_half_width)
            interval = one.interval_s if overlaps(one.interval_s, one.latency_s) else None
            kind = "only" if len(self.rows) > 1 else "within" if self.scope.left_out else "hardware"
            names = {**dict.fromkeys(("only", "within", "hardware")), kind: self._name(one)}
            return text.ONLY(one, energy=energy, latency=latency, interval=interval, **names)
        goals = _find_goals(self.available, metric)
        first = next(iter(goals.values()))
        is_part = len(self.available[0].ranked_ids) < len(self.answered)
        parts = [self._describe_goal(quantity, row, first, is_part) for quantity, row in goals.items()]
        if is_part:
            return join_texts(" ", [*parts, *self._describe_beyond(metric)])
        if not first.is_available:
            other = first.available_hardware and self.scope.mark(first.available_hardware)
            parts.append(self._fill(text.NOT_AVAILABLE if other else text.NONE_AVAILABLE, first, other=other))
        return join_texts(" ", parts)

    def _describe_goal(
        self, quantity: PartMetricName, row: Recommendation, first: Recommendation, is_part: bool
    ) -> str:
        """Return the sentence on the best hardware for a metric; `first` is the best hardware that the headline names
        first.
        """
        own = next(one for one in self.rows if one.label == row.hardware)
        widths = {"energy": own.energy_half_width, "latency": own.latency_half_width}
        given = {
            "value": (row.value, widths[quantity]) if quantity in widths else row.value,
            "each": text.EACH if row.goal.endswith("_per_inference") else "",
            "among": text.AMONG if is_part and row is first else "",
            "doubt": "" if row.probability_best is None else self._describe_doubt(row),
        }
        if row.tied_count > 1 or row.advantage_ratio is None:
            column, ids = METRIC[row.goal].column, set(row.ranked_ids)
            alike = [one.label for one in self.answered if one.run_id in ids and getattr(one, column) == row.value]
            of_all, of_best = text.EQUAL[quantity]
            return (of_all if len(alike) == len(ids) else of_best)(names=self._shorten(alike, SHOWN_TIED), **given)
        is_near = row.advantage_ratio < TIE_RATIO
        return self._fill(
            text.BEST[quantity],
            row,
            margin=text.BY_LITTLE(most=TIE_RATIO - 1.0) if is_near else text.BY_RATIO(row),
            also="also " if row is not first and row.hardware == first.hardware and first.tied_count == 1 else "",
            **given,
        )

    def _describe_doubt(self, row: Recommendation) -> str:
        """Return the confidence in the best chip for a goal, with the chips that are statistically tied with it."""
        is_above_each = not row.rivals and is_tied(row.probability_best)
        singly = text.SINGLY(least=TOLD_APART) if is_above_each else ""
        return text.DOUBT(row, tied=[self.scope.mark(name) for name in row.rivals], singly=singly)

    def _describe_beyond(self, metric: PartMetricName) -> list[str]:
        """Return one sentence per unavailable chip that would beat the best available chip, with the ratios."""
        gains: dict[str, dict[str, list[str]]] = {}
        owns = _find_goals(self.available, metric)
        for quantity, row in _find_goals(self.recommendations, metric).items():
            own = owns[quantity]
            if not row.is_available and own.value >= TIE_RATIO * row.value:
                gain = text.GAINS[quantity](ratio=own.value / row.value)
                gains.setdefault(row.hardware, {}).setdefault(own.hardware, []).append(gain)
        return [
            text.BEYOND(
                hardware=self.scope.mark(name),
                gains=[text.BETTER_THAN(gains=gain, other=self.scope.mark(other)) for other, gain in found.items()],
            )
            for name, found in gains.items()
        ]

    def describe_uncertainty(self) -> str:
        """Return the meaning of the intervals in the table, and what widens them."""
        return self.scope.describe_spread(has_brackets=True, among=[row.hardware for row in self.answered[:SHOWN]])

    def _shorten(self, hardware: Sequence[str], most: int) -> list[str]:
        """Return the displayed names of the first `most` chips, and a count of the others."""
        rest = [text.MORE(count=len(hardware) - most)] if len(hardware) > most else []
        return [*map(self.scope.mark, hardware[:most]), *rest]

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
        columns = text.COLUMNS(
            label=label,
            energy=energy,
            ratio="energy_ratio" if len(self.answered) > 1 else "",
            baseline="baseline" if self.varying else self.scope.mark(baseline),
        )

        def stays(row: Comparison) -> bool:
            return row.label in winners

        drawn = self._lay(
            self.rows.with_rows(self.answered),
            columns,
            ranked=f"{label} | latency",
            limit=limit,
            noun="configurations" if self.varying else "chips",
            stays=stays,
            average_power_w=lambda row: self.scope.show_power(row.hardware, row.average_power_w),
            units_used_count=lambda row: show_units(row.units_used_count, row.units_total_count, row.unit_name),
        )
        best, tied = self._mark_best(choose_rows(self.answered, limit, stays), drawn.headings, label)
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

    def _notes(self) -> list[str]:
        """Return notes on refusals, clocks, overlapping batches, uncertain shares of energy and the scope."""
        scope = self.scope
        lines = scope.describe_refusals()
        for rows in self._group(lambda row: (row.clock_fraction or 1.0) < FULL):
            each = "; ".join(text.CLOCK_OF(row, variant=self._variant(row)) for row in rows)
            lines.append(self._fill(text.CLOCK, rows[0], each=each))
        for rows in self._group(lambda row: overlaps(row.interval_s, row.latency_s)):
            each = ", ".join(text.OVERLAP_OF(row, variant=self._variant(row)) for row in rows)
            limits = " or ".join(dict.fromkeys(text.LIMITS[row.throughput_limit or ""] for row in rows))
            lines.append(self._fill(text.OVERLAP, rows[0], each=each, limits=limits))
        if self.varying and len(self.answered) > 1:
            lines.append(text.BASELINE(baseline=scope.mark(self.answered[0].baseline_hardware or "")))
        if any(row.assumed_energy_fraction for row in self.rows):
            lines.append(text.OVERHEAD(overhead=OVERHEAD))
        for rows in self._group(lambda row: bool(row.recalled_energy_fraction)):
            most = max(rows, key=lambda row: row.recalled_energy_fraction or 0.0)
            lines += describe_recalled(most.recalled_energy_fraction, self._name(most))
        parts = []
        for rows in self._group(lambda row: (row.unattributed_energy_fraction or 0.0) >= DOUBTFUL):
            shares = sorted(row.unattributed_energy_fraction or 0.0 for row in rows)
            ends = [show_share(share) for share in (shares[0], shares[-1])]
            parts.append(self._fill(text.UNATTRIBUTED_OF, rows[0], shares=ends))
        return [*lines, *([text.UNATTRIBUTED(parts=parts)] if parts else []), *scope.describe()]

    def _nearest(self) -> list[Insight]:
        """Return one insight per other chip, on its run nearest to the best run; all insights if there is no other
        chip.
        """
        nearest = {row.other_hardware.partition(" ")[0]: row for row in reversed(self.insights.rows)}
        own = {row.best_hardware.partition(" ")[0] for row in self.insights}
        if set(nearest) <= own:
            return list(self.insights)
        kept = [id(row) for name, row in nearest.items() if name not in own]
        return [row for row in self.insights if id(row) in kept]

    def _group(self, applies: Callable[[Comparison], bool]) -> list[list[Comparison]]:
        """Return the rows that a predicate selects, grouped by hardware and sorted by batch."""
        found: dict[str, list[Comparison]] = {}
        for row in self.rows:
            if applies(row):
                found.setdefault(row.hardware, []).append(row)
        return [sorted(rows, key=lambda row: row.batch) for rows in found.values()]

    def _name(self, row: Comparison) -> str:
        """Return the name of a row: its hardware and the settings that vary."""
        return join_texts(" ", filter(None, (self.scope.mark(row.hardware), self._variant(row))))

    def _variant(self, row: Comparison) -> str:
        """Return the settings that distinguish a row from others of its hardware; empty if nothing varies."""
        words = {"precision": row.precision, "batch": f"batch {row.batch}", "runtime": row.runtime}
        return " ".join(words[name] for name in self.varying)

    def _explain(self, row: Insight) -> str:
        """Return a sentence on two runs: their energy and latency ratio, and the energy category that differs most."""
        share, category = row.category_share_fraction, name_category(row.common_category)
        outweighs = share is None
        ratio = row.latency_per_inference_ratio
        faster = text.FASTER(ratio=ratio, each=self._each) if ratio >= TIE_RATIO else ""
        slower = text.SLOWER(ratio=1.0 / ratio, each=self._each) if ratio <= 1.0 / TIE_RATIO else ""
        goals = [goal for goal in self.available if goal.hardware == row.best_hardware]
        named = {goal.goal.partition("_")[0] for goal in goals if goal.runner_up == row.other_hardware}
        is_stated = {"energy", "latency"} <= named or ("energy" in named and not (faster or slower))
        return self._fill(
            text.CAUSE if is_stated else text.INSIGHT,
            row,
            saved=row.category_difference_j,
            outweighed=category if outweighs else None,
            share=share,
            cause=None if outweighs else category,
            each=self._each,
            time=faster or slower,
        )

    def _steps(self, metric: PartMetricName, repeated: Sequence[str]) -> list[list[str]]:
        best, *others = self.answered
        steps = text.STEPS_OF_VARIANT if self.varying else text.STEPS if others else text.STEPS_OF_ONE
        goal = self.available[0] if others else None
        rival = (next(iter(goal.rivals), goal.runner_up or others[0].hardware)) if goal else ""
        winner = goal.hardware if goal else ""
        is_close = goal is not None and bool(goal.rivals) and metric != "memory" and self.scope.can_flip(rival, winner)
        values = {row.hardware: getattr(row, METRIC[metric].column, None) for row in self.answered}
        if not self.varying and rival in values and values[rival] == values.get(winner):
            steps = text.STEPS_OF_ONE  # two equal runs have no difference to explain and no order to flip
        spelled = {"hardware": best.hardware, "rival": rival, "best": winner}
        return [
            one.words(
                row=best,
                model=self.scope.model,
                **{name: self.scope.spell(hardware) for name, hardware in spelled.items()},
                question="flip" if is_close else "explain",
                metric=metric,
                query="compare.part" if metric == "memory" else "compare.winner",
                run_id=best.run_id,
                run_ids=",".join(str(row.run_id) for row in self.answered),
                precision=spell_precision(best.precision),
                others=drop_options(repeated, ("--precision", "--weight-precision", "--batch", "--runtime")),
                repeated=repeated,
                place=find_place(repeated),
            )
            for one in steps
        ]


def _find_goals(rows: Table[Recommendation], metric: PartMetricName) -> dict[PartMetricName, Recommendation]:
    """Return metric -> best hardware, for `metric`, energy and latency in this order; per inference where available."""
    goals = {row.goal: row for row in rows}
    names: tuple[PartMetricName, ...] = (metric, "energy", "latency")
    return {name: goals.get(f"{name}_per_inference") or goals[name] for name in names}  # type: ignore[call-overload]


def compare(source: Source, model: str, settings: Settings = SETTINGS, *, baseline: str = "") -> CompareAnswer:
    """Compare a model on several chips: named chips, those of an architecture or deployment, or the default four.

    `model` is a known name, `path/to/file.py:factory`, `path/to/model.pt2`, `timm:NAME`, `hf:NAME`, or an `nn.Module`
    followed by example inputs, here and in every question. Keywords are the fields of `Settings`. Ratios are relative
    to `baseline`, by default the first hardware. A chip that cannot run the configuration is an `unsupported` row with
    its reason. Raises UnknownNameError, UsageError, ModelError, CatalogueError or DatabaseError; UnsupportedError if no
    hardware can run it.
    """
    plan = plan_runs((model,), settings)
    baseline = name_configuration(baseline, settings) if baseline else ""
    with holding_scope(source, plan) as (scope, connection, ids):
        rows = start(connection, Comparison, run_ids=ids, baseline=baseline)
        is_choice = len(scope.evaluated_ids) > 1  # a single run has no competitor
        find = start if is_choice else start_none
        compared = rows()
        had = [row.run_id for row in compared if row.is_available or settings.takes_all]
        among = had if len(set(had) & set(scope.evaluated_ids)) > 1 else ids
        others = among if among != ids else []
        insights = find(connection, Insight, run_ids=among)
        found = (fetch if is_choice else fetch_none)(connection, Recommendation, run_ids=ids, among_ids=others)
        answer = CompareAnswer(
            scope=scope,
            recommendations=found.with_rows(row for row in found if not row.is_among),
            available=found.with_rows(row for row in found if row.is_among or not others),
            insights=insights(),
            rows=compared,
        )
    if baseline and all(row.hardware != baseline or row.status != "ok" for row in answer.rows):
        raise UnsupportedError(f"the baseline {baseline} is not among the compared hardware that can run the model")
    return answer
