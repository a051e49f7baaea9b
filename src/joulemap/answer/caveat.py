"""Assumptions of a trace, and operators that it could not count: of runs, and of a model alone."""

from __future__ import annotations

from typing import ClassVar

from joulemap.record import frozen


@frozen
class Caveat:
    """Something a trace had to assume, or could not count."""

    query: ClassVar[str] = "model.caveat"

    kind: str
    """`uncounted` or `assumed`."""
    text: str
    operator_count: int | None


@frozen
class ModelCaveat(Caveat):
    """The same of the trace of a model alone."""

    query: ClassVar[str] = "model.assumption"


def describe_caveat(row: Caveat) -> str:
    """Return what a trace assumed or did not count, for people."""
    if row.kind == "uncounted":
        name = "::".join(row.text.split(".")[:2])
        return f'not counted: {row.operator_count} x {name}: only bytes; @joulemap.formula("{name}") counts it'
    return f"traced: {row.text}"
