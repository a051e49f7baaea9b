"""Anchor of a chip: board energies that no circuit explains, found by evaluating probe workloads."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import attrs

from joulemap.catalog.digest import ZOO
from joulemap.catalog.sheet import load_shipped
from joulemap.physics.record.calibration import Calibration, CalibrationEntry, is_pace
from joulemap.physics.record.configuration import BOARD, BUSY_SHARE
from joulemap.physics.record.quantity import Quantity
from joulemap.physics.record.target import DEFAULT_MODE
from joulemap.physics.record.workload import NO_KEY
from joulemap.plan.target import AtBoundary, AtMode, Calibrated, Target
from joulemap.plan.version import formula_version
from joulemap.system.errors import CatalogueError, UnsupportedError
from joulemap.system.package import find_class_package

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from joulemap.physics.record.hardware import Hardware
    from joulemap.physics.record.reference import EnergyAction
    from joulemap.physics.workload import WorkloadColumns

_ANCHORS: dict[tuple[str, str], tuple[EnergyAction, ...] | UnsupportedError | KeyError] = {}
"""(digest before modifiers, formula version) -> energies per action that the anchor adds or changes, or why there are
none. Probes run once per process.
"""

_LOADS: dict[tuple[str, int], WorkloadColumns] = {}
"""(model, batch) -> built-in workload; several chips were measured under the same load."""


def anchor_hardware(hardware: Hardware) -> Hardware:
    """Return hardware at its default mode, with the energies per action that its anchor adds or changes.

    The anchor is the board power that no circuit explains. Every run of a chip of a package is refused if the class of
    the package fails here. Raises CatalogueError for another chip that cannot be mapped.
    """
    if hardware.priced_at == BOARD:
        return hardware
    key = _key(hardware)
    if key not in _ANCHORS:
        find_anchors([hardware])
    actions = _ANCHORS[key]
    if isinstance(actions, KeyError):  # neither the hardware's file nor its class gives the number
        raise describe_gap(hardware.id, actions) from actions
    if isinstance(actions, UnsupportedError) and find_class_package(hardware.architecture) is not None:
        from joulemap.physics.architecture import REFUSAL

        refusal = Quantity(value=1.0, unit="1", basis="assumed", source=str(actions))
        return attrs.evolve(hardware, coefficients={**hardware.coefficients, REFUSAL: refusal})
    if isinstance(actions, Exception):
        raise actions
    return hardware.anchored(actions)


def find_anchors(hardware: Iterable[Hardware]) -> None:
    """Find the anchors of chips together, which takes a fraction of the time that each alone takes."""
    fresh = {_key(one): one for one in hardware if one.priced_at != BOARD and _key(one) not in _ANCHORS}
    if not fresh:
        return
    from joulemap.physics import anchor
    from joulemap.physics.stream import join_units

    chips = tuple(fresh.values())
    anchors = anchor.find_anchors(list(map(join_units, chips)), describe_probes(), read_loads(chips))
    _ANCHORS.update(zip(fresh, anchors, strict=True))


def _key(hardware: Hardware) -> tuple[str, str]:
    return hardware.digest, formula_version(hardware.architecture)


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
    from joulemap.domain.label import PACE_MEANING

    served = {name: one for name, one in calibration.coefficients.items() if is_pace(name)}
    kept = {name: one for name, one in calibration.coefficients.items() if name not in served}
    rest = attrs.evolve(calibration, coefficients=kept) if served else calibration
    if calibration.hardware != hardware.id:
        return hardware.inheriting(rest)
    calibrated = hardware.calibrated(rest)
    if BUSY_SHARE in rest.coefficients:  # a price of the anchor follows from it and from static power
        calibrated = anchor_hardware(calibrated)
    if not served:
        return calibrated
    plain = Quantity(value=1.0, unit="1", basis="assumed", source=calibration.source, note=PACE_MEANING)
    factors = {name: one.quantity(plain, calibration.source) for name, one in served.items()}
    return attrs.evolve(calibrated, coefficients={**calibrated.coefficients, **factors})


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


def read_loads(hardware: Sequence[Hardware]) -> list[tuple[WorkloadColumns, ...]]:
    """Return for each chip the built-in workloads of the loads under which its power was measured.

    Raises CatalogueError for a load whose model has no built-in workload.
    """
    for one in hardware:
        for load in one.loads:
            if load.model not in load_shipped():
                raise CatalogueError(f"{one.id}: loads.{load.name}.model: {load.model} is not a built-in model")
    wanted = dict.fromkeys((load.model, load.batch) for one in hardware for load in one.loads)
    if missing := [one for one in wanted if one not in _LOADS]:
        _LOADS.update(zip(missing, _read_shipped(missing), strict=True))
    return [tuple(_LOADS[load.model, load.batch] for load in one.loads) for one in hardware]


def _read_shipped(wanted: Sequence[tuple[str, int]]) -> list[WorkloadColumns]:
    """Return built-in workloads, each given as (model, batch)."""
    from joulemap.store.connection import open_in_memory, using
    from joulemap.store.workload import read_columns
    from joulemap.store.zoo import Shipped, read_shipped

    with using(open_in_memory(has_surface=False), "the shipped workloads") as scratch:
        asked = [Shipped(model, batch, workload_key=f"{model}:{batch}") for model, batch in wanted]
        return [read_columns(scratch, workload_id) for workload_id in read_shipped(scratch, ZOO, asked)]


def describe_gap(hardware: str, error: KeyError) -> CatalogueError:
    """Return the error for a chip without a number that its class needs."""
    return CatalogueError(f"{hardware} cannot be mapped: {error.args[0]}; `joulemap hardware check FILE` says more")
