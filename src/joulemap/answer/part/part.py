"""Runs divided into parts: planning, layout, and the check that the parts sum to their run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from joulemap.answer.base import RunAnswer
from joulemap.domain.settings import RunDivision
from joulemap.domain.table import Table
from joulemap.show.present.document import Grid, Text
from joulemap.show.run import prove_parts
from joulemap.system.record import frozen

if TYPE_CHECKING:
    pass

PLURALS: Final[Mapping[RunDivision, str]] = {
    "category": "categories",
    "action": "actions",
    "event": "events",
    "subgraph": "subgraphs",
    "operator": "operators",
}
FACTS: Final = "quantity | value | detail"

RUN_ROW = {"category": "run", "name": "run"} | dict.fromkeys(
    ("share_fraction", "latency_fraction", "edp_share_fraction"), 1.0
)
"""Column -> value in the row that stands for the whole run, above the rows of its parts."""


@frozen(kw_only=True)
class PartsAnswer(RunAnswer):
    """Runs divided into parts; the energies and latencies of the parts sum to their run exactly."""

    def _lay_largest(self, rows: Table[Any], columns: str, total: Any, limit: int, **cells: Any) -> Grid:
        """Return a grid of the run and of the parts with the most energy, in the order of the table."""
        largest = sorted(range(len(rows)), key=lambda index: -rows[index].energy_fj)[:limit]
        own = {name: RUN_ROW.get(name, getattr(total, name, None)) for name in rows.names}
        shown = (rows[0].replace(**own), *(rows[index] for index in sorted(largest)))
        return self._lay(rows.with_rows(shown), columns, **cells)

    def _prove(self, noun: str, rows: Iterable[Any], total: Any, whole: str = "the run") -> Text:
        """Return the check that the parts sum to the run in energy and, if parts have times, in latency."""
        return prove_parts(noun, rows, total, whole)
