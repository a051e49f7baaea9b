"""Fill in numbers that a hardware file omits, by rules of its class, with basis `assumed`.

    default = (value x number named by `of`) ^ power        or just `value`

The rules are under `[[defaults]]` in the class's file. If several rules fill the same number, the first whose `of` is
known applies.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from joulemap.catalog.schema import ArchitectureFile, DefaultEntry
from joulemap.physics.record.hardware import MemoryLevel, Peak
from joulemap.physics.record.quantity import Quantity


def complete_quantities(
    given: Mapping[str, Quantity], peaks: Mapping[str, Peak], defaults: Iterable[DefaultEntry]
) -> dict[str, Quantity]:
    """Return the chip's quantities completed by class defaults; ValueError if a required quantity has none."""
    quantities = dict(given)
    _fill(quantities, (entry for entry in defaults if "." not in entry.quantity), "", quantities, peaks)
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
    """Return the chip's geometry completed by class defaults."""
    geometry = dict(given)
    _fill(geometry, defaults, "geometry.", quantities, peaks)
    return geometry


def _fill(
    numbers: dict[str, Quantity],
    defaults: Iterable[DefaultEntry],
    prefix: str,
    quantities: Mapping[str, Quantity],
    peaks: Mapping[str, Peak],
) -> None:
    """Add missing numbers from the defaults whose names begin with `prefix`; keys in `numbers` lack the prefix."""
    for entry in defaults:
        name = entry.quantity.removeprefix(prefix)
        if entry.quantity.startswith(prefix) and name not in numbers:
            number = _apply(entry, quantities, peaks)
            if number is not None:
                numbers[name] = number


def complete_levels(
    quantities: Mapping[str, Quantity], peaks: Mapping[str, Peak], shared: ArchitectureFile
) -> tuple[MemoryLevel, ...]:
    """Return the default memory levels of a chip that states none."""
    numbers: dict[str, Quantity] = {}
    _fill(numbers, shared.defaults, "memory.", quantities, peaks)
    levels = []
    for level in shared.default_levels:
        capacity = numbers.get(f"{level.name}.capacity")
        if capacity is None:
            raise ValueError(f"memory_levels: none given, and {shared.architecture} has no default for {level.name}")
        levels.append(
            MemoryLevel(
                name=level.name,
                kind=level.kind,
                per=level.per,
                capacity=capacity,
                bandwidth=numbers.get(f"{level.name}.bandwidth"),
            )
        )
    return tuple(levels)


def _apply(entry: DefaultEntry, quantities: Mapping[str, Quantity], peaks: Mapping[str, Peak]) -> Quantity | None:
    value, rule = entry.value, f"{entry.value:g}"
    if entry.of:
        known = _lookup(entry.of, quantities, peaks)
        if known is None:
            return None
        value = (entry.value * known) ** entry.power
        rule += f" x {entry.of}" + (f", to the power {entry.power:g}" if entry.power != 1.0 else "")
    return Quantity(value=value, unit=entry.unit, basis="assumed", source=f"class default {rule}: {entry.source}")


def _lookup(name: str, quantities: Mapping[str, Quantity], peaks: Mapping[str, Peak]) -> float | None:
    """Return the value of a quantity, or of `operations_per_clock` with or without `.PRECISION`; None if unknown."""
    if name == "operations_per_clock":
        return next(iter(peaks.values())).operations_per_clock
    if name.startswith("operations_per_clock."):
        peak = peaks.get(name.removeprefix("operations_per_clock."))
        return None if peak is None else peak.operations_per_clock
    quantity = quantities.get(name)
    return None if quantity is None else quantity.value
