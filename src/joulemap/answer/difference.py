"""Compare two stored runs: settings, constants, and the energy that each moved."""

from __future__ import annotations

from typing import Any

import attrs

from joulemap.answer.answer import RunAnswer
from joulemap.answer.explain.answer import ExplainAnswer, explain_pair
from joulemap.answer.explain.pair import EXACT_UNITS, TERMS, MetricTerm
from joulemap.answer.explain.table import draw_terms, prove_terms
from joulemap.answer.scope import find_stored_scope
from joulemap.domain.table import Table
from joulemap.plan.source import Source, reading
from joulemap.present.cell import show
from joulemap.present.document import Block, Document, Section, Text, grid
from joulemap.row.run import Constant, Setting
from joulemap.store.query import check_runs, fetch
from joulemap.system.record import frozen


@frozen(kw_only=True)
class DifferenceAnswer(RunAnswer):
    """Differences between two runs, and the energy that each action moved."""

    settings: Table[Setting]
    constants: Table[Constant]
    explanation: ExplainAnswer | None
    """Explanation of the energy difference; None if a run was refused."""
    delays: Table[MetricTerm] | None
    """Terms of the latency difference, largest first; None if a run was refused."""

    @property
    def tables(self) -> tuple[Table[Any], ...]:
        """Query results behind the answer, with their SQL."""
        explained = self.explanation.own_tables.values() if self.explanation else ()
        return (*self.own_tables.values(), *explained)

    def data(self) -> dict[str, Any]:
        """Return the data for machine formats."""
        found = self.explanation.data() if self.explanation else {}
        rows = {"total": found.get("total")} | {name: found.get(name, []) for name in ("effects", "terms", "subgraphs")}
        return {"delays": [], **super().data(), **rows}

    def document(self, *, limit: int = 20) -> Document:
        """Return the document with `limit` rows of each table; csv holds the constants."""
        settings = grid(self.settings, (("setting", "setting"), ("A", "value_a"), ("B", "value_b")))
        sections = [Section("Settings that differ", settings) if self.settings.rows else _say("No setting differs")]
        constants = (
            Section("Constants that differ", self._constants(limit))
            if self.constants.rows
            else _say("No constant differs")
        )
        whole = Document(
            title=f"Run A {self.scope.run_ids[0]} and run B {self.scope.run_ids[-1]}",
            sections=(*sections, _say("A run was refused: there is no energy to compare")),
            details=(constants,),
            data=self.data(),
            table=self.constants,
            tables=self.tables,
        )
        if self.explanation is None or self.delays is None:
            return whole
        total, explained = self.explanation.total, self.explanation.document(limit=limit)
        proof = prove_terms(
            (row.difference_exact for row in self.delays), total.latency_difference_fs, EXACT_UNITS["latency"]
        )
        delays = Section("What moved the latency", (*draw_terms(self.delays, limit), proof))
        return attrs.evolve(
            whole,
            answer=explained.answer,
            sections=(*sections, *explained.sections),
            insights=explained.insights,
            sure=explained.sure,
            details=(constants, *explained.details, delays),
            notes=explained.notes,
        )

    def _constants(self, limit: int) -> tuple[Block, ...]:
        drawn = grid(
            self.constants,
            (
                ("constant", "constant"),
                ("A", lambda row: show(row.value_a, "value")),
                ("B", lambda row: show(row.value_b, "value")),
                ("unit", "unit"),
                ("ratio", "ratio"),
                ("moved", "moved_j"),
                ("basis B", "basis_b"),
                ("source B", "source_b"),
            ),
            limit=limit,
            noun="constants",
            keep=("ratio", "A", "B", "unit", "moved"),
        )
        moved = sum(row.moved_fj for row in self.constants if row.moved_fj is not None)
        return (
            drawn,
            Text(
                f"prices moved {moved:,} fJ in all, the effects price and static power; "
                "what other constants moved is in the counts and the time"
            ),
        )


def difference(source: Source, run_a: int, run_b: int) -> DifferenceAnswer:
    """Compare two runs: settings, constants, and the terms of their energies.

    Raises UnknownNameError for a run that is not stored, DatabaseError.
    """
    with reading(source) as connection:
        pair = {"run_a": run_a, "run_b": run_b}
        check_runs(connection, pair)
        scope = find_stored_scope(connection, (run_a, run_b))
        is_whole = not scope.refused
        return DifferenceAnswer(
            scope=scope,
            settings=fetch(connection, Setting, **pair),
            constants=fetch(connection, Constant, **pair),
            explanation=explain_pair(connection, scope, run_a, run_b, "energy") if is_whole else None,
            delays=fetch(connection, TERMS["latency"], **pair) if is_whole else None,
        )


def _say(sentence: str) -> Section:
    return Section("", Text(sentence))
