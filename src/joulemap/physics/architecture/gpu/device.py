"""The part of a GPU board that one kernel sees: the device, its engine at a precision, and its coefficients.

The suffix of a coefficient states where it applies; a coefficient without a suffix applies everywhere.

    GEMMs         `.tensor` or `.vector`: the engine that multiplies
    other work    `.wide` or `.narrow`: elements of at least four bytes, or of fewer
    memory        `.stacked`: HBM, whose check bits have separate wires; `.protected`: GDDR with ECC, whose check bits
                  take the place of data; `.planar`: GDDR and LPDDR without ECC

Times in clocks refer to the highest clock of the board. A peak is larger there than at the clock for which it is
quoted.
"""

from __future__ import annotations

from typing import Final

import attrs
import numpy as np

from joulemap.physics.column import decide
from joulemap.physics.record.configuration import FLOPS_PER_MAC, PRECISION_BYTES, carried_precision
from joulemap.physics.record.hardware import Hardware, MemoryLevel, Peak
from joulemap.physics.record.quantity import Quantity
from joulemap.physics.traffic import held_share
from joulemap.physics.workload import Booleans, Floats, Integers
from joulemap.system.record import frozen, vary

TENSOR: Final = "tensor_core"
"""Engine name, in a hardware file, of a peak that tensor or matrix cores provide."""

BEYOND_LANES: Final = 1.5
"""Multiple of the rate of packed vector lanes above which a peak without a named engine counts as one of tensor cores.
"""

REGISTER_BYTES: Final = 4.0

FAMILY_SLOTS: Final = 128.0
"""Issue slots per unit and clock (four warps) of the GPUs on which attention and experts were timed, Ampere to
Blackwell.
"""


def uses_tensor_cores(hardware: Hardware, precision: str) -> bool:
    """Return whether tensor cores provide the peak at this precision.

    The hardware file may name the engine of a peak. Otherwise the rate decides, see `BEYOND_LANES`.
    """
    return decide(shows_tensor_cores(hardware, precision))


def shows_tensor_cores(hardware: Hardware, precision: str) -> Booleans | bool:
    """Return whether tensor cores provide the peak at this precision; an array with a value per chip if peaks are
    arrays.
    """
    peak = hardware.peaks[precision]
    if peak.engine:
        return peak.engine == TENSOR
    vector = hardware.peaks.get("fp32", peak).operations_per_clock
    packed = max(1.0, REGISTER_BYTES / PRECISION_BYTES[precision])
    shown: Booleans = np.greater(peak.operations_per_clock, BEYOND_LANES * packed * vector)
    return shown


def find_device(hardware: Hardware) -> Hardware:
    """Return the hardware that one kernel sees: the board, or one of its devices if software sees several."""
    count = hardware.geometry.get("device_count")
    if count is None or decide(np.equal(count.value, 1.0)):
        return hardware

    def share(quantity: Quantity) -> Quantity:
        return vary(quantity, value=quantity.value / count.value)

    return vary(
        hardware,
        unit_count=share(hardware.unit_count),
        memory_bandwidth=share(hardware.memory_bandwidth),
        memory_levels=tuple(
            vary(
                level,
                capacity=share(level.capacity) if level.per == "chip" else level.capacity,
                bandwidth=share(level.bandwidth) if level.bandwidth else None,
            )
            for level in hardware.memory_levels
        ),
        peaks={
            precision: vary(
                peak, rate=share(peak.rate), unit_count=np.maximum(1.0, np.rint(peak.unit_count / count.value))
            )
            for precision, peak in hardware.peaks.items()
        },
    )


def find_last_level(hardware: Hardware) -> MemoryLevel:
    """Return the last cache before DRAM. An unpublished bandwidth is bytes per clock and unit x units x clock."""
    level = hardware.memory_levels[-1]
    if level.bandwidth is not None:
        return level
    rule = hardware.coefficients["last_level_bytes_per_clock"]
    value = rule.value * hardware.unit_count.value * find_clock_hz(hardware)
    return vary(level, bandwidth=vary(rule, value=value, unit="B/s"))


def find_clock_hz(hardware: Hardware) -> Floats | float:
    """Return the highest clock of the board: its boost clock, or the clock of the fp32 peak, or the chip's."""
    if hardware.clock_boost is not None:
        return hardware.clock_boost.value
    peak = hardware.peaks.get("fp32")
    return peak.clock_hz if peak else hardware.clock.value


def packing(hardware: Hardware, precision: str) -> Floats | float:
    """Return the MACs of one vector lane per clock: four with DP4A, two with packed fp32, 1 if tensor cores compute."""
    if uses_tensor_cores(hardware, precision):
        return 1.0
    lanes = hardware.geometry["fp32_lanes_per_unit"].value
    packed: Floats | float = np.maximum(1.0, hardware.peaks[precision].operations_per_clock / FLOPS_PER_MAC / lanes)
    return packed


def lanes_per_unit(hardware: Hardware, precision: str) -> Floats | float:
    """Return the number of elements per clock on which a unit does plain arithmetic at this precision."""
    lanes = hardware.geometry["fp32_lanes_per_unit"].value
    single = hardware.peaks.get("fp32")
    if single is None:
        return lanes * REGISTER_BYTES / max(PRECISION_BYTES[precision], REGISTER_BYTES)
    share = hardware.peaks[precision].operations_per_clock / single.operations_per_clock
    rate: Floats | float = lanes * np.minimum(1.0, share)
    return rate


@frozen(kw_only=True)
class Engine:
    """Units of a device at one precision, with the lookup of its coefficients.

    In a run that multiplies at two precisions, numbers that differ are arrays with one value per operator. `split` then
    returns the engine of each operator.
    """

    hardware: Hardware
    precision: str
    mode: str
    """Suffix of the GEMM coefficients that apply: `tensor` or `vector`."""
    width: str
    """Suffix of the other compute coefficients that apply: `wide` from four bytes per element, `narrow` below."""
    memory: str
    """Suffix of the memory coefficients that apply: `stacked`, `planar` or `protected`."""
    units: Floats | float
    clock_hz: Floats | float
    """Highest clock of the board, in Hz."""
    item_bytes: float
    macs_per_clock: Floats | float
    """MACs of one unit per clock."""
    slots_per_clock: Floats | float
    """Maximum MACs that a unit can issue per clock if it issues nothing else. For tensor cores it is their operand
    rate, inferred from int8; for lanes, one per thread of the scheduled warps."""
    packed: Floats | float
    """MACs of one vector lane per clock, as returned by `packing`."""
    parts: tuple[tuple[Booleans, Engine], ...] = ()
    """(mask of operators, their engine) for each precision of a run that multiplies at two; empty in any other run."""

    @staticmethod
    def of(hardware: Hardware, precision: str) -> Engine:
        """Return the engine of a device (`find_device`) at a precision."""
        item = PRECISION_BYTES[precision]
        peak = hardware.peaks[precision]
        macs_per_clock = _find_macs(peak)
        on_tensor_cores = uses_tensor_cores(hardware, precision)
        packed = packing(hardware, precision)
        slots = hardware.geometry["issue_slots_per_unit"].value * packed
        if on_tensor_cores:  # GeForce halves the rate of 32-bit accumulation, but not the supply of operands
            bytes_wide = "int8" in hardware.peaks and uses_tensor_cores(hardware, "int8")
            slots = _find_macs(hardware.peaks["int8"]) / item if bytes_wide else macs_per_clock
            slots = slots * hardware.coefficient("supply_ratio")
        return Engine(
            hardware=hardware,
            precision=precision,
            mode="tensor" if on_tensor_cores else "vector",
            width="wide" if item >= REGISTER_BYTES else "narrow",
            memory=name_memory(hardware.memory_type),
            units=np.multiply(peak.unit_count, 1.0),
            clock_hz=find_clock_hz(hardware),
            item_bytes=item,
            macs_per_clock=macs_per_clock,
            slots_per_clock=np.maximum(slots, macs_per_clock),
            packed=packed,
        )

    def mixed_with(self, other: Engine, is_other: Booleans) -> Engine:
        """Return this engine with the numbers of `other` for the operators in `is_other`; both have the same width."""
        numbers = ("units", "macs_per_clock", "slots_per_clock", "packed")
        columns = {name: np.where(is_other, getattr(other, name), getattr(self, name)) for name in numbers}
        return attrs.evolve(self, parts=((~is_other, self), (is_other, other)), **columns)

    def split(self, rows: Integers) -> tuple[tuple[Integers, Engine], ...]:
        """Return (operator indices, engine) pairs: the operators in `rows`, grouped by the engine that multiplies."""
        if not self.parts:
            return ((rows, self),) if len(rows) else ()
        each = [(rows[mine[rows]], engine) for mine, engine in self.parts]
        return tuple([one for one in each if len(one[0])])

    def value(self, name: str) -> Floats | float:
        """Return the coefficient `name`, in the version for this engine's mode, width or memory if there is one."""
        own = self.hardware.coefficient(name, self.mode, self.width, self.memory)
        if not self.parts:
            return own
        is_other, other = self.parts[1]
        others = other.value(name)
        return own if own is others else np.where(is_other, others, own)

    def seconds(self, name: str) -> Floats | float:
        """Return a coefficient that is given in clocks, converted to seconds."""
        return self.value(name) / self.clock_hz

    @property
    def issue_hz(self) -> Floats | float:
        """Clocks per second, summed over all units."""
        return self.units * self.clock_hz

    @property
    def slots_hz(self) -> Floats | float:
        """Thread instructions per second, summed over all units."""
        return self.hardware.geometry["issue_slots_per_unit"].value * self.issue_hz

    @property
    def issue_share(self) -> float:
        """Instructions of a unit per clock, relative to the GPUs on which attention and experts were timed."""
        return self.hardware.geometry["issue_slots_per_unit"].value / FAMILY_SLOTS

    @property
    def stream_rate(self) -> Floats | float:
        """Bytes per second of a copy from and to DRAM."""
        return self.hardware.memory_bandwidth.value * self.value("dram_efficiency")

    @property
    def lanes(self) -> Engine:
        """Engine of the same units' vector lanes: one MAC per lane and clock at any element width."""
        lanes = self.hardware.geometry["fp32_lanes_per_unit"].value
        slots = self.hardware.geometry["issue_slots_per_unit"].value
        return attrs.evolve(self, mode="vector", macs_per_clock=lanes, slots_per_clock=np.maximum(slots, lanes))

    @property
    def macs_per_s(self) -> Floats | float:
        """Peak MACs per second of the precision at the highest clock."""
        return self.macs_per_clock * self.issue_hz


def carried_engine(engine: Engine) -> Engine:
    """Return the engine of work other than GEMMs with weights: at 16 bits if the engine's precision is narrower."""
    carried = carried_precision(engine.precision)
    if carried == engine.precision or carried not in engine.hardware.peaks:
        return engine
    return Engine.of(engine.hardware, carried)


def _find_macs(peak: Peak) -> Floats | float:
    """Return the MACs of one unit per clock at the peak."""
    return peak.rate.value / FLOPS_PER_MAC / peak.unit_count / peak.clock_hz


def name_memory(memory_type: str) -> str:
    """Return the suffix of the memory coefficients that apply: `stacked`, `protected` or `planar`."""
    if memory_type.startswith("HBM"):
        return "stacked"
    return "protected" if memory_type.endswith("with ECC") else "planar"


def find_near_rate(engine: Engine) -> Floats | float:
    """Return the bandwidth of the last cache in bytes per second, including its efficiency."""
    level = find_last_level(engine.hardware)
    bandwidth = (level.bandwidth or engine.hardware.memory_bandwidth).value
    return bandwidth * engine.value(f"{level.name}_efficiency")


def stream_seconds(engine: Engine, byte_count: Floats, dram_bytes: Floats | None = None) -> Floats:
    """Return the seconds to move `byte_count` bytes through the last cache, and `dram_bytes` of them through DRAM.

    If `dram_bytes` is None, those that the last cache does not hold pass DRAM.
    """
    if dram_bytes is None:
        dram_bytes = byte_count * (1.0 - held_share(byte_count, find_last_level(engine.hardware).capacity.value))
    far = dram_bytes / engine.stream_rate
    return np.maximum(byte_count / find_near_rate(engine), far)
