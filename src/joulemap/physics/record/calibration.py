"""Calibrations: values that a fit to measurements puts in place of class defaults, and their accuracy.

A fitted coefficient or static power counts as measured only if measurements determine at least 80 % of it
(`DETERMINED`). Otherwise its basis is `scaled`, or its former basis if that is less certain.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Final

import attrs

from joulemap.physics.record.coefficient import check_fitted
from joulemap.physics.record.quantity import Quantity, least_sure
from joulemap.physics.record.reference import BOARD, ActionKey, EnergyAction, EnergyReference
from joulemap.system.record import frozen

PREFIX: Final = "served_time"
"""Prefix of coefficients that scale the predicted time of language-model passes, one for each inference engine and
phase.
"""


def name_pace(engine: str, *, is_prompt: bool) -> str:
    """Return the name of the time factor of an engine's prefill or decode passes, such as
    `served_time.llamacpp.decode`.
    """
    return f"{PREFIX}.{engine}.{'prompt' if is_prompt else 'decode'}"


def is_pace(name: str) -> bool:
    """Return True for the name of a time factor of language-model passes. No architecture class has such a
    coefficient.
    """
    return name.startswith(f"{PREFIX}.")


UNCALIBRATED: Final = "none"
"""Name of the calibration of an uncalibrated run."""

SPLITS: Final = ("uncalibrated", "fitted", "cross_validated")
"""Measurements that an error was computed on: all of them with class defaults, those used for fitting, or those of a
held-out model family.
"""

SCORED: Final = ("latency", "energy")

LABEL_DIGITS: Final = 8

DETERMINED: Final = 0.8
"""Minimum `data_weight` at which measurements, rather than the class default, determine a fitted value."""

MOST_FACTOR: Final = 4.0
"""Largest factor, up or down, by which energies per action may be scaled."""


def _above_zero(_instance: object, attribute: attrs.Attribute[Any], value: float) -> None:
    if not (math.isfinite(value) and value > 0.0):
        raise ValueError(f"{attribute.name} is {value!r}, expected a number above 0")


def _is_share(_instance: object, attribute: attrs.Attribute[Any], value: float) -> None:
    if not 0.0 <= value <= 1.0:
        raise ValueError(f"{attribute.name} is {value!r}, expected a number from 0 to 1")


def _is_factor(_instance: object, attribute: attrs.Attribute[Any], value: float) -> None:
    if not 1.0 / MOST_FACTOR <= value <= MOST_FACTOR:
        raise ValueError(
            f"{attribute.name} is {value!r}, expected a number from {1.0 / MOST_FACTOR:g} to {MOST_FACTOR:g}"
        )


def _are_in_range(_instance: object, attribute: attrs.Attribute[Any], value: Mapping[str, FittedValue]) -> None:
    for name, one in value.items():
        try:
            check_fitted(name, one.default, one.value)
        except ValueError as error:
            raise ValueError(f"{attribute.name}.{name}: {error}") from error


@frozen(kw_only=True)
class CalibrationEntry:
    """Calibration summary, enough to choose a calibration and to find runs that used it."""

    hardware: str
    """Id of the calibrated hardware."""
    name: str
    """File name without its extension."""
    digest: str
    """Hash of the whole file."""
    origin: str
    """Origin: `shipped`, a file path, or `given` for a record that a program built."""

    @property
    def label(self) -> str:
        """Label in runs, e.g. `h200_sxm 1a2b3c4d`."""
        return f"{self.name} {self.digest[:LABEL_DIGITS]}"


@frozen(kw_only=True)
class EnergyScale:
    """One factor for the energies of several actions."""

    name: str
    factor: float = attrs.field(validator=_is_factor)
    actions: tuple[ActionKey, ...]
    meaning: str
    """One-line description of the scaled actions."""
    data_weight: float = attrs.field(default=0.0, validator=_is_share)
    """Weight of the measurements in the factor, from 0 to 1, as in `FittedValue.data_weight`."""

    @property
    def is_determined(self) -> bool:
        """True if the measurements determine the factor."""
        return self.data_weight >= DETERMINED

    def basis(self, own: str) -> str:
        """Return the basis of an energy after scaling: `scaled` at best, because measurements give only sums of
        energies.
        """
        return "scaled" if self.is_determined else least_sure(own, "scaled")


def scale_reference(reference: EnergyReference, scales: Iterable[EnergyScale], source: str) -> EnergyReference:
    """Return a reference table in which the energies of some actions are scaled, with an adjusted basis.

    Raises ValueError for a scale of an action that the table lacks. Actions of the board are the exception: whether the
    table has them depends on the power limit.
    """
    scale_of = {key: scale for scale in scales for key in scale.actions}
    for key in scale_of:
        if key not in reference and key[0] != BOARD:
            raise ValueError(f"energy_scales: no such action {'.'.join(key)}")
    return reference.with_actions(
        _scaled(action, scale_of[action.key], source) for action in reference if action.key in scale_of
    )


def _scaled(action: EnergyAction, scale: EnergyScale, source: str) -> EnergyAction:
    """Return an action with scaled energy. Its plausible range is scaled too, or removed if measurements determine the
    factor.
    """
    is_open = not scale.is_determined
    return attrs.evolve(
        action,
        energy_per_action_fj=action.energy_per_action_fj * scale.factor,
        low_fj=action.low_fj * scale.factor if is_open and action.low_fj is not None else None,
        high_fj=action.high_fj * scale.factor if is_open and action.high_fj is not None else None,
        basis=scale.basis(action.basis),
        source=f"{action.source}. Calibration factor: {scale.factor:.5g} ({source})",
    )


@frozen(kw_only=True)
class FittedValue:
    """Coefficient or static power before and after a fit."""

    default: float = attrs.field(validator=_above_zero)
    """Value before the fit."""
    value: float = attrs.field(validator=_above_zero)
    unit: str
    data_weight: float = attrs.field(validator=_is_share)
    """Weight of the measurements in the value, from 0 (class default only) to 1. It is the part of the variance of the
    value's logarithm that the measurements remove, times their credibility.
    """

    @property
    def ratio(self) -> float:
        """Value after the fit divided by the value before."""
        return self.value / self.default

    @property
    def is_determined(self) -> bool:
        """True if the measurements determine the value."""
        return self.data_weight >= DETERMINED

    def quantity(self, own: Quantity, source: str) -> Quantity:
        """Return the fitted value as a quantity in place of `own`, the uncalibrated one."""
        is_measured = self.is_determined or own.basis == "measured"
        basis = "measured" if is_measured else least_sure(own.basis, "scaled")
        return attrs.evolve(own, value=self.value, basis=basis, source=source, evidence=None)


@frozen(kw_only=True)
class CalibrationError:
    """Prediction errors against the measurements of one group."""

    quantity: str = attrs.field(validator=attrs.validators.in_(SCORED))
    split: str = attrs.field(validator=attrs.validators.in_(SPLITS))
    runtime: str = ""
    """Runtime of the group; empty if it covers all runtimes."""
    precision: str = ""
    """Precision of the group; empty if it covers all precisions."""
    batch: int = 0
    """Batch size of the group; 0 if it covers all batch sizes."""
    family: str = ""
    """Model family of the group; empty if it covers all families."""
    row_count: int = attrs.field(validator=attrs.validators.ge(1))
    mean_error_fraction: float
    """Mean absolute relative error."""
    median_error_fraction: float
    """Median absolute relative error."""
    worst_error_fraction: float
    """Signed relative error of largest magnitude; positive if predicted too high."""
    rank_correlation: float | None = None
    """Spearman rank correlation of predicted and measured values; None with fewer than three measurements."""


@frozen(kw_only=True)
class Calibration:
    """Coefficients, energy scales and static power of one chip, fitted to its measurements."""

    name: str
    """File name without its extension."""
    hardware: str
    """Id of the calibrated hardware."""
    hardware_digest: str
    """Digest of the fitted hardware description, at the default power mode."""
    formula_version: str
    """Version of the class's formulas used in the fit."""
    data_digest: str
    """Digest of the measurements."""
    generation: str
    """Generation of hardware that may inherit the calibration, as in `Hardware.generation`."""
    row_count: int = attrs.field(validator=attrs.validators.ge(1))
    """Number of measurements."""
    latency_count: int = attrs.field(validator=attrs.validators.ge(0))
    """Measurements with a latency."""
    energy_count: int = attrs.field(validator=attrs.validators.ge(0))
    """Measurements with an energy."""
    latency_credibility: float = attrs.field(validator=_is_share)
    """Position of the coefficients between the class defaults (0) and the best fit to the measurements (1)."""
    energy_credibility: float = attrs.field(validator=_is_share)
    """Position of energy scales and static power between the class defaults (0) and the best fit (1)."""
    runtimes: tuple[str, ...]
    precisions: tuple[str, ...]
    families: tuple[str, ...]
    """Model families used in the fit."""
    coefficients: Mapping[str, FittedValue] = attrs.field(validator=_are_in_range)
    """Coefficients changed by the fit, by name; each within `fitted_range`."""
    energy_scales: tuple[EnergyScale, ...]
    static_power: FittedValue | None = None
    """Fitted static power in W."""
    errors: tuple[CalibrationError, ...]
    digest: str
    """Hash of the whole file."""

    @property
    def label(self) -> str:
        """Label in runs, e.g. `h200_sxm 1a2b3c4d`."""
        return f"{self.name} {self.digest[:LABEL_DIGITS]}"

    @property
    def source(self) -> str:
        """Text that is stated as the source of every fitted number."""
        return (
            f"calibration {self.label}: fitted to {self.row_count} measurements of {len(self.families)} families on "
            f"{self.hardware}"
        )

    def check_target(self, hardware: str, digest: str) -> None:
        """Raise ValueError if the calibration is for another chip or for another description of this one."""
        if self.hardware != hardware:
            raise ValueError(f"hardware: it is a calibration of {self.hardware}, not of {hardware}")
        if self.hardware_digest != digest:
            raise ValueError(
                f"hardware_digest: it was fitted to another description of {hardware} ({self.hardware_digest}, now "
                f"{digest}): `joulemap calibrate` it again, or use `--calibration none`"
            )

    def entry(self, origin: str = "given") -> CalibrationEntry:
        """Return the summary of this calibration."""
        return CalibrationEntry(hardware=self.hardware, name=self.name, digest=self.digest, origin=origin)
