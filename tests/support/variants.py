"""Hardware with one number changed, including all values that depend on it."""

from __future__ import annotations

import attrs

from joulemap.physics.record.hardware import Hardware
from joulemap.physics.record.quantity import Quantity
from joulemap.physics.stream import DIVIDED


def scaled(quantity: Quantity, factor: float) -> Quantity:
    """Return the quantity times `factor`."""
    return attrs.evolve(quantity, value=quantity.value * factor)


def with_bandwidth(hardware: Hardware, factor: float) -> Hardware:
    """Return the hardware with `factor` times the DRAM bandwidth."""
    return attrs.evolve(hardware, memory_bandwidth=scaled(hardware.memory_bandwidth, factor))


def with_caches(hardware: Hardware, factor: float) -> Hardware:
    """Return the hardware with `factor` times the on-chip capacities."""
    levels = tuple(attrs.evolve(level, capacity=scaled(level.capacity, factor)) for level in hardware.memory_levels)
    return attrs.evolve(hardware, memory_levels=levels)


def with_units(hardware: Hardware, factor: int) -> Hardware:
    """Return the hardware with `factor` times the units and the corresponding peaks."""
    peaks = {
        precision: attrs.evolve(peak, rate=scaled(peak.rate, factor), unit_count=peak.unit_count * factor)
        for precision, peak in hardware.peaks.items()
    }
    return with_cores(attrs.evolve(hardware, unit_count=scaled(hardware.unit_count, factor), peaks=peaks), factor)


def with_cores(hardware: Hardware, factor: float) -> Hardware:
    """Return the hardware with `factor` times the vector engines and memory levels; unchanged unless its units share
    them.
    """
    if DIVIDED not in hardware.geometry:
        return hardware
    levels = tuple(
        attrs.evolve(
            level,
            capacity=scaled(level.capacity, factor),
            bandwidth=None if level.bandwidth is None else scaled(level.bandwidth, factor),
        )
        for level in hardware.memory_levels
    )
    count = scaled(hardware.geometry["vector_core_count"], factor)
    return attrs.evolve(hardware, memory_levels=levels, geometry={**hardware.geometry, "vector_core_count": count})


def with_more_units(hardware: Hardware, extra: int) -> Hardware:
    """Return the hardware with `extra` more units at every precision and the corresponding peaks.

    If the board has several devices, each gets `extra` units, because devices share no unit.
    """
    extra *= int(hardware.geometry["device_count"].value) if "device_count" in hardware.geometry else 1
    peaks = {
        precision: attrs.evolve(
            peak, rate=scaled(peak.rate, 1.0 + extra / peak.unit_count), unit_count=peak.unit_count + extra
        )
        for precision, peak in hardware.peaks.items()
    }
    total = attrs.evolve(hardware.unit_count, value=float(hardware.units + extra))
    grown = attrs.evolve(hardware, unit_count=total, peaks=peaks)
    return with_cores(grown, 1.0 + extra / hardware.units)


def with_clock(hardware: Hardware, factor: float) -> Hardware:
    """Return the hardware with `factor` times the clock, the maximum clock and the peaks."""
    peaks = {
        precision: attrs.evolve(peak, rate=scaled(peak.rate, factor), clock_hz=peak.clock_hz * factor)
        for precision, peak in hardware.peaks.items()
    }

    def faster(clock: Quantity | None) -> Quantity | None:
        return None if clock is None else scaled(clock, factor)

    return attrs.evolve(
        hardware,
        clock=scaled(hardware.clock, factor),
        clock_base=faster(hardware.clock_base),
        clock_boost=faster(hardware.clock_boost),
        clock_die=faster(hardware.clock_die),
        peaks=peaks,
    )


def with_power(hardware: Hardware, tdp_w: float) -> Hardware:
    """Return the hardware with another power cap."""
    return attrs.evolve(hardware, tdp=attrs.evolve(hardware.tdp, value=tdp_w))


def uncapped(hardware: Hardware) -> Hardware:
    """Return the hardware with a power cap that is never reached."""
    return with_power(hardware, 1e9)
