"""Text on a trace's assumptions and on operators that it could not count, for runs and for a model alone."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from joulemap.domain.workload import APPENDED
from joulemap.present.template import Template
from joulemap.row.model import Caveat, ModelCaveat

UNCOUNTED: Final = Template(
    'operations of {row.operator_count} x {name} are not counted, only bytes; @joulemap.formula("{name}") adds them'
)
TRACED: Final = Template("traced: {assumption}")
BESIDE: Final = Template("traced: {assumption}, written in place")
COPIED: Final = Template("traced: {assumption}, which copies all rows; `--runtime engine` writes the new rows in place")


READ: Final = "read"
IDLE: Final = "idle"


def describe_caveats(rows: Iterable[Caveat | ModelCaveat], runtimes: Collection[str] = ()) -> list[str]:
    """Return the notes on assumptions of traces and on uncounted operators, as text for these runtimes.

    Assumptions state the places that read data and the modules that never ran.
    """
    return [describe_caveat(row, runtimes) for row in rows if row.kind not in (READ, IDLE)]


def describe_caveat(row: Caveat | ModelCaveat, runtimes: Collection[str] = ()) -> str:
    """Return an assumption of a trace, or an operator that it could not count, as text for these runtimes."""
    if row.kind == "uncounted":
        return UNCOUNTED(row=row, name="::".join(row.text.split(".")[:2]))
    assumption = row.text.removesuffix(APPENDED)
    if assumption == row.text or not runtimes or len({one == "engine" for one in runtimes}) > 1:
        return TRACED(assumption=row.text)
    return (BESIDE if "engine" in runtimes else COPIED)(assumption=assumption)
