"""Scaling rules for varied chips, so that each design is plausible.

    peaks, bandwidths on the chip   x units, x clock                           by `follow`, as in a power mode
    vector cores of an NPU          x units                                    by `follow`, as in a power mode
    voltage                         by the chip's own power law, above the highest clock of its die too
    peaks                           x elements of a unit's array
    wires                           x area^0.5, the length of the die
    static power                    x ((1 - m) area + m bandwidth of DRAM)       m: share of its interface

All other rules are ratios to the base chip. A constant that is itself varied follows no rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import numpy as np

from joulemap.physics import STATIC, Address, Area, Change, Constant, Floats, Hardware
from joulemap.physics.area import ARRAY
from joulemap.system import FJ_PER_J, UsageError, frozen

MEMORY_SHARE: Final = 0.2
"""Share of static power due to the DRAM interface. Basis: assumed."""


@frozen(kw_only=True)
class Rule:
    """Sentence on a scaling rule of dependent constants, with its basis and source."""

    text: str
    basis: str
    source: str


RULES: Final[Mapping[str, Rule]] = {
    "rate": Rule(
        text="peaks and on-chip bandwidths scale with units and clock; vector cores of an NPU scale with units",
        basis="derived",
        source="as in a power mode: Hardware.in_mode",
    ),
    "voltage": Rule(
        text="voltage follows the clock by the chip's own power law, extended above its highest clock",
        basis="scaled",
        source="physics/power: A100 PCIe at locked clocks, energaizer (ISPASS 2026); extended above",
    ),
    "array": Rule(
        text="peaks scale with the elements of a unit's array",
        basis="derived",
        source="geometry",
    ),
    "wire": Rule(
        text="wire energy scales with the square root of the area",
        basis="assumed",
        source="length of a die",
    ),
    "static": Rule(
        text=(
            f"{100.0 * (1.0 - MEMORY_SHARE):.0f} % of static power scales with the area, {100.0 * MEMORY_SHARE:.0f} % "
            "with the DRAM bandwidth"
        ),
        basis="assumed",
        source="active idle of similar circuits; share of the memory interface",
    ),
    "area": Rule(
        text="area counts units and on-chip memories",
        basis="recalled",
        source="Horowitz 2014, TSMC's claims from node to node; GPUs by four dies, other shares assumed",
    ),
    "limit": Rule(
        text="the power limit stays; a design that draws more runs at a lower clock",
        basis="assumed",
        source="the question; vary tdp to move it",
    ),
}
"""Name of a scaling rule, as `Law.list_used` returns it -> its sentence, basis and source."""

LENGTH_POWER: Final = 0.5
"""Exponent of area in the length of a wire across the die. Source: geometry."""


def check_together(names: Iterable[str]) -> None:
    """Raise UsageError for constants that must not be varied together."""
    asked = list(names)
    movers = [name for name in asked if name in ("unit_count", "clock", *ARRAY)]
    moved = [name for name in asked if Address.read(name).kind == "peak"]
    if movers and moved:
        raise UsageError(f"{moved[0]} follows {movers[0]}, so the two cannot be varied together: leave one of them out")


@frozen(kw_only=True)
class Law:
    """Scaling rules that compute a chip's dependent constants from its varied ones."""

    hardware: Hardware
    area: Area
    constants: Mapping[str, Constant]

    def follow(self, values: Mapping[str, Floats]) -> dict[str, Floats]:
        """Return all varied and dependent constants by name, as arrays that broadcast like `values`."""
        numbers: dict[str, Any] = dict(values)
        clock = values.get("clock")
        clock_ratio = 1.0 if clock is None else clock / self.hardware.clock.value
        unit_ratio = values.get("unit_count", self.hardware.unit_count.value) / self.hardware.unit_count.value
        grown = self.area.array_ratio(values)
        if any(name in values for name in ARRAY):
            for precision, peak in self.hardware.peaks.items():
                numbers[f"peak.{precision}"] = peak.rate.value * clock_ratio * unit_ratio * grown
        area_ratio = self.area.find_mm2(values) / self.area.find_mm2({})
        if STATIC not in values and any(map(self._has_area, values)):
            bandwidth = values.get("memory_bandwidth", self.hardware.memory_bandwidth.value)
            interface = MEMORY_SHARE * bandwidth / self.hardware.memory_bandwidth.value
            numbers[STATIC] = self.hardware.static_power.value * ((1.0 - MEMORY_SHARE) * area_ratio + interface)
        wire = area_ratio**LENGTH_POWER
        for action in self.hardware.reference if np.any(np.not_equal(wire, 1.0)) else ():
            name = ".".join(action.key)
            if action.common_category == "interconnect" and name not in values and name in self.constants:
                numbers[name] = action.energy_per_action_fj / FJ_PER_J * wire
        return {name: np.atleast_1d(one) for name, one in numbers.items()}

    def _has_area(self, name: str) -> bool:
        address = Address.read(name)
        is_level = address.kind == "memory" and address.field == "capacity"
        return is_level or name in ("unit_count", "memory_bandwidth", *ARRAY)

    def list_used(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return the names of the scaling rules that apply if these constants are varied."""
        asked = set(names)
        used = {
            "rate": asked & {"unit_count", "clock"},
            "voltage": asked & {"clock"},
            "array": asked & set(ARRAY),
            "wire": any(map(self._has_area, asked - {"memory_bandwidth"})),
            "static": STATIC not in asked and any(map(self._has_area, asked)),
            "area": any(map(self._has_area, asked - {"memory_bandwidth"})),
            "limit": "tdp" not in asked,
        }
        return tuple(name for name, is_used in used.items() if is_used)

    def change_at(self, values: Mapping[str, Floats], index: int) -> tuple[Change, ...]:
        """Return the changes that turn the base chip into one design; empty if nothing differs.

        `values` come from `follow`; `index` is the design's position in them.
        """
        changes = []
        for name, column in values.items():
            changes.append(Change.of(self.constants[name], float(column[index if len(column) > 1 else 0])))
        return tuple(changes) if any(one.value != one.before for one in changes) else ()
