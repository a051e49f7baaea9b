"""Compute the utilization of each hardware by a model, flag low values with reasons, and search for remedies."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any, Final

import attrs

from joulemap.answer.answer import Figures, RunAnswer
from joulemap.answer.run import describe_clock
from joulemap.answer.scope import holding_scope
from joulemap.answer.utilization.sentence import (
    tell_advantage,
    tell_bound,
    tell_distribution,
    tell_flag,
    tell_gain,
    tell_level,
    tell_median,
    tell_size,
)
from joulemap.answer.utilization.variant import Variants, evaluate_sizes, evaluate_variants
from joulemap.domain.default import SETTINGS
from joulemap.domain.hardware_ref import name_configured
from joulemap.domain.settings import Settings
from joulemap.domain.table import Table
from joulemap.domain.weight import label_precision
from joulemap.plan.run import plan_runs
from joulemap.plan.source import Source
from joulemap.present.cell import mark_projected, show_chosen_share, show_plain, show_share
from joulemap.present.document import Document, Grid, Lines, Section, Shown, Text, grid, show_under
from joulemap.row.utilization import BatchZone, Grade, Pairing, PrecisionGain, Remedy, Utilization, UtilizationFlag
from joulemap.store.query import fetch, start
from joulemap.system.errors import UsageError
from joulemap.system.record import frozen

SHOWN: Final = 10
"""Default number of hardware in a table."""

GOALS: Final = {"energy": "least energy", "latency": "least latency", "utilization": "most of its peak"}

SHOWN_RIVALS: Final = 3
"""Hardware that the next step pairs with models of other sizes, in addition to the least utilized one."""

ZONE: Final = (
    "hardware", "zone_batches", "best_batch", "best_utilization_fraction", "least_energy_per_inference_j", "latency_s",
    "peak_memory_bytes", "refused_batch",
)  # fmt: skip
"""Columns shown of efficient batch sizes."""

GAIN: Final = (
    "hardware", "precision", "speedup_ratio", "energy_ratio", "peak_ratio", "memory_ratio",
    "compute_utilization_fraction", "baseline_precision",
)  # fmt: skip
"""Columns shown of a precision."""

SHOWN_REMEDIES: Final = 3
"""Maximum remedies shown per hardware; machine formats list all."""

NAMED: Final = ("larger batch", "lower precision")
"""Remedies whose choice needs no further description."""

FIGURES: Final = (
    "hardware", "compute_utilization_fraction", "compute_grade", "roofline_fraction", "roofline_grade",
    "idle_units_fraction", "attained_ops_per_s", "peak_ops_per_s", "bandwidth_utilization_fraction",
    "sustained_bandwidth_fraction", "dram_intensity_ops_per_byte", "ridge_ops_per_byte", "roof", "units_used_count",
    "units_total_count", "average_power_w", "ops_per_j", "flags",
)  # fmt: skip
"""Columns shown of the utilization of each hardware."""

GAIN_NOTE: Final = (
    "a remedy is a run that differs in one thing and takes 5 % less energy x time per inference, or better; of larger "
    "batches the least within 90 % of the best"
)


@frozen(kw_only=True)
class UtilizationAnswer(RunAnswer):
    """Utilization of several hardware by one model, with flags and remedies."""

    rows: Table[Utilization]
    """Rows by compute utilization, highest first; unsupported ones last."""
    grades: Table[Grade]
    """Grades, with the least share of each."""
    flags: Table[UtilizationFlag]
    """Rows by hardware, in the order of the question."""
    remedies: Table[Remedy] | None
    """Remedies for each hardware; None unless requested."""
    zones: Table[BatchZone] | None
    """Efficient batch sizes of each hardware; None unless requested."""
    precisions: Table[PrecisionGain] | None
    """Gains of each precision; None unless requested."""
    pairings: Table[Pairing] | None
    """Best hardware for stored models of each size, at this precision; None unless requested."""
    untraced: str
    """Reason why the model could not be traced at other batches; empty if it could, or if advice was not requested."""

    def data(self) -> dict[str, Any]:
        """Return the data for machine formats, with the sentences; a table that was not requested is an empty list."""
        empty: dict[str, Any] = {"remedies": [], "zones": [], "precisions": [], "pairings": []}
        told = {"untraced": self.untraced, "reasons": self.reasons(), "advice": self.advice()}
        return {**empty, **super().data(), **told}

    def document(self, *, limit: int = SHOWN, repeated: Sequence[str] = ()) -> Document:
        """Return the document with `limit` hardware; csv holds the rows."""
        below = self.scope.say_left_out()
        return self._compose(
            self.scope.title,
            (show_under("Utilization", self._use(limit), *below),),
            self.rows,
            answer=self.say_use(),
            insights=self._insights(),
            details=(
                Section("Utilization in figures", self._show(self.rows, FIGURES, keep=FIGURES[1:6])),
                Section("What would use it better", Lines(self.advice())),
                Section("Good batches", self._batches()),
                Section("What each precision gains", self._gains()),
                Section("Which hardware suits which size of model", self._winners()),
            ),
            notes=self.notes(),
            steps=self._steps(repeated),
        )

    def say_use(self) -> str:
        """Return the headline: the most and the least utilized hardware, its bottleneck, and the first remedy."""
        used = [row for row in self.rows if row.status == "ok"]
        worst = used[-1]
        name, share = self.scope.mark(worst.hardware), show_share(worst.compute_utilization_fraction)
        text = f"{name} uses {share} of its peak ({worst.compute_grade})"
        if len(used) > 1:
            best = show_share(used[0].compute_utilization_fraction)
            first = f"{self.scope.mark(used[0].hardware)} has the highest utilization, {best} of its peak"
            text = f"{first} ({used[0].compute_grade}); {name} the lowest, {share} ({worst.compute_grade})"
        cause, _, time = tell_bound(worst).partition(" ")
        text += f", where {cause} bounds {time} of the time" if time else ""
        better = self._find_better(worst)
        return f"{text}. Better: {self._name(better)}, {tell_gain(better)}." if better else f"{text}."

    def _find_better(self, row: Utilization) -> Remedy | None:
        """Return the first remedy for the bottleneck of a run that improves it."""
        rows = (one for one in self.remedies or () if one.run_id == row.run_id and one.is_better)
        return next((one for one in rows if one.place is not None), None)

    def _use(self, limit: int) -> Grid:
        """Return a grid with the utilization, bottleneck and best remedy of each hardware."""
        rows = attrs.evolve(self.rows, rows=tuple(row for row in self.rows if row.status == "ok"))
        found = {row.run_id: one for row in rows if (one := self._find_better(row))}
        choices = {run_id: mark_projected(one.choice, self.scope.projected) for run_id, one in found.items()}
        gains = {run_id: f"{show_plain(one.gain_ratio)}x" for run_id, one in found.items()}
        better: tuple[Shown[Utilization], ...] = (
            ("better", lambda row: choices.get(row.run_id, "")),
            ("less energy x time", lambda row: gains.get(row.run_id, "")),
        )
        return grid(
            rows,
            (
                ("hardware", "hardware"),
                ("of its peak", "compute_utilization_fraction"),
                ("grade", "compute_grade"),
                ("time bound by", tell_bound),
                ("units idle", "idle_units_fraction"),
                *(better if self.remedies is not None else ()),
                ("bandwidth", "bandwidth_utilization_fraction"),
                ("power", "average_power_w"),
            ),
            limit=limit,
            noun="hardware",
            keep=("of its peak", "time bound by", "better", "less energy x time", "grade"),
            ranked=("of its peak",),
            projected=self.scope.projected,
        )

    def figures(self) -> Figures:
        """Return figures of utilization and of rooflines for all hardware; empty if all were refused."""
        used = [row for row in self.rows if row.status == "ok"]
        if not used:
            return ()
        ends = [("most used", used[0]), *([("least", used[-1])] if len(used) > 1 else [])]
        told = [
            f"{word}: {self.scope.mark(row.hardware)}, {show_share(row.compute_utilization_fraction)} of its peak, "
            f"{row.compute_grade}"
            for word, row in ends
        ]
        near = sorted((row for row in used if row.roofline_fraction), key=lambda row: -(row.roofline_fraction or 0.0))
        placed = [
            f"{word} its roof: {self.scope.mark(row.hardware)}, {show_share(row.roofline_fraction)} of it"
            for word, row in zip(("nearest to", "farthest from"), [*near[:1], *near[1:][-1:]], strict=False)
        ]
        under = [self.scope.mark(row.hardware) for row in used if row.roof == "memory"]
        placed.append(f"the memory is the roof of {', '.join(under)}" if under else "the peak is the roof of all")
        return (
            self._draw_figure("utilization", self.rows, facts=f"{'; '.join(told)}."),
            self._draw_figure("rooflines", self.rows, facts="; ".join(placed)),
        )

    def reasons(self) -> list[str]:
        """Return a sentence for each flag."""
        return [f"{self.scope.mark(row.hardware)}: {tell_flag(row)}" for row in self.flags]

    def _insights(self) -> list[str]:
        """Return the flags of each hardware on one line, least utilized first; the first flag has its reason."""
        lines = []
        for row in reversed(self.rows):
            flags = [flag for flag in self.flags if flag.run_id == row.run_id]
            told = [tell_flag(flag) if flag is flags[0] else tell_level(flag) for flag in flags]
            lines += [f"{self.scope.mark(row.hardware)}: {'; '.join(told)}"] if told else []
        return lines

    def advice(self) -> list[str]:
        """Return the time distribution and the remedies of each hardware; empty unless requested."""
        if self.remedies is None:
            return []
        remedies = {run_id: list(rows) for run_id, rows in groupby(self.remedies, lambda row: row.run_id)}
        return [
            f"{self.scope.mark(row.hardware)}: {tell_distribution(row)}. {self._advise(remedies.get(row.run_id, []))}"
            for row in self.rows
            if row.status == "ok"
        ]

    def _advise(self, remedies: Sequence[Remedy]) -> str:
        """Return the remedies for the bottleneck of a run, and those tried without a gain."""
        following = [row for row in remedies if row.place is not None]
        better = [row for row in following if row.is_better]
        vain = [f"{self._name(row)} ({tell_gain(row)})" for row in following if not row.is_better]
        told = "; ".join(f"{self._name(row)} ({tell_gain(row)})" for row in better[:SHOWN_REMEDIES])
        text = f"Better: {told}." if told else "Nothing that was tried for that is better."
        return f"{text} No gain: {'; '.join(vain)}." if vain else text

    def _name(self, row: Remedy) -> str:
        if row.remedy in NAMED:
            return row.choice
        return f"{row.remedy}, {mark_projected(row.choice, self.scope.projected)}"

    def _batches(self) -> tuple[Grid | Text, ...]:
        if not self.zones or all(len(row.batches) == 1 for row in self.zones):
            return ()
        text = (
            "the zone is of the batches tried that have both utilization and inferences per joule within 90 % of the "
            "best; the best batch has the largest product, and latency and memory are its"
        )
        return self._show(self.zones, ZONE, keep=ZONE[1:]), Text(text)

    def _gains(self) -> tuple[Grid | Text, ...]:
        if not self.precisions:
            return ()
        text = (
            "ratios to fp32, or to the widest precision where there is no fp32; whether the model keeps its accuracy "
            "is not part of it"
        )
        return self._show(self.precisions, GAIN, keep=GAIN[1:]), Text(text)

    def _winners(self) -> tuple[Grid | Text, ...]:
        if not self.pairings:
            return ()
        own = next(row.least_flop_count for row in self.rows if row.status == "ok")
        settings = self.scope.settings
        among = " on the hardware above" if len(self.rows) > 1 else ""
        return (
            grid(
                self.pairings,
                (
                    (
                        "FLOPs",
                        lambda row: tell_size(row.least_flop_count) + (" *" if row.least_flop_count == own else ""),
                    ),
                    ("goal", lambda row: GOALS[row.goal]),
                    ("hardware", "hardware"),
                    ("wins", lambda row: f"{row.won_count} of {row.contest_count}"),
                    ("median", tell_median),
                    ("against the next", tell_advantage),
                    ("utilization", "median_utilization_fraction"),
                    ("models", "model_count"),
                    ("hardware tried", "hardware_count"),
                    (
                        "second",
                        lambda row: (
                            f"{self.scope.mark(row.runner_up)} ({row.runner_up_won_count})" if row.runner_up else ""
                        ),
                    ),
                ),
                keep=("goal", "hardware", "wins", "median", "utilization"),
                projected=self.scope.projected,
            ),
            Text(
                f"classes by operations of one inference, * that of {self.scope.model}; over the stored runs at batch "
                f"{self.scope.batches[0]}, {label_precision(*self.scope.precisions[0])}, {settings.runtime[0]}{among}; "
                "a contest is one model on two or more hardware"
            ),
        )

    def notes(self) -> list[str]:
        """Return notes on these rows."""
        bounds = ", ".join(f"{row.grade} from {show_chosen_share(row.least_fraction)}" for row in self.grades.rows[:-1])
        lines = self.scope.describe_refusals()
        lines.append(f"grades of a share of the peak, or of the roof: {bounds}, else {self.grades[-1].grade}")
        lines += describe_clock(self.rows, self.scope)
        lines += [GAIN_NOTE] if self.remedies is not None else []
        lines += [f"other batches were not tried: {self.untraced}"] if self.untraced else []
        return lines + self.scope.describe()

    def _steps(self, repeated: Sequence[str]) -> list[list[str]]:
        model = self.scope.model
        *others, worst = [self.scope.spell(row.hardware) for row in self.rows if row.status == "ok"]
        steps = [["analyze", model, worst, "--level", "subgraph", *repeated]]
        if not self.pairings:
            steps.append(["utilization", model, *others[:SHOWN_RIVALS], worst, "--pairing", *repeated])
        if "--batch" not in repeated:
            steps.append(["sweep", model, "--hardware", worst, *repeated])
        return steps


def utilization(
    source: Source,
    model: str,
    settings: Settings = SETTINGS,
    *,
    min_compute_fraction: float = 0.2,
    max_bandwidth_fraction: float = 0.9,
    max_idle_fraction: float = 0.8,
    grades: Sequence[float] = (),
    has_advice: bool = True,
    is_pairing: bool = False,
) -> UtilizationAnswer:
    """Compute the utilization of each hardware by the model, and flag unhealthy values with a reason.

    A run is flagged below `min_compute_fraction` of the peak, above `max_bandwidth_fraction` of the bandwidth that its
    class sustains, and above `max_idle_fraction` of the units idle. `grades` are the least shares of a peak that are
    excellent, good, fair and poor. Advice evaluates the model at other batches, precisions and power modes and on other
    hardware; without it only the runs themselves are evaluated. `is_pairing` evaluates a few models of each size. It
    then finds the best hardware for each size in the stored runs on these hardware, or on all if there is only one.
    Raises as `compare`, UsageError for a limit or grade outside 0 to 1.
    """
    limits = {
        "min_compute_fraction": min_compute_fraction,
        "max_bandwidth_fraction": max_bandwidth_fraction,
        "max_idle_fraction": max_idle_fraction,
    }
    for name, value in limits.items():
        _check_fraction(name, value)
    bounds = _check_grades(grades)
    settings.check_single("utilization")
    plan = plan_runs((model,), settings)
    variants = evaluate_variants(source, plan) if has_advice else None
    if is_pairing:
        evaluate_sizes(source, plan)
    with holding_scope(source, plan) as (scope, connection, ids):
        rows = start(connection, Utilization, run_ids=ids, **limits, grade_bounds=bounds)
        given = variants or Variants(batch=(), precision=(), other=(), untraced="")
        names = [name_configured(entry.id, mode) for entry, mode in plan.selection.pairs]
        where = {
            "precision": label_precision(*settings.precisions[0]),
            "runtime": settings.runtime[0],
            "batch": scope.batches[0],
        }
        return UtilizationAnswer(
            scope=scope,
            grades=fetch(connection, Grade, grade_bounds=bounds),
            flags=fetch(connection, UtilizationFlag, run_ids=ids, **limits),
            remedies=fetch(
                connection, Remedy, run_ids=ids, other_ids=given.ids, grade_bounds=bounds, takes_all=settings.takes_all
            )
            if variants
            else None,
            zones=fetch(connection, BatchZone, run_ids=list(given.batch)) if variants else None,
            precisions=fetch(connection, PrecisionGain, run_ids=list(given.precision)) if variants else None,
            pairings=fetch(connection, Pairing, **where, hardware=names if len(names) > 1 else [])
            if is_pairing
            else None,
            untraced=given.untraced,
            rows=rows(),
        )


def _check_fraction(name: str, value: float) -> None:
    if not 0.0 <= value <= 1.0:
        raise UsageError(f"{name} is {value:g}, expected from 0 to 1")


def _check_grades(bounds: Sequence[float]) -> list[float]:
    """Return the bounds of grades; UsageError unless there are none, or four in descending order."""
    for bound in bounds:
        _check_fraction("grades", bound)
    if bounds and (len(bounds) != 4 or list(bounds) != sorted(set(bounds), reverse=True)):
        raise UsageError(
            f"grades are {', '.join(f'{bound:g}' for bound in bounds)}, expected four that fall, e.g. 0.7,0.5,0.3,0.1"
        )
    return list(bounds)
