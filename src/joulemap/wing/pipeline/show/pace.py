"""Words for the stage of a pipeline that takes most of a frame's time."""

from __future__ import annotations

from typing import Any, Final

from joulemap.show import Template
from joulemap.wing.pipeline.ask.pace import Paced

BUSIEST: Final = Template("{model} ({latency_fraction:%})")


def name_busiest(paced: Paced, row: Any) -> str:
    """Return the busiest stage of a run and its share of the time; empty if unknown."""
    one = paced.find_busiest(row)
    return "" if one is None else BUSIEST(one)
