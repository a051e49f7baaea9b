"""Prior spreads of the coefficients and energies that a calibration of an architecture class may change."""

from __future__ import annotations

from typing import Final

import attrs

from joulemap.catalog.calibration import split_actions
from joulemap.catalog.chip import load_class
from joulemap.catalog.schema import ArchitectureFile
from joulemap.physics.record.calibration import EnergyScale
from joulemap.physics.record.hardware import Hardware
from joulemap.physics.record.reference import (
    CYCLE_ACTION,
    LOSS_ACTION,
    RUNNING,
    STATIC_ACTION,
    UNATTRIBUTED,
    EnergyReference,
)
from joulemap.system.errors import CatalogueError
from joulemap.system.record import frozen


@frozen(kw_only=True)
class CoefficientSpread:
    """Coefficient that a calibration may fit."""

    name: str
    spread: float
    """Standard deviation of the coefficient's natural logarithm around the uncalibrated value."""
    meaning: str


@frozen(kw_only=True)
class ScaleSpread:
    """Factor that a calibration may apply to the energies of several actions."""

    scale: EnergyScale
    """Energy scale before a fit, with the factor 1."""
    spread: float


@frozen(kw_only=True)
class Spreads:
    """Everything that a calibration of an architecture class may change."""

    coefficients: tuple[CoefficientSpread, ...]
    energy_scales: tuple[ScaleSpread, ...]
    """Energy scales, including that of static power if it may be fitted."""

    def within(self, hardware: Hardware) -> Spreads:
        """Return the coefficients and actions of this chip that a calibration may change.

        Where the power of a running board sets the energy of its clocks, one factor applies to all that follows time.
        """
        is_running = CYCLE_ACTION in hardware.reference
        scales = (
            attrs.evolve(one, scale=attrs.evolve(one.scale, actions=RUNNING))
            if is_running and one.scale.name == UNATTRIBUTED
            else one
            for one in self.energy_scales
        )
        return Spreads(
            coefficients=tuple(one for one in self.coefficients if one.name in hardware.coefficients),
            energy_scales=tuple(one for one in scales if all(key in hardware.reference for key in one.scale.actions)),
        )


UNATTRIBUTED_SPREAD: Final = 0.7
"""Spread of the factor on energy that the power limit implies beyond all actions; twice or half is one deviation."""


def scale_unattributed(reference: EnergyReference) -> tuple[ScaleSpread, ...]:
    """Return the factor on the energy that only the power limit implies, as one item; empty without such energy."""
    actions = tuple(action.key for action in reference if action.is_on_board and action.key != LOSS_ACTION)
    meaning = "power of busy units and memories that the power limit implies beyond their circuits"
    scale = EnergyScale(name=UNATTRIBUTED, factor=1.0, actions=actions, meaning=meaning)
    return (ScaleSpread(scale=scale, spread=UNATTRIBUTED_SPREAD),) if actions else ()


def load_spreads(architecture: str) -> Spreads:
    """Return the spreads of a class; CatalogueError names the fault in its file."""
    label = f"{architecture}.toml"
    shared = load_class(architecture, label)
    try:
        return _resolve(shared)
    except ValueError as error:
        raise CatalogueError(f"{label}: {error}") from error


def _resolve(shared: ArchitectureFile) -> Spreads:
    static = ".".join(STATIC_ACTION)
    priced = {f"{entry.component}.{entry.action}" for entry in shared.actions} | {static}
    taken: dict[str, str] = {}
    for scale in shared.energy_scales:
        _check_spread(f"energy_scales.{scale.name}", scale.spread)
        for action in scale.actions:
            if action not in priced:
                raise ValueError(f"energy_scales.{scale.name}: no such action {action}")
            if action in taken:
                raise ValueError(f"energy_scales.{scale.name}: {action} is already in {taken[action]}")
            taken[action] = scale.name
        if static in scale.actions and len(scale.actions) > 1:
            raise ValueError(f"energy_scales.{scale.name}: {static} must be the only action of its scale")
    for entry in shared.coefficients:
        if entry.spread is not None:
            _check_spread(f"coefficients.{entry.name}", entry.spread)
            if not entry.value > 0.0:
                raise ValueError(f"coefficients.{entry.name}: it is fitted, so it must be above 0")
            if not entry.meaning:
                raise ValueError(f"coefficients.{entry.name}: it is fitted, so it needs a meaning")
    return Spreads(
        coefficients=tuple(
            CoefficientSpread(name=entry.name, spread=entry.spread, meaning=entry.meaning)
            for entry in shared.coefficients
            if entry.spread is not None
        ),
        energy_scales=tuple(
            ScaleSpread(
                scale=EnergyScale(
                    name=scale.name, factor=1.0, actions=split_actions(scale.actions), meaning=scale.meaning
                ),
                spread=scale.spread,
            )
            for scale in shared.energy_scales
        ),
    )


def _check_spread(what: str, spread: float) -> None:
    if not 0.0 < spread < 10.0:
        raise ValueError(f"{what}: spread is {spread:g}, expected above 0 and below 10")
