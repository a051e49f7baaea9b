"""Sentences on a trace's assumptions and on operators that it could not count, for runs and for a model alone."""

from __future__ import annotations

from collections.abc import Collection

from joulemap.domain.workload import APPENDED
from joulemap.row.model import Caveat, ModelCaveat


def describe_caveat(row: Caveat | ModelCaveat, runtimes: Collection[str] = ()) -> str:
    """Return an assumption or gap of a trace for people; with `runtimes`, worded for those runtimes."""
    if row.kind == "uncounted":
        name = "::".join(row.text.split(".")[:2])
        return f'not counted: {row.operator_count} x {name}: only bytes; @joulemap.formula("{name}") counts it'
    what = row.text.removesuffix(APPENDED)
    if what == row.text or not runtimes or len({one == "engine" for one in runtimes}) > 1:
        return f"traced: {row.text}"
    if "engine" in runtimes:
        return f"traced: {what}, which are written beside it"
    return f"traced: {what}, all of which is copied; `--runtime engine` writes them beside it"
