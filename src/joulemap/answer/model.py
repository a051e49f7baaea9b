"""A model before any hardware is chosen: counts, bytes, the mix of operations, fusion patterns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from joulemap.answer.answer import Answer
from joulemap.answer.caveat import describe_caveat
from joulemap.domain.default import SETTINGS
from joulemap.domain.settings import Settings
from joulemap.domain.table import Table
from joulemap.plan.source import Source
from joulemap.plan.workload import find_model, holding_workload
from joulemap.present.cell import heading, show_count, show_in, show_quantity
from joulemap.present.document import Document, Grid, Section, Text, draw_columns, say_rest
from joulemap.row.model import ListedOperator, ModelCaveat, ModelProfile, OperationShare, PatternShare
from joulemap.store.connection import Connection
from joulemap.store.query import fetch
from joulemap.store.workload import read_workload
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from joulemap.domain.workload import Workload


@frozen(kw_only=True)
class ProfileAnswer(Answer):
    """A model as a whole, by operation, and by fusion pattern."""

    totals: Table[ModelProfile]
    """One row."""
    mix: Table[OperationShare]
    """Most MACs first."""
    patterns: Table[PatternShare]
    """Most MACs first."""
    caveats: Table[ModelCaveat]

    @property
    def profile(self) -> ModelProfile:
        """The model as a whole."""
        return self.totals[0]

    def data(self) -> dict[str, Any]:
        """Return what programs get: the model's own figures, and every row."""
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
        """Return it with `limit` operations and patterns; csv holds the operations."""
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


def _draw(table: Table[Any], limit: int, noun: str) -> tuple[Grid | Text, ...]:
    keep = ("mac_count", "mac_fraction", "moved_bytes", "moved_fraction", "saved_fraction")
    return (draw_columns(table, keep=keep, limit=limit), *say_rest(len(table), limit, noun))


def profile(source: Source, model: str, settings: Settings = SETTINGS) -> ProfileAnswer:
    """Return what a model is before any hardware is chosen: counts, bytes, mix, patterns; raises as `compare`."""
    with _holding(source, model, settings, "model show") as (workload_id, connection):
        return ProfileAnswer(
            totals=fetch(connection, ModelProfile, workload_id=workload_id),
            mix=fetch(connection, OperationShare, workload_id=workload_id),
            patterns=fetch(connection, PatternShare, workload_id=workload_id),
            caveats=fetch(connection, ModelCaveat, workload_id=workload_id),
        )


def workload(source: Source, model: str, settings: Settings = SETTINGS) -> Workload:
    """Return the traced and fused model as records, tracing it if need be; raises as `compare`."""
    with _holding(source, model, settings, "workload") as (workload_id, connection):
        return read_workload(connection, workload_id)


def operators(source: Source, model: str, settings: Settings = SETTINGS) -> Table[ListedOperator]:
    """Return the model's operators in execution order, tracing it if need be; raises as `compare`."""
    with _holding(source, model, settings, "model trace") as (workload_id, connection):
        return fetch(connection, ListedOperator, workload_id=workload_id)


def _holding(
    source: Source, model: str, settings: Settings, question: str
) -> AbstractContextManager[tuple[int, Connection]]:
    settings.check_single(question)
    return holding_workload(source, find_model(model, settings, settings.batch[0] if settings.batch else None))
