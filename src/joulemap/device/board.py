"""Power of an NVIDIA board in known states, which separates the parts of its power.

    context idle           no kernel, clocks as the driver sets them
    sleep, spin            blocks that wait or multiply integers, on 1 to 100 % of the units, at three core clocks
    copy, sleep on 1 %     at each memory clock: traffic, and the awake memory without it
    zeros, random          fp16 GEMMs, whose power differs by the data alone

Clocks are read under the load, because a power cap may lower them. Without the right to lock clocks, each state is
measured at the present ones.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Final

from joulemap.device.energy import Clocks, Nvml
from joulemap.device.window import Clock, measure_window
from joulemap.domain.measurement import PRODUCTS, PowerState
from joulemap.system.errors import UsageError
from joulemap.system.record import frozen

SHARES: Final = (0.01, 0.25, 0.5, 1.0)
"""Shares of the units that hold a block."""

NAP_S: Final = 0.01

SPIN: Final = """
extern "C" __global__ void spin(int naps, int turns, int *sink) {
    unsigned value = threadIdx.x;
    for (int turn = 0; turn < turns; ++turn)
        if (naps) __nanosleep(1000); else value = value * 1664525u + 1013904223u;
    if (value == 1u) *sink = turns;
}
"""
"""CUDA kernel that waits or computes for about a millisecond; the store keeps the compiler from removing the loop."""

TURNS: Final = {"sleep": 1_000, "spin": 500_000}
BLOCK_THREADS: Final = 1024

COPIED: Final = 2**26
"""fp32 elements of a copy, beyond any cache."""
COPIED_BYTES: Final = 2 * 4 * COPIED
SIDE: Final = 8192
"""Rows and columns of a GEMM."""


@frozen(kw_only=True)
class Board:
    """Board whose power is measured, and the loads that run on it."""

    name: str
    units: int
    meter: Nvml
    loads: Mapping[str, Callable[[int], object]]
    """Load of a state -> function that starts it on this many units."""
    wait: Callable[[], object]
    clock: Clock = time.perf_counter

    def probe(self, cores: Clocks, memories: Clocks, seconds: float) -> Iterator[tuple[PowerState, float]]:
        """Yield each state and its power in watts, at these core and memory clocks in MHz (None: the present one)."""
        try:
            for load, units, core, memory in self._list_settings(cores, memories):
                self.meter.lock(core, memory)
                start = partial(self.loads[load], units)
                timing = measure_window(start, self.wait, seconds, self.meter, clock=self.clock)
                start()
                core_hz, memory_hz = self.meter.read_clocks()
                self.wait()
                rate = COPIED_BYTES / timing.latency_s if load == "copy" else 0.0
                state = PowerState(load=load, core_hz=core_hz, memory_hz=memory_hz, busy_units=units, bytes_per_s=rate)
                if timing.power_w is not None:
                    yield state, timing.power_w
        finally:
            self.meter.unlock()

    def _list_settings(self, cores: Clocks, memories: Clocks) -> Iterator[tuple[str, int, int | None, int | None]]:
        """Yield load, busy units, core clock and memory clock of each state."""
        self.meter.unlock()
        yield "idle", 0, None, None
        counts = dict.fromkeys(max(1, round(share * self.units)) for share in SHARES)
        for core in cores:
            for load in TURNS:
                yield from ((load, count, core, memories[0]) for count in counts)
        for memory in memories:
            yield "copy", self.units, cores[0], memory
            yield "sleep", 1, cores[0], memory
        for load in PRODUCTS:
            yield load, self.units, cores[0], memories[0]


def open_board() -> Board:
    """Return the first CUDA device; UsageError if there is none, or if its driver counts no energy."""
    import torch

    if not torch.cuda.is_available():
        raise UsageError("there is no CUDA device here: --parts measures an NVIDIA board")
    properties = torch.cuda.get_device_properties(0)
    meter = Nvml.find(str(properties.uuid))
    if meter is None:
        raise UsageError("the energy counter of this board is not readable: --parts needs NVIDIA's driver and pynvml")
    kernel = torch.cuda._compile_kernel(SPIN, "spin")
    sink = torch.zeros(1, dtype=torch.int32, device="cuda")
    source, target = torch.rand(2, COPIED, device="cuda")
    random = torch.randn(SIDE, SIDE, device="cuda", dtype=torch.float16)
    zeros, product = torch.zeros_like(random), torch.empty_like(random)

    def spin(load: str, units: int) -> None:
        arguments = [int(load == "sleep"), TURNS[load], sink]
        kernel(grid=(units, 1, 1), block=(BLOCK_THREADS, 1, 1), args=arguments)

    return Board(
        name=properties.name,
        units=properties.multi_processor_count,
        meter=meter,
        loads={
            "idle": lambda _: time.sleep(NAP_S),
            **{load: partial(spin, load) for load in TURNS},
            "copy": lambda _: target.copy_(source),
            "zeros": lambda _: torch.mm(zeros, zeros, out=product),
            "random": lambda _: torch.mm(random, random, out=product),
        },
        wait=torch.cuda.synchronize,
    )
