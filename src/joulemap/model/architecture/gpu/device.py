"""Device that one kernel sees of a board: its share, the precision's engine, lanes, and the cache before DRAM.

A coefficient of products is that of the engine, `NAME.tensor` or `NAME.vector`; any other that of the element's width,
`NAME.wide` from four bytes on or `NAME.narrow`; one without either holds for all. Coefficients per clock use the clock
of the fp32 peak at every precision. A cache whose bandwidth nobody published has last_level_bytes_per_clock per unit.
"""

from __future__ import annotations

from typing import Final

import attrs
import numpy as np

from joulemap.domain.configuration import FLOPS_PER_MAC, PRECISION_BYTES
from joulemap.domain.hardware import Hardware, MemoryLevel
from joulemap.domain.quantity import Quantity
from joulemap.model.workload import Floats

TENSOR: Final = "tensor_core"
"""The engine of a peak that the tensor or matrix cores give."""

BEYOND_LANES: Final = 1.5
"""A peak that names no engine is that of tensor cores if it exceeds the packed vector lanes by this factor."""

REGISTER_BYTES: Final = 4.0


def uses_tensor_cores(hardware: Hardware, precision: str) -> bool:
    """Whether the peak at this precision is that of the tensor cores: as the target says, else as the rate shows."""
    peak = hardware.peaks[precision]
    if peak.engine:
        return peak.engine == TENSOR
    vector = hardware.peaks.get("fp32", peak).operations_per_clock
    packed = max(1.0, REGISTER_BYTES / PRECISION_BYTES[precision])
    return peak.operations_per_clock > BEYOND_LANES * packed * vector


def find_device(hardware: Hardware) -> Hardware:
    """Return what one kernel sees: the hardware, or its share where the board is several devices to the software."""
    count = hardware.geometry.get("device_count")
    if count is None or count.value == 1.0:
        return hardware

    def share(quantity: Quantity) -> Quantity:
        return attrs.evolve(quantity, value=quantity.value / count.value)

    return attrs.evolve(
        hardware,
        unit_count=share(hardware.unit_count),
        memory_bandwidth=share(hardware.memory_bandwidth),
        memory_levels=tuple(
            attrs.evolve(
                level,
                capacity=share(level.capacity) if level.per == "chip" else level.capacity,
                bandwidth=share(level.bandwidth) if level.bandwidth else None,
            )
            for level in hardware.memory_levels
        ),
        peaks={
            precision: attrs.evolve(
                peak, rate=share(peak.rate), unit_count=max(1, round(peak.unit_count / count.value))
            )
            for precision, peak in hardware.peaks.items()
        },
    )


def find_last_level(hardware: Hardware) -> MemoryLevel:
    """Return the cache before DRAM; a bandwidth that nobody published is bytes per clock times units times clock."""
    level = hardware.memory_levels[-1]
    if level.bandwidth is not None:
        return level
    rule = hardware.coefficients["last_level_bytes_per_clock"]
    value = rule.value * hardware.unit_count.value * vector_clock_hz(hardware)
    return attrs.evolve(level, bandwidth=Quantity(value=value, unit="B/s", basis=rule.basis, source=rule.source))


def vector_clock_hz(hardware: Hardware) -> float:
    """Return the clock that coefficients per clock use: that of the fp32 peak, or the chip's."""
    peak = hardware.peaks.get("fp32")
    return peak.clock_hz if peak else hardware.clock.value


def packing(hardware: Hardware, precision: str) -> float:
    """Return the MACs that one vector lane does each clock, at least 1: four in DP4A, two in packed fp32."""
    if uses_tensor_cores(hardware, precision):
        return 1.0
    lanes = hardware.geometry["fp32_lanes_per_unit"].value
    return max(1.0, hardware.peaks[precision].operations_per_clock / FLOPS_PER_MAC / lanes)


def lanes_per_unit(hardware: Hardware, precision: str) -> float:
    """Return the elements per clock and unit that plain arithmetic at this precision runs at."""
    lanes = hardware.geometry["fp32_lanes_per_unit"].value
    single = hardware.peaks.get("fp32")
    if single is None:
        return lanes * REGISTER_BYTES / max(PRECISION_BYTES[precision], REGISTER_BYTES)
    return lanes * min(1.0, hardware.peaks[precision].operations_per_clock / single.operations_per_clock)


@attrs.frozen(kw_only=True)
class Engine:
    """The units of a device at one precision, and where its coefficients are found."""

    hardware: Hardware
    precision: str
    mode: str
    """`tensor` or `vector`: what qualifies the coefficients of products."""
    width: str
    """`wide` from four bytes an element, `narrow` below: what qualifies those of everything else."""
    units: float
    clock_hz: float
    """Of the vector lanes."""
    item_bytes: float

    @classmethod
    def of(cls, hardware: Hardware, precision: str) -> Engine:
        """Return the engine of a device (`find_device`) at a precision."""
        item = PRECISION_BYTES[precision]
        return cls(
            hardware=hardware,
            precision=precision,
            mode="tensor" if uses_tensor_cores(hardware, precision) else "vector",
            width="wide" if item >= REGISTER_BYTES else "narrow",
            units=float(hardware.peaks[precision].unit_count),
            clock_hz=vector_clock_hz(hardware),
            item_bytes=item,
        )

    def value(self, name: str) -> float:
        """Return a coefficient at this engine and width."""
        return self.hardware.coefficient(name, self.mode, self.width)

    def stream_seconds(self, byte_count: Floats) -> Floats:
        """Return the time to move bytes once: through the last cache what fits there, through DRAM what does not."""
        level = find_last_level(self.hardware)
        bandwidth = (level.bandwidth or self.hardware.memory_bandwidth).value
        near = byte_count / (bandwidth * self.hardware.coefficient(f"{level.name}_efficiency"))
        far = byte_count / (self.hardware.memory_bandwidth.value * self.hardware.coefficient("dram_efficiency"))
        return np.where(byte_count <= level.capacity.value, near, np.maximum(near, far))

    @property
    def issue_hz(self) -> float:
        """Clocks per second of all units together."""
        return self.units * self.clock_hz

    @property
    def macs_per_s(self) -> float:
        """Peak of the precision."""
        return self.hardware.peaks[self.precision].rate.value / FLOPS_PER_MAC
