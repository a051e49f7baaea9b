"""Clock at which a core runs, timed with a chain of multiplications that wait for each other.

    clock = multiplications x 3 clocks / time

A virtual machine often reports only the clock of its time-stamp counter, which is the base clock of the processor. Five
server processors of the catalogue run 1.4 to 1.5 times as fast with all cores busy, and a core alone is faster still.
Source: latency of IMUL r64, r64 on Intel cores since Nehalem and AMD cores since Zen, uops.info.
"""

from __future__ import annotations

import ctypes
import mmap
import platform
import time
from typing import Final

import attrs

from joulemap.domain.machine import Cpu

LATENCY_CLOCKS: Final = 3
CHAIN: Final = 16
"""Multiplications per turn of the loop."""
TURNS: Final = 40_000
TRIES: Final = 7
"""Number of times that the loop is timed; the shortest counts, because other programs only delay it."""
STEP_HZ: Final = 2.5e8
"""Step to which the clock is rounded, so that two readings agree."""
MOST_GAIN: Final = 3.0
"""Maximum ratio between the timed and the reported clock; beyond it, an emulator answers."""

CODE: Final = (
    bytes.fromhex("f30f1efa48c7c001000000")  # endbr64; mov rax, 1
    + bytes.fromhex("480fafc0") * CHAIN  # imul rax, rax
    + bytes.fromhex("48ffcf75bbc3")  # dec rdi; jnz to the first multiplication; ret
)
"""x86-64 code of a function of one whole number, the turns of its loop."""


def time_clock(cpu: Cpu) -> Cpu:
    """Return the processor at the clock of one busy core, if the system reports only one clock that is lower.

    The processor is unchanged if the code of the chain cannot run here.
    """
    if cpu.clock_max_hz is not None or cpu.clock_hz is None or (seconds := _time_chain()) is None:
        return cpu
    clock = round(TURNS * CHAIN * LATENCY_CLOCKS / seconds / STEP_HZ) * STEP_HZ
    if not cpu.clock_hz < clock <= MOST_GAIN * cpu.clock_hz:
        return cpu
    source = f"multiplications timed on one core, to 0.25 GHz; the system reports {cpu.clock_hz / 1e9:.2f} GHz"
    return attrs.evolve(cpu, clock_hz=clock, clock_source=source)


def _time_chain() -> float | None:
    """Return the seconds of the loop on this core; None where its code is foreign or may not run."""
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        return None
    try:
        page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    except OSError:  # a hardened system
        return None
    page.write(CODE)
    start = ctypes.c_char.from_buffer(page)
    run = ctypes.CFUNCTYPE(None, ctypes.c_uint64)(ctypes.addressof(start))
    taken = []
    for _ in range(TRIES):
        began = time.perf_counter()
        run(TURNS)
        taken.append(time.perf_counter() - began)
    del run, start
    page.close()
    return min(taken)
