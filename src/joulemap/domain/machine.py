"""The processors of a machine as it tells them, before they become a hardware description."""

from __future__ import annotations

import attrs

from joulemap.system.record import frozen


@frozen(kw_only=True)
class CpuCache:
    """Data or unified caches of one level."""

    level: int = attrs.field(validator=attrs.validators.ge(1))
    capacity_bytes: int = attrs.field(validator=attrs.validators.gt(0))
    """Of one instance."""
    instance_count: int = attrs.field(validator=attrs.validators.ge(1))
    """In the whole machine."""
    source: str


@frozen(kw_only=True)
class Cpu:
    """The processor of a machine, all sockets together."""

    name: str
    """As the kernel spells it."""
    vendor: str
    family: int | None
    """Of an x86 processor."""
    core_count: int = attrs.field(validator=attrs.validators.ge(1))
    """Physical cores."""
    threads_per_core: int = attrs.field(validator=attrs.validators.ge(1))
    flags: frozenset[str]
    clock_hz: float | None
    """That peaks are quoted at: the base clock where the machine tells, else the largest, else that of the moment."""
    clock_source: str
    clock_max_hz: float | None
    vector_bits: int | None
    """Length of scalable vectors; None without them."""
    caches: tuple[CpuCache, ...]
    """Nearest to the cores first."""
    memory_bytes: int | None
    is_virtual: bool

    def with_cores(self, count: int) -> Cpu:
        """Return the part of it that a program on `count` cores uses: their private caches, all of the shared ones."""
        if count >= self.core_count:
            return self
        caches = [
            attrs.evolve(cache, instance_count=count) if cache.instance_count >= self.core_count else cache
            for cache in self.caches
        ]
        return attrs.evolve(self, core_count=count, caches=tuple(caches))


@frozen(kw_only=True)
class Gpu:
    """A graphics processor."""

    name: str
    unit_count: int = attrs.field(validator=attrs.validators.ge(1))
    """Streaming multiprocessors."""
    capability: tuple[int, int]
    """CUDA compute capability."""
    clock_hz: float
    """Largest clock of the multiprocessors."""
    memory_bytes: int
    memory_bus_bits: int
    memory_clock_hz: float
    """Half of the data rate of a pin."""
    l2_bytes: int
    power_w: float
    """Power limit."""
