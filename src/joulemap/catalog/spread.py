"""Spreads: coefficients and energies that a calibration of an architecture class may change, and how far."""

from __future__ import annotations

from typing import Final

from joulemap.catalog.calibration import split_actions
from joulemap.catalog.load import load_class
from joulemap.catalog.schema import ArchitectureFile
from joulemap.domain.calibration import EnergyScale
from joulemap.domain.reference import BOARD, LOSS_ACTION, STATIC_ACTION, EnergyReference
from joulemap.system.errors import CatalogueError
from joulemap.system.record import frozen


@frozen(kw_only=True)
class CoefficientSpread:
    """A coefficient that a calibration may fit."""

    name: str
    spread: float
    """Standard deviation of its natural logarithm around the value that the hardware has without a calibration."""
    meaning: str


@frozen(kw_only=True)
class ScaleSpread:
    """A factor that a calibration may put on the energies of several actions."""

    scale: EnergyScale
    """At the factor 1."""
    spread: float


@frozen(kw_only=True)
class Spreads:
    """All that a calibration of an architecture class may change."""

    coefficients: tuple[CoefficientSpread, ...]
    energy_scales: tuple[ScaleSpread, ...]
    """That of static power among them, where it may be fitted."""


UNATTRIBUTED_SPREAD: Final = 0.7
"""Of the factor on what the power limit says beyond all prices: twice or half of it is one deviation off."""


def scale_unattributed(reference: EnergyReference) -> tuple[ScaleSpread, ...]:
    """Return the one factor on what is unattributed of a hardware; none where nothing is."""
    actions = tuple(action.key for action in reference if action.component == BOARD and action.key != LOSS_ACTION)
    meaning = "what the power limit says of busy units and memories beyond their circuits"
    scale = EnergyScale(name="unattributed", factor=1.0, actions=actions, meaning=meaning)
    return (ScaleSpread(scale=scale, spread=UNATTRIBUTED_SPREAD),) if actions else ()


def load_spreads(architecture: str) -> Spreads:
    """Return what a calibration of a class may change; CatalogueError names what its file has wrong."""
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
                raise ValueError(f"energy_scales.{scale.name}: {action} is in {taken[action]} already")
            taken[action] = scale.name
        if static in scale.actions and len(scale.actions) > 1:
            raise ValueError(f"energy_scales.{scale.name}: {static} stands alone in a scale")
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
