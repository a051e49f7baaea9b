"""Data files to `Hardware` records."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable
from functools import cache
from typing import Final

import attrs

from joulemap.catalog.digest import DATA, catalogue_digest
from joulemap.catalog.scale import node_factor
from joulemap.catalog.schema import (
    ActionEntry,
    ArchitectureFile,
    ChipQuantities,
    HardwareFile,
    OverrideEntry,
    PeakEntry,
    QuantityEntry,
    read_file,
)
from joulemap.domain.catalogue import Catalogue
from joulemap.domain.hardware import Hardware, MemoryLevel, Peak, PowerMode
from joulemap.domain.precision import PRECISION_BYTES
from joulemap.domain.quantity import Quantity
from joulemap.domain.reference import STATIC_ACTION, EnergyAction, EnergyReference
from joulemap.errors import CatalogueError

PEAK_TOLERANCE: Final = 0.03
"""units x operations per clock x clock must give the peak within this share."""

FJ_PER_PJ: Final = 1000.0

_UNITS: Final = {
    "process_node": "nm",
    "launch_year": "year",
    "unit_count": "1",
    "clock": "Hz",
    "clock_base": "Hz",
    "clock_boost": "Hz",
    "clock_sustained": "Hz",
    "memory_capacity": "B",
    "memory_bandwidth": "B/s",
    "tdp": "W",
    "static_power": "W",
    "idle_power": "W",
    "price_purchase": "USD",
    "price_cloud": "USD/h",
}


@cache
def load_catalogue() -> Catalogue:
    """Return the catalogue that ships with the package; CatalogueError names file, key and reason."""
    classes: dict[str, tuple[ArchitectureFile, bytes]] = {}
    for path in sorted((DATA / "architecture").glob("*.toml")):
        entry, content = read_file(path, ArchitectureFile)
        classes[entry.architecture] = (entry, content)
    hardware: dict[str, Hardware] = {}
    for path in sorted((DATA / "hardware").glob("*.toml")):
        chip, content = read_file(path, HardwareFile)
        if chip.id != path.stem:
            raise CatalogueError(f"{path.name}: id is {chip.id!r}, expected the file's name {path.stem!r}")
        if chip.architecture not in classes:
            raise CatalogueError(f"{path.name}: architecture {chip.architecture!r} has no data file")
        shared, shared_content = classes[chip.architecture]
        digest = hashlib.sha256(content + shared_content).hexdigest()[:16]
        try:
            hardware[chip.id] = resolve_hardware(chip, shared, digest)
        except (ValueError, KeyError) as error:
            raise CatalogueError(f"{path.name}: {error}") from error
    return Catalogue(hardware, catalogue_digest())


def resolve_hardware(chip: HardwareFile, shared: ArchitectureFile, digest: str) -> Hardware:
    """Return the target with SI quantities, its class's coefficients and prices at its node.

    Raises ValueError where a number contradicts another.
    """

    def resolve(key: str, entry: QuantityEntry, unit: str) -> Quantity:
        try:
            return entry.resolve(chip.sources, unit)
        except ValueError as error:
            raise ValueError(f"{key}: {error}") from error

    quantities = {
        field.name: resolve(field.name, entry, _UNITS[field.name])
        for field in attrs.fields(ChipQuantities)
        if (entry := getattr(chip.quantities, field.name)) is not None
    }
    unit_count = int(quantities["unit_count"].value)
    clock_hz = quantities["clock"].value
    return Hardware(
        id=chip.id,
        name=chip.name,
        vendor=chip.vendor,
        architecture=chip.architecture,
        deployment=tuple(chip.deployment),
        microarchitecture=chip.microarchitecture,
        unit_name=chip.unit_name,
        memory_type=chip.memory_type,
        projection=chip.projection,
        doubts=tuple(chip.doubts),
        geometry={
            name: resolve(f"geometry.{name}", entry, "bit" if entry.unit == "bit" else "1")
            for name, entry in chip.geometry.items()
        },
        memory_levels=tuple(
            MemoryLevel(
                name=level.name,
                kind=level.kind,
                per=level.per,
                capacity=resolve(f"memory_levels.{level.name}.capacity", level.capacity, "B"),
                bandwidth=resolve(f"memory_levels.{level.name}.bandwidth", level.bandwidth, "B/s")
                if level.bandwidth
                else None,
            )
            for level in chip.memory_levels
        ),
        peaks={
            precision: _resolve_peak(precision, entry, resolve, unit_count, clock_hz)
            for precision, entry in chip.peaks.items()
        },
        power_modes=tuple(
            PowerMode(
                name=mode.name,
                tdp=resolve(f"power_modes.{mode.name}.tdp", mode.tdp, "W"),
                clock=resolve(f"power_modes.{mode.name}.clock", mode.clock, "Hz"),
            )
            for mode in chip.power_modes
        ),
        coefficients=_resolve_coefficients(shared, chip),
        reference=resolve_reference(
            shared.actions,
            chip.energy_overrides,
            quantities["process_node"].value,
            quantities["static_power"],
        ),
        digest=digest,
        **quantities,
    )


def _resolve_coefficients(shared: ArchitectureFile, chip: HardwareFile) -> dict[str, Quantity]:
    resolved = {entry.name: entry for entry in shared.coefficients}
    for entry in chip.coefficients:
        if entry.name not in resolved:
            raise ValueError(f"coefficients: {shared.architecture} has no coefficient {entry.name}")
        resolved[entry.name] = entry
    return {
        name: Quantity(value=entry.value, unit=entry.unit, basis=entry.basis, source=entry.source)
        for name, entry in resolved.items()
    }


def _resolve_peak(
    precision: str,
    entry: PeakEntry,
    resolve: Callable[[str, QuantityEntry, str], Quantity],
    unit_count: int,
    clock_hz: float,
) -> Peak:
    if precision not in PRECISION_BYTES:
        raise ValueError(f"peaks.{precision}: unknown precision; known: {', '.join(PRECISION_BYTES)}")
    rate = resolve(f"peaks.{precision}.rate", entry.rate, "ops/s")
    units = entry.unit_count or unit_count
    clock = entry.clock_ghz * 1e9 if entry.clock_ghz else clock_hz
    product = units * entry.operations_per_clock * clock
    if not math.isclose(product, rate.value, rel_tol=PEAK_TOLERANCE):
        raise ValueError(
            f"peaks.{precision}: {units} units x {entry.operations_per_clock:g} operations x {clock / 1e9:g} GHz "
            f"= {product:.4g} ops/s, but the rate is {rate.value:.4g}"
        )
    return Peak(rate=rate, operations_per_clock=entry.operations_per_clock, unit_count=units, clock_hz=clock)


def resolve_reference(
    entries: Iterable[ActionEntry],
    overrides: Iterable[OverrideEntry],
    node_nm: float,
    static_power: Quantity,
) -> EnergyReference:
    """Return the class's energies per action at `node_nm`, with this target's overrides and static power."""
    better = {(override.component, override.action): override for override in overrides}
    actions: list[EnergyAction] = []
    for entry in entries:
        override = better.pop((entry.component, entry.action), None)
        factor = 1.0
        basis, source = entry.basis, entry.source
        if override is not None:
            basis, source = override.basis, override.source
        elif entry.scaling == "logic":
            if entry.node_nm is None:
                raise ValueError(f"actions.{entry.component}.{entry.action}: scaling logic needs node_nm")
            factor = node_factor(entry.node_nm, node_nm)
            if factor != 1.0:
                basis = "assumed" if basis == "assumed" else "scaled"
                source = f"{source}; x {factor:.3f} from {entry.node_nm:g} to {node_nm:g} nm"
        energy_pj = override.energy_pj if override is not None else entry.energy_pj * factor
        actions.append(
            EnergyAction(
                category=entry.category,
                component=entry.component,
                action=entry.action,
                part=entry.part,
                per=entry.per,
                energy_per_action_fj=energy_pj * FJ_PER_PJ,
                low_fj=None if override else entry.low_pj * factor * FJ_PER_PJ,
                high_fj=None if override else entry.high_pj * factor * FJ_PER_PJ,
                basis=basis,
                source=source,
                count_formula=entry.count,
            )
        )
    if better:
        raise ValueError(f"energy_overrides: no such action {', '.join('.'.join(key) for key in better)}")
    component, action = STATIC_ACTION
    actions.append(
        EnergyAction(
            category="static",
            component=component,
            action=action,
            part="static",
            per="s",
            energy_per_action_fj=static_power.value * 1e15,
            basis=static_power.basis,
            source=static_power.source,
            count_formula="latency",
        )
    )
    return EnergyReference(tuple(actions))
