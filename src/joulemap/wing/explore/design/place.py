"""Designs as arrays: the places in a hardware record of varied constants, as `change_hardware` sets them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from joulemap.domain.change import price_fj
from joulemap.domain.constant import LOSS

if TYPE_CHECKING:
    from joulemap.domain.hardware import Hardware
    from joulemap.domain.point import Path
    from joulemap.domain.reference import EnergyAction
    from joulemap.model.workload import Floats


def place_values(hardware: Hardware, values: Mapping[str, Floats]) -> dict[Path, Floats]:
    """Return path -> array over the designs with these constants; arrays broadcast like `values`.

    A row equals, number by number, the hardware that `change_hardware` returns for the same values.
    """
    found: dict[Path, Any] = {}
    column: Any
    for name, column in values.items():
        kind, dot, rest = name.partition(".")
        if not dot:
            found[name,] = column
        elif kind in ("geometry", "coefficient"):
            found["coefficients" if kind == "coefficient" else kind, rest] = column
    found |= _place_rates(hardware, values)
    for place, level in enumerate(hardware.memory_levels):
        for field in ("capacity", "bandwidth"):
            if (column := values.get(f"memory.{level.name}.{field}")) is not None:
                found["memory_levels", place, field] = column
    for action in hardware.reference:
        if (column := values.get(name := ".".join(action.key))) is not None:
            found["reference", name] = _price(action, column)
    if LOSS in values:
        found["coefficients", "regulator_loss"] = values[LOSS]
    return found


def _place_rates(hardware: Hardware, values: Mapping[str, Floats]) -> dict[Path, Floats]:
    """Return the quantities that follow units and clock, and the peaks that are set."""
    found: dict[Path, Any] = {}
    clock: Any
    units: Any
    rate: Any
    per_clock: Any
    clock, units = values.get("clock"), values.get("unit_count")
    clock_ratio = 1.0 if clock is None else clock / hardware.clock.value
    unit_ratio = 1.0 if units is None else units / hardware.unit_count.value
    moves = clock is not None or units is not None
    for precision, peak in hardware.peaks.items():
        rate, per_clock = peak.rate.value * (clock_ratio * unit_ratio), peak.operations_per_clock
        told = values.get(f"peak.{precision}")
        if told is not None:
            rate, per_clock = told, per_clock * (told / rate)
        if moves or told is not None:
            found["peaks", precision] = rate
            found["peaks", precision, "operations_per_clock"] = per_clock
        if units is not None:
            found["peaks", precision, "unit_count"] = np.maximum(1.0, np.rint(peak.unit_count * unit_ratio))
        if clock is not None:
            found["peaks", precision, "clock_hz"] = peak.clock_hz * clock_ratio
    for place, level in enumerate(hardware.memory_levels if moves else ()):
        if level.bandwidth is not None:
            found["memory_levels", place, "bandwidth"] = level.bandwidth.value * (clock_ratio * unit_ratio)
    if clock is not None:
        for name in ("clock_base", "clock_boost"):
            if name not in values and (quantity := getattr(hardware, name)) is not None:
                found[name,] = quantity.value * clock_ratio
        full = clock
        if hardware.full_clock is hardware.clock_boost:
            full = hardware.full_clock.value * clock_ratio
        if hardware.clock_die is not None and "clock_die" not in values:
            found["clock_die",] = np.maximum(hardware.clock_die.value, full)
    return {path: np.atleast_1d(one) for path, one in found.items()}


def _price(action: EnergyAction, column: Floats) -> Floats:
    """Return prices in femtojoules; each distinct price is computed once."""
    each, place = np.unique(column, return_inverse=True)
    return np.array([price_fj(action, float(one)) for one in each])[place.reshape(column.shape)]
