"""Energy counters: RAPL of CPU packages, NVML of a GPU board.

Both are cumulative, so the energy used is the difference of two readings.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Protocol

from joulemap.system.record import define

POWERCAP: Final = Path("/sys/class/powercap")

J_PER_UJ: Final = 1e-6
J_PER_MJ: Final = 1e-3
HZ_PER_MHZ: Final = 1e6

Clocks = Sequence[int | None]


class EnergyCounter(Protocol):
    """Counter of the energy that a part of the machine uses between `start` and `stop`."""

    scope: str
    """Part of the machine that the counter covers."""
    shortest_s: float
    """Minimum time between `start` and `stop`; in less time the counter is updated too rarely."""

    def start(self) -> None:
        """Read the counter at the start of a measurement."""

    def stop(self) -> float | None:
        """Return the joules used since `start`; None if a reading failed."""


@define
class Zone:
    """One RAPL energy counter in the powercap tree of Linux."""

    path: Path
    range_uj: int
    """Count in microjoules at which the counter starts again at 0; 0 if the kernel does not report it."""

    def read(self) -> int:
        """Return the count in microjoules; raises OSError or ValueError."""
        return int((self.path / "energy_uj").read_text())


def span_uj(before: int, after: int, range_uj: int) -> int | None:
    """Return the microjoules between two readings of a counter.

    A counter that started again at 0 between them needs a known range (`Zone.range_uj`); without it the result is None.
    """
    if after >= before:
        return after - before
    return after - before + range_uj if range_uj >= before else None


class Rapl:
    """Energy of all CPU packages together. A package includes cores and caches, but most DRAM is outside it."""

    scope = "package"
    shortest_s = 0.05

    def __init__(self, zones: Sequence[Zone]) -> None:
        self._zones = zones
        self._before: list[int] = []

    @classmethod
    def find(cls, folder: Path = POWERCAP) -> Rapl | None:
        """Return the counters of all packages; None if there are none or they are not readable."""
        zones = []
        for path in sorted(folder.glob("intel-rapl:*")):
            try:
                if not (path / "name").read_text().startswith("package"):
                    continue
                ranged = path / "max_energy_range_uj"
                zone = Zone(path, int(ranged.read_text()) if ranged.exists() else 0)
                zone.read()
            except (OSError, ValueError):
                continue
            zones.append(zone)
        return cls(zones) if zones else None

    def start(self) -> None:
        """Read the counters at the start of a measurement."""
        self._before = [zone.read() for zone in self._zones]

    def stop(self) -> float | None:
        """Return the joules used by all packages since `start`; None if a reading failed."""
        total = 0
        try:
            for zone, before in zip(self._zones, self._before, strict=True):
                span = span_uj(before, zone.read(), zone.range_uj)
                if span is None:
                    return None
                total += span
        except (OSError, ValueError):
            return None
        return total * J_PER_UJ


class Nvml:
    """Energy of one GPU board, as counted by its driver."""

    scope = "board"
    shortest_s = 0.5
    """Minimum time between `start` and `stop`; the counter is updated at 10 Hz on recent boards."""

    def __init__(self, library: Any, handle: Any) -> None:
        self._library = library
        self._handle = handle
        self._before = 0

    @classmethod
    def find(cls, uuid: str) -> Nvml | None:
        """Return the counter of the GPU with this UUID; None without pynvml, or if the board has no counter."""
        try:
            import pynvml

            pynvml.nvmlInit()
            handle = pynvml.nvmlDeviceGetHandleByUUID(uuid if uuid.startswith("GPU-") else f"GPU-{uuid}")
            pynvml.nvmlDeviceGetTotalEnergyConsumption(handle)
        except Exception:  # no pynvml, no driver and no counter mean the same to the caller
            return None
        return cls(pynvml, handle)

    def lock(self, *clocks: int | None) -> list[bool]:
        """Lock the clocks of core and memory in MHz, None for the driver's own; return which of them this process may
        lock.
        """
        may = []
        for kind, mhz in zip(("Gpu", "Memory"), clocks, strict=True):
            name, ends = (f"Reset{kind}", []) if mhz is None else (f"Set{kind}", [mhz, mhz])
            try:
                getattr(self._library, f"nvmlDevice{name}LockedClocks")(self._handle, *ends)
                may.append(True)
            except self._library.NVMLError:
                may.append(False)
        return may

    def list_clocks(self) -> tuple[Clocks, Clocks]:
        """Return the highest, a middle and the lowest core clock, and all memory clocks, highest first, in MHz.

        A clock that cannot be locked has None alone, which stands for the present one.
        """
        library, board = self._library, self._handle
        try:
            memories = sorted(library.nvmlDeviceGetSupportedMemoryClocks(board), reverse=True)
            cores = sorted(library.nvmlDeviceGetSupportedGraphicsClocks(board, memories[0]), reverse=True)
        except library.NVMLError:
            return [None], [None]
        has_core, has_memory = self.lock(cores[0], memories[0])
        return [cores[0], cores[len(cores) // 2], cores[-1]] if has_core else [None], memories if has_memory else [None]

    def read_clocks(self) -> tuple[float, float]:
        """Return the present clocks of the core and of the memory in Hz."""
        library, board = self._library, self._handle
        core_mhz = library.nvmlDeviceGetClockInfo(board, library.NVML_CLOCK_SM)
        return HZ_PER_MHZ * core_mhz, HZ_PER_MHZ * library.nvmlDeviceGetClockInfo(board, library.NVML_CLOCK_MEM)

    def start(self) -> None:
        """Read the counter at the start of a measurement."""
        self._before = self._library.nvmlDeviceGetTotalEnergyConsumption(self._handle)

    def stop(self) -> float | None:
        """Return the joules used by the board since `start`."""
        return float(self._library.nvmlDeviceGetTotalEnergyConsumption(self._handle) - self._before) * J_PER_MJ
