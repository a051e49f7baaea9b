"""Anchor of a chip: board energies that no circuit explains, found by evaluating probe workloads."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import attrs

from joulemap.catalog.digest import ZOO
from joulemap.catalog.sheet import load_shipped
from joulemap.physics.record.calibration import Calibration
from joulemap.physics.record.configuration import BOARD
from joulemap.physics.record.target import DEFAULT_MODE
from joulemap.physics.record.workload import NO_KEY
from joulemap.plan.target import AtBoundary, AtMode, Calibrated, Target
from joulemap.plan.version import formula_version
from joulemap.system.errors import CatalogueError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from joulemap.physics.record.calibration import CalibrationEntry
    from joulemap.physics.record.hardware import Hardware
    from joulemap.physics.record.reference import EnergyAction
    from joulemap.physics.workload import WorkloadColumns

_ANCHORS: dict[tuple[str, str], tuple[EnergyAction, ...]] = {}
"""(digest before modifiers, formula version) -> energies per action that the anchor adds or changes. Probes run once
per process.
"""


def anchor_hardware(hardware: Hardware) -> Hardware:
    """Return hardware at its default mode, with the energies per action that its anchor adds or changes.

    The anchor is the board power that no circuit explains. Raises CatalogueError for a chip that cannot be mapped.
    """
    if hardware.priced_at == BOARD:
        return hardware
    key = hardware.digest, formula_version(hardware.architecture)
    if key not in _ANCHORS:
        from joulemap.physics.anchor import find_anchor
        from joulemap.physics.stream import join_units

        try:
            _ANCHORS[key] = find_anchor(join_units(hardware), describe_probes(), read_loads(hardware))
        except KeyError as error:  # neither the hardware's file nor its class gives the number
            raise describe_gap(hardware.id, error) from error
    return hardware.anchored(_ANCHORS[key])


@cache
def describe_probes() -> Mapping[str, WorkloadColumns]:
    """Return operator name -> single-operator workload that an anchor evaluates."""
    from joulemap.domain.operator.name import find_operator
    from joulemap.physics.anchor import PROBES
    from joulemap.physics.workload import columns_of
    from joulemap.trace.single import describe

    operators = {name: find_operator(name) for name in PROBES}
    return {name: columns_of(describe(one, 1, NO_KEY)) for name, one in operators.items() if one is not None}


def apply_calibration(hardware: Hardware, calibration: Calibration) -> Hardware:
    """Return a chip under its own calibration or its generation's; ValueError if the calibration does not fit.

    Factors on the time of an engine's passes belong to the machine that was measured and are not inherited.
    """
    from joulemap.physics.record.calibration import MEANING, is_pace
    from joulemap.physics.record.quantity import Quantity

    served = {name: one for name, one in calibration.coefficients.items() if is_pace(name)}
    kept = {name: one for name, one in calibration.coefficients.items() if name not in served}
    rest = attrs.evolve(calibration, coefficients=kept) if served else calibration
    if calibration.hardware != hardware.id:
        return hardware.inheriting(rest)
    found = hardware.calibrated(rest)
    if not served:
        return found
    plain = Quantity(value=1.0, unit="1", basis="assumed", source=calibration.source, note=MEANING)
    factors = {name: one.quantity(plain, calibration.source) for name, one in served.items()}
    return attrs.evolve(found, coefficients={**found.coefficients, **factors})


def default_target(described: Hardware, calibration: CalibrationEntry | Calibration | None) -> Target:
    """Return the default target of a chip: its default mode and the boundary of its board.

    A calibration entry suffices for the digest; `bind` needs the calibration itself. `bind` raises CatalogueError for a
    chip that cannot be mapped, ValueError for a calibration that does not fit.
    """

    def fit(hardware: Hardware) -> Hardware:
        anchored = anchor_hardware(hardware)
        return apply_calibration(anchored, calibration) if isinstance(calibration, Calibration) else anchored

    fitted = Calibrated(digest=calibration.digest if calibration else "", fit=fit)
    return Target(described, (fitted, AtMode(DEFAULT_MODE), AtBoundary.of(described, BOARD)))


def read_loads(hardware: Hardware) -> tuple[WorkloadColumns, ...]:
    """Return the built-in workload of each load under which the power of a chip was measured.

    Raises CatalogueError for a load whose model has no built-in workload.
    """
    for load in hardware.loads:
        if load.model not in load_shipped():
            raise CatalogueError(f"{hardware.id}: loads.{load.name}.model: {load.model} is not a built-in model")
    return tuple(_read_load(load.model, load.batch) for load in hardware.loads)


@cache
def _read_load(model: str, batch: int) -> WorkloadColumns:
    """Return a built-in workload; cached because several chips were measured under the same load."""
    from joulemap.store.connection import open_in_memory, using
    from joulemap.store.workload import read_columns
    from joulemap.store.zoo import Shipped, read_shipped

    with using(open_in_memory(has_surface=False), "the shipped workloads") as scratch:
        (workload_id,) = read_shipped(scratch, ZOO, [Shipped(model, batch, workload_key=f"{model}:{batch}")])
        return read_columns(scratch, workload_id)


def describe_gap(hardware: str, error: KeyError) -> CatalogueError:
    """Return the error for a chip without a number that its class needs."""
    return CatalogueError(f"{hardware} cannot be mapped: {error.args[0]}; `joulemap hardware check FILE` says more")
