"""A calibration: what a fit to measurements puts in place of the class's coefficients, and how well it did."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

import attrs

from joulemap.domain.quantity import Quantity
from joulemap.domain.reference import ActionKey

UNCALIBRATED: Final = "none"
"""What a run without a calibration names in its place."""

SPLITS: Final = ("uncalibrated", "fitted", "cross_validated")
"""What an error was counted on: class defaults; the rows of the fit; rows of a family that the fit had not seen."""

SCORED: Final = ("latency", "energy")

LABEL_DIGITS: Final = 8


def _above_zero(_instance: object, attribute: attrs.Attribute[Any], value: float) -> None:
    if not (math.isfinite(value) and value > 0.0):
        raise ValueError(f"{attribute.name} is {value!r}, expected a number above 0")


def calibrated_digest(digest: str, calibration_digest: str) -> str:
    """Return the digest of a hardware under a calibration."""
    import hashlib

    return hashlib.sha256(f"{digest}+{calibration_digest}".encode()).hexdigest()[:16]


@attrs.frozen(kw_only=True)
class CalibrationEntry:
    """What must be known of a calibration to choose it and to find what was evaluated with it."""

    hardware: str
    """Id of the hardware that it is for."""
    name: str
    """Of its file, without the ending."""
    digest: str
    """Of every byte of its file."""
    place: str
    """`shipped`, the file, or `given` for a record that a program made."""

    @property
    def label(self) -> str:
        """How a run names it, e.g. `h200_sxm 1a2b3c4d`."""
        return f"{self.name} {self.digest[:LABEL_DIGITS]}"


@attrs.frozen(kw_only=True)
class EnergyScale:
    """One factor for the energies of several actions."""

    name: str
    factor: float = attrs.field(validator=_above_zero)
    actions: tuple[ActionKey, ...]
    meaning: str
    """What it stands for, in a line."""


@attrs.frozen(kw_only=True)
class CalibrationError:
    """How far predictions were from the measurements of one group."""

    quantity: str = attrs.field(validator=attrs.validators.in_(SCORED))
    split: str = attrs.field(validator=attrs.validators.in_(SPLITS))
    runtime: str
    """Empty for all."""
    precision: str
    """Empty for all."""
    batch: int
    """0 for all."""
    family: str
    """Empty for all."""
    row_count: int = attrs.field(validator=attrs.validators.ge(1))
    mean_error_fraction: float
    """Of absolute relative errors."""
    median_error_fraction: float
    """Of absolute relative errors."""
    worst_error_fraction: float
    """Signed: positive is predicted too high."""
    rank_correlation: float | None = None
    """Spearman's; None below three rows."""


@attrs.frozen(kw_only=True)
class Calibration:
    """Coefficients, energy scales and static power of one hardware, fitted to measurements of it."""

    name: str
    """Of its file, without the ending."""
    hardware: str
    """Id of the hardware that it is for."""
    hardware_digest: str
    """Of the description that it was fitted to, at the default power mode."""
    formula_version: str
    """Of the class's formulas that it was fitted with."""
    data_digest: str
    """Of the measurements."""
    row_count: int = attrs.field(validator=attrs.validators.ge(1))
    """Measurements."""
    latency_count: int = attrs.field(validator=attrs.validators.ge(0))
    """Of them, with a latency."""
    energy_count: int = attrs.field(validator=attrs.validators.ge(0))
    """Of them, with an energy."""
    runtimes: tuple[str, ...]
    precisions: tuple[str, ...]
    families: tuple[str, ...]
    """Of models that the fit has seen."""
    coefficients: Mapping[str, Quantity]
    """Those that the fit moved, by name."""
    energy_scales: tuple[EnergyScale, ...]
    static_power: Quantity | None = None
    errors: tuple[CalibrationError, ...]
    digest: str
    """Of every byte of its file."""

    @property
    def label(self) -> str:
        """How a run names it, e.g. `h200_sxm 1a2b3c4d`."""
        return f"{self.name} {self.digest[:LABEL_DIGITS]}"

    @property
    def source(self) -> str:
        """What its numbers come from."""
        return f"calibration {self.label}: fitted to {self.row_count} measurements of {len(self.families)} families"

    def check_target(self, hardware: str, digest: str) -> None:
        """Raise ValueError where it is for another hardware, or for another description of this one."""
        if self.hardware != hardware:
            raise ValueError(f"hardware: it is a calibration of {self.hardware}, not of {hardware}")
        if self.hardware_digest != digest:
            raise ValueError(
                f"hardware_digest: it was fitted to another description of {hardware} ({self.hardware_digest}, now "
                f"{digest}): `joulemap calibrate` it again, or use `--calibration none`"
            )

    def entry(self, place: str = "given") -> CalibrationEntry:
        """Return what must be known to choose it."""
        return CalibrationEntry(hardware=self.hardware, name=self.name, digest=self.digest, place=place)
