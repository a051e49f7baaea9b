"""The use that a model makes of each hardware, what is unhealthy about it and why, and who suits models of its size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final

import attrs

from joulemap.answer.answer import RunAnswer, cut_lines
from joulemap.answer.run import BOUNDS, Outcome
from joulemap.answer.scope import holding_scope
from joulemap.domain.table import Table
from joulemap.errors import UsageError
from joulemap.plan.run import plan_runs
from joulemap.present.cell import PROJECTION_NOTE, show, show_quantity, show_share, show_units
from joulemap.present.document import Document, Grid, Lines, Section, Text, grid
from joulemap.store.query import fetch, start
from joulemap.store.run import find_parameter_count

if TYPE_CHECKING:
    from joulemap.domain.settings import Settings
    from joulemap.plan.source import Source

GOALS: Final = {"energy": "least energy", "latency": "least latency", "utilization": "most of its peak"}

SHOWN_FLAGS: Final = 12
"""Flags that people see; programs get all."""


@attrs.frozen
class Utilization(Outcome):
    """How much of its hardware a run uses; a figure of a run that was refused is None."""

    query: ClassVar[str] = "utilization.summary"

    model: str
    precision: str
    runtime: str
    attained_ops_per_s: float | None
    peak_ops_per_s: float | None
    compute_utilization_fraction: float | None
    attained_bytes_per_s: float | None
    memory_bandwidth_bytes_per_s: float | None
    bandwidth_utilization_fraction: float | None
    """Of the published bandwidth."""
    sustained_bandwidth_fraction: float | None
    """Of the bandwidth that the class sustains."""
    arithmetic_intensity_ops_per_byte: float | None
    dram_intensity_ops_per_byte: float | None
    ridge_ops_per_byte: float | None
    ridge_ratio: float | None
    roof: str | None
    roofline_ops_per_s: float | None
    roofline_fraction: float | None
    compute_time_fraction: float | None
    memory_time_fraction: float | None
    launch_time_fraction: float | None
    units_used_count: int | None
    units_total_count: int | None
    unit_name: str
    idle_units_fraction: float | None
    average_power_w: float | None
    tdp_w: float
    ops_per_j: float | None
    peak_ops_per_j: float | None
    clock_fraction: float | None
    flags: list[str]
    """Of low_compute, high_bandwidth and idle_units, in this order."""


@attrs.frozen
class UtilizationFlag:
    """What is unhealthy about a run, and which subgraphs are the reason."""

    query: ClassVar[str] = "utilization.flag"

    hardware: str
    flag: str
    value_fraction: float
    limit_fraction: float
    cost: str
    bottleneck: str
    bottleneck_fraction: float | None
    subgraph_count: int
    total_count: int
    subgraph_index: int
    subgraph: str
    subgraph_fraction: float | None
    tile_count: float
    units_used_count: int
    units_total_count: int
    unit_name: str
    run_id: int

    def __str__(self) -> str:
        """Return what is high or low, and where most of it comes from."""
        value, limit = show_share(self.value_fraction), show_share(self.limit_fraction)
        what = {
            "low_compute": f"{value} of its peak, below {limit}",
            "high_bandwidth": f"{value} of the off-chip bandwidth that it sustains, above {limit}",
            "idle_units": f"{value} of its {self.unit_name}s idle, above {limit}",
        }[self.flag]
        tiles = f"{show(int(self.tile_count), 'tile_count')} tiles on " if self.tile_count else ""
        return (
            f"{what}; {show_share(self.bottleneck_fraction)} of the {self.cost} falls on {self.subgraph_count} of "
            f"{self.total_count} subgraphs, bound by {self.bottleneck}; the largest part, "
            f"{show_share(self.subgraph_fraction)}, in {self.subgraph} ({tiles}{self.units_used_count} of "
            f"{self.units_total_count} {self.unit_name}s)"
        )


@attrs.frozen
class Pairing:
    """Which hardware wins most often for a size of model, a precision and a batch."""

    query: ClassVar[str] = "utilization.pairing"

    least_parameter_count: int
    precision: str
    batch: int
    goal: str
    hardware: str
    architecture: str
    won_count: int
    entered_count: int
    contest_count: int
    model_count: int
    hardware_count: int
    median_value: float
    unit: str
    median_advantage_ratio: float | None
    median_utilization_fraction: float
    runner_up: str | None
    runner_up_won_count: int | None
    is_projection: bool


@attrs.frozen(kw_only=True)
class UtilizationAnswer(RunAnswer):
    """One model on several hardware: how much of each it uses, and what is unhealthy about it."""

    rows: Table[Utilization]
    """Highest compute utilization first, unsupported ones last."""
    flags: Table[UtilizationFlag]
    """In the order that the hardware was asked for."""
    pairings: Table[Pairing] | None
    """Who wins among all stored runs of models of this size, at this precision; None unless asked for."""

    def data(self) -> dict[str, Any]:
        """Return what programs get, with the sentences."""
        return {"pairings": [], **super().data(), "reasons": self.reasons(), "notes": self.notes()}

    def document(self, *, repeated: Sequence[str] = ()) -> Document:
        """Return it; csv holds the rows."""
        sections = (
            Section("Utilization", self._figures()),
            Section("Flags", Lines(cut_lines(self.reasons(), SHOWN_FLAGS))),
            Section("Which hardware suits models of this size", self._winners()),
        )
        steps = self._steps(repeated)
        return self._compose(self.scope.title, sections, self.rows, notes=self.notes(), steps=steps)

    def _figures(self) -> Grid:
        return grid(
            self.rows,
            (
                ("hardware", "hardware"),
                ("compute", lambda row: show_share(row.compute_utilization_fraction) or "unsupported"),
                ("attained", lambda row: show_quantity(row.attained_ops_per_s, "OPS")),
                ("peak", lambda row: show_quantity(row.peak_ops_per_s, "OPS")),
                ("bandwidth", "bandwidth_utilization_fraction"),
                ("of sustained", "sustained_bandwidth_fraction"),
                ("intensity", lambda row: show_quantity(row.dram_intensity_ops_per_byte, "ops/B")),
                ("ridge", lambda row: show_quantity(row.ridge_ops_per_byte, "ops/B")),
                ("roof", "roof"),
                ("of the roof", "roofline_fraction"),
                ("units", lambda row: show_units(row.units_used_count, row.units_total_count, row.unit_name)),
                ("idle", "idle_units_fraction"),
                ("power", "average_power_w"),
                ("TOPS/W", lambda row: "" if row.ops_per_j is None else f"{row.ops_per_j / 1e12:.3g}"),
                ("time bound by", _bound),
                ("flags", "flags"),
            ),
            keep=("compute", "bandwidth", "roof", "of the roof", "idle", "power", "attained", "peak"),
            projected=self.scope.projected,
        )

    def reasons(self) -> list[str]:
        """Return a sentence for each flag."""
        return [f"{self.scope.mark(row.hardware)}: {row}" for row in self.flags]

    def _winners(self) -> tuple[Grid | Text, ...]:
        if not self.pairings:
            return ()
        least = self.pairings[0].least_parameter_count
        size = f"{show_quantity(least, '')} to {show_quantity(10 * least, '')} parameters" if least else "no parameters"
        settings = self.scope.settings
        return (
            grid(
                self.pairings,
                (
                    ("batch", "batch"),
                    ("goal", lambda row: GOALS[row.goal]),
                    ("hardware", "hardware"),
                    ("wins", lambda row: f"{row.won_count} of {row.contest_count}"),
                    ("median", _median),
                    ("against the next", _advantage),
                    ("utilization", "median_utilization_fraction"),
                    ("models", "model_count"),
                    ("hardware tried", "hardware_count"),
                    ("second", self._second),
                ),
                keep=("goal", "hardware", "wins", "median"),
                projected=self.scope.projected,
            ),
            Text(
                f"over the stored runs of models with {size} at {settings.precision[0]}, {settings.runtime[0]}; a "
                "contest is one model at one batch on two or more hardware"
            ),
        )

    def _second(self, row: Pairing) -> str:
        return "" if row.runner_up is None else f"{self.scope.mark(row.runner_up)} ({row.runner_up_won_count})"

    def notes(self) -> list[str]:
        """Return what a reader must know of these rows."""
        lines = self.scope.describe_refusals()
        lines += [
            f"{self.scope.mark(row.hardware)} runs at {show_share(row.clock_fraction)} of its clock to stay within its "
            "power cap; the peak is that of the full clock"
            for row in self.rows
            if row.clock_fraction is not None and row.clock_fraction < 1.0
        ]
        if any(row.is_projection for row in (*self.rows, *(self.pairings or ()))):
            lines.append(PROJECTION_NOTE)
        return lines + self.scope.describe()

    def _steps(self, repeated: Sequence[str]) -> list[list[str]]:
        model = self.scope.model
        worst = self.scope.spell([row.hardware for row in self.rows if row.status == "ok"][-1])
        steps = [["analyze", model, worst, "--level", "subgraph", *repeated]]
        if not self.pairings:
            steps.append(["utilization", model, worst, "--pairing", *repeated])
        if "--batch" not in repeated:
            steps.append(["sweep", model, "--hardware", worst, *repeated])
        return steps


def judge(
    source: Source, model: str, settings: Settings, limits: dict[str, float], *, is_pairing: bool
) -> UtilizationAnswer:
    """Return how much of each hardware is used, as `Workspace.utilization` documents it."""
    for name, value in limits.items():
        if not 0.0 <= value <= 1.0:
            raise UsageError(f"{name} is {value:g}, expected from 0 to 1")
    settings.check_single("utilization")
    with holding_scope(source, plan_runs((model,), settings)) as (scope, connection, ids):
        rows = start(connection, Utilization, run_ids=ids, **limits)
        pairings = None
        if is_pairing:
            pairings = fetch(
                connection,
                Pairing,
                parameter_count=find_parameter_count(connection, ids[0]),
                precision=settings.precision[0],
                runtime=settings.runtime[0],
            )
        flags = fetch(connection, UtilizationFlag, run_ids=ids, **limits)
        return UtilizationAnswer(scope=scope, flags=flags, pairings=pairings, rows=rows())


def _bound(row: Utilization) -> str:
    """Return what bounds most of the time."""
    if row.compute_time_fraction is None:
        return ""
    bound = max(BOUNDS, key=lambda name: float(getattr(row, f"{name}_time_fraction")))
    return f"{bound} {show_share(getattr(row, f'{bound}_time_fraction'))}"


def _median(row: Pairing) -> str:
    return show_share(row.median_value) if row.unit == "1" else show_quantity(row.median_value, row.unit)


def _advantage(row: Pairing) -> str:
    return "" if row.median_advantage_ratio is None else f"{row.median_advantage_ratio:.3g}x better"
