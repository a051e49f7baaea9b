"""Text on a trace's assumptions and on operators that it could not count, for runs and for a model alone."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from joulemap.domain.workload import APPENDED, READS_DATA
from joulemap.present.template import Template
from joulemap.row.model import Caveat, ModelCaveat

UNCOUNTED: Final = Template(
    'operations of {row.operator_count} x {name} are not counted, only bytes; @joulemap.formula("{name}") adds them'
)
TRACED: Final = Template("traced: {assumption}")
BESIDE: Final = Template("traced: {assumption}, written in place")
COPIED: Final = Template("traced: {assumption}, which copies all rows; `--runtime engine` writes the new rows in place")

READ: Final = " read from data "
"""Words of such an assumption in workloads that were traced without places in the model's code."""
BRANCHED: Final = Template(
    "traced: {where}: Python code reads data (`if`, `while`, `.item()`), which is assumed to be 0, 1.0 or False"
)


def describe_caveat(row: Caveat | ModelCaveat, runtimes: Collection[str] = ()) -> str:
    """Return an assumption of a trace, or an operator that it could not count, as text for these runtimes."""
    if row.kind == "uncounted":
        return UNCOUNTED(row=row, name="::".join(row.text.split(".")[:2]))
    if is_read(row) and READS_DATA not in row.text:
        return BRANCHED(where=row.text.partition(": ")[0])
    assumption = row.text.removesuffix(APPENDED)
    if assumption == row.text or not runtimes or len({one == "engine" for one in runtimes}) > 1:
        return TRACED(assumption=row.text)
    return (BESIDE if "engine" in runtimes else COPIED)(assumption=assumption)


def is_read(row: Caveat | ModelCaveat) -> bool:
    """Return True for an assumption about data that Python code reads, so that a branch or loop may depend on it."""
    return row.kind != "uncounted" and (READS_DATA in row.text or READ in row.text)
