"""Machine as its own tools describe it: processor, graphics, neural unit, memory, and unreadable items."""

from __future__ import annotations

from joulemap.domain import Cpu, MemoryConfiguration
from joulemap.system import frozen


@frozen(kw_only=True)
class Graphics:
    """Graphics processor as the system names it; None for a number that no tool reports."""

    name: str
    memory_bytes: float | None = None
    """Dedicated memory; None for a GPU that shares the machine's memory."""
    power_w: float | None = None
    """Current power limit in watts."""
    clock_hz: float | None = None
    """Maximum clock."""
    source: str
    """Name of the tool that reported the GPU."""
    core_count: int | None = None
    """Shader cores, or GPU cores of an Apple chip."""
    memory_bus_bits: int | None = None
    memory_clock_hz: float | None = None
    """Memory clock; each pin transfers two bits per cycle."""
    capability: tuple[int, int] | None = None
    """CUDA compute capability."""


@frozen(kw_only=True)
class Memory:
    """Main memory; None for a number that no tool reports."""

    capacity_bytes: float | None = None
    kind: str = ""
    """Memory standard, such as DDR5 or LPDDR5X; empty if unknown."""
    transfers_per_s: float | None = None
    """Configured data rate of a pin, such as 5.6e9 for DDR5-5600."""
    width_bits: int | None = None
    """Bus width, summed over all channels."""
    known_bytes_per_s: float | None = None
    """Measured bandwidth, or the catalogue bandwidth of a chip that uses this memory."""
    is_unknown: bool = False
    """True if no tool reports the bandwidth, and neither the board nor the processor's package determines it."""
    source: str = ""
    configuration: MemoryConfiguration | None = None
    """Configuration that the user states, such as DDR5-5600x2; None if not stated."""

    @property
    def bytes_per_s(self) -> float | None:
        """Peak bandwidth of all channels: `known_bytes_per_s`, else width in bytes x transfers per second."""
        if self.known_bytes_per_s is not None:
            return self.known_bytes_per_s
        if self.transfers_per_s is None or self.width_bits is None:
            return None
        return self.width_bits / 8 * self.transfers_per_s

    @property
    def reports_rate(self) -> bool:
        """True if this machine's tools or its user state the bandwidth."""
        return self.source == "--probe" or (self.transfers_per_s is not None and self.width_bits is not None)


@frozen(kw_only=True)
class Machine:
    """Chips and memory of a machine, as its tools report them."""

    system: str
    """Operating system: Linux, Darwin or Windows."""
    board: str = ""
    """Name of a single-board computer or of a commercial device."""
    cpu: Cpu | None = None
    graphics: tuple[Graphics, ...] = ()
    neural: tuple[str, ...] = ()
    """Names of neural processing units."""
    memory: Memory = Memory()
    gaps: tuple[str, ...] = ()
    """One line for each unreadable item, with a remedy."""
