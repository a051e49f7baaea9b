"""Text on the assumptions of a model's trace, and on operators that it could not count."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from joulemap.domain.remark import name_uncounted
from joulemap.present.template import Template
from joulemap.row.model import ModelCaveat

UNCOUNTED: Final = Template(
    'operations of {row.operator_count} x {name} are not counted, only bytes; @joulemap.formula("{name}") adds them'
)
TRACED: Final = Template("traced: {assumption}")

READ: Final = "read"
IDLE: Final = "idle"


def describe_caveats(rows: Iterable[ModelCaveat]) -> list[str]:
    """Return the notes on assumptions of a trace and on uncounted operators.

    Assumptions state the places that read data and the modules that never ran.
    """
    return [describe_caveat(row) for row in rows if row.kind not in (READ, IDLE)]


def describe_caveat(row: ModelCaveat) -> str:
    """Return an assumption of a trace, or an operator that it could not count."""
    if row.kind == "uncounted":
        return UNCOUNTED(row=row, name=name_uncounted(row.text))
    return TRACED(assumption=row.text)
