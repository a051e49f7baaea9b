"""Compare whole runs: their figures side by side, and the tree of each run's energy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs

from joulemap.answer.base import RunAnswer
from joulemap.ask.answer import fetch_tables
from joulemap.ask.fact import Facts
from joulemap.ask.part import find_whole
from joulemap.ask.scope import opening_scope
from joulemap.domain.default import SETTINGS
from joulemap.domain.settings import Settings
from joulemap.domain.table import Table
from joulemap.generated.compare import EnergyBranch, RunFigure
from joulemap.plan.run import plan_runs
from joulemap.plan.source import Source
from joulemap.show.choice import MOST_WHY, describe_beyond
from joulemap.show.layout import lay_beside
from joulemap.show.page import Figures
from joulemap.show.part import describe_energies, describe_least
from joulemap.show.present.cell import show_units
from joulemap.show.present.document import Document, Grid, Section, Text, show_under
from joulemap.show.present.template import Template
from joulemap.show.run import prove
from joulemap.system.record import frozen

NAME: Final = Template("[{model} on ]{name}")
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
    facts: Facts
    """Run with the least energy, values and categories of each, and caveats, from which all sentences are made."""

    def document(self, *, repeated: Sequence[str] = ()) -> Document:
        """Return the document; csv contains the figures."""
        scope = self.scope
        answered = [row for row in self.rows if row.status == "ok"]
        spelled = [scope.spell(row.hardware) for row in answered if row.model == self.rows[0].model]
        trees = [
            Section(TREE_TABLE(row, name=self._mark(row.hardware)), self._lay_tree(row)) for row in answered
        ]  # fmt: skip
        return self._compose_facts(
            self.facts,
            (show_under("", self._lay_figures(answered, FIGURES), *self._count_left_out()),),
            self.rows,
            answer=describe_least(self.facts),
            reasons=[*describe_beyond(self.facts), *describe_energies(self.facts)][:MOST_WHY],
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
        facts = "; ".join(describe_energies(self.facts, SHOWN_RUNS))
        texts = {"label": "{model} on {hardware}" if len(self.scope.models) > 1 else "{hardware}"}
        return (self._draw_figure("breakdown", self.tree, None, f"{facts}.", texts),)

    def _name(self, row: RunFigure) -> str:
        model = row.model if len(self.scope.models) > 1 else ""
        return NAME(model=model, name=self._mark(row.hardware))

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
    with opening_scope(source, plan_runs(models, settings)) as scope:
        scope.check_evaluated()
        tables = fetch_tables(scope.connection, BreakdownAnswer, run_ids=list(scope.run_ids))
        facts = find_whole(scope, tables["rows"], tables["tree"])
        return BreakdownAnswer(scope=scope, **tables, facts=facts)
