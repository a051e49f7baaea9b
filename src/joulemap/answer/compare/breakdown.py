"""Compare whole runs: their figures side by side, and the tree of each run's energy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs

from joulemap.answer.answer import Figures, RunAnswer, fetch_tables
from joulemap.answer.layout import lay_beside
from joulemap.answer.run import prove
from joulemap.answer.scope import holding_scope
from joulemap.domain.default import SETTINGS
from joulemap.domain.settings import Settings
from joulemap.domain.table import Table
from joulemap.plan.run import plan_runs
from joulemap.plan.source import Source
from joulemap.present.category import name_category
from joulemap.present.cell import show_units
from joulemap.present.document import Document, Grid, Section, Text, show_under
from joulemap.present.template import Template
from joulemap.row.compare import EnergyBranch, RunFigure
from joulemap.system.record import frozen

NAME: Final = Template("[{model} on ]{name}")
LEAST: Final = Template("{label} uses the least energy[ of the {among}]: {energy_j:J}, {share:%} of it {largest}.")
ENERGY: Final = Template("{label} uses {energy_j:J}, {share:%} of it {largest}")
AVAILABLE: Final = "available hardware"

FIGURES_TABLE: Final = "Figures"
PER_BATCH: Final = "quantity per batch"
FIGURES: Final = (
    "energy | {energy_j:J}",
    "energy per inference | {energy_per_inference_j:J}",
    "- compute | {compute_energy_j:J}",
    "- memory | {memory_energy_j:J}",
    "- control | {control_energy_j:J}",
    "- static | {static_energy_j:J}",
    "overhead | {overhead_energy_j:J}",
    "latency | {latency_s:s}",
    "throughput | {throughput_per_s:1/s}",
    "average power | {average_power_w:W}",
    "energy x delay | {edp_js:Js}",
    "compute utilization | {compute_utilization_fraction:%}",
    "bandwidth utilization | {bandwidth_utilization_fraction:%}",
    "peak memory | {peak_memory_bytes:B}",
)
MORE_TABLE: Final = "More figures"
MORE: Final = (
    "activations | {activation_bytes:B}",
    "weights | {weight_bytes:B}",
    "memory capacity | {memory_capacity_bytes:B}",
    *(f"{bound}-bound subgraphs | {{{bound}_bound_count}}" for bound in ("compute", "memory", "launch")),
    *(f"{bound}-bound time | {{{bound}_time_fraction:%}}" for bound in ("compute", "memory", "launch")),
)
UNITS: Final = "units"

TREE_TABLE: Final = Template("Energy of {model} on {name}")
TREE: Final = (
    "category | *category share category_fraction | *component | *action | *part | *energy energy_j | "
    "*share share_fraction"
)

STEPS: Final = (
    Template("analyze {model} {hardware}"),
    Template("explain {model} {hardware} {other}"),
)

SHOWN_RUNS: Final = 6
"""Maximum runs in the caption of a figure; its table lists all."""


@frozen(kw_only=True)
class BreakdownAnswer(RunAnswer):
    """Figures of whole runs, and an energy tree per run with leaves that sum to the run exactly."""

    rows: Table[RunFigure]
    tree: Table[EnergyBranch]
    """Energy of each run by category and action, largest first within a category."""

    def document(self, *, repeated: Sequence[str] = ()) -> Document:
        """Return the document; csv contains the figures."""
        scope = self.scope
        answered = [row for row in self.rows if row.status == "ok"]
        ordered = sorted(answered, key=lambda row: (scope.mark(row.hardware) != row.hardware, row.energy_fj or 0))
        first, *others = ordered
        is_part = scope.mark(ordered[-1].hardware) != ordered[-1].hardware
        is_tied = bool(others) and others[0].energy_fj == first.energy_fj
        is_choice = len(answered) > 1 and len(scope.models) == 1 and not is_tied
        spelled = [scope.spell(row.hardware) for row in answered if row.model == self.rows[0].model]
        trees = [
            Section(TREE_TABLE(row, name=scope.mark(row.hardware)), self._lay_tree(row)) for row in answered
        ]  # fmt: skip
        return self._compose(
            scope.title,
            (show_under(FIGURES_TABLE, self._lay_figures(answered, FIGURES), *scope.describe_left_out()),),
            self.rows,
            answer=self._describe(LEAST, first, among=AVAILABLE if is_part else "")
            if is_choice
            else f"{self._describe(ENERGY, first)}.",
            insights=[self._describe(ENERGY, row) for row in others[:3]],
            details=(Section(MORE_TABLE, self._lay_figures(answered, MORE)), *trees),
            steps=self._fill_steps(
                STEPS[: len(spelled)],
                None,
                repeated,
                model=scope.model,
                **dict(zip(("hardware", "other"), spelled, strict=False)),
            ),
        )

    def figures(self) -> Figures:
        """Return the energy of each run by common category; empty if every run was refused."""
        if not self.tree.rows:
            return ()
        facts = "; ".join([self._describe(ENERGY, row) for row in self.rows if row.status == "ok"][:SHOWN_RUNS])
        texts = {"label": "{model} on {hardware}" if len(self.scope.models) > 1 else "{hardware}"}
        return (self._draw_figure("breakdown", self.tree, "", f"{facts}.", texts),)

    def _name(self, row: RunFigure) -> str:
        model = row.model if len(self.scope.models) > 1 else ""
        return NAME(model=model, name=self.scope.mark(row.hardware))

    def _describe(self, sentence: Template, row: RunFigure, among: str = "") -> str:
        """Return a sentence on a run, with its largest energy category and the share of this category."""
        amounts: dict[str, int] = {}
        for branch in self.tree:
            if branch.run_id == row.run_id:
                amounts[branch.common_category] = amounts.get(branch.common_category, 0) + branch.energy_fj
        most = max(amounts, key=lambda name: (amounts[name], name))
        share = amounts[most] / max(1, sum(amounts.values()))
        return sentence(row, label=self._name(row), share=share, largest=name_category(most), among=among)

    def _lay_figures(self, rows: Sequence[RunFigure], figures: Sequence[str]) -> Grid:
        """Return a grid with a row per figure and a column per run.

        Narrow terminals keep the runs with the lowest energies.
        """
        names = [self._name(row) for row in rows]
        frugal = sorted(range(len(rows)), key=lambda index: rows[index].energy_fj or 0)
        drawn = lay_beside((PER_BATCH, *names), figures, rows, keep=[names[index] for index in frugal])
        if figures is not MORE:
            return drawn
        units = [show_units(row.units_used_count, row.units_total_count, row.unit_name) for row in rows]
        return attrs.evolve(drawn, rows=(*drawn.rows, (UNITS, *units)))

    def _lay_tree(self, row: RunFigure) -> tuple[Grid, Text]:
        """Return a grid of a run's energy by category and action, and a check that the actions sum to the run."""
        branches = tuple(branch for branch in self.tree if branch.run_id == row.run_id)
        return (
            self._lay(self.tree.with_rows(branches), TREE),
            prove("actions", "the run", (sum(branch.energy_fj for branch in branches), row.energy_fj or 0, "fJ")),
        )


def compare_runs(source: Source, models: Sequence[str], settings: Settings = SETTINGS) -> BreakdownAnswer:
    """Compare models on one or several chips: the figures of each run, and the tree of its energy.

    Raises like `compare`.
    """
    settings.check_single("compare")
    with holding_scope(source, plan_runs(models, settings)) as (scope, connection, ids):
        return BreakdownAnswer(scope=scope, **fetch_tables(connection, BreakdownAnswer, run_ids=ids))
