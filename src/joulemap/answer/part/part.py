"""Runs divided into parts: planning, layout, and the check that the parts sum to their run."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import attrs

from joulemap.answer.base import RunAnswer
from joulemap.answer.run import prove
from joulemap.ask.scope import Scope, opening_scope
from joulemap.domain.settings import RunDivision, Settings
from joulemap.domain.table import Table
from joulemap.plan.run import plan_selected
from joulemap.plan.selection import select_hardware, select_one
from joulemap.plan.source import Source
from joulemap.present.document import Grid, Text
from joulemap.store.run import find_subgraphs
from joulemap.system.errors import UnknownNameError, UnsupportedError
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.physics.record.hardware import Hardware

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
        listed = list(rows)
        units = {"energy_fj": "fJ"} | ({"latency_fs": "fs"} if listed and hasattr(listed[0], "latency_fs") else {})
        sums = [(sum(getattr(row, name) for row in listed), getattr(total, name), unit) for name, unit in units.items()]
        return prove(noun, whole, *sums)


def lay_across(
    headings: Sequence[str], lines: Iterable[Sequence[str]], count: int, noun: str, keep: Sequence[str]
) -> Grid:
    """Return a grid of parts with a column per run; `count` is the number of parts including those not in `lines`."""
    shown = tuple(map(tuple, lines))
    return Grid(headings=tuple(headings), rows=shown, keep=tuple(keep)).out_of(count, len(shown), noun)


@contextlib.contextmanager
def opening_parts(
    source: Source,
    question: str,
    model: str,
    hardware: str | Hardware,
    settings: Settings,
    *,
    against: Iterable[str | Hardware] = (),
    subgraph: str = "",
) -> Iterator[Scope]:
    """Yield the scope of the run on `hardware` and of the runs on `against`, in this order, with an open connection.

    Raises UsageError for a folder of several chips, UnsupportedError if the run on `hardware` was refused,
    UnknownNameError for a subgraph that no run has.
    """
    settings.check_single(question)
    select_one(hardware, settings)
    selection = select_hardware(attrs.evolve(settings, hardware=(hardware, *against)))
    with opening_scope(source, plan_selected((model,), settings, selection)) as scope:
        if scope.run_ids[0] in scope.refused:
            raise UnsupportedError(scope.refused[scope.run_ids[0]])
        check_subgraph(scope, subgraph)
        yield scope


def check_subgraph(scope: Scope, subgraph: str) -> None:
    """Raise UnknownNameError for a subgraph that no run has; an empty name means every subgraph."""
    if subgraph and subgraph not in (known := find_subgraphs(scope.connection, scope.run_ids)):
        raise UnknownNameError("subgraph", subgraph, known)
