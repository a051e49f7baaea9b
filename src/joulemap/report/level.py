"""The levels of an analysis; imports nothing, because `--help` lists them."""

from __future__ import annotations

from enum import StrEnum


class SweepLevel(StrEnum):
    """What a row of a sweep is."""

    HARDWARE = "hardware"
    BATCH = "batch"
    WINNER = "winner"
    CROSSING = "crossing"
