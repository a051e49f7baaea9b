"""Area and cost of a design's silicon, from tables.

    unit   = (MACs per clock x area of a MAC, at the widest precision) / share of the datapath + other area of a unit,
             at the chip's node
    memory = bytes on the chip x area of a byte
    area   = units x unit + memory
    dies   = area / RETICLE, rounded up
    cost   = area x price of the wafer / (area of the wafer x yield)        yield = (1 + D area / (3 dies))^-3

Pads, interfaces and other parts of a die are excluded, so areas compare designs at one node and are not die sizes. The
share of the datapath and the other area of a unit are those of the chip's class (`architecture/`). Source of the yield:
negative binomial model of defects, with three clusters.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from joulemap.physics.architecture import find_architecture
from joulemap.physics.record.configuration import FLOPS_PER_MAC, PRECISION_BYTES
from joulemap.physics.record.quantity import Quantity
from joulemap.physics.record.silicon import RETICLE, SRAM_CELL_UM2
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.physics.record.hardware import Hardware
    from joulemap.physics.workload import Floats

HOROWITZ: Final = "M. Horowitz, Computing's energy problem, ISSCC 2014: multiplier and adder at 45 nm"
CSET: Final = "S. Khan, A. Mann, AI Chips, CSET 2020: wafers of 300 mm by node"


def _number(basis: str, value: float, unit: str, source: str) -> Quantity:
    return Quantity(value=value, unit=unit, basis=basis, source=source)


_recalled, _assumed = (partial(_number, basis) for basis in ("recalled", "assumed"))


MAC_AREA: Final[Mapping[float, Quantity]] = {
    0.5: _assumed(210e-6, "mm2", f"half of eight bits; {HOROWITZ}"),
    1.0: _recalled(419e-6, "mm2", f"8-bit multiplier 282 and 32-bit adder 137 um2; {HOROWITZ}"),
    2.0: _recalled(5824e-6, "mm2", f"16-bit multiplier 1640 and 32-bit adder 4184 um2, floating; {HOROWITZ}"),
    4.0: _recalled(11884e-6, "mm2", f"32-bit multiplier 7700 and adder 4184 um2, floating; {HOROWITZ}"),
    8.0: _assumed(47536e-6, "mm2", f"four times that of 32 bits; {HOROWITZ}"),
}
"""Bytes of an operand -> area of a multiplier and an adder at 45 nm."""

DENSITY: Final[Mapping[float, float]] = {
    3.0: 60.0, 4.0: 41.0, 5.0: 38.0, 7.0: 27.0, 10.0: 16.0, 12.0: 10.0, 16.0: 8.6, 20.0: 5.4, 28.0: 3.4, 45.0: 1.0,
    65.0: 0.5,
}  # fmt: skip
"""Node in nm -> logic transistor density relative to 45 nm. Basis: recalled. Source: logic densities that TSMC claims
from node to node."""

ARRAY_SHARE: Final = 0.55
"""Share of a memory's area that its bit cells fill."""

MEMORY_AREA: Final[Mapping[float, float]] = {
    **{node: 8.0 * area / ARRAY_SHARE for node, area in SRAM_CELL_UM2.items()},
    10.0: 0.62, 12.0: 0.95, 16.0: 1.1, 20.0: 1.2, 28.0: 1.9, 45.0: 4.2, 65.0: 8.0,
}  # fmt: skip
"""Node in nm -> mm2 per megabyte of SRAM. Basis: recalled. Source: high-density bit cells of TSMC: SRAM_CELL_UM2 up to
7 nm, 0.074 um2 at 16 nm, 0.127 um2 at 28 nm. Bit cells fill about ARRAY_SHARE of the area."""

WAFER_PRICE: Final[Mapping[float, float]] = {
    3.0: 19500.0, 4.0: 17000.0, 5.0: 16988.0, 7.0: 9346.0, 10.0: 5992.0, 12.0: 3984.0, 16.0: 3984.0, 20.0: 3677.0,
    28.0: 2891.0, 45.0: 1937.0, 65.0: 1937.0,
}  # fmt: skip
"""Node in nm -> price of a 300 mm wafer in USD. Basis: recalled; 3 and 45 nm assumed. Source: CSET."""

WAFER_MM2: Final = _recalled(70685.8, "mm2", "a disc of 300 mm")
DEFECTS: Final = _assumed(0.001, "1/mm2", "0.1 of a cm2: a process in production")

BYTES_PER_MB: Final = 1e6


ARRAY: Final = ("geometry.array_rows", "geometry.array_columns")
"""Names of the geometry constants that are the sides of a unit's array of processing elements."""


@frozen(kw_only=True)
class Area:
    """Components of a chip's area, before any constant is varied."""

    unit_mm2: float
    """Area of one unit, without its memories."""
    unit_count: float
    byte_mm2: float
    """Area per byte of on-chip memory."""
    node_nm: float
    levels: Mapping[str, tuple[float, str]]
    """Memory level -> (bytes of one instance, part of the chip that has an instance each)."""
    sides: Mapping[str, float]
    """Constants of `ARRAY` that the chip states -> their values."""

    @classmethod
    def of(cls, hardware: Hardware) -> Area:
        """Return the area components of a chip."""
        node = hardware.process_node.value
        own = find_architecture(hardware.architecture).unit_area
        unit = find_datapath(hardware) / own.datapath.value + (own.beside.value if own.beside else 0.0)
        stated = {name: hardware.geometry.get(name.partition(".")[2]) for name in ARRAY}
        return cls(
            unit_mm2=unit / at_node(DENSITY, node),
            unit_count=hardware.unit_count.value,
            byte_mm2=at_node(MEMORY_AREA, node) / BYTES_PER_MB,
            node_nm=node,
            levels={one.name: (one.capacity.value, one.per) for one in hardware.memory_levels},
            sides={name: side.value for name, side in stated.items() if side is not None},
        )

    def array_ratio(self, values: Mapping[str, Floats]) -> Floats | float:
        """Return the processing elements of a unit at these constants, as a ratio to the chip's own number."""
        return math.prod(values[name] / own for name, own in self.sides.items() if name in values)

    def find_mm2(self, values: Mapping[str, Floats]) -> Floats:
        """Return the area of the chip at these values of constants. Constants that are not named keep the chip's own
        values.
        """
        units = np.asarray(values.get("unit_count", self.unit_count), dtype=np.float64)
        grown = self.array_ratio(values)
        elements = grown * math.prod(self.sides.values())
        memory: Floats = np.zeros(1)
        for name, (own, per) in self.levels.items():
            instances = {"chip": np.ones(1), "processing_element": units * elements}.get(per, units)
            memory = memory + values.get(f"memory.{name}.capacity", np.array([own])) * instances
        area_mm2: Floats = units * grown * self.unit_mm2 + memory * self.byte_mm2
        return area_mm2

    def find_usd(self, area_mm2: Floats) -> Floats:
        """Return the cost of the good dies of a chip, for each area. An area beyond the reticle is split into equal
        dies.
        """
        price = at_node(WAFER_PRICE, self.node_nm) / WAFER_MM2.value
        die_mm2 = area_mm2 / np.maximum(np.ceil(area_mm2 / RETICLE.value), 1.0)
        cost_usd: Floats = area_mm2 * price * (1.0 + die_mm2 * DEFECTS.value / 3.0) ** 3
        return cost_usd


def at_node(table: Mapping[float, float], node_nm: float) -> float:
    """Return a table's value at a process node by log-log interpolation. Beyond the table, its end value applies."""
    nodes = sorted(table)
    logs = [math.log(table[node]) for node in nodes]
    return float(np.exp(np.interp(math.log(node_nm), np.log(nodes), logs)))


def find_datapath(hardware: Hardware) -> float:
    """Return the area in mm2 at 45 nm of one unit's multipliers and adders, at the precision with the largest area."""
    widest = max(
        _mac_area(PRECISION_BYTES[precision]) * peak.operations_per_clock / FLOPS_PER_MAC * peak.unit_count
        for precision, peak in hardware.peaks.items()
    )
    return widest / hardware.units


def _mac_area(byte_count: float) -> float:
    return next(area.value for width, area in MAC_AREA.items() if width >= byte_count)
