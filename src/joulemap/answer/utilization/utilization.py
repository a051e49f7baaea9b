"""Compute the utilization of each chip by a model, flag low values with reasons, and search for remedies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from joulemap.answer.base import RunAnswer
from joulemap.answer.utilization.variant import Variants, evaluate_sizes, evaluate_variants
from joulemap.ask.fact import Facts
from joulemap.ask.scope import opening_scope
from joulemap.ask.utilization import BOUNDS, find_facts
from joulemap.domain.default import SETTINGS
from joulemap.domain.hardware_ref import name_configured
from joulemap.domain.settings import Settings
from joulemap.domain.table import Column, Table
from joulemap.generated.compare import ModelMix
from joulemap.generated.utilization import (
    BatchZone,
    Grade,
    Pairing,
    PrecisionGain,
    Remedy,
    Utilization,
    UtilizationFlag,
)
from joulemap.physics.record.product import DEFAULT
from joulemap.physics.record.runtime import RUNTIME
from joulemap.physics.record.weight import label_precision
from joulemap.plan.run import plan_runs
from joulemap.plan.source import Source
from joulemap.present.cell import Number, show_plain, show_quantity, show_share
from joulemap.present.document import Document, Grid, Section, Text, show_under
from joulemap.present.template import Template
from joulemap.show.layout import Cell
from joulemap.show.page import Figures
from joulemap.show.part import BOUND as REASONS
from joulemap.show.utilization import (
    describe_pairing,
    describe_ranges,
    describe_time,
    describe_use,
    list_notes,
    list_reasons,
)
from joulemap.store.connection import Connection, keeping_open
from joulemap.store.query import fetch, start
from joulemap.system.errors import UsageError
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.ask.check import CheckedRow


LOWER: Final = "lower precision"
"""Remedy that may change the accuracy of the model."""

KEEPING: Final = ("larger batch", "other runtime", "lower power mode")
"""Remedies that keep the hardware and the accuracy."""

USE_COLUMNS: Final = (
    "hardware | *utilization compute_utilization_fraction | grade compute_grade | *bottleneck, share of time bound | "
    "idle units idle_units_fraction |{remedies} bandwidth bandwidth_utilization_fraction | power average_power_w"
)
USE_KEEP: Final = "utilization | bottleneck, share of time | remedy | throughput x efficiency | grade"
BOUND: Final = Template("{bound} {share:%}")
ROOF_COLUMNS: Final = (
    "hardware | *utilization compute_utilization_fraction | *grade compute_grade | *roofline share roofline_fraction | "
    "*roofline grade roofline_grade | *idle units idle_units_fraction | attained attained_ops_per_s | "
    "peak peak_ops_per_s | bandwidth bandwidth_utilization_fraction | "
    "share of sustained bandwidth sustained_bandwidth_fraction | ops per off-chip byte dram_intensity_ops_per_byte | "
    "ridge ops per byte ridge_ops_per_byte | roof | units used units_used_count | units units_total_count | "
    "power average_power_w | efficiency ops_per_j | flags"
)
FLAG_COLUMNS: Final = (
    "hardware | *flag | *value value_fraction | *limit limit_fraction | *worst subgraph subgraph | "
    "*share subgraph_fraction | bottleneck | subgraphs subgraph_count | their share bottleneck_fraction | "
    "busy units units_used_count"
)
REMEDY_TABLE: Final = "Remedies"
TRIED_COLUMNS: Final = (
    "hardware | *setting choice | *speedup throughput_ratio | *energy energy_ratio | "
    "*throughput x efficiency gain_ratio | latency per batch latency_ratio | remedy | helps is_better"
)
ZONE_COLUMNS: Final = (
    "hardware | *efficient batches zone_batches | *best batch best_batch | *utilization best_utilization_fraction | "
    "*lowest energy per inference least_energy_per_inference_j | *latency latency_s | *peak memory peak_memory_bytes | "
    "*refused batch refused_batch"
)
PRECISION_COLUMNS: Final = (
    "hardware | *precision | *speedup speedup_ratio | *energy ratio energy_ratio | *peak ratio peak_ratio | "
    "*memory ratio memory_ratio | *utilization compute_utilization_fraction | *baseline baseline_precision"
)
PAIRING_TABLE: Final = "Best hardware per model size"
PAIRING_COLUMNS: Final = (
    "FLOPs least_flop_count | goal | hardware | wins won_count | median median_value | "
    "advantage median_advantage_ratio | utilization median_utilization_fraction | models model_count | "
    "hardware tried hardware_count | runner-up runner_up"
)
GOALS: Final[Mapping[str, str]] = {
    "energy": "least energy",
    "latency": "least latency",
    "utilization": "highest utilization",
}
SIZE: Final = Template("{low:~} to {high:~}[ {mark}]")
NO_MACS: Final = Template("no MACs[ {mark}]")
WINS: Final = Template("{won_count} of {contest_count}")
ADVANTAGE: Final = Template("{ratio:x} better")
RUNNER_UP: Final = Template("{name} ({runner_up_won_count})")
INTO_SUBGRAPHS: Final = Template("analyze {model} {worst} --level subgraph")
PAIRING: Final = Template("utilization {model} --hardware {rivals} --pairing")
SWEEP: Final = Template("sweep {model} --hardware {worst}")

BOUND_COLUMNS: Final = (Column(name="main_bottleneck", type="VARCHAR", meaning="what takes most of the time"),)
"""Columns that the rows of a figure have in addition to the query's columns."""

SHOWN: Final = 10
"""Default number of chips in a table."""

SHOWN_RIVALS: Final = 3
"""Maximum chips in the follow-up command on models of other sizes, besides the least utilized chip."""

MOSTLY: Final = 0.5
"""Minimum share of a model's MACs in GEMMs other than convolutions for `has_plain_gemms`."""

SHOWN_FRACTION: Final = 0.0005
"""Share of an energy below which the share is displayed as zero."""


@frozen(kw_only=True)
class UtilizationAnswer(RunAnswer):
    """Utilization of several chips by one model, with flags and remedies."""

    rows: Table[Utilization]
    """Utilization of each chip, highest compute utilization first; unsupported chips are last."""
    grades: Table[Grade]
    """Utilization grades, with the minimum share of each."""
    flags: Table[UtilizationFlag]
    """Problems in how each chip is used, in the order of the hardware."""
    remedies: Table[Remedy] | None
    """Settings that may raise the utilization of each chip; None unless requested."""
    zones: Table[BatchZone] | None
    """Efficient batch sizes of each chip; None unless requested."""
    precisions: Table[PrecisionGain] | None
    """Gains of each precision over fp32, or over the widest precision; None unless requested."""
    pairings: Table[Pairing] | None
    """Best hardware for stored models of each size class, at this precision; None unless requested."""
    has_plain_gemms: bool
    """True if most MACs belong to GEMMs other than convolutions; frameworks do not run these in TF32 by default."""
    facts: Facts
    """Utilization, limits, remedies and caveats, from which all sentences of the first screen are made."""
    untraced: str
    """Reason why the model could not be traced at other batch sizes; empty if it was, or without advice."""

    def data(self) -> dict[str, Any]:
        """Return the data for machine formats; a table that was not requested is an empty list."""
        empty: dict[str, Any] = {"remedies": [], "zones": [], "precisions": [], "pairings": []}
        return {**empty, **super().data(), "untraced": self.untraced}

    def document(self, *, limit: int = SHOWN, repeated: Sequence[str] = ()) -> Document:
        """Return the document with `limit` hardware; csv contains the rows."""
        return self._compose_facts(
            self.facts,
            (show_under("", self._lay_use(limit), *self._count_left_out()),),
            self.rows,
            answer=describe_use(self.facts),
            reasons=list_reasons(self.facts),
            trust=describe_ranges(self.facts),
            details=(
                Section("Roofline", self._lay(self.rows, ROOF_COLUMNS)),
                Section("Flags", self._lay_details(self.flags, FLAG_COLUMNS)),
                Section(REMEDY_TABLE, self._lay_details(self._tried, TRIED_COLUMNS, choice=self._mark_choice)),
                Section("Efficient batch sizes", self._lay_details(self._varied_zones, ZONE_COLUMNS)),
                Section("Gain of each precision", self._lay_details(self.precisions, PRECISION_COLUMNS)),
                Section(PAIRING_TABLE, self._lay_pairings()),
            ),
            notes=list_notes(
                [(row.grade, row.least_fraction) for row in self.grades],
                self.untraced,
                has_precisions=bool(self.precisions),
            ),
            steps=self._list_steps(repeated),
        )

    @property
    def checked(self) -> Sequence[CheckedRow]:
        """Runs of the hardware that was not refused."""
        return self.used

    @property
    def used(self) -> list[Utilization]:
        """Rows of hardware that was not refused, highest utilization first."""
        return [row for row in self.rows if row.status == "ok"]

    def _find_better(self, row: Utilization) -> Remedy | None:
        """Return the setting that reduces the energy x delay of a run most; None if nothing helps."""
        return next(iter(rank_remedies(row, self.remedies or ())), None)

    def _lay_use(self, limit: int) -> Grid:
        """Return a grid with the utilization, bottleneck and best remedy of each chip."""
        choices = {row.run_id: one for row in self.used if (one := self._find_better(row))}
        return self._lay(
            self.rows.with_rows(self.used),
            USE_COLUMNS.format(
                remedies="" if self.remedies is None else " *remedy choice | *throughput x efficiency gain |"
            ),
            limit=limit,
            noun="chips",
            keep=USE_KEEP,
            ranked="utilization",
            bound=describe_bound,
            choice=lambda row: self._mark_choice(choices[row.run_id]) if row.run_id in choices else "",
            gain=lambda row: Number(f"{show_plain(choices[row.run_id].gain_ratio)}x") if row.run_id in choices else "",
        )

    def figures(self) -> Figures:
        """Return a figure of utilization and one of rooflines for all hardware; empty if all hardware was refused."""
        if not self.used:
            return ()
        return (
            self._draw_figure("utilization", self.rows, facts=describe_use(self.facts)),
            self._draw_figure("rooflines", self._bound(), facts=describe_time(self.facts)),
        )

    def _bound(self) -> Table[tuple[Any, ...]]:
        """Return the rows with an additional column: what takes most of the time."""
        reasons = (next((REASONS[name] for name, _ in _list_bounds(row)), None) for row in self.rows)
        return self.rows.with_columns(BOUND_COLUMNS, ((reason,) for reason in reasons))

    @property
    def _tried(self) -> Table[Remedy] | None:
        """Remedies that were tried, those of the table among them."""
        rows = self.remedies
        return None if rows is None else rows.with_rows(row for row in rows if row.remedy_rank is not None)

    @property
    def _varied_zones(self) -> Table[BatchZone] | None:
        """Efficient batch sizes, if some hardware ran at several."""
        return self.zones if any(len(row.batches) > 1 for row in self.zones or ()) else None

    def _mark_choice(self, row: Remedy) -> str:
        return self._mark(row.choice)

    def _lay_details(self, rows: Table[Any] | None, columns: str, **cells: Cell) -> tuple[Grid, ...]:
        """Return a grid of a table; nothing if it was not requested or is empty."""
        return (self._lay(rows, columns, **cells),) if rows else ()

    def _lay_pairings(self) -> tuple[Grid | Text, ...]:
        if not self.pairings:
            return ()
        own, scope = self.used[0].least_flop_count, self.scope

        def describe_size(row: Pairing) -> str:
            low, mark = row.least_flop_count, "*" if row.least_flop_count == own else ""
            return SIZE(low=low, high=10 * low, mark=mark) if low else NO_MACS(mark=mark)

        return (
            self._lay(
                self.pairings,
                PAIRING_COLUMNS,
                keep="goal | hardware | wins | median | utilization",
                least_flop_count=describe_size,
                goal=lambda row: GOALS[row.goal],
                won_count=WINS,
                median_value=lambda row: (
                    show_share(row.median_value) if row.unit == "1" else show_quantity(row.median_value, row.unit)
                ),
                median_advantage_ratio=lambda row: (
                    "" if row.median_advantage_ratio is None else ADVANTAGE(ratio=row.median_advantage_ratio)
                ),
                runner_up=lambda row: RUNNER_UP(row, name=self._mark(row.runner_up)) if row.runner_up else "",
            ),
            Text(describe_pairing(scope.model, has_several=len(self.rows) > 1)),
        )

    def _list_steps(self, repeated: Sequence[str]) -> list[list[str]]:
        *others, worst = [self.scope.spell(row.hardware) for row in self.used]
        steps = [
            INTO_SUBGRAPHS,
            *((PAIRING,) if not self.pairings else ()),
            *((SWEEP,) if "--batch" not in repeated else ()),
        ]
        rivals = ",".join((*others[:SHOWN_RIVALS], worst))
        return self._fill_steps(steps, None, repeated, model=self.scope.model, worst=worst, rivals=rivals)


def rank_remedies(row: Utilization, remedies: Iterable[Remedy]) -> list[Remedy]:
    """Return the remedies that help a run: the setting that reduces its energy x delay most, or if no setting helps,
    the first remedy that may change the accuracy or the hardware; then a lower precision that reduces it more.
    """
    named = [one for one in remedies if one.run_id == row.run_id and one.is_better and one.remedy_rank is not None]
    settings = [one for one in named if one.remedy in KEEPING]
    first = max(settings, key=lambda one: one.gain_ratio) if settings else next(iter(named), None)
    if first is None:
        return []
    lower = [one for one in named if one.remedy == LOWER and one.gain_ratio > first.gain_ratio]
    return [first, *([max(lower, key=lambda one: one.gain_ratio)] if lower else [])]


def describe_bound(row: Utilization) -> str:
    """Return the main bottleneck of a run and its share of the time."""
    return next((BOUND(bound=bound, share=share) for bound, share in _list_bounds(row)), "")


def _list_bounds(row: Utilization) -> list[tuple[str, float]]:
    """Return the bottlenecks of a run as (name, share of the time), largest first."""
    shares = [(name, getattr(row, f"{name}_time_fraction")) for name in BOUNDS]
    return sorted((one for one in shares if one[1] and one[1] >= SHOWN_FRACTION), key=lambda one: -one[1])


@keeping_open()
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
    """Compute the utilization of each chip by the model, and flag unhealthy values with a reason.

    A run is flagged below `min_compute_fraction` of the peak, above `max_bandwidth_fraction` of the bandwidth that its
    class sustains, and above `max_idle_fraction` of the units idle. `grades` are the minimum shares of a peak for
    excellent, good, fair and poor. With `has_advice`, the model is evaluated at other batches, precisions and power
    modes and on other hardware; without it only the runs themselves are evaluated. `is_pairing` evaluates a few models
    of each size class. It then finds the best chip per size among these chips, or on all stored hardware if there is
    only one chip. Raises like `compare`, UsageError for a limit or grade outside 0 to 1.
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
    with opening_scope(source, plan) as scope:
        scope.check_evaluated()
        connection, ids = scope.connection, list(scope.run_ids)
        rows = start(connection, Utilization, run_ids=ids, **limits, grade_bounds=bounds)
        given = variants or Variants(batch=(), precision=(), other=(), untraced="")
        names = [name_configured(entry.id, mode) for entry, mode in plan.selection.pairs]
        where = {
            "precision": label_precision(*settings.precisions[0]),
            "matmul_precision": settings.matmul_precision,
            "runtime": settings.runtime[0],
            "batch": scope.batches[0],
        }
        flags = fetch(connection, UtilizationFlag, run_ids=ids, **limits)
        remedies = (
            fetch(
                connection, Remedy, run_ids=ids, other_ids=given.ids, grade_bounds=bounds, takes_all=settings.takes_all
            )
            if variants
            else None
        )
        has_plain_gemms = (
            _has_plain_gemms(connection, ids)
            and settings.matmul_precision == DEFAULT
            and not RUNTIME[settings.runtime[0]].is_built
        )
        used = rows()
        answered = [row for row in used if row.status == "ok"]
        better = rank_remedies(answered[-1], remedies or ())
        facts = find_facts(scope, answered, flags, better, has_plain_gemms=has_plain_gemms)
        return UtilizationAnswer(
            scope=scope,
            facts=facts,
            grades=fetch(connection, Grade, grade_bounds=bounds),
            flags=flags,
            remedies=remedies,
            zones=fetch(connection, BatchZone, run_ids=list(given.batch)) if variants else None,
            precisions=fetch(connection, PrecisionGain, run_ids=list(given.precision)) if variants else None,
            pairings=fetch(connection, Pairing, **where, hardware=names if len(names) > 1 else [])
            if is_pairing
            else None,
            has_plain_gemms=has_plain_gemms,
            untraced=given.untraced,
            rows=used,
        )


def _has_plain_gemms(connection: Connection, run_ids: Sequence[int]) -> bool:
    """Return whether GEMMs other than convolutions account for most MACs of the model."""
    mix = fetch(connection, ModelMix, run_ids=list(run_ids))
    return sum(row.mac_fraction or 0.0 for row in mix if "conv" not in row.kind) > MOSTLY


def _check_fraction(name: str, value: float) -> None:
    if not 0.0 <= value <= 1.0:
        raise UsageError(f"{name} is {value:g}, expected a fraction from 0 to 1")


def _check_grades(bounds: Sequence[float]) -> list[float]:
    """Return the bounds of grades; UsageError unless there are none, or four in descending order."""
    for bound in bounds:
        _check_fraction("grades", bound)
    if bounds and (len(bounds) != 4 or list(bounds) != sorted(set(bounds), reverse=True)):
        raise UsageError(
            f"grades are {', '.join(f'{bound:g}' for bound in bounds)}, expected four in falling order: 0.7,0.5,0.3,0.1"
        )
    return list(bounds)
