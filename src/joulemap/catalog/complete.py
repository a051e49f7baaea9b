"""Numbers that a hardware file leaves out, filled in by its class's rules and marked `assumed`.

    default = (value x number named by `of`) ^ power        or just `value`

Rules stand in the class's file under `[[defaults]]`; where several fill the same number, the first whose `of` is known
counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from joulemap.catalog.schema import ArchitectureFile, DefaultEntry
from joulemap.domain.hardware import MemoryLevel, Peak
from joulemap.domain.quantity import Quantity


def complete_quantities(
    given: Mapping[str, Quantity], peaks: Mapping[str, Peak], defaults: Iterable[DefaultEntry]
) -> dict[str, Quantity]:
    """Return the chip's quantities with those that its class can fill in; ValueError for one that is needed and not."""
    quantities = dict(given)
    for entry in defaults:
        if "." not in entry.quantity and entry.quantity not in quantities:
            found = _apply(entry, quantities, peaks)
            if found is not None:
                quantities[entry.quantity] = found
    for name in ("process_node", "static_power"):
        if name not in quantities:
            raise ValueError(f"quantities.{name}: missing, and the class has no default for it")
    return quantities


def complete_geometry(
    given: Mapping[str, Quantity],
    quantities: Mapping[str, Quantity],
    peaks: Mapping[str, Peak],
    defaults: Iterable[DefaultEntry],
) -> dict[str, Quantity]:
    """Return the chip's geometry with the entries that its class can fill in."""
    geometry = dict(given)
    for entry in defaults:
        name = entry.quantity.removeprefix("geometry.")
        if name != entry.quantity and name not in geometry:
            found = _apply(entry, quantities, peaks)
            if found is not None:
                geometry[name] = found
    return geometry


def complete_levels(
    quantities: Mapping[str, Quantity], peaks: Mapping[str, Peak], shared: ArchitectureFile
) -> tuple[MemoryLevel, ...]:
    """Return the memory levels of a chip that states none."""
    found: dict[str, Quantity] = {}
    for entry in shared.defaults:
        if entry.quantity.startswith("memory.") and entry.quantity not in found:
            quantity = _apply(entry, quantities, peaks)
            if quantity is not None:
                found[entry.quantity] = quantity
    levels = []
    for level in shared.default_levels:
        capacity = found.get(f"memory.{level.name}.capacity")
        if capacity is None:
            raise ValueError(f"memory_levels: none given, and {shared.architecture} has no default for {level.name}")
        levels.append(
            MemoryLevel(
                name=level.name,
                kind=level.kind,
                per=level.per,
                capacity=capacity,
                bandwidth=found.get(f"memory.{level.name}.bandwidth"),
            )
        )
    return tuple(levels)


def _apply(entry: DefaultEntry, quantities: Mapping[str, Quantity], peaks: Mapping[str, Peak]) -> Quantity | None:
    if not entry.of:
        return Quantity(
            value=entry.value, unit=entry.unit, basis="assumed", source=f"class default {entry.value:g}: {entry.source}"
        )
    known = _lookup(entry.of, quantities, peaks)
    if known is None:
        return None
    rule = f"{entry.value:g} x {entry.of}" + (f", to the power {entry.power:g}" if entry.power != 1.0 else "")
    return Quantity(
        value=(entry.value * known) ** entry.power,
        unit=entry.unit,
        basis="assumed",
        source=f"class default {rule}: {entry.source}",
    )


def _lookup(name: str, quantities: Mapping[str, Quantity], peaks: Mapping[str, Peak]) -> float | None:
    """Return a quantity by name, or `operations_per_clock` and `operations_per_clock.PRECISION` of the peaks."""
    if name == "operations_per_clock":
        return next(iter(peaks.values())).operations_per_clock
    if name.startswith("operations_per_clock."):
        peak = peaks.get(name.removeprefix("operations_per_clock."))
        return None if peak is None else peak.operations_per_clock
    quantity = quantities.get(name)
    return None if quantity is None else quantity.value
