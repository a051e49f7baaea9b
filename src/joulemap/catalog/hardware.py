"""Resolve entries of data files to `Hardware` records, with validation."""

from __future__ import annotations

import difflib
import itertools
import math
import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final

from joulemap.catalog.default import complete_geometry, complete_levels, complete_quantities
from joulemap.catalog.digest import DATA
from joulemap.catalog.link import LANE_RATES, find_link_default, find_ports, read_links
from joulemap.catalog.parser import read_file
from joulemap.catalog.reference import resolve_reference
from joulemap.catalog.schema import (
    ActionEntry,
    ArchitectureFile,
    CompilerFile,
    HardwareFile,
    LinkEntry,
    LoadEntry,
    PeakEntry,
    PowerModeEntry,
    QuantityEntry,
    Resolve,
    resolve_fields,
)
from joulemap.catalog.sheet import load_shipped
from joulemap.physics.record.coefficient import check_coefficient
from joulemap.physics.record.compiler import CUTS, UNLISTED, Compiler
from joulemap.physics.record.configuration import BOARD, BUSY_SHARE, CHIP, LIMIT_SHARE, PRECISION_BYTES
from joulemap.physics.record.constant import is_count
from joulemap.physics.record.hardware import (
    LEVEL_KINDS,
    LEVEL_PLACES,
    LINK_ENDS,
    LINK_TOPOLOGIES,
    LOAD_COVERS,
    TOLERANCE,
    Hardware,
    Link,
    MeasuredLoad,
    MemoryLevel,
    Peak,
    PowerMode,
    derive_peaks,
)
from joulemap.physics.record.operating_point import read_point
from joulemap.physics.record.product import FP32, PASS, PASSES
from joulemap.physics.record.quantity import Quantity
from joulemap.physics.record.runtime import RUNTIME_NAMES
from joulemap.system.units import SI_SCALE

LEAST_SHARE: Final = Quantity(
    value=0.6,
    unit="1",
    basis="assumed",
    source="rule for boards that are sold: a large product and a copy draw at least this share of the power limit; "
    "measured on one H200 of 700 W: products 653 to 714 W, a copy 603 W",
)
"""Smallest share of the power limit drawn under load (`limit_share`), for chips whose file has `works_at_limit`."""

OPERATIONS_PER_ELEMENT: Final = 8.0
"""Maximum operations per array element and clock: one MAC at the array's own precision, four at a quarter of the width.
"""

ENCLOSED: Final = ("cars", "phones")
"""Products inside which nobody buys a chip to compute with; a laptop or another computer is bought for that."""

DEPLOYMENTS: Final = ("datacenter", "edge", "embedded")

PLAUSIBLE: Final[Mapping[str, tuple[float, float]]] = {
    "Hz": (1e6, 1e10),
    "B": (64.0, 1e15),
    "B/s": (1e7, 1e16),
    "ops/s": (1e7, 1e17),
    "W": (1e-7, 2e4),
    "nm": (3.0, 180.0),
    "year": (1990.0, 2100.0),
    "bit": (1.0, 1e6),
    "T/s": (1e7, 1e12),
    "USD": (0.1, 1e7),
    "USD/h": (1e-4, 1e4),
    "1": (1e-6, 1e9),
    "memory_capacity": (1e5, 1e15),
    "memory_levels.capacity": (64.0, 1e11),
    "links.bandwidth": (1e6, 1e14),
    "links.latency": (1e-8, 1e-3),
    "links.energy": (1e-13, 1e-8),
    "unit_count": (1.0, 1e6),
    "host_share": (0.0, 100.0),
}
"""SI unit or quantity -> plausible range of existing hardware; a value outside indicates a wrong unit.

The range of a quantity is narrower than that of its unit.
"""

MOST_OPS_PER_J: Final = 200e12
"""Maximum operations per joule at the power limit. Source: assumed, about four times the highest int8 rate per watt in
the catalogue, the 55 TOPS/W of the projected kpu_t768.
"""

DRAM: Final = re.compile(r"DDR|HBM")
LEAST_DRAM_BYTES: Final = 8e6
"""Types of memory that are DRAM, and minimum capacity of one die. Source: 64 Mbit, the smallest SDRAM that is sold
(recalled).
"""

LINK_RATES: Final[Mapping[str, Mapping[str, float]]] = {
    "nvlink": {"1": 20e9, "2": 25e9, "3": 25e9, "4": 25e9, "5": 50e9}
}
"""Link -> generation -> bytes per second of a link in one direction. Source: NVIDIA whitepapers of P100, V100, A100 and
H100, and the Blackwell Architecture Technical Brief."""


def resolve_hardware(chip: HardwareFile, shared: ArchitectureFile) -> Hardware:
    """Resolve a chip to SI quantities, with defaults, coefficients and energies of its class at its node.

    Raises ValueError for a number that is unknown, implausible or in contradiction with another.
    """

    def resolve(key: str, entry: QuantityEntry, unit: str) -> Quantity:
        try:
            quantity = entry.resolve(chip.sources, unit)
        except ValueError as error:
            raise ValueError(f"{key}: {error}") from error
        name = re.sub(r"^(memory_levels|links)\..*\.", r"\1.", key)
        low, high = PLAUSIBLE.get(name, PLAUSIBLE.get(unit, (0.0, math.inf)))
        if not low <= quantity.value <= high:
            shown = "" if unit == "1" else f" {unit}"
            raise ValueError(f"{key}: {quantity.value:g}{shown} is outside {low:g} to {high:g}{shown}: check its unit")
        return quantity

    _check_texts(chip)
    stated = resolve_fields(chip.quantities, "", resolve)
    given: dict[str, Quantity] = {name: one for name, one in stated.items() if one is not None}
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
    _check_limits(given)
    _check_scale(given, peaks, chip.memory_type)
    _check_order(given, "clock_boost" if chip.architecture == "gpu" and "clock_boost" in given else "clock")
    modes = tuple(_resolve_mode(mode, resolve, quantities) for mode in chip.power_modes)
    _check_levels(chip, shared)
    _check_geometry(chip, shared)
    levels = tuple(
        MemoryLevel(**resolve_fields(level, f"memory_levels.{level.name}.", resolve)) for level in chip.memory_levels
    )
    geometry = {
        name: resolve(f"geometry.{name}", entry, "bit" if entry.unit == "bit" else "1")
        for name, entry in chip.geometry.items()
    }
    coefficients = {**_resolve_coefficients(shared, chip), **_resolve_limit(shared, chip)}
    links = tuple(_resolve_link(link, resolve) for link in chip.links)
    if not any(one.connects == "guest" for one in links):
        links += find_ports(chip.id, chip.microarchitecture)
    for name, number in geometry.items():
        if is_count(name) and number.value != int(number.value):
            raise ValueError(f"geometry.{name}: {number.value:g} is not a whole number")
    whole = complete_geometry(geometry, quantities, peaks, shared.defaults)
    _check_array(peaks, geometry)
    _check_capacities(quantities, levels)
    levels = levels or complete_levels(quantities, peaks, shared)
    _check_passes(peaks, coefficients)
    peaks = dict(derive_peaks(peaks, coefficients))
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
        unavailable=chip.unavailable
        or (f"sold only inside {chip.sold_in}: no board of it can be ordered" if chip.sold_in in ENCLOSED else ""),
        sold_in=chip.sold_in,
        doubts=tuple(chip.doubts),
        needs_host=chip.needs_host,
        compiler=_resolve_compiler(chip, shared),
        geometry=whole,
        memory_levels=levels,
        peaks=peaks,
        links=links,
        loads=tuple(_resolve_load(load, resolve, peaks) for load in chip.loads),
        power_modes=modes,
        coefficients=coefficients,
        reference=resolve_reference(
            _choose_actions(shared, levels),
            chip.energy_overrides,
            node_nm=quantities["process_node"].value,
            unit_count=quantities["unit_count"].value,
            chip_energy=coefficients.get("chip_energy"),
            static_power=quantities["static_power"],
            static_range=_find_static_range(chip, shared, quantities),
            regulator_loss=coefficients["regulator_loss"],
            links=links,
            priced_at=shared.priced_at,
        ),
        priced_at=CHIP if BUSY_SHARE in coefficients else shared.priced_at,
        digest="",
        **quantities,
    ).with_own_digest()


def _find_static_range(
    chip: HardwareFile, shared: ArchitectureFile, quantities: Mapping[str, Quantity]
) -> tuple[float, float] | None:
    """Return the lowest and highest plausible static power in watts; None if it is known or its class has no range."""
    static, tdp = quantities["static_power"], quantities["tdp"].value
    if static.basis in ("measured", "published"):
        return None
    ranges = (one for one in shared.static_ranges if (chip.memory_type or "").startswith(one.memory))
    return next(((min(one.low * tdp, static.value), max(one.high * tdp, static.value)) for one in ranges), None)


def _choose_actions(shared: ArchitectureFile, levels: Sequence[MemoryLevel]) -> list[ActionEntry]:
    """Return the actions of a class that apply to a chip with these memory levels."""
    names = {level.name for level in levels}
    of_level = [entry for entry in shared.actions if entry.level in names]
    return of_level or [entry for entry in shared.actions if not entry.level]


def _resolve_compiler(chip: HardwareFile, shared: ArchitectureFile) -> Compiler | None:
    entry = chip.compiler
    if entry is None:
        return None if shared.operators == "any" else UNLISTED
    if entry.list:
        known = read_compiler(entry.list)
        return Compiler(
            name=f"{known.name} {known.version}",
            cut=known.cut,
            operators=tuple(known.operators),
            host=entry.host,
            basis=known.basis,
            source=known.source,
        )
    _check_choice("compiler.cut", entry.cut, CUTS)
    if entry.source not in chip.sources:
        raise ValueError(f"compiler.source: {entry.source!r} is not in [sources]")
    return Compiler(
        name=entry.name,
        cut=entry.cut,
        operators=tuple(entry.operators),
        host=entry.host,
        basis=entry.basis,
        source=chip.sources[entry.source],
    )


def list_compilers() -> list[str]:
    """Return the names of the known compilers."""
    return sorted(path.stem for path in (DATA / "compiler").glob("*.toml"))


@cache
def read_compiler(name: str) -> CompilerFile:
    """Return the operators of a known compiler; ValueError for an unknown name."""
    _check_choice(f"compiler.list: {name!r}", name, list_compilers())
    return read_file(DATA / "compiler" / f"{name}.toml", CompilerFile)[0]


def _check_choice(what: str, value: str, known: Sequence[str]) -> None:
    """Raise ValueError for an unknown value; the message suggests the nearest known one."""
    if value in known:
        return
    near = difflib.get_close_matches(value, known, n=1)
    fault = what if value in what else f"{what}: {value!r}"
    raise ValueError(f"{fault}, " + (f"did you mean {near[0]}?" if near else f"known: {', '.join(known)}"))


def _check_passes(peaks: Mapping[str, Peak], coefficients: Mapping[str, Quantity]) -> None:
    """Raise ValueError for a stated peak that follows from another one and a number of passes."""
    if PASSES in coefficients and FP32 in peaks:
        raise ValueError(
            f"peaks.{FP32}: products at {FP32} take {PASS} passes through the arrays, so this peak is that at {PASS} / "
            f"{PASSES}; leave it out and give peaks.{PASS}"
        )


def _check_array(peaks: Mapping[str, Peak], geometry: Mapping[str, Quantity]) -> None:
    """Raise ValueError for a peak that the stated array of processing elements cannot reach.

    An element makes one MAC of two operations per clock, or up to four MACs of low-precision operands.
    """
    if "array_rows" not in geometry or "array_columns" not in geometry:
        return
    rows, columns = geometry["array_rows"].value, geometry["array_columns"].value
    for precision, peak in peaks.items():
        if peak.operations_per_clock > OPERATIONS_PER_ELEMENT * rows * columns and not peak.explanation:
            raise ValueError(
                f"peaks.{precision}: {peak.operations_per_clock:.6g} operations per clock and unit are more than "
                f"{OPERATIONS_PER_ELEMENT:g} for each of the {rows:g} x {columns:g} elements of its array; add an "
                "explanation if this is intended"
            )


def _check_texts(chip: HardwareFile) -> None:
    for deployment in chip.deployment:
        _check_choice("deployment", deployment, DEPLOYMENTS)
    for alias in chip.aliases:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9 ._+-]*", alias):
            raise ValueError(f"aliases: {alias!r}, expected letters and digits, with spaces or . _ + - after the first")
    for kind, names in (
        ("power_modes", [mode.name for mode in chip.power_modes]),
        ("memory_levels", [level.name for level in chip.memory_levels]),
        ("links", [link.name for link in chip.links]),
        ("loads", [load.name for load in chip.loads]),
    ):
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"{kind}: {name} is listed twice")
            if not name or any(character in name for character in ".@, "):
                raise ValueError(f"{kind}: {name!r} may not be empty or hold a dot, comma, @ or space")
    if "default" in (mode.name for mode in chip.power_modes):
        raise ValueError("power_modes: `default` names the chip without a power mode; choose another name")


def _check_levels(chip: HardwareFile, shared: ArchitectureFile) -> None:
    """Raise ValueError for an unknown kind or place of a memory level, or for a missing level."""
    for level in chip.memory_levels:
        _check_choice(f"memory_levels.{level.name}.kind", level.kind, LEVEL_KINDS)
        _check_choice(f"memory_levels.{level.name}.per", level.per, LEVEL_PLACES)
    names = [level.name for level in chip.memory_levels]
    missing = [name for name in shared.needed_levels if names and name not in names]
    if missing:
        raise ValueError(
            f"memory_levels: {' and '.join(missing)} missing among {', '.join(names)}; "
            f"chips of the class {chip.architecture} need {', '.join(shared.needed_levels)}"
        )


def _check_geometry(chip: HardwareFile, shared: ArchitectureFile) -> None:
    """Raise ValueError for an unknown name in `[geometry]`, or if a name is given without another that it requires."""
    for name in chip.geometry:
        _check_choice(f"geometry: unknown key {name}", name, shared.geometry)
    for stem, needed in shared.geometry_needs:
        needing = next((name for name in chip.geometry if name.startswith(stem)), None)
        if needing is not None and needed not in chip.geometry:
            raise ValueError(f"geometry: {needed} is missing, as {needing} is given")


def _check_bandwidth(quantities: Mapping[str, Quantity], explanation: str) -> None:
    width, rate = quantities.get("memory_bus_width"), quantities.get("memory_data_rate")
    if width is None or rate is None or explanation:
        return
    product = width.value * rate.value / 8.0
    bandwidth = quantities["memory_bandwidth"].value
    if not math.isclose(product, bandwidth, rel_tol=TOLERANCE):
        raise ValueError(
            f"memory_bandwidth: {width.value:g} bit x {rate.value / 1e9:g} GT/s / 8 = {product / 1e9:.4g} GB/s, but "
            f"it is {bandwidth / 1e9:.4g} GB/s; add an explanation if this is intended"
        )


def _check_limits(quantities: Mapping[str, Quantity]) -> None:
    tdp = quantities["tdp"].value
    lowest, highest = quantities.get("power_limit_lowest"), quantities.get("power_limit_highest")
    if highest is not None and lowest is None:
        raise ValueError("power_limit_lowest: missing, as power_limit_highest is given")
    if lowest is not None and lowest.value > tdp:
        raise ValueError(f"power_limit_lowest: {lowest.value:g} W is above the tdp of {tdp:g} W")
    if highest is not None and highest.value < tdp:
        raise ValueError(f"power_limit_highest: {highest.value:g} W is below the tdp of {tdp:g} W")


def _check_scale(quantities: Mapping[str, Quantity], peaks: Mapping[str, Peak], memory_type: str) -> None:
    """Raise ValueError for rates that the power limit cannot feed, or DRAM that is smaller than a die."""
    tdp, memory = quantities["tdp"].value, quantities["memory_capacity"].value
    for precision, peak in peaks.items():
        if peak.rate.value > MOST_OPS_PER_J * tdp and not peak.explanation:
            raise ValueError(
                f"peaks.{precision}: {peak.rate.value / 1e12:g} TOPS at a tdp of {tdp:g} W is "
                f"{peak.rate.value / tdp / 1e12:g} TOPS/W, above {MOST_OPS_PER_J / 1e12:g}: check both units"
            )
    if DRAM.search(memory_type) and memory < LEAST_DRAM_BYTES:
        raise ValueError(
            f"memory_capacity: {memory / 1e6:g} MB of {memory_type} is below the {LEAST_DRAM_BYTES / 1e6:g} MB of a "
            "DRAM die: check its unit"
        )


def _check_order(quantities: Mapping[str, Quantity], full: str) -> None:
    """Raise ValueError if a clock is above the highest of its board or die, or idle power above active idle."""
    for low, high in ((full, "clock_die"), ("clock_sustained", full), ("idle_power", "static_power")):
        least, most = quantities.get(low), quantities.get(high)
        if least is not None and most is not None and least.value > most.value:
            raise ValueError(f"{low}: {least.value:g} {least.unit} is above {high} of {most.value:g} {most.unit}")


def _check_capacities(quantities: Mapping[str, Quantity], levels: Sequence[MemoryLevel]) -> None:
    """Raise ValueError for on-chip memory that is larger than the memory behind it."""
    units, memory = quantities["unit_count"].value, quantities["memory_capacity"].value
    for level in levels:
        capacity = level.capacity.value * (units if level.per == "unit" else 1.0)
        if capacity > memory:
            raise ValueError(
                f"memory_levels.{level.name}.capacity: {capacity / 1e6:g} MB in all is above the memory_capacity of "
                f"{memory / 1e6:g} MB"
            )
    for near, far in itertools.pairwise(levels):
        if near.per == "unit" and far.per == "chip" and near.capacity.value > far.capacity.value:
            raise ValueError(
                f"memory_levels.{far.name}.capacity: {far.capacity.value / 1024:g} KiB of the chip is below the "
                f"{near.capacity.value / 1024:g} KiB of one unit's {near.name}"
            )


def _resolve_mode(mode: PowerModeEntry, resolve: Resolve, quantities: Mapping[str, Quantity]) -> PowerMode:
    resolved = PowerMode(**resolve_fields(mode, f"power_modes.{mode.name}.", resolve))
    if resolved.unit_count is not None and resolved.unit_count.value > quantities["unit_count"].value:
        raise ValueError(f"power_modes.{mode.name}.unit_count: more than the chip's {quantities['unit_count'].value:g}")
    for bound in ("clock_boost", "clock_die"):
        highest = quantities.get(bound)
        if highest is not None and resolved.clock.value > highest.value:
            raise ValueError(
                f"power_modes.{mode.name}.clock: {resolved.clock.value:g} Hz is above {bound} of {highest.value:g} Hz"
            )
    named = read_point(mode.name)
    if named is not None and named.unit == "W" and resolved.tdp.value > named.value:
        raise ValueError(
            f"power_modes.{mode.name}.tdp: {resolved.tdp.value:g} W is above the {named.value:g} W of its name; a mode "
            "named for another power than that of the whole card or module says of what, as in SoC-12W"
        )
    static = (resolved.static_power or quantities["static_power"]).value
    if static >= resolved.tdp.value:
        raise ValueError(
            f"power_modes.{mode.name}: {static:g} W of static power is not below its tdp of {resolved.tdp.value:g} W; "
            "state the static_power of this mode"
        )
    return resolved


def _resolve_load(entry: LoadEntry, resolve: Resolve, peaks: Mapping[str, Peak]) -> MeasuredLoad:
    """Return a measured load in SI units; ValueError for an unknown model or a precision that the chip lacks."""
    key = f"loads.{entry.name}"
    _check_choice(f"{key}.runtime", entry.runtime, RUNTIME_NAMES)
    _check_choice(f"{key}.covers", entry.covers, LOAD_COVERS)
    _check_choice(f"{key}.precision", entry.precision, tuple(peaks))
    _check_choice(f"{key}.model", entry.model, tuple(load_shipped()))
    if entry.batch < 1:
        raise ValueError(f"{key}.batch: {entry.batch} is not a whole number from 1")
    shipped = load_shipped()[entry.model]
    if not shipped.ships(entry.batch):
        raise ValueError(f"{key}.batch: {entry.model} ships at batch 1 only")
    return MeasuredLoad(**resolve_fields(entry, f"{key}.", resolve), tracer_version=shipped.tracer_version)


def _resolve_link(entry: LinkEntry, resolve: Resolve) -> Link:
    """Resolve a link and check its one-way bandwidth against the standard, if one is known."""
    key = f"links.{entry.name}"
    _check_choice(f"{key}.connects", entry.connects, LINK_ENDS)
    if entry.topology:
        _check_choice(f"{key}.topology", entry.topology, LINK_TOPOLOGIES)
        if entry.connects != "device":
            raise ValueError(f"{key}.topology: {entry.topology!r} is how devices are joined, but it connects a host")
    fields = resolve_fields(entry, f"{key}.", resolve)
    counts: dict[str, Quantity] = {
        name: count for name in ("link_count", "lane_count", "domain_size") if (count := fields[name]) is not None
    }
    for name, count in counts.items():
        if count.value != int(count.value) or count.value < 1:
            raise ValueError(f"{key}.{name}: {count.value:g} is not a whole number from 1")
    bandwidth: Quantity = fields["bandwidth"]
    for rates, name, what in ((LANE_RATES, "lane_count", "lanes"), (LINK_RATES, "link_count", "links")):
        known = rates.get(entry.name)
        if known is None:
            continue
        for needed, is_given in (("generation", bool(entry.generation)), (name, name in counts)):
            if not is_given:
                raise ValueError(f"{key}.{needed}: missing")
        _check_choice(f"{key}.generation", entry.generation, tuple(known))
        total = math.prod(count.value for of, count in counts.items() if of in ("link_count", name))
        expected = total * known[entry.generation]
        if not entry.bandwidth.explanation and not math.isclose(bandwidth.value, expected, rel_tol=TOLERANCE):
            raise ValueError(
                f"{key}.bandwidth: {total:g} {what} of {entry.name} {entry.generation} carry {expected / 1e9:.4g} GB/s "
                f"in one direction, but it is {bandwidth.value / 1e9:.4g} GB/s; add an explanation if this is intended"
            )
    usual = find_link_default(entry.name, entry.generation)
    return Link(**fields | {name: fields[name] or getattr(usual, name) for name in ("latency", "energy")})


def _resolve_limit(shared: ArchitectureFile, chip: HardwareFile) -> dict[str, Quantity]:
    """Return the coefficient for the share of the power limit drawn under load; empty unless the file enables it."""
    if not chip.works_at_limit:
        return {}
    if shared.priced_at == BOARD:
        raise ValueError(
            f"works_at_limit: energies of {chip.architecture} were fitted to board power, so the power limit adds "
            "no energy; leave it out"
        )
    return {LIMIT_SHARE: LEAST_SHARE}


def _resolve_coefficients(shared: ArchitectureFile, chip: HardwareFile) -> dict[str, Quantity]:
    """Return the class's coefficients in SI, overridden by the chip's own."""
    resolved = {
        entry.name: Quantity(
            value=entry.value,
            unit=entry.unit,
            basis="measured" if chip.id in entry.chips else entry.basis,
            source=entry.source,
            note=entry.meaning,
            evidence=entry.evidence,
        )
        for entry in (*shared.coefficients, *(read_links().coefficients if chip.links else ()))
        if entry.level in ("", *(level.name for level in chip.memory_levels))
        and chip.memory_type.startswith(entry.memory)
        and chip.quantities.tdp.value > entry.above_w
    }
    own: set[str] = set()
    for entry in chip.coefficients:
        key = f"coefficients.{entry.name}"
        _check_choice(
            f"coefficients: {shared.architecture} has no coefficient {entry.name}", entry.name, list(resolved)
        )
        if entry.name in own:
            raise ValueError(f"{key}: is listed twice")
        own.add(entry.name)
        if entry.unit not in SI_SCALE:
            raise ValueError(f"{key}: unknown unit {entry.unit!r}; known: {', '.join(SI_SCALE)}")
        factor, unit = SI_SCALE[entry.unit]
        expected = resolved[entry.name].unit
        if unit != expected:
            raise ValueError(f"{key}: unit {entry.unit!r} measures {unit}, expected {expected}")
        try:
            quantity = Quantity(
                value=entry.value * factor,
                unit=unit,
                basis=entry.basis,
                source=chip.sources.get(entry.source, entry.source),
                note=resolved[entry.name].note,
                evidence=entry.evidence,
            )
        except (ValueError, TypeError) as error:
            raise ValueError(f"{key}: {error}") from error
        try:
            check_coefficient(entry.name, quantity.value)
        except ValueError as error:
            raise ValueError(f"{key}: {error}") from error
        resolved[entry.name] = quantity
    return resolved


def _resolve_peak(precision: str, entry: PeakEntry, resolve: Resolve, unit_count: int, clock_hz: float) -> Peak:
    _check_choice(f"peaks.{precision}: unknown precision", precision, tuple(PRECISION_BYTES))
    rate = resolve(f"peaks.{precision}.rate", entry.rate, "ops/s")
    units = entry.unit_count or unit_count
    clock = entry.clock_ghz * 1e9 if entry.clock_ghz else clock_hz
    operations = entry.operations_per_clock or rate.value / (units * clock)
    product = units * operations * clock
    if not entry.explanation and not math.isclose(product, rate.value, rel_tol=TOLERANCE):
        raise ValueError(
            f"peaks.{precision}: {units} units x {operations:g} operations x {clock / 1e9:g} GHz "
            f"= {product:.4g} ops/s, but the rate is {rate.value:.4g}; add an explanation if this is intended"
        )
    return Peak(
        rate=rate,
        operations_per_clock=operations,
        unit_count=units,
        clock_hz=clock,
        engine=entry.engine,
        explanation=entry.explanation,
    )
