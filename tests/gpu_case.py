"""What the GPU's modules say of one small workload on an H100: for numbers worked out by hand."""

from __future__ import annotations

import numpy as np

from joulemap.catalog.load import load_catalogue
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

UNITS = 132
CLOCK_HZ = 1.98e9
ISSUE_HZ = UNITS * CLOCK_HZ
MACS_PER_S = {"fp32": 66.9e12 / 2, "fp16": 989.4e12 / 2}
"""Of an H100 SXM."""


def h100() -> Hardware:
    """Return an H100 SXM."""
    return load_catalogue().find("h100_sxm5")


def norm(*seconds: float, sharpness: float = 3.0) -> float:
    """Return the norm of times that a kernel takes for what it does at once."""
    return float(sum(one**sharpness for one in seconds) ** (1 / sharpness))


def engine_of(hardware: Hardware, precision: str) -> Engine:
    """Return the engine of one device of a board."""
    return Engine.of(find_device(hardware), precision)


def sorted_and_tiled(
    work: WorkloadColumns, precision: str, *, hardware: Hardware | None = None, runtime: str = "graph"
) -> tuple[Products, Tiling, KernelColumns, Engine]:
    """Return the sorts and tiles of the products of a workload."""
    engine = engine_of(hardware or h100(), precision)
    kernels = form_kernels(work, precision, runtime)
    sorts = sort_products(kernels, engine)
    return sorts, tile_products(kernels, engine, sorts), kernels, engine


def timed(
    work: WorkloadColumns, precision: str, runtime: str = "graph", hardware: Hardware | None = None
) -> tuple[Times, KernelColumns]:
    """Return the times of a workload's operators and its kernels."""
    device = find_device(hardware or h100())
    kernels = form_kernels(work, precision, runtime)
    memory, _, _ = memory_time(kernels, device, find_last_level(device))
    engine = Engine.of(device, precision)
    return time_operators(kernels, engine, memory), kernels


def placed(
    work: WorkloadColumns, precision: str, runtime: str = "graph", hardware: Hardware | None = None
) -> tuple[Placement, KernelColumns]:
    """Return the placement of a workload and its kernels."""
    kernels = form_kernels(work, precision, runtime)
    return place(kernels, hardware or h100(), ARCHITECTURE), kernels


def kernel_seconds(placement: Placement, kernels: KernelColumns) -> list[float]:
    """Return the time of each kernel."""
    compute, memory = kernels.per_kernel(placement.compute_s), kernels.per_kernel(placement.memory_s)
    seconds: list[float] = (placement.launch_s + np.maximum(compute, memory)).tolist()
    return seconds
