"""Measurement of this machine in ten seconds: stream bandwidth, a matrix multiplication, and idle power where readable.

bandwidth = 3 x bytes of an array / time of `a = b + c`, best of several runs on all cores
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

import attrs

from joulemap.device import run_tool
from joulemap.device.energy import Rapl
from joulemap.device.processor import available_cpus
from joulemap.system import UsageError
from joulemap.wing.here.machine import Machine
from joulemap.wing.here.show.word import NO_DMIDECODE, PROBE

if TYPE_CHECKING:
    import numpy as np

ARRAY_BYTES: Final = 256 * 2**20
"""Size in bytes of each array in the bandwidth test; larger than any cache."""

STREAM_S: Final = 4.0
PRODUCT_S: Final = 3.0
IDLE_S: Final = 2.0
EDGE: Final = 2048
"""Rows and columns of the square matrices that are multiplied."""

STREAM_SHARE: Final = 0.85
"""Stream bandwidth over peak bandwidth. Source: assumed; STREAM reaches 80 to 90 % of the peak on two channels."""


def apply_probe(machine: Machine) -> tuple[Machine, str]:
    """Return the machine with its memory bandwidth as measured, and a note with all measured values."""
    idle = measure_idle()
    stream = measure_stream()
    product = measure_product()
    memory = attrs.evolve(machine.memory, known_bytes_per_s=stream / STREAM_SHARE, is_unknown=False, source="--probe")
    kept = tuple(gap for gap in machine.gaps if gap not in (NO_DMIDECODE,))
    return attrs.evolve(machine, memory=memory, gaps=kept), PROBE(stream=stream, product=product, idle=idle)


def measure_stream() -> float:
    """Return the stream bandwidth of all cores in bytes per second."""
    import numpy as np

    workers = available_cpus()
    count = ARRAY_BYTES // 8 // workers * workers
    arrays = [np.ones(count) for _ in range(3)]
    parts = [list(np.split(one, workers)) for one in arrays]

    def add(part: int) -> None:
        target, left, right = (one[part] for one in parts)
        np.add(left, right, out=target)

    with ThreadPoolExecutor(workers) as pool:
        seconds = _find_best(lambda: list(pool.map(add, range(workers))), STREAM_S)
    return 3.0 * 8.0 * count / seconds


def measure_product() -> float:
    """Return the operations per second of an fp32 matrix multiplication with numpy's BLAS library."""
    import numpy as np

    left: np.ndarray[Any, Any] = np.ones((EDGE, EDGE), dtype=np.float32)
    return 2.0 * EDGE**3 / _find_best(lambda: left @ left, PRODUCT_S)


def _find_best(run: Callable[[], object], limit_s: float) -> float:
    """Return the shortest time of a function in seconds, over as many runs as the time limit allows."""
    end, best = time.perf_counter() + limit_s, float("inf")
    while True:
        begin = time.perf_counter()
        run()
        now = time.perf_counter()
        best = min(best, now - begin)
        if now >= end:
            return best


def measure_idle() -> float | None:
    """Return the idle power of CPU packages and NVIDIA GPUs in watts; None if no counter is readable."""
    cards = [float(one) for one in run_tool(
        "nvidia-smi", "--query-gpu=power.draw", "--format=csv,noheader,nounits"
    ).split() if one.replace(".", "", 1).isdecimal()]  # fmt: skip
    packages = Rapl.find()
    if packages is None:
        return sum(cards) if cards else None
    packages.start()
    begin = time.perf_counter()
    time.sleep(IDLE_S)
    joules, seconds = packages.stop(), time.perf_counter() - begin
    return None if joules is None else joules / seconds + sum(cards)


def check_probe(recorded: object) -> None:
    """Raise UsageError if the machine is a recorded one, which cannot be measured."""
    if recorded:
        raise UsageError("--probe measures this machine, --from names a recorded one: leave one out")
