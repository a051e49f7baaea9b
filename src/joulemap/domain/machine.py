"""Processors of a machine as the system reports them, before they become a hardware description."""

from __future__ import annotations

import attrs

from joulemap.system.record import frozen


@frozen(kw_only=True)
class CpuCache:
    """Data or unified caches of one level."""

    level: int = attrs.field(validator=attrs.validators.ge(1))
    capacity_bytes: int = attrs.field(validator=attrs.validators.gt(0))
    """Capacity of one instance."""
    instance_count: int = attrs.field(validator=attrs.validators.ge(1))
    """Instances in the whole machine."""
    source: str


@frozen(kw_only=True)
class Cpu:
    """Processor of a machine, all sockets together."""

    name: str
    """Name as the kernel reports it."""
    vendor: str
    family: int | None = None
    """Family of an x86 processor; None for others."""
    core_count: int = attrs.field(validator=attrs.validators.ge(1))
    """Physical cores."""
    socket_count: int = 1
    threads_per_core: int = attrs.field(validator=attrs.validators.ge(1))
    flags: frozenset[str]
    clock_hz: float | None
    """Clock that peaks are quoted at: the base clock if reported, else the maximum, else the current clock."""
    clock_source: str
    clock_max_hz: float | None = None
    vector_bits: int | None = None
    """Length of scalable vectors; None without them."""
    caches: tuple[CpuCache, ...] = ()
    """Caches, nearest to the cores first."""
    memory_bytes: int | None
    is_virtual: bool = False
    memory_bytes_per_s: float | None = None
    """Peak bandwidth of all memory channels; None if the system does not report the memory."""
    memory_source: str = ""
    """Tool that reported the memory's rate and width; empty if none did."""

    def with_cores(self, count: int) -> Cpu:
        """Return the part of the CPU that a program on `count` cores uses: its private caches and all shared ones."""
        if count >= self.core_count:
            return self
        caches = [
            attrs.evolve(cache, instance_count=count) if cache.instance_count >= self.core_count else cache
            for cache in self.caches
        ]
        return attrs.evolve(self, core_count=count, caches=tuple(caches))


@frozen(kw_only=True)
class Gpu:
    """Graphics processor."""

    name: str
    unit_count: int = attrs.field(validator=attrs.validators.ge(1))
    """Streaming multiprocessors."""
    capability: tuple[int, int]
    """CUDA compute capability."""
    clock_hz: float
    """Maximum clock of the multiprocessors."""
    memory_bytes: int
    memory_bus_bits: int
    memory_clock_hz: float
    """Memory clock: half the data rate of one pin."""
    l2_bytes: int
    power_w: float
    """Power limit."""
