"""Chips without measurements of an engine, whose intervals are widened."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from joulemap.present.template import Template

if TYPE_CHECKING:
    from joulemap.wing.llm.row import ServedPhase

UNMEASURED: Final = Template("intervals are widened where {engine} was not measured: {chips:few}")
NO_VENDOR: Final = Template("{vendor} chips")


def describe_unmeasured(engine: str, phases: Iterable[ServedPhase]) -> str:
    """Return a sentence on the chips of `phases` on which an engine was not measured; empty if there is none."""
    chips, vendors = dict[str, None](), dict[str, None]()
    for row in phases:
        if not row.evidence:
            vendors[NO_VENDOR(row)] = None
        elif row.evidence == "vendor":
            chips[row.hardware] = None
    named = [*chips, *vendors]
    return UNMEASURED(engine=engine, chips=named) if named else ""
