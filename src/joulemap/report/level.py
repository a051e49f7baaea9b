"""The levels of an analysis; imports nothing, because `--help` lists them."""

from __future__ import annotations

from enum import StrEnum


class Level(StrEnum):
    """How far a run is taken apart."""

    CATEGORY = "category"
    ACTION = "action"
    SUBGRAPH = "subgraph"
    OPERATOR = "operator"
