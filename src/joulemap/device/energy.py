"""Energy counters: RAPL of CPU packages, NVML of a GPU board.

Both are cumulative, so the energy used is the difference of two readings.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Protocol

from joulemap.system.record import define

POWERCAP: Final = Path("/sys/class/powercap")

J_PER_UJ: Final = 1e-6
J_PER_MJ: Final = 1e-3
HZ_PER_MHZ: Final = 1e6

Clocks = tuple[int | None, ...]


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

    def list_clocks(self) -> tuple[Clocks, Clocks]:
        """Return the highest, a middle and the lowest core clock, and all memory clocks, in MHz, highest first.

        A clock that this process may not lock is None alone: the present one.
        """
        library, board = self._library, self._handle
        cores: Clocks = (None,)
        try:
            memories = sorted(library.nvmlDeviceGetSupportedMemoryClocks(board), reverse=True)
            known = sorted(library.nvmlDeviceGetSupportedGraphicsClocks(board, memories[0]), reverse=True)
            self.lock(known[0], None)
            cores = (known[0], known[len(known) // 2], known[-1])
            self.lock(known[0], memories[0])
        except library.NVMLError:  # no rights, or a board without such clocks
            return cores, (None,)
        return cores, tuple(memories)

    def lock(self, core_mhz: int | None, memory_mhz: int | None) -> None:
        """Lock the clocks that are given; raises NVMLError of the library."""
        if core_mhz is not None:
            self._library.nvmlDeviceSetGpuLockedClocks(self._handle, core_mhz, core_mhz)
        if memory_mhz is not None:
            self._library.nvmlDeviceSetMemoryLockedClocks(self._handle, memory_mhz, memory_mhz)

    def unlock(self) -> None:
        """Return both clocks to the driver; a clock that this process may not lock stays as it is."""
        for reset in (self._library.nvmlDeviceResetGpuLockedClocks, self._library.nvmlDeviceResetMemoryLockedClocks):
            with contextlib.suppress(self._library.NVMLError):
                reset(self._handle)

    def read_clocks(self) -> tuple[float, float]:
        """Return the present clocks of the core and of the memory in Hz."""
        kinds = self._library.NVML_CLOCK_SM, self._library.NVML_CLOCK_MEM
        core, memory = (HZ_PER_MHZ * self._library.nvmlDeviceGetClockInfo(self._handle, kind) for kind in kinds)
        return core, memory

    def start(self) -> None:
        """Read the counter at the start of a measurement."""
        self._before = self._library.nvmlDeviceGetTotalEnergyConsumption(self._handle)

    def stop(self) -> float | None:
        """Return the joules used by the board since `start`."""
        return float(self._library.nvmlDeviceGetTotalEnergyConsumption(self._handle) - self._before) * J_PER_MJ
