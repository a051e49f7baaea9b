"""Compare one model on several hardware: the best for each goal, a row per hardware, and causes of differences."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import attrs

from joulemap.answer.answer import Figures, drop_options, find_place
from joulemap.answer.compare.sentence import ComparedAnswer, tell_doubt, tell_winners
from joulemap.answer.run import CATEGORIES, OVERHEAD, overlaps
from joulemap.answer.scope import TIE_RATIO, describe_recalled, holding_scope
from joulemap.domain.default import SETTINGS
from joulemap.domain.metric import METRIC, PartMetricName
from joulemap.domain.settings import Settings
from joulemap.domain.table import Column, Table
from joulemap.domain.weight import spell_precision
from joulemap.plan.run import plan_runs
from joulemap.plan.selection import name_configuration
from joulemap.plan.source import Source
from joulemap.present.cell import join_names, show_doubt, show_quantity, show_share, show_units
from joulemap.present.document import Document, Grid, Section, choose_rows, grid, show_under
from joulemap.row.compare import Comparison, Insight, Recommendation
from joulemap.store.query import fetch, fetch_none, start, start_none
from joulemap.system.errors import UnsupportedError
from joulemap.system.record import frozen

DOUBTFUL: Final = 0.1
"""Unattributed share of an energy above which it is stated."""

SHOWN_NAMES: Final = 4
"""Maximum hardware named in a sentence."""

FULL: Final = 0.9995
"""Share of the full clock above which it rounds to all of it."""

LIMITS: Final[Mapping[str, str]] = {
    "latency": "its latency",
    "cores": "its cores",
    "devices": "its devices",
    "pipeline stage": "its slowest pipeline stage",
    "memory bandwidth": "memory bandwidth",
    "power cap": "its power cap",
}
"""Limit of throughput -> its name in a sentence."""

JUDGED: Final = (
    Column(name="probability_best", type="DOUBLE", meaning="probability of the least energy per inference"),
    Column(name="fastest_probability", type="DOUBLE", meaning="probability of the least latency"),
    Column(name="likely_best", type="BOOLEAN", meaning="true for the least energy, or a tie with it"),
)
"""Additional columns of a figure's rows."""

GOALS: Final[Mapping[str, str]] = {
    "energy": "energy",
    "energy_per_inference": "energy",
    "latency": "latency",
    "edp": "energy x delay",
    "throughput": "throughput",
    "memory": "memory",
}
"""Goal -> column of the comparison whose best it marks. Energy x delay per inference has no column for a batch."""

RECOMMENDED: Final = (
    "goal", "hardware", "value", "runner_up", "advantage_ratio", "probability_best", "available_hardware",
    "available_value",
)  # fmt: skip
"""Columns shown of the best hardware per goal."""

SHOWN: Final = 10
"""Default number of hardware in a table."""


@frozen(kw_only=True)
class CompareAnswer(ComparedAnswer):
    """One model on several hardware."""

    insights: Table[Insight]
    """Comparison of the lowest-energy run with each other one, nearest first."""

    @property
    def varying(self) -> tuple[str, ...]:
        """Names among precision, batch and runtime that differ between rows, so that each row states its own."""
        names = ("precision", "batch", "runtime")
        return tuple(name for name in names if len({getattr(row, name) for row in self.rows}) > 1)

    def document(
        self, *, metric: PartMetricName = "energy", limit: int = SHOWN, repeated: Sequence[str] = ()
    ) -> Document:
        """Return the document with `limit` rows; csv holds all rows. `metric` selects the next steps."""
        baseline = next(row.baseline_hardware for row in self.rows if row.baseline_hardware)
        each = "energy per inference, the rest per batch" if "batch" in self.varying else "per batch"
        count = len(self.scope.evaluated_ids)
        title = f"Comparison ({each}{f', ratio to {self.scope.mark(baseline)}' if count > 1 else ''})"
        below = self.scope.say_left_out()
        return self._compose(
            self.scope.title,
            (show_under(title, self._figures(limit), *below),),
            self.rows,
            answer=tell_winners(self),
            insights=[self._tell(row) for row in self._nearest() if row.energy_ratio >= TIE_RATIO],
            sure=tell_doubt(self),
            details=(Section("Recommendations", self._show(self.recommendations, RECOMMENDED)),),
            notes=self._sentences(),
            steps=self._steps(metric, repeated),
        )

    def figures(self) -> Figures:
        """Return energy and latency of each hardware with their intervals."""
        each = "batch" in self.varying
        quantity = METRIC["energy_per_inference" if each else "energy"].meaning
        texts = {"quantity": quantity, "per": "batch" if each else ""}
        return (self._draw_figure("comparison", self._judged(), "", tell_winners(self), texts),)

    def _judged(self) -> Table[tuple[object, ...]]:
        """Return the rows with the probability that each is the best, in columns added to those of the query."""
        goals = {row.goal: row for row in self.recommendations}
        energy, latency = goals.get("energy_per_inference", goals.get("energy")), goals.get("latency")
        least, fastest = (
            dict(zip(goal.ranked_ids, goal.probabilities, strict=True)) if goal else {} for goal in (energy, latency)
        )
        best = {energy.hardware, *energy.rivals} if energy else {row.label for row in self.rows}
        return Table(
            title=self.rows.title,
            columns=(*self.rows.columns, *JUDGED),
            rows=tuple(
                (*cells, least.get(row.run_id), fastest.get(row.run_id), row.label in best)
                for row, cells in zip(self.rows, self.rows.cells, strict=True)
            ),
            sql=self.rows.sql,
            parameters=self.rows.parameters,
            projected=self.rows.projected,
        )

    def _figures(self, limit: int) -> Grid:
        """Return a grid of the first hardware, and of each that is best at something."""
        energy = "energy_per_inference_j" if "batch" in self.varying else "energy_j"
        label = "energy per inference" if "batch" in self.varying else "energy"
        answered = [row for row in self.rows if row.status == "ok"]
        winners = {row.hardware for row in self.available if row.tied_count == 1}
        shown = choose_rows(answered, limit, lambda row: row.label in winners)
        ratio = (("energy ratio", "energy_ratio"),) if len(answered) > 1 else ()
        drawn = grid(
            attrs.evolve(self.rows, rows=shown),
            (
                ("hardware", "hardware"),
                *((name, name) for name in self.varying),
                (label, energy),
                ("80 %", lambda row: show_doubt(row.energy_half_width)),
                *((("placed", "placement"),) if any(row.placement for row in shown) else ()),
                ("latency", "latency_s"),
                ("80 % of it", lambda row: show_doubt(row.latency_half_width)),
                ("energy x delay", "edp_js"),
                ("throughput", "throughput_per_s"),
                ("power", lambda row: self.scope.show_power(row.hardware, row.average_power_w)),
                ("of its peak", "compute_utilization_fraction"),
                *ratio,
                ("overhead", "overhead_fraction"),
                ("memory", "peak_memory_bytes"),
                ("units", lambda row: show_units(row.units_used_count, row.units_total_count, row.unit_name)),
            ),
            keep=(*self.varying, label, "latency", "80 %", "80 % of it", "energy x delay", "energy ratio", "power"),
            ranked=(label, "latency"),
            projected=self.scope.projected,
        )
        noun = "configurations" if self.varying else "hardware"
        drawn = drawn.out_of(len(answered), len(shown), noun)
        best, tied = self._mark_best(shown, drawn.headings, label)
        return attrs.evolve(drawn, best=best, tied=tied)

    def _mark_best(
        self, shown: Sequence[Comparison], headings: Sequence[str], energy: str
    ) -> tuple[frozenset[tuple[int, int]], frozenset[tuple[int, int]]]:
        """Return the best cell of each column, and the cells tied with it."""
        found, tied = set(), set()
        for goal in self.available:
            heading = energy if GOALS.get(goal.goal) == "energy" else GOALS.get(goal.goal)
            if heading not in headings or goal.tied_count == len(self.scope.evaluated_ids):
                continue
            column = headings.index(heading)
            value = METRIC[goal.goal].column
            for place, row in enumerate(shown):
                if row.label == goal.hardware:
                    found.add((place, column))
                elif row.label in goal.rivals or (row.is_available and getattr(row, value) == goal.value):
                    tied.add((place, column))
        return frozenset(found), frozenset(tied)

    def _sentences(self) -> list[str]:
        """Return notes on the table."""
        scope = self.scope
        lines = scope.describe_refusals()
        for rows in self._grouped(lambda row: (row.clock_fraction or 1.0) < FULL):
            lines.append(self._tell_clock(rows))
        for rows in self._grouped(lambda row: overlaps(row.interval_s, row.latency_s)):
            lines.append(self._tell_overlap(rows))
        if any(row.assumed_energy_fraction for row in self.rows):
            lines.append(f"overhead: the part of the energy that goes to {OVERHEAD}")
            lines += self._doubts()
        for rows in self._grouped(lambda row: bool(row.recalled_energy_fraction)):
            most = max(rows, key=lambda row: row.recalled_energy_fraction or 0.0)
            lines += describe_recalled(most.recalled_energy_fraction, self._name(most))
        return lines + self._tell_unattributed() + scope.describe()

    def _nearest(self) -> list[Insight]:
        """Return the insights on the best run of each other hardware, or all if there is no other hardware."""
        nearest = {row.other_hardware.partition(" ")[0]: row for row in reversed(self.insights.rows)}
        own = {row.best_hardware.partition(" ")[0] for row in self.insights}
        if set(nearest) <= own:
            return list(self.insights)
        kept = [id(row) for name, row in nearest.items() if name not in own]
        return [row for row in self.insights if id(row) in kept]

    def _grouped(self, applies: Callable[[Comparison], bool]) -> list[list[Comparison]]:
        """Return the rows that a predicate selects, grouped by hardware and sorted by batch."""
        found: dict[str, list[Comparison]] = {}
        for row in self.rows:
            if applies(row):
                found.setdefault(row.hardware, []).append(row)
        return [sorted(rows, key=lambda row: row.batch) for rows in found.values()]

    def _tell_clock(self, rows: list[Comparison]) -> str:
        """Return how far the power cap lowers the clock of a hardware."""
        told = [
            (
                f"{show_quantity(row.clock_hz, 'Hz')}, {show_share(row.clock_fraction)} of its clock",
                show_quantity(row.uncapped_power_w, "W"),
            )
            for row in rows
        ]
        each = "; ".join(
            f"{self._variant(row)} at {clock} (uncapped {power})".lstrip()
            for row, (clock, power) in zip(rows, told, strict=True)
        )
        return f"{self.scope.mark(rows[0].hardware)} stays within its power cap: {each}"

    def _tell_overlap(self, rows: list[Comparison]) -> str:
        """Return the interval between overlapping batches of a hardware, and its limit."""
        every = [show_quantity(row.interval_s, "s") for row in rows]
        each = ", ".join(f"{self._variant(row)} every {told}".lstrip() for row, told in zip(rows, every, strict=True))
        limits = " or ".join(dict.fromkeys(LIMITS[row.throughput_limit or ""] for row in rows))
        name = self.scope.mark(rows[0].hardware)
        return f"{name} starts a batch before another has ended, {each}; its throughput is limited by {limits}"

    def _tell_unattributed(self) -> list[str]:
        """Return the line on energy implied by a power limit and not explained by any circuit."""
        told = []
        for rows in self._grouped(lambda row: (row.unattributed_energy_fraction or 0.0) >= DOUBTFUL):
            shares = [row.unattributed_energy_fraction or 0.0 for row in rows]
            ends = dict.fromkeys(show_share(share) for share in (min(shares), max(shares)))
            told.append(f"{' to '.join(ends)} of the energy of {self.scope.mark(rows[0].hardware)}")
        if not told:
            return []
        verb = "is" if len(told) == 1 else "are"
        owner = "its" if len(told) == 1 else "their"
        return [
            f"{join_names(told)} {verb} unattributed: {owner} power limit says that a chip at work draws more than "
            "its circuits explain, by an amount that was not measured"
        ]

    def _doubts(self) -> list[str]:
        """Return the basis of the intervals, with hardware of the same basis on one line."""
        reasons: dict[tuple[str | None, str | None], dict[str, None]] = {}
        answered = [row for row in self.rows if row.status == "ok"]
        kinds = {(row.hardware, row.energy_doubt, row.latency_doubt) for row in answered}
        for row in answered:
            is_alike = sum(hardware == row.hardware for hardware, *_ in kinds) == 1
            name = self.scope.mark(row.hardware) if is_alike else self._name(row)
            reasons.setdefault((row.energy_doubt, row.latency_doubt), {})[name] = None
        lines = ["80 %: four in five measurements are within this of the figure"]
        for (energy, latency), names in reasons.items():
            more = f" and {len(names) - SHOWN_NAMES} more" if len(names) > SHOWN_NAMES else ""
            shown = ", ".join([*names][:SHOWN_NAMES]) + more
            what = f"energy from {energy}, latency from {latency}"
            lines.append(f"intervals of {shown}: {f'both from {energy}' if energy == latency else what}")
        return lines

    def _name(self, row: Comparison) -> str:
        """Return the name of a row: its hardware and the settings that vary."""
        return " ".join((self.scope.mark(row.hardware), self._variant(row))).rstrip()

    def _variant(self, row: Comparison) -> str:
        """Return the settings that distinguish a row from others of its hardware; empty if nothing varies."""
        words = {"precision": row.precision, "batch": f"batch {row.batch}", "runtime": row.runtime}
        return " ".join(words[name] for name in self.varying)

    def _tell(self, row: Insight) -> str:
        best, other = self.scope.mark(row.best_hardware), self.scope.mark(row.other_hardware)
        share, what = row.category_share_fraction, CATEGORIES[row.common_category]
        each = " per inference" if "batch" in self.varying else ""
        text = f"{best} uses {row.energy_ratio:.3g}x less energy than {other}"
        if share is not None and share > 1.0:
            text += f": {show_quantity(row.category_difference_j, 'J')} less for {what}, though more for the rest"
        elif share is not None:
            much = "most" if share > 0.5 else "the largest part"
            text += f": {much} of the difference ({show_share(share)}) is {what}"
        if row.latency_per_inference_ratio >= TIE_RATIO:
            text += f"; it is {row.latency_per_inference_ratio:.3g}x faster{each}"
        elif row.latency_per_inference_ratio <= 1.0 / TIE_RATIO:
            text += f"; {other} is {1.0 / row.latency_per_inference_ratio:.3g}x faster{each}"
        return text

    def _steps(self, metric: PartMetricName, repeated: Sequence[str]) -> list[list[str]]:
        best, *others = [row for row in self.rows if row.status == "ok"]
        place = find_place(repeated)
        if self.varying:
            return self._steps_into(best, repeated)
        distribution = ["query", "run", "edp.distribution", "-p", f"run_id={best.run_id}", *place]
        if not others:
            return [["analyze", self.scope.model, self.scope.spell(best.hardware), *repeated], distribution]
        goal = self.available[0]
        rival = next(iter(goal.rivals), goal.runner_up or others[0].hardware)
        pair = [self.scope.spell(name) for name in (rival, goal.hardware)]
        is_close = bool(goal.rivals) and metric != "memory" and self.scope.can_flip(rival, goal.hardware)
        ids = ",".join(str(row.run_id) for row in (best, *others))
        winner = "compare.part" if metric == "memory" else "compare.winner"
        asked = "flip" if is_close else "explain"
        return [
            [asked, self.scope.model, *pair, *repeated, "--metric", metric],
            distribution,
            ["query", "run", winner, "-p", f"run_ids={ids}", "-p", f"metric={metric}", *place],
        ]

    def _steps_into(self, best: Comparison, repeated: Sequence[str]) -> list[list[str]]:
        """Return the commands that continue from one of several configurations."""
        run = [*spell_precision(best.precision), "--batch", str(best.batch), "--runtime", best.runtime]
        others = drop_options(repeated, ("--precision", "--weight-precision", "--batch", "--runtime"))
        return [
            [command, self.scope.model, self.scope.spell(best.hardware), *run, *others]
            for command in ("analyze", "edp")
        ]


def compare(source: Source, model: str, settings: Settings = SETTINGS, *, baseline: str = "") -> CompareAnswer:
    """Compare a model on each hardware: named ones, those of an architecture or deployment, or the default four.

    `model` is a known name, `path/to/file.py:factory`, `path/to/model.pt2`, `timm:NAME`, `hf:NAME`, or an `nn.Module`
    followed by example inputs, here and in every question; keywords are the fields of `Settings`. Ratios are relative
    to `baseline`, by default the first hardware. A hardware that cannot run the configuration is an `unsupported` row
    with its reason. Raises UnknownNameError, UsageError, ModelError, CatalogueError or DatabaseError; UnsupportedError
    if no hardware can run it.
    """
    plan = plan_runs((model,), settings)
    baseline = name_configuration(baseline, settings) if baseline else ""
    with holding_scope(source, plan) as (scope, connection, ids):
        rows = start(connection, Comparison, run_ids=ids, baseline=baseline)
        is_choice = len(scope.evaluated_ids) > 1  # a single run has nothing to beat
        find = start if is_choice else start_none
        compared = rows()
        had = [row.run_id for row in compared if row.is_available or settings.takes_all]
        among = had if len(set(had) & set(scope.evaluated_ids)) > 1 else ids
        others = among if among != ids else []
        insights = find(connection, Insight, run_ids=among)
        found = (fetch if is_choice else fetch_none)(connection, Recommendation, run_ids=ids, among_ids=others)
        answer = CompareAnswer(
            scope=scope,
            recommendations=attrs.evolve(found, rows=tuple(row for row in found if not row.is_among)),
            available=attrs.evolve(found, rows=tuple(row for row in found if row.is_among or not others)),
            insights=insights(),
            rows=compared,
        )
    if baseline and all(row.hardware != baseline or row.status != "ok" for row in answer.rows):
        raise UnsupportedError(f"the baseline {baseline} is not among the runs that could be answered")
    return answer
