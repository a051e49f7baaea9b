"""Rows of answers about calibrations."""

from __future__ import annotations

import attrs


@attrs.frozen
class RunCalibration:
    """A row of `calibration.run`: a calibration that runs used."""

    calibration: str
    hardware: str
    place: str
    """`shipped`, the file, or `given` by a program."""
    measurement_count: int
    family_count: int
    precisions: list[str]
    runtimes: list[str]
    latency_error_fraction: float | None
    """Median; None where no latency was measured."""
    energy_error_fraction: float | None
    """Median; None where no energy was measured."""
