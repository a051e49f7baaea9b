"""Assumptions of a trace, and operators that it could not count: of runs, and of a model alone."""

from __future__ import annotations

from joulemap.row.model import Caveat, ModelCaveat


def describe_caveat(row: Caveat | ModelCaveat) -> str:
    """Return what a trace assumed or did not count, for people."""
    if row.kind == "uncounted":
        name = "::".join(row.text.split(".")[:2])
        return f'not counted: {row.operator_count} x {name}: only bytes; @joulemap.formula("{name}") counts it'
    return f"traced: {row.text}"
