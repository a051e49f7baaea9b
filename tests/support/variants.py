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


def with_power(hardware: Hardware, tdp_w: float) -> Hardware:
    """Return the hardware with another power cap."""
    return attrs.evolve(hardware, tdp=attrs.evolve(hardware.tdp, value=tdp_w))


def uncapped(hardware: Hardware) -> Hardware:
    """Return the hardware with a power cap that is never reached."""
    return with_power(hardware, 1e9)
