"""Bytes that cross each memory level, in closed form from tiling. Nothing here is below the compulsory bytes."""

from __future__ import annotations

import numpy as np

from joulemap.columns.workload import Booleans, Floats
from joulemap.domain.hardware import Hardware, MemoryLevel
from joulemap.mapping.kernel import KernelColumns


def ceil_divide(value: Floats, divisor: Floats | float) -> Floats:
    """Return the whole number of pieces of size `divisor` that cover `value`."""
    return np.ceil(value / np.maximum(divisor, 1e-300))


def tiled_bytes(kernels: KernelColumns, tile_m: Floats | float, tile_n: Floats | float, item_bytes: float) -> Floats:
    """Return the bytes that tiles of this size read of both operands, never below the operands themselves.

    A tile of m x n outputs reads K (m + n) elements; a working set read through more tiles is read again. Operands
    that the kernel itself makes are on chip and are not read.
    Source: the standard blocked-GEMM count, e.g. Goto and van de Geijn, ACM TOMS 34(3), 2008.
    """
    work = kernels.work
    reads = work.mac_count * (1.0 / np.maximum(tile_m, 1.0) + 1.0 / np.maximum(tile_n, 1.0)) * item_bytes
    return np.maximum(reads * kernels.outside_read_share, kernels.input_bytes + kernels.weight_bytes)


def is_resident(kernels: KernelColumns, capacity_bytes: float) -> Booleans:
    """Whether each operator's kernel finds its whole working set in a level of this capacity."""
    return kernels.per_operator(kernels.per_kernel(kernels.moved_bytes)) <= capacity_bytes


def dram_bytes(kernels: KernelColumns, capacity_bytes: float, *, keeps_weights: bool) -> tuple[Floats, Floats]:
    """Return (read, written) DRAM bytes per operator under a last on-chip level of this capacity.

    Activations of a kernel whose working set fits are found on chip and stay there; what enters or leaves the model
    always moves. Weights are found on chip only in a level that keeps them between inferences (a cache, not a
    scratchpad) and only if the whole model and its live activations fit: a cyclic sweep through anything larger
    evicts each weight before its next use. Where a GEMM's smaller operand does not fit, the larger is read
    again for every part of it.
    """
    fits = is_resident(kernels, capacity_bytes)
    kept = keeps_weights and kernels.total_weight_bytes + kernels.peak_activation_bytes <= capacity_bytes
    weights = np.zeros_like(kernels.weight_bytes) if kept else kernels.weight_bytes
    read = np.where(fits, kernels.entering_bytes, kernels.input_bytes)
    written = np.where(fits, kernels.leaving_bytes, kernels.output_bytes)
    smaller, larger = operand_bytes(kernels)
    passes = np.maximum(ceil_divide(smaller, capacity_bytes), 1.0)
    again = np.where((kernels.work.mac_count > 0) & ~fits, (passes - 1.0) * larger, 0.0)
    return read + weights + again, written


def memory_time(kernels: KernelColumns, hardware: Hardware, last_level: MemoryLevel) -> tuple[Floats, Floats, Floats]:
    """Return (seconds, DRAM bytes read, DRAM bytes written) per operator under the last on-chip level.

    Everything that crosses a kernel's boundary goes through the last level, what does not fit there through DRAM too;
    the slower of the two counts. Efficiencies are the coefficients `LEVEL_efficiency` and `dram_efficiency`.
    """
    read, written = dram_bytes(kernels, last_level.capacity.value, keeps_weights=last_level.kind == "cache")
    bandwidth = (last_level.bandwidth or hardware.memory_bandwidth).value
    level_rate = bandwidth * hardware.coefficient(f"{last_level.name}_efficiency")
    dram_rate = hardware.memory_bandwidth.value * hardware.coefficient("dram_efficiency")
    return np.maximum(kernels.moved_bytes / level_rate, (read + written) / dram_rate), read, written


def operand_bytes(kernels: KernelColumns) -> tuple[Floats, Floats]:
    """Return (smaller, larger) operand of each GEMM as it must be held and streamed.

    Against a weight these are the weight and the input; two activations are taken per group, because groups are
    computed one after the other, and streamed together.
    """
    work = kernels.work
    item = np.divide(
        kernels.own_read_bytes,
        work.gemm_groups * work.gemm_k * (work.gemm_m + work.gemm_n),
        out=np.zeros_like(kernels.own_read_bytes),
        where=(work.gemm_k > 0) & (work.gemm_m + work.gemm_n > 0),
    )
    against_weight = kernels.weight_bytes > 0
    smaller = np.where(
        against_weight,
        np.minimum(kernels.input_bytes, kernels.weight_bytes),
        np.minimum(work.gemm_m, work.gemm_n) * work.gemm_k * item,
    )
    larger = np.where(against_weight, np.maximum(kernels.input_bytes, kernels.weight_bytes), kernels.input_bytes)
    return smaller, larger
