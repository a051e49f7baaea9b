"""Entries of data files to `Hardware` records, and what is checked on the way."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import attrs

from joulemap.catalog.complete import complete_geometry, complete_levels, complete_quantities
from joulemap.catalog.scale import node_factor
from joulemap.catalog.schema import (
    ActionEntry,
    ArchitectureFile,
    ChipQuantities,
    HardwareFile,
    OverrideEntry,
    PeakEntry,
    PowerModeEntry,
    QuantityEntry,
)
from joulemap.domain.hardware import Hardware, MemoryLevel, Peak, PowerMode
from joulemap.domain.precision import PRECISION_BYTES
from joulemap.domain.quantity import Quantity
from joulemap.domain.reference import STATIC_ACTION, EnergyAction, EnergyReference

TOLERANCE: Final = 0.03
"""Numbers that follow from each other must agree within this share: peaks and bandwidths."""

FJ_PER_PJ: Final = 1000.0

DEPLOYMENTS: Final = ("datacenter", "edge", "embedded")

UNITS: Final[Mapping[str, str]] = {
    "process_node": "nm",
    "launch_year": "year",
    "unit_count": "1",
    "clock": "Hz",
    "clock_base": "Hz",
    "clock_boost": "Hz",
    "clock_sustained": "Hz",
    "memory_capacity": "B",
    "memory_bandwidth": "B/s",
    "memory_bus_width": "bit",
    "memory_data_rate": "T/s",
    "tdp": "W",
    "static_power": "W",
    "idle_power": "W",
    "price_purchase": "USD",
    "price_cloud": "USD/h",
}
"""Quantity -> SI unit."""

PLAUSIBLE: Final[Mapping[str, tuple[float, float]]] = {
    "Hz": (1e6, 2e10),
    "B": (64.0, 1e15),
    "B/s": (1e7, 1e16),
    "ops/s": (1e8, 1e17),
    "W": (1e-3, 2e4),
    "nm": (3.0, 65.0),
    "year": (1990.0, 2100.0),
    "bit": (1.0, 1e6),
    "T/s": (1e7, 1e12),
    "USD": (0.1, 1e7),
    "USD/h": (1e-4, 1e4),
    "1": (1e-6, 1e9),
}
"""SI unit -> the range that hardware of this world stays in; a number outside it was written in another unit."""

Resolve = Callable[[str, QuantityEntry, str], Quantity]


def resolve_hardware(chip: HardwareFile, shared: ArchitectureFile, digest: str) -> Hardware:
    """Return the target with SI quantities, its class's defaults, coefficients and prices at its node.

    Raises ValueError where a number has no place, contradicts another or cannot be.
    """

    def resolve(key: str, entry: QuantityEntry, unit: str) -> Quantity:
        try:
            quantity = entry.resolve(chip.sources, unit)
        except ValueError as error:
            raise ValueError(f"{key}: {error}") from error
        low, high = PLAUSIBLE.get(unit, (0.0, math.inf))
        if not low <= quantity.value <= high:
            raise ValueError(f"{key}: {quantity.value:g} {unit} is outside {low:g} to {high:g} {unit}: check its unit")
        return quantity

    _check_texts(chip)
    given = {
        field.name: resolve(field.name, entry, UNITS[field.name])
        for field in attrs.fields(ChipQuantities)
        if (entry := getattr(chip.quantities, field.name)) is not None
    }
    unit_count = given["unit_count"]
    if unit_count.value != int(unit_count.value):
        raise ValueError(f"unit_count: {unit_count.value:g} is not a whole number")
    peaks = {
        precision: _resolve_peak(precision, entry, resolve, int(unit_count.value), given["clock"].value)
        for precision, entry in chip.peaks.items()
    }
    if not peaks:
        raise ValueError("peaks: there is none; give at least one, e.g. [peaks.fp32]")
    _check_bandwidth(given, chip.quantities.memory_bandwidth.explanation)
    quantities: dict[str, Any] = dict(complete_quantities(given, peaks, shared.defaults))
    modes = tuple(_resolve_mode(mode, resolve, quantities) for mode in chip.power_modes)
    _check_power(quantities)
    levels = tuple(
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
    )
    geometry = {
        name: resolve(f"geometry.{name}", entry, "bit" if entry.unit == "bit" else "1")
        for name, entry in chip.geometry.items()
    }
    return Hardware(
        id=chip.id,
        name=chip.name or chip.id,
        vendor=chip.vendor or "not given",
        architecture=chip.architecture,
        deployment=tuple(chip.deployment),
        microarchitecture=chip.microarchitecture or "not given",
        unit_name=chip.unit_name or shared.unit_name,
        memory_type=chip.memory_type or "not given",
        aliases=tuple(chip.aliases),
        projection=chip.projection,
        doubts=tuple(chip.doubts),
        geometry=complete_geometry(geometry, quantities, peaks, shared.defaults),
        memory_levels=levels or complete_levels(quantities, peaks, shared),
        peaks=peaks,
        power_modes=modes,
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


def _check_texts(chip: HardwareFile) -> None:
    for deployment in chip.deployment:
        if deployment not in DEPLOYMENTS:
            raise ValueError(f"deployment: {deployment!r} is none of {', '.join(DEPLOYMENTS)}")
    for kind, names in (
        ("power_modes", [mode.name for mode in chip.power_modes]),
        ("memory_levels", [level.name for level in chip.memory_levels]),
    ):
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"{kind}: {name} stands twice")
            if not name or any(character in name for character in ".@, "):
                raise ValueError(f"{kind}: {name!r} may not be empty or hold a dot, comma, @ or space")
    if "default" in (mode.name for mode in chip.power_modes):
        raise ValueError("power_modes: default is what the chip does without a mode; choose another name")


def _check_bandwidth(quantities: Mapping[str, Quantity], explanation: str) -> None:
    width, rate = quantities.get("memory_bus_width"), quantities.get("memory_data_rate")
    if width is None or rate is None or explanation:
        return
    product = width.value * rate.value / 8.0
    bandwidth = quantities["memory_bandwidth"].value
    if not math.isclose(product, bandwidth, rel_tol=TOLERANCE):
        raise ValueError(
            f"memory_bandwidth: {width.value:g} bit x {rate.value / 1e9:g} GT/s / 8 = {product / 1e9:.4g} GB/s, but "
            f"it is {bandwidth / 1e9:.4g} GB/s; give it an explanation if that is meant"
        )


def _check_power(quantities: Mapping[str, Quantity]) -> None:
    static, tdp = quantities["static_power"].value, quantities["tdp"].value
    if static >= tdp:
        raise ValueError(f"static_power: {static:g} W is not below the tdp of {tdp:g} W")


def _resolve_mode(mode: PowerModeEntry, resolve: Resolve, quantities: Mapping[str, Quantity]) -> PowerMode:
    units = {name: UNITS[name] for name in ("tdp", "clock", "unit_count", "memory_bandwidth", "static_power")}
    fields = {
        name: resolve(f"power_modes.{mode.name}.{name}", entry, unit)
        for name, unit in units.items()
        if (entry := getattr(mode, name)) is not None
    }
    resolved = PowerMode(name=mode.name, **fields)
    if resolved.unit_count is not None and resolved.unit_count.value > quantities["unit_count"].value:
        raise ValueError(f"power_modes.{mode.name}.unit_count: more than the chip's {quantities['unit_count'].value:g}")
    static = (resolved.static_power or quantities["static_power"]).value
    if static >= resolved.tdp.value:
        raise ValueError(
            f"power_modes.{mode.name}: {static:g} W of static power is not below its tdp of {resolved.tdp.value:g} W; "
            "give the mode a static_power of its own"
        )
    return resolved


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


def _resolve_peak(precision: str, entry: PeakEntry, resolve: Resolve, unit_count: int, clock_hz: float) -> Peak:
    if precision not in PRECISION_BYTES:
        raise ValueError(f"peaks.{precision}: unknown precision; known: {', '.join(PRECISION_BYTES)}")
    rate = resolve(f"peaks.{precision}.rate", entry.rate, "ops/s")
    units = entry.unit_count or unit_count
    clock = entry.clock_ghz * 1e9 if entry.clock_ghz else clock_hz
    operations = entry.operations_per_clock or rate.value / (units * clock)
    product = units * operations * clock
    if not entry.explanation and not math.isclose(product, rate.value, rel_tol=TOLERANCE):
        raise ValueError(
            f"peaks.{precision}: {units} units x {operations:g} operations x {clock / 1e9:g} GHz "
            f"= {product:.4g} ops/s, but the rate is {rate.value:.4g}; give it an explanation if that is meant"
        )
    return Peak(
        rate=rate,
        operations_per_clock=operations,
        unit_count=units,
        clock_hz=clock,
        engine=entry.engine,
        explanation=entry.explanation,
    )


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
    return EnergyReference((*actions, static_action(static_power)))


def static_action(static_power: Quantity) -> EnergyAction:
    """Return the price of a second of leakage."""
    component, action = STATIC_ACTION
    return EnergyAction(
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
