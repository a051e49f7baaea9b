"""Energy counters: RAPL of a processor package, NVML of a GPU board. Both count up; what is used is a difference."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Protocol

from joulemap.system.record import define

POWERCAP: Final = Path("/sys/class/powercap")

J_PER_UJ: Final = 1e-6
J_PER_MJ: Final = 1e-3


class EnergyCounter(Protocol):
    """What tells the energy since it was started."""

    scope: str
    """What it covers."""
    shortest_s: float
    """A window shorter than this holds too few of its ticks."""

    def start(self) -> None:
        """Begin a window."""

    def stop(self) -> float | None:
        """Return the joules since the window began; None where a reading failed."""


@define
class Zone:
    """One counter of the powercap tree."""

    path: Path
    range_uj: int
    """The count after which it begins again at 0; 0 where the kernel does not tell."""

    def read(self) -> int:
        """Return its count in microjoules; raises OSError or ValueError."""
        return int((self.path / "energy_uj").read_text())


def span_uj(before: int, after: int, range_uj: int) -> int | None:
    """Return the count between two readings of a counter that may have begun again once; None if that is unknown."""
    if after >= before:
        return after - before
    return after - before + range_uj if range_uj >= before else None


class Rapl:
    """The packages of a processor, summed. Cores and caches are inside a package, most DRAM is not."""

    scope = "package"
    shortest_s = 0.05

    def __init__(self, zones: Sequence[Zone]) -> None:
        self._zones = zones
        self._before: list[int] = []

    @classmethod
    def find(cls, folder: Path = POWERCAP) -> Rapl | None:
        """Return the packages' counters; None where there are none, or they may not be read."""
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
        """Begin a window."""
        self._before = [zone.read() for zone in self._zones]

    def stop(self) -> float | None:
        """Return the joules of all packages since the window began; None where a reading failed."""
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
    """The whole board of one GPU, as its driver counts it."""

    scope = "board"
    shortest_s = 0.5
    """The counter ticks at 10 Hz on recent boards."""

    def __init__(self, library: Any, handle: Any) -> None:
        self._library = library
        self._handle = handle
        self._before = 0

    @classmethod
    def find(cls, uuid: str) -> Nvml | None:
        """Return the counter of the GPU with this UUID; None without pynvml, or where the board counts none."""
        try:
            import pynvml

            pynvml.nvmlInit()
            handle = pynvml.nvmlDeviceGetHandleByUUID(uuid if uuid.startswith("GPU-") else f"GPU-{uuid}")
            pynvml.nvmlDeviceGetTotalEnergyConsumption(handle)
        except Exception:  # absent, without a driver, or a board without the counter: all the same to the caller
            return None
        return cls(pynvml, handle)

    def start(self) -> None:
        """Begin a window."""
        self._before = self._library.nvmlDeviceGetTotalEnergyConsumption(self._handle)

    def stop(self) -> float | None:
        """Return the joules of the board since the window began."""
        return float(self._library.nvmlDeviceGetTotalEnergyConsumption(self._handle) - self._before) * J_PER_MJ
