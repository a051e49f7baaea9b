"""Results of the GPU's modules for a small workload on a toy chip, for values computed by hand."""

from __future__ import annotations

import attrs
import numpy as np

from chip import CLOCK_HZ, gpu
from joulemap.domain.operator.name import find_operator
from joulemap.physics.architecture.gpu import ARCHITECTURE, surround_lone_kernels
from joulemap.physics.architecture.gpu.device import Engine, find_device, find_last_level, stream_seconds
from joulemap.physics.architecture.gpu.kernel_class import KERNEL_CLASSES, ClassifiedTraits
from joulemap.physics.architecture.gpu.time import Times, time_operators
from joulemap.physics.fuse import fuse
from joulemap.physics.kernel import KernelColumns, form_kernels
from joulemap.physics.placement import Placement
from joulemap.physics.record.hardware import Hardware
from joulemap.physics.record.workload import WorkloadKey
from joulemap.physics.timing import place
from joulemap.physics.traffic import dram_bytes
from joulemap.physics.workload import WorkloadColumns, columns_of
from joulemap.trace.single import describe

KEY = WorkloadKey(source="test", input_spec="", torch_version="", torchvision_version="", tracer_version="")
TOY = attrs.evolve(gpu(), vendor="NVIDIA")
UNITS = 128
ISSUE_HZ = UNITS * CLOCK_HZ
"""Clocks of all units per second; a unit issues 128 instructions of single threads per clock."""
GPU_BYTES_PER_S = 2e12 * 0.5
"""DRAM bandwidth of copies."""
PRODUCT_BYTES_PER_S = 2e12 * 0.4
"""DRAM bandwidth of a GEMM's operands."""
GPU_HOST_S = 50e-6


def norm(*seconds: float) -> float:
    """Return the norm of a kernel's simultaneous times, with exponent 2.5."""
    return float(sum(one**2.5 for one in seconds) ** 0.4)


def clocks(count: float) -> float:
    """Return the seconds of a number of the toy's clocks."""
    return count / CLOCK_HZ


def single(name: str, batch: int = 1) -> WorkloadColumns:
    """Return a single operator by its name, such as `gemm(m=1,n=2,k=3)`, at a batch size."""
    operator = find_operator(name)
    assert operator is not None, name
    return columns_of(fuse(describe(operator, batch, KEY)))


def with_fp8(hardware: Hardware = TOY) -> Hardware:
    """Return the toy with fp8 at twice the rate of fp16."""
    peak = hardware.peaks["fp16"]
    rate = attrs.evolve(peak.rate, value=2.0 * peak.rate.value)
    twice = attrs.evolve(peak, rate=rate, operations_per_clock=2.0 * peak.operations_per_clock)
    return attrs.evolve(hardware, peaks={**hardware.peaks, "fp8": twice})


def timed(
    work: WorkloadColumns, precision: str, runtime: str = "graph", hardware: Hardware = TOY
) -> tuple[Times, KernelColumns]:
    """Return the times of a workload's operators and its kernels."""
    device = find_device(hardware)
    kernels = surround_lone_kernels(form_kernels(work, precision, runtime))
    level = find_last_level(device)
    read, written = dram_bytes(kernels, level.capacity.value, keeps_weights=level.kind == "cache")
    engine = Engine.of(device, precision)
    return time_operators(kernels, engine, stream_seconds(engine, kernels.moved_bytes, read + written)), kernels


def sort_name(work: WorkloadColumns, precision: str, runtime: str = "graph") -> str:
    """Return the kernel class of the first operator."""
    kernels = form_kernels(work, precision, runtime)
    return KERNEL_CLASSES[int(ClassifiedTraits.of(kernels, Engine.of(TOY, precision)).index[0])].name


def placed(
    work: WorkloadColumns, precision: str, runtime: str = "graph", hardware: Hardware = TOY
) -> tuple[Placement, KernelColumns]:
    """Return (placement, kernels) of a workload."""
    kernels = form_kernels(work, precision, runtime)
    return place(kernels, hardware, ARCHITECTURE), kernels


def kernel_seconds(placement: Placement, kernels: KernelColumns) -> list[float]:
    """Return the time of each kernel."""
    compute, memory = kernels.per_kernel(placement.compute_s), kernels.per_kernel(placement.memory_s)
    seconds: list[float] = (placement.launch_s + np.maximum(compute, memory)).tolist()
    return seconds
