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

import torch

from joulemap.device.energy import Clocks, Nvml
from joulemap.device.graphics import read_gpu
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

    def probe(self, cores: Clocks, memories: Clocks, seconds: float) -> Iterator[tuple[PowerState, float | None]]:
        """Yield each state and its power in watts, at these core and memory clocks in MHz (None: the present one)."""
        counts, top = sorted({max(1, round(share * self.units)) for share in SHARES}), (cores[0], memories[0])
        settings: list[tuple[str, int, int | None, int | None]] = [
            ("idle", 0, None, None),
            *((load, count, core, memories[0]) for core in cores for load in TURNS for count in counts),
            *(("copy", self.units, cores[0], memory) for memory in memories),
            *(("sleep", 1, cores[0], memory) for memory in memories[1:]),
            *((load, self.units, *top) for load in PRODUCTS),
        ]
        try:
            for load, units, *clocks in settings:
                self.meter.lock(*clocks)
                start = partial(self.loads[load], units)
                timing = measure_window(
                    start, self.wait, max(seconds, self.meter.shortest_s), self.meter, clock=self.clock
                )
                start()
                present = self.meter.read_clocks()
                self.wait()
                rate = COPIED_BYTES / timing.latency_s if load == "copy" else 0.0
                yield PowerState(load, *present, units, rate), timing.power_w
        finally:
            self.meter.lock(None, None)


def describe_clocks(cores: Clocks, seconds: float) -> str:
    """Return the conditions of states at these core clocks in MHz (None: the present one), each of `seconds`."""
    return f"{seconds:g} s at {'the present clock: locking clocks needs root' if None in cores else 'locked clocks'}"


def open_board() -> Board:
    """Return the first CUDA device; UsageError if there is none, or if its driver counts no energy."""
    gpu, uuid = read_gpu(), str(torch.cuda.get_device_properties(0).uuid)
    meter = Nvml.find(uuid)
    if meter is None:
        raise UsageError("the energy counter of this board is not readable: --parts needs NVIDIA's driver and pynvml")
    kernel, sink = torch.cuda._compile_kernel(SPIN, "spin"), torch.zeros(1, dtype=torch.int32, device="cuda")
    source, target = torch.rand(2, COPIED, device="cuda")
    random = torch.randn(SIDE, SIDE, device="cuda", dtype=torch.float16)
    zeros, product = torch.zeros_like(random), torch.empty_like(random)

    def spin(load: str, units: int) -> None:
        kernel((units, 1, 1), (BLOCK_THREADS, 1, 1), [load == "sleep", TURNS[load], sink])

    return Board(
        name=gpu.name,
        units=gpu.unit_count,
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
