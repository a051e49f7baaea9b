"""What the GPU's modules say of one small workload on a toy: for numbers worked out by hand."""

from __future__ import annotations

import numpy as np

from chip import CLOCK_HZ, gpu
from joulemap.domain.hardware import Hardware
from joulemap.model.architecture.gpu import ARCHITECTURE
from joulemap.model.architecture.gpu.device import Engine, find_device, find_last_level
from joulemap.model.architecture.gpu.product import Products, Tiling, sort_products, tile_products
from joulemap.model.architecture.gpu.time import Times, time_operators
from joulemap.model.kernel import KernelColumns, form_kernels
from joulemap.model.pipeline import place
from joulemap.model.placement import Placement
from joulemap.model.traffic import memory_time
from joulemap.model.workload import WorkloadColumns

TOY = gpu()
UNITS = 128
ISSUE_HZ = UNITS * CLOCK_HZ
MACS_PER_S = {"fp32": 128 * ISSUE_HZ, "fp16": 1024 * 0.8 * ISSUE_HZ}
VECTOR_STEP_S, TENSOR_STEP_S = 200 / CLOCK_HZ, 8 / CLOCK_HZ
"""One step along K of a tile of 64 x 64."""
GPU_BYTES_PER_S = 2e12 * 0.5
"""Of DRAM."""
GAP_S = 0.5e-6
GPU_HOST_S = 50e-6


def norm(*seconds: float, sharpness: float = 3.0) -> float:
    """Return the norm of times that a kernel takes for what it does at once."""
    return float(sum(one**sharpness for one in seconds) ** (1 / sharpness))


def sorted_and_tiled(
    work: WorkloadColumns, precision: str, *, hardware: Hardware = TOY, runtime: str = "graph"
) -> tuple[Products, Tiling, KernelColumns, Engine]:
    """Return the sorts and tiles of the products of a workload."""
    engine = Engine.of(find_device(hardware), precision)
    kernels = form_kernels(work, precision, runtime)
    sorts = sort_products(kernels, engine)
    return sorts, tile_products(kernels, engine, sorts), kernels, engine


def timed(
    work: WorkloadColumns, precision: str, runtime: str = "graph", hardware: Hardware = TOY
) -> tuple[Times, KernelColumns]:
    """Return the times of a workload's operators and its kernels."""
    device = find_device(hardware)
    kernels = form_kernels(work, precision, runtime)
    memory, _, _ = memory_time(kernels, device, find_last_level(device))
    engine = Engine.of(device, precision)
    return time_operators(kernels, engine, memory), kernels


def placed(
    work: WorkloadColumns, precision: str, runtime: str = "graph", hardware: Hardware = TOY
) -> tuple[Placement, KernelColumns]:
    """Return the placement of a workload and its kernels."""
    kernels = form_kernels(work, precision, runtime)
    return place(kernels, hardware, ARCHITECTURE), kernels


def kernel_seconds(placement: Placement, kernels: KernelColumns) -> list[float]:
    """Return the time of each kernel."""
    compute, memory = kernels.per_kernel(placement.compute_s), kernels.per_kernel(placement.memory_s)
    seconds: list[float] = (placement.launch_s + np.maximum(compute, memory)).tolist()
    return seconds
