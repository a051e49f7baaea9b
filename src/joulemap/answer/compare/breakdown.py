"""Compare whole runs: their figures side by side, and the tree of each run's energy."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import attrs

from joulemap.answer.answer import Figures, RunAnswer
from joulemap.answer.run import BOUNDS, CATEGORIES, ENERGY_PARTS, prove
from joulemap.answer.scope import holding_scope
from joulemap.domain.default import SETTINGS
from joulemap.domain.settings import Settings
from joulemap.domain.table import Table
from joulemap.plan.run import plan_runs
from joulemap.plan.source import Source
from joulemap.present.cell import show, show_quantity, show_share, show_units
from joulemap.present.document import Document, Grid, Section, Text, show_under
from joulemap.row.compare import EnergyBranch, RunFigure
from joulemap.store.query import fetch, start
from joulemap.system.record import frozen

FIGURES = (
    ("energy", "energy_j", "J"),
    ("energy per inference", "energy_per_inference_j", "J"),
    *((f"- {part}", f"{part}_energy_j", "J") for part in ENERGY_PARTS),
    ("overhead", "overhead_energy_j", "J"),
    ("latency", "latency_s", "s"),
    ("throughput", "throughput_per_s", "1/s"),
    ("average power", "average_power_w", "W"),
    ("energy x delay", "edp_js", "Js"),
    ("compute utilization", "compute_utilization_fraction", ""),
    ("bandwidth utilization", "bandwidth_utilization_fraction", ""),
    ("peak memory", "peak_memory_bytes", "B"),
)
"""Main figures: label, field and unit."""

MORE: Final = (
    ("activations", "activation_bytes", "B"),
    ("weights", "weight_bytes", "B"),
    ("memory of the hardware", "memory_capacity_bytes", "B"),
    *((f"{bound}-bound subgraphs", f"{bound}_bound_count", "") for bound in BOUNDS),
    *((f"{bound}-bound time", f"{bound}_time_fraction", "") for bound in BOUNDS),
)
"""Additional figures, in the same form."""


BRANCH: Final = ("category", "component", "action", "energy_j", "share_fraction", "category_fraction", "part")
"""Columns shown of a run's energy tree."""

SHOWN_RUNS: Final = 6
"""Maximum runs that a figure's caption names; its table has all."""


@frozen(kw_only=True)
class BreakdownAnswer(RunAnswer):
    """Whole runs: figures, and an energy tree whose leaves sum to each run exactly."""

    rows: Table[RunFigure]
    tree: Table[EnergyBranch]
    """Rows by run, then by category, largest energy first."""

    def document(self, *, repeated: Sequence[str] = ()) -> Document:
        """Return the document; csv holds the figures."""
        scope = self.scope
        answered = [row for row in self.rows if row.status == "ok"]
        trees = [
            Section(f"Energy of {row.model} on {scope.mark(row.hardware)}", self._branches(row)) for row in answered
        ]
        ordered = sorted(answered, key=lambda row: (scope.mark(row.hardware) != row.hardware, row.energy_fj or 0))
        first, *insights = [self._tell_most(row) for row in ordered]
        among = " of the available hardware" if scope.mark(ordered[-1].hardware) != ordered[-1].hardware else ""
        least = f"Least energy{among}: " if len(answered) > 1 and len(scope.models) == 1 else ""
        return self._compose(
            scope.title,
            (show_under("Figures", self._figures(answered, FIGURES), *scope.say_left_out()),),
            self.rows,
            answer=f"{least}{first}.",
            insights=insights,
            details=(Section("More figures", self._figures(answered, MORE)), *trees),
            steps=self._steps(repeated),
        )

    def figures(self) -> Figures:
        """Return the energy of each run by common category; empty if every run was refused."""
        if not self.tree.rows:
            return ()
        told = [self._tell_most(row) for row in self.rows if row.status == "ok"]
        facts = "; ".join(told[:SHOWN_RUNS])
        texts = {"label": "{model} on {hardware}" if len(self.scope.models) > 1 else "{hardware}"}
        return (self._draw_figure("breakdown", self.tree, "", f"{facts}.", texts),)

    def _tell_most(self, row: RunFigure) -> str:
        """Return the category with the most energy of a run."""
        amounts: dict[str, int] = {}
        for branch in self.tree:
            if branch.run_id == row.run_id:
                amounts[branch.common_category] = amounts.get(branch.common_category, 0) + branch.energy_fj
        most = max(amounts, key=lambda name: (amounts[name], name))
        named = self.scope.mark(row.hardware)
        label = f"{row.model} on {named}" if len(self.scope.models) > 1 else named
        share = show_share(amounts[most] / max(1, sum(amounts.values())))
        return f"{label}: {show_quantity(row.energy_j, 'J')}, most of it {CATEGORIES[most]}, {share}"

    def _figures(self, rows: Sequence[RunFigure], figures: Iterable[tuple[str, str, str]]) -> Grid:
        """Return a grid with one row per figure and one column per run."""
        several = len(self.scope.models) > 1
        names = [self.scope.mark(row.hardware) for row in rows]
        table = [(label, *(show(getattr(row, name), name, unit) for row in rows)) for label, name, unit in figures]
        if figures is MORE:
            units = [show_units(row.units_used_count, row.units_total_count, row.unit_name) for row in rows]
            table.append(("units", *units))
        headings = [f"{row.model} on {name}" if several else name for row, name in zip(rows, names, strict=True)]
        frugal = sorted(range(len(rows)), key=lambda index: rows[index].energy_fj or 0)
        return Grid(
            headings=("per batch", *headings), rows=tuple(table), keep=tuple(headings[index] for index in frugal)
        )

    def _branches(self, row: RunFigure) -> tuple[Grid | Text, ...]:
        """Return the categories of a run with their actions, and the check of their sum."""
        branches = tuple(branch for branch in self.tree if branch.run_id == row.run_id)
        return (
            self._show(attrs.evolve(self.tree, rows=branches), BRANCH, keep=BRANCH[1:]),
            prove("actions", "the run", (sum(branch.energy_fj for branch in branches), row.energy_fj or 0, "fJ")),
        )

    def _steps(self, repeated: Sequence[str]) -> list[list[str]]:
        model = self.scope.model
        hardware = [
            self.scope.spell(row.hardware)
            for row in self.rows
            if row.status == "ok" and row.model == self.rows[0].model
        ]
        steps = [["analyze", model, hardware[0], *repeated]] if hardware else []
        if len(hardware) > 1:
            steps.append(["explain", model, *hardware[:2], *repeated])
        return steps


def compare_runs(source: Source, models: Sequence[str], settings: Settings = SETTINGS) -> BreakdownAnswer:
    """Compare models on one or several hardware: the figures of each run, and the tree of its energy.

    Raises as `compare`.
    """
    settings.check_single("compare")
    with holding_scope(source, plan_runs(models, settings)) as (scope, connection, ids):
        rows = start(connection, RunFigure, run_ids=ids)
        tree = fetch(connection, EnergyBranch, run_ids=ids)
        return BreakdownAnswer(scope=scope, tree=tree, rows=rows())
