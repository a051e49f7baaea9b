"""Describe a model independent of hardware, and break down a run by module."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from joulemap.answer.answer import Answer, RunAnswer
from joulemap.answer.caveat import describe_caveat
from joulemap.answer.run import prove, title_run
from joulemap.answer.scope import holding_scope
from joulemap.domain.default import SETTINGS
from joulemap.domain.settings import Settings
from joulemap.domain.table import Table
from joulemap.plan.run import plan_selected
from joulemap.plan.selection import select_one
from joulemap.plan.source import Source
from joulemap.plan.workload import find_model, holding_workload
from joulemap.present.cell import heading, show_count, show_in, show_quantity, show_share
from joulemap.present.document import Document, Grid, Section, Shown, Text, draw_columns
from joulemap.row.analyze import RunTotal
from joulemap.row.model import ListedOperator, ModelCaveat, ModelProfile, ModulePart, OperationShare, PatternShare
from joulemap.store.connection import Connection
from joulemap.store.query import fetch
from joulemap.store.workload import read_workload
from joulemap.system.errors import UsageError
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from joulemap.domain.hardware import Hardware
    from joulemap.domain.workload import Workload


@frozen(kw_only=True)
class ProfileAnswer(Answer):
    """Profile of a model: totals, operations and fusion patterns."""

    totals: Table[ModelProfile]
    """Totals of the model; one row."""
    mix: Table[OperationShare]
    """Rows by MACs, most first."""
    patterns: Table[PatternShare]
    """Rows by MACs, most first."""
    caveats: Table[ModelCaveat]

    @property
    def profile(self) -> ModelProfile:
        """Totals of the model."""
        return self.totals[0]

    def data(self) -> dict[str, Any]:
        """Return the data for machine formats: the model's own figures, and every row."""
        rows = super().data()
        return {**rows.pop("total"), **rows}

    def _describe_folded(self) -> tuple[str, ...]:
        one = self.profile
        if not one.foldable_mac_count + one.foldable_elementwise_count:
            return ()
        return (
            f"{show_quantity(float(one.foldable_mac_count), 'MAC')} and {one.foldable_elementwise_count:,} other "
            "operations depend on no input, as those of a weight's norm: a compiler folds them ahead, and only runs of "
            "eager and graph count them",
        )

    def document(self, *, limit: int = 12) -> Document:
        """Return the document with `limit` operations and patterns; csv holds the operations."""
        columns, (cells,) = self.totals.columns, self.totals.cells
        facts = Grid(
            headings=("quantity", "value"),
            rows=tuple((heading(column), show_in(column, value)) for column, value in zip(columns, cells, strict=True)),
        )
        one = self.profile
        macs, weights = show_quantity(float(one.mac_count), "MAC"), show_quantity(one.weight_bytes, "B")
        intensity = one.fused_arithmetic_intensity_ops_per_byte
        fused = "" if intensity is None else f", {intensity:.3g} operations a byte once fused"
        return Document(
            title=f"{one.name}, {one.input_spec}",
            answer=f"{macs} and {weights} of weights in {show_count(one.operator_count, 'operator')}, "
            f"{show_count(one.subgraph_count, 'subgraph')} when fused, which move "
            f"{show_quantity(one.fused_moved_bytes, 'B')}{fused}.",
            sections=(Section("By operation", _draw(self.mix, limit, "operations"), is_tight=True),),
            details=(
                Section("Figures", facts),
                Section("By fusion pattern", _draw(self.patterns, limit, "patterns"), is_tight=True),
            ),
            notes=(*self._describe_folded(), *map(describe_caveat, self.caveats)),
            steps=(f"joulemap compare {one.name}",) if one.is_shipped else (),
            data=self.data(),
            table=self.mix,
            tables=self.tables,
        )


def _draw(table: Table[Any], limit: int, noun: str) -> Grid:
    keep = ("mac_count", "mac_fraction", "moved_bytes", "moved_fraction", "saved_fraction")
    return draw_columns(table, keep=keep, limit=limit, noun=noun)


def profile(source: Source, model: str, settings: Settings = SETTINGS) -> ProfileAnswer:
    """Profile a model independent of hardware: counts, bytes, mix and patterns; raises as `compare`."""
    with _holding(source, model, settings, "model show") as (workload_id, connection):
        return ProfileAnswer(
            totals=fetch(connection, ModelProfile, workload_id=workload_id),
            mix=fetch(connection, OperationShare, workload_id=workload_id),
            patterns=fetch(connection, PatternShare, workload_id=workload_id),
            caveats=fetch(connection, ModelCaveat, workload_id=workload_id),
        )


def workload(source: Source, model: str, settings: Settings = SETTINGS) -> Workload:
    """Return the traced and fused model as records; trace it if it is not stored. Raises as `compare`."""
    with _holding(source, model, settings, "workload") as (workload_id, connection):
        return read_workload(connection, workload_id)


def operators(source: Source, model: str, settings: Settings = SETTINGS) -> Table[ListedOperator]:
    """Return the model's operators in execution order; trace it if it is not stored. Raises as `compare`."""
    with _holding(source, model, settings, "model trace") as (workload_id, connection):
        return fetch(connection, ListedOperator, workload_id=workload_id)


def _holding(
    source: Source, model: str, settings: Settings, question: str
) -> AbstractContextManager[tuple[int, Connection]]:
    settings.check_single(question)
    return holding_workload(source, find_model(model, settings, settings.batch[0] if settings.batch else None))


MOST_ROWS: Final = 30
"""Maximum modules in a table without a requested depth."""

WORK: Final[tuple[Shown[Any], ...]] = (
    ("output", lambda row: row.output_shape),
    ("weights", lambda row: show_quantity(float(row.weight_count), "") if row.weight_count else ""),
    ("MACs", lambda row: show_quantity(float(row.mac_count), "") if row.mac_count else ""),
)
"""Columns of a module that are independent of hardware."""

SPLIT: Final = (
    "a row holds all that runs inside its module; a kernel that holds operators of several modules is split among them "
    "as its ledger lines are, and a module that several hold stands under the first"
)


@frozen(kw_only=True)
class ModulesAnswer(RunAnswer):
    """One run by module; the modules' own amounts sum to the run exactly."""

    totals: Table[RunTotal]
    """Totals of the run; one row."""
    modules: Table[ModulePart]
    """Rows in tree order: the model first, each module before those inside it."""

    @property
    def total(self) -> RunTotal:
        """Totals of the whole run."""
        return self.totals[0]

    def document(self, *, depth: int | None = None, repeated: Sequence[str] = ()) -> Document:
        """Return the document with modules down to `depth`, None to fit a screen; machine formats hold all."""
        total = self.total
        drawn = draw_modules(
            self.modules.rows,
            depth,
            total.model,
            (
                *WORK,
                ("latency", lambda row: show_quantity(row.latency_s, "s")),
                ("energy", lambda row: show_quantity(row.energy_j, "J")),
                ("of energy", lambda row: show_share(row.energy_fraction)),
            ),
            keep=("energy", "of energy", "latency", "MACs", "output"),
        )
        latency = (sum(row.own_latency_fs for row in self.modules), total.latency_fs, "fs")
        energy = (sum(row.own_energy_fj for row in self.modules), total.energy_fj, "fJ")
        hardware = self.scope.spell(total.hardware)
        return self._compose(
            title_run(total, self.scope),
            (Section("By module", drawn, is_tight=True),),
            self.modules,
            answer=f"{show_quantity(total.energy_j, 'J')} and {show_quantity(total.latency_s, 's')} a batch"
            f"{_tell_largest(self.modules.rows)}.",
            details=(Section("What modules take themselves", prove("modules", "the run", energy, latency)),),
            notes=(SPLIT, *self.scope.describe()),
            steps=(["analyze", total.model, hardware, *repeated],),
        )


def _tell_largest(rows: Sequence[ModulePart]) -> str:
    """Return the innermost module with the most energy."""
    largest = max(rows, key=lambda row: row.own_energy_fj)
    share = largest.own_energy_fj / (sum(row.own_energy_fj for row in rows) or 1)
    return f", of the modules most in {largest.module}, {show_share(share)}" if largest.module else ""


def draw_modules(
    rows: Sequence[Any], depth: int | None, model: str, columns: Sequence[Shown[Any]], keep: Sequence[str]
) -> tuple[Grid | Text, ...]:
    """Return rows with `module` and `depth` as a tree below the model, and the number of deeper rows.

    Raises UsageError for a depth below 0.
    """
    if depth is not None and depth < 0:
        raise UsageError(f"depth is {depth}, expected a whole number from 0")
    deepest = max(row.depth for row in rows)
    if depth is None:
        fitting = (at for at in range(deepest, 0, -1) if sum(row.depth <= at for row in rows) <= MOST_ROWS)
        depth = next(fitting, 1)
    shown = [row for row in rows if row.depth <= depth]
    cells = tuple(
        (
            f"{'  ' * row.depth}{row.module.rpartition('.')[2]}" if row.module else model,
            *(what(row) if callable(what) else str(getattr(row, what)) for _, what in columns),
        )
        for row in shown
    )
    drawn = Grid(headings=("module", *(heading for heading, _ in columns)), rows=cells, keep=tuple(keep), is_tree=True)
    hidden = len(rows) - len(shown)
    rest = f"{show_count(hidden, 'module')} further in; depth {deepest} shows all"
    return (drawn, Text(rest)) if hidden else (drawn,)


def modules(source: Source, model: str, hardware: str | Hardware, settings: Settings = SETTINGS) -> ModulesAnswer:
    """Return the energy and time of each module on one hardware, including nested modules; raises as `analyze`."""
    settings.check_single("a table of modules")
    plan = plan_selected((model,), settings, select_one(hardware, settings))
    with holding_scope(source, plan) as (scope, connection, ids):
        return ModulesAnswer(
            scope=scope,
            totals=fetch(connection, RunTotal, run_id=ids[0]),
            modules=fetch(connection, ModulePart, run_id=ids[0]),
        )
