"""A calibration: what a fit to measurements puts in place of the class's coefficients, and how well it did.

What a fit moved is measured only where the measurements determine it: where they hold most of the weight against the
value that it had before. The rest is as sure as it was.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Final

import attrs

from joulemap.domain.coefficient import check_fitted
from joulemap.domain.quantity import Quantity, least_sure
from joulemap.domain.reference import BOARD, ActionKey, EnergyAction, EnergyReference
from joulemap.system.record import frozen

UNCALIBRATED: Final = "none"
"""What a run without a calibration names in its place."""

SPLITS: Final = ("uncalibrated", "fitted", "cross_validated")
"""What an error was counted on: class defaults; the rows of the fit; rows of a family that the fit had not seen."""

SCORED: Final = ("latency", "energy")

LABEL_DIGITS: Final = 8

DETERMINED: Final = 0.8
"""Weight of the measurements from which on they determine a number."""

MOST_FACTOR: Final = 4.0
"""Factor up to which, either way, energies per action may be scaled."""


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


@frozen(kw_only=True)
class EnergyScale:
    """One factor for the energies of several actions."""

    name: str
    factor: float = attrs.field(validator=_is_factor)
    actions: tuple[ActionKey, ...]
    meaning: str
    """What it stands for, in a line."""
    data_weight: float = attrs.field(default=0.0, validator=_is_share)
    """As that of a fitted number."""

    @property
    def is_determined(self) -> bool:
        """Whether the measurements determine it."""
        return self.data_weight >= DETERMINED

    def basis(self, own: str) -> str:
        """Return the basis of a price under it that had this one: what is measured is at most a sum of prices."""
        return "scaled" if self.is_determined else least_sure(own, "scaled")


def scale_reference(reference: EnergyReference, scales: Iterable[EnergyScale], source: str) -> EnergyReference:
    """Return a reference table with the energies of some actions multiplied, each as sure as its scale makes it.

    Raises ValueError for an action that has no price; what is unattributed has one where the power limit says so.
    """
    scale_of = {key: scale for scale in scales for key in scale.actions}
    for key in scale_of:
        if key not in reference and key[0] != BOARD:
            raise ValueError(f"energy_scales: no such action {'.'.join(key)}")
    return reference.with_actions(
        _scaled(action, scale_of[action.key], source) for action in reference if action.key in scale_of
    )


def _scaled(action: EnergyAction, scale: EnergyScale, source: str) -> EnergyAction:
    """Return an action under its scale; the plausible range of one that is not determined moves with it."""
    is_open = not scale.is_determined
    return attrs.evolve(
        action,
        energy_per_action_fj=action.energy_per_action_fj * scale.factor,
        low_fj=action.low_fj * scale.factor if is_open and action.low_fj is not None else None,
        high_fj=action.high_fj * scale.factor if is_open and action.high_fj is not None else None,
        basis=scale.basis(action.basis),
        source=f"{source}; x {scale.factor:.5g}: {action.source}",
    )


@frozen(kw_only=True)
class FittedValue:
    """A coefficient, or static power, as a fit moved it."""

    default: float = attrs.field(validator=_above_zero)
    """Before."""
    value: float = attrs.field(validator=_above_zero)
    unit: str
    data_weight: float = attrs.field(validator=_is_share)
    """Part of what is known of it that the measurements said: 1 less what is left of the variance of its logarithm,
    times the credibility of the measurements."""

    @property
    def ratio(self) -> float:
        """After over before."""
        return self.value / self.default

    @property
    def is_determined(self) -> bool:
        """Whether the measurements determine it."""
        return self.data_weight >= DETERMINED

    def quantity(self, own: Quantity, source: str) -> Quantity:
        """Return it in place of the number that the hardware has without a calibration."""
        basis = "measured" if self.is_determined else least_sure(own.basis, "scaled")
        return attrs.evolve(own, value=self.value, basis=basis, source=source)


@frozen(kw_only=True)
class CalibrationError:
    """How far predictions were from the measurements of one group."""

    quantity: str = attrs.field(validator=attrs.validators.in_(SCORED))
    split: str = attrs.field(validator=attrs.validators.in_(SPLITS))
    runtime: str = ""
    """Empty for all."""
    precision: str = ""
    """Empty for all."""
    batch: int = 0
    """0 for all."""
    family: str = ""
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


@frozen(kw_only=True)
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
    generation: str
    """What hardware it may be inherited by, as `Hardware.generation`."""
    row_count: int = attrs.field(validator=attrs.validators.ge(1))
    """Measurements."""
    latency_count: int = attrs.field(validator=attrs.validators.ge(0))
    """Of them, with a latency."""
    energy_count: int = attrs.field(validator=attrs.validators.ge(0))
    """Of them, with an energy."""
    latency_credibility: float = attrs.field(validator=_is_share)
    """How far coefficients went from the class's values to those that fit the measurements best."""
    energy_credibility: float = attrs.field(validator=_is_share)
    """The same of energy scales and static power."""
    runtimes: tuple[str, ...]
    precisions: tuple[str, ...]
    families: tuple[str, ...]
    """Of models that the fit has seen."""
    coefficients: Mapping[str, FittedValue] = attrs.field(validator=_are_in_range)
    """Coefficients changed by the fit, by name; each within `fitted_range`."""
    energy_scales: tuple[EnergyScale, ...]
    static_power: FittedValue | None = None
    """In W."""
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
        return (
            f"calibration {self.label}: fitted to {self.row_count} measurements of {len(self.families)} families on "
            f"{self.hardware}"
        )

    @property
    def moved(self) -> tuple[FittedValue | EnergyScale, ...]:
        """All that the fit moved."""
        static = () if self.static_power is None else (self.static_power,)
        return (*self.coefficients.values(), *self.energy_scales, *static)

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
