"""Chips without measurements of an engine, whose intervals are widened."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from joulemap.catalog.doubt import load_doubt
from joulemap.catalog.stack import Stack
from joulemap.domain.doubt import SERVED_TIME
from joulemap.present.template import Template
from joulemap.wing.llm.capacity.case import Case

UNMEASURED: Final = Template("intervals are widened where {engine} was not measured: {chips:few}")
NO_VENDOR: Final = Template("{vendor} chips")


def describe_unmeasured(engine: Stack, cases: Iterable[Case]) -> str:
    """Return a sentence on the chips of `cases` on which an engine was not measured; empty if there is none."""
    doubt, chips, vendors = load_doubt(), dict[str, None](), dict[str, None]()
    for case in cases:
        scale = doubt.find_serving_scale(SERVED_TIME, vendor=case.target.vendor, engine=engine.name)
        if scale is None or not scale.engine:
            vendors[NO_VENDOR(case.target)] = None
        elif case.run.hardware not in scale.chips.split():
            chips[case.hardware] = None
    named = [*chips, *vendors]
    return UNMEASURED(engine=engine.label, chips=named) if named else ""
