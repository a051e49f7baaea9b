"""The levels of an analysis; imports nothing, because `--help` lists them."""

from __future__ import annotations

from enum import StrEnum


class SweepLevel(StrEnum):
    """What a row of a sweep is."""

    HARDWARE = "hardware"
    BATCH = "batch"
    WINNER = "winner"
    CROSSING = "crossing"


class CompareLevel(StrEnum):
    """How deep a comparison goes."""

    SUMMARY = "summary"
    DETAILED = "detailed"
    SUBGRAPH = "subgraph"
    OPERATOR = "operator"


class Metric(StrEnum):
    """What decides who wins, and what a difference is explained in."""

    ENERGY = "energy"
    LATENCY = "latency"
    EDP = "edp"
    MEMORY = "memory"


class Sort(StrEnum):
    """What hardware is ranked by."""

    LATENCY = "latency"
    THROUGHPUT = "throughput"
    POWER = "power"
    EFFICIENCY = "efficiency"
    ENERGY = "energy"
