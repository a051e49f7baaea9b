"""The levels of an analysis; imports nothing, because `--help` lists them."""

from __future__ import annotations

from enum import StrEnum


class Level(StrEnum):
    """How far a run is taken apart."""

    CATEGORY = "category"
    ACTION = "action"
    SUBGRAPH = "subgraph"
    OPERATOR = "operator"


class EdpLevel(StrEnum):
    """What shares an energy-delay product."""

    SUBGRAPH = "subgraph"
    OPERATOR = "operator"


class SweepLevel(StrEnum):
    """What a row of a sweep is."""

    HARDWARE = "hardware"
    BATCH = "batch"
    WINNER = "winner"
    CROSSING = "crossing"


class Metric(StrEnum):
    """What decides who wins, and what a difference is explained in."""

    ENERGY = "energy"
    LATENCY = "latency"
    EDP = "edp"
    MEMORY = "memory"


class ExplainLevel(StrEnum):
    """What a row of an explanation is."""

    TERM = "term"
    CATEGORY = "category"
    SUBGRAPH = "subgraph"
