"""A board whose driver and kernels are stand-ins: a clock, a counter of joules, and a known power law."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from joulemap.device.board import COPIED_BYTES, Board
from joulemap.device.energy import Nvml

HZ_PER_MHZ = 1e6
CORES_MHZ = (2520, 1500, 300)
MEMORIES_MHZ = (10501, 5001, 810)
PARKED_MHZ = 210, 405

Law = Callable[[str, float, float, int, float], float]
"""Load, core clock and memory clock in Hz, busy units and bytes per second -> watts."""


class Driver:
    """NVML and the kernels of a board at once: a call takes a millisecond and joules by the law."""

    NVML_CLOCK_SM, NVML_CLOCK_MEM = 1, 2

    class NVMLError(Exception):
        """Refusal of the driver."""

    def __init__(self, law: Law, units: int, *, may_lock: bool = True) -> None:
        self.law, self.units, self.may_lock = law, units, may_lock
        self.now_s = self.spent_j = 0.0
        self.core_mhz: int | None = None
        self.memory_mhz: int | None = None
        self.load = "idle"

    def nvmlDeviceGetSupportedMemoryClocks(self, _board: object) -> list[int]:  # noqa: N802
        return [*MEMORIES_MHZ]

    def nvmlDeviceGetSupportedGraphicsClocks(self, _board: object, _memory: int) -> list[int]:  # noqa: N802
        return [*CORES_MHZ]

    def nvmlDeviceSetGpuLockedClocks(self, _board: object, low: int, high: int) -> None:  # noqa: N802
        assert low == high
        if not self.may_lock:
            raise self.NVMLError("insufficient permissions")
        self.core_mhz = low

    def nvmlDeviceSetMemoryLockedClocks(self, _board: object, low: int, high: int) -> None:  # noqa: N802
        assert low == high
        self.memory_mhz = low

    def nvmlDeviceResetGpuLockedClocks(self, _board: object) -> None:  # noqa: N802
        if not self.may_lock:
            raise self.NVMLError("insufficient permissions")
        self.core_mhz = None

    def nvmlDeviceResetMemoryLockedClocks(self, _board: object) -> None:  # noqa: N802
        self.memory_mhz = None

    def nvmlDeviceGetClockInfo(self, _board: object, kind: int) -> int:  # noqa: N802
        is_idle = self.load == "idle"
        core = self.core_mhz or (PARKED_MHZ[0] if is_idle else CORES_MHZ[0])
        memory = self.memory_mhz or (PARKED_MHZ[1] if is_idle else MEMORIES_MHZ[0])
        return core if kind == self.NVML_CLOCK_SM else memory

    def nvmlDeviceGetTotalEnergyConsumption(self, _board: object) -> float:  # noqa: N802
        return 1e3 * self.spent_j

    def run(self, load: str, units: int) -> None:
        """Run one call."""
        self.load = load
        core, memory = (HZ_PER_MHZ * self.nvmlDeviceGetClockInfo(None, kind) for kind in (1, 2))
        taken_s = 1e-3 * (MEMORIES_MHZ[0] * HZ_PER_MHZ / memory if load == "copy" else 1.0)
        rate = COPIED_BYTES / taken_s if load == "copy" else 0.0
        self.now_s += taken_s
        self.spent_j += taken_s * self.law(load, core, memory, units, rate)

    def board(self) -> Board:
        """Return the board that this driver stands in for."""

        def load(name: str) -> Callable[[int], object]:
            return lambda units: self.run(name, units)

        loads: Mapping[str, Callable[[int], object]] = {
            name: load(name) for name in ("idle", "sleep", "spin", "copy", "zeros", "random")
        }
        return Board(
            name="NVIDIA stand-in",
            units=self.units,
            meter=Nvml(self, None),
            loads=loads,
            wait=lambda: None,
            clock=lambda: self.now_s,
        )
