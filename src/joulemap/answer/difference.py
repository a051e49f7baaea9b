"""Compare two stored runs: settings, constants, and the energy difference due to each constant."""

from __future__ import annotations

from typing import Any, Final

import attrs

from joulemap.answer.base import RunAnswer
from joulemap.answer.explain.explain import ExplainAnswer, explain_pair
from joulemap.answer.explain.pair import EXACT_UNITS, TERMS, MetricTerm
from joulemap.answer.explain.table import lay_terms
from joulemap.ask.scope import Scope
from joulemap.domain.table import Table
from joulemap.generated.run import Constant, Setting
from joulemap.plan.reader import reading
from joulemap.plan.source import Source
from joulemap.show.plain import list_facts
from joulemap.show.present.cell import show
from joulemap.show.present.document import Document, Section, Text
from joulemap.show.present.template import Template
from joulemap.show.run import prove
from joulemap.store.library import find_query
from joulemap.store.query import check_ledgers, check_runs, fetch
from joulemap.system.record import frozen

TITLE: Final = Template("Run A {a} and run B {b}")
REFUSED: Final = "A run was refused, so there is no energy to compare."
SETTINGS_TABLE: Final = "Settings that differ"
SETTING_COLUMNS: Final = "setting | A value_a | B value_b"
NO_SETTING: Final = "No setting differs."
CONSTANTS_TABLE: Final = "Constants that differ"
CONSTANT_COLUMNS: Final = (
    "constant | A value_a | B value_b | unit | ratio | energy moved moved_j | basis B basis_b | source B source_b"
)
CONSTANT_KEEP: Final = "ratio | A | B | unit | energy moved"
NO_CONSTANT: Final = "No constant differs."
MOVED: Final = Template(
    "energies per action and static power moved {moved:#} fJ in total; other constants act through counts and time"
)
DELAY_TABLE: Final = "Terms of the latency"


@frozen(kw_only=True)
class DifferenceAnswer(RunAnswer):
    """Differences between two runs, and how much each constant and action contributes to the energy difference."""

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
        data = self.explanation.data() if self.explanation else {}
        rows = {"total": data.get("total")} | {name: data.get(name, []) for name in ("effects", "terms", "subgraphs")}
        return {"delays": [], **super().data(), **rows}

    def document(self, *, limit: int = 20) -> Document:
        """Return the document with `limit` rows of each table; csv contains the constants."""
        settings = Section("", Text(NO_SETTING))
        if self.settings.rows:
            settings = Section(SETTINGS_TABLE, self._lay(self.settings, SETTING_COLUMNS))
        constants = self._lay_constants(limit)
        title = TITLE(a=self.scope.run_ids[0], b=self.scope.run_ids[-1])
        if self.explanation is None or self.delays is None:
            return Document(
                title=title,
                answer=REFUSED,
                sections=(settings,),
                details=(constants,),
                data=self.data(),
                table=self.constants,
                tables=self.tables,
            )
        total, explained = self.explanation.total, self.explanation.document(limit=limit)
        terms, exact = (row.difference_exact for row in self.delays), total.latency_difference_fs
        proof = prove("rows", self.explanation.difference, (sum(terms), exact, EXACT_UNITS["latency"]))
        delays = Section(DELAY_TABLE, (*lay_terms(self.delays, limit), *([proof] if self.delays.rows else ())))
        return attrs.evolve(
            explained,
            title=title,
            sections=(*explained.sections, settings),
            details=(constants, *explained.details, delays),
            steps=(),
            data={**self.data(), **list_facts(self.explanation.facts)},
            table=self.constants,
            tables=self.tables,
        )

    def _lay_constants(self, limit: int) -> Section:
        """Return a section on the constants that differ, with the energy difference that each causes."""
        if not self.constants.rows:
            return Section("", Text(NO_CONSTANT))
        drawn = self._lay(
            self.constants,
            CONSTANT_COLUMNS,
            limit=limit,
            noun="constants",
            keep=CONSTANT_KEEP,
            value_a=lambda row: show(row.value_a, "value"),
            value_b=lambda row: show(row.value_b, "value"),
        )
        moved = sum(row.moved_fj for row in self.constants if row.moved_fj is not None)
        return Section(CONSTANTS_TABLE, (drawn, Text(MOVED(moved=moved))))


def difference(source: Source, run_a: int, run_b: int) -> DifferenceAnswer:
    """Compare two runs: settings, constants, and the terms of their energies.

    Raises UnknownNameError for a run that is not stored, UsageError for a run without a ledger, DatabaseError.
    """
    with reading(source) as connection:
        pair = {"run_a": run_a, "run_b": run_b}
        check_runs(connection, pair)
        scope = Scope.of_runs(connection, (run_a, run_b))
        scope.read()
        is_whole = not scope.refused
        if is_whole:
            check_ledgers(connection, find_query(TERMS["latency"].query), pair)
        return DifferenceAnswer(
            scope=scope,
            settings=fetch(connection, Setting, **pair),
            constants=fetch(connection, Constant, **pair),
            explanation=explain_pair(scope, run_a, run_b, "energy") if is_whole else None,
            delays=fetch(connection, TERMS["latency"], **pair) if is_whole else None,
        )
