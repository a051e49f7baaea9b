"""Overhead of the software that runs a pass: operators of kind `overhead`, which compute nothing and have a count.

    device     count x coefficient: gaps between kernels, in which the units wait with their clocks running
    host       count x coefficient: work of the host that overlaps with all kernels and gaps of the pass
    serial     count x coefficient: work of the host between passes

    pass = ‖sum of kernels and gaps, sum of host‖ + sum of serial        ‖a, b‖ = (a^2.5 + b^2.5)^(1/2.5)

The operation of such an operator is one of these three, its variant names what is counted, and hardware under a serving
engine has the coefficient `overhead.VARIANT` in seconds. Other hardware has none, and the operator takes no time. Host
and device sometimes wait for each other, so the times of both combine by the norm of a kernel's compute and memory
time. An action `overhead.VARIANT` counts the same, and `overhead.wait` the seconds in which the device waits for its
host.

Source: the form fits vLLM, TensorRT-LLM and DeepSpeed-MII on 1 to 4 A100 and H100 (LLM-Inference-Bench, commit
4211f5d): 8 % mean error, 10 % if the times are added.
"""

from __future__ import annotations

import attrs
import numpy as np

from joulemap.physics.kernel import KernelColumns
from joulemap.physics.ledger import ActionCounts, Counts
from joulemap.physics.placement import HostTime, Placed
from joulemap.physics.record.hardware import Hardware
from joulemap.physics.record.reference import (
    OVERHEAD,
    OVERHEAD_DEVICE,
    OVERHEAD_HOST,
    OVERHEAD_SERIAL,
    RUNNING,
    WAIT_ACTION,
)
from joulemap.physics.workload import Floats


def add_overhead(placement: Placed, kernels: KernelColumns, hardware: Hardware) -> Placed:
    """Return the placement with the times of overhead; batches of a pass with overhead do not overlap."""
    mine = kernels.work.of_kind(OVERHEAD)
    if not mine.any():
        return placement
    led = mine[kernels.leader]
    device_s, host_s, serial_s = (
        kernels.per_kernel(find_seconds(kernels, hardware, one))
        for one in (OVERHEAD_DEVICE, OVERHEAD_HOST, OVERHEAD_SERIAL)
    )
    return attrs.evolve(
        placement,
        compute_s=np.where(mine, 0.0, placement.compute_s),
        memory_s=np.where(mine, 0.0, placement.memory_s),
        launch_s=np.where(led, device_s, placement.launch_s),
        host=HostTime(overlapped_s=host_s, serial_s=serial_s),
        overlap=None,
    )


def find_seconds(kernels: KernelColumns, hardware: Hardware, operation: str) -> Floats:
    """Return the seconds of each operator of one kind of overhead; 0 for all others."""
    work = kernels.work
    rows = work.of_kind(OVERHEAD) & work.of_operation(operation)
    seconds: Floats = np.zeros(work.operator_count)
    for name in sorted(set(work.variant[rows].tolist())):
        coefficient = hardware.coefficients.get(f"{OVERHEAD}.{name}")
        if coefficient is not None:
            seconds = seconds + np.where(rows & (work.variant == name), work.gemm_m, 0.0) * coefficient.value
    return seconds


def count_overhead(counts: ActionCounts, kernels: KernelColumns, hardware: Hardware) -> ActionCounts:
    """Return the counts with those of overhead: its own actions and running clocks, and nothing of a kernel."""
    mine = kernels.work.of_kind(OVERHEAD)
    if not mine.any():
        return counts
    own = {
        (OVERHEAD, name): np.where(mine & (kernels.work.variant == name), kernels.work.gemm_m, 0.0)
        for name in sorted(set(kernels.work.variant[mine].tolist()))
    }
    return {
        **{key: count if key in RUNNING else np.where(mine, 0.0, count) for key, count in counts.items()},
        **{key: count for key, count in own.items() if key in hardware.reference},
    }


def count_waits(counts: Counts, hardware: Hardware, wait_s: Floats) -> Counts:
    """Return the counts with the seconds in which each operator's device waits for its host."""
    row = hardware.reference.position(WAIT_ACTION)
    return counts if row is None else dict(sorted({**counts, row: wait_s}.items()))
