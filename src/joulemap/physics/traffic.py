"""Bytes that cross each memory level, in closed form from tiling; never fewer than the compulsory bytes.

With C the capacity of the last on-chip level, an operator finds the share `held` of its data there:

    held(B)    = 1 up to B = C, falling on a line to 0 at B = (1 + excess) C;  held = held(R + out), excess 1/2
    DRAM read  = held entering + (1 - held) in + (1 - kept) w + again
    DRAM write = held leaving + (1 - held) out
    again      = (1 - held) (level(C, 1) - R)          of a GEMM, else 0
    memory     = max((R + out) / (LEVEL bandwidth LEVEL_efficiency), DRAM bytes / (memory_bandwidth dram_efficiency))

`entering` and `leaving` are the bytes that enter and leave the model. Runs are in steady state: the same model ran just
before. kept is the share of the reads of weights that the level serves (`kept_share`). Where the compiler pins
weights, it is the share that fits beside the live activations. Bytes that a GEMM reads from beyond a level with one
instance in each of u units:

    edges(m, n, S)  the sides of a block of S outputs in m x n, as square as it can be
    m, n     = edges(M, N, M N / max(1, u / G))         the part of one unit
    m', n'   = edges(m, n, C / (3 p))                   three squares of it fit
    block    = max(share x MACs (1 / m' + 1 / n') p, R)
    A', B'   = (outside part of A) N / n, (outside part of B) M / m
    held     = A' + B' + (⌈smaller operand of a part / C⌉ - 1) x (A' or B', whichever operand of a part is larger)
    level    = max(R, min(held, block))

Source: Goto and van de Geijn, ACM TOMS 34(3), 2008.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from joulemap.physics.kernel import KernelColumns
from joulemap.physics.record.configuration import PRECISION_BYTES
from joulemap.physics.record.hardware import Hardware, MemoryLevel
from joulemap.physics.workload import Floats


def ceil_divide(value: Floats, divisor: Floats | float) -> Floats:
    """Return the whole number of pieces of size `divisor` that cover `value`."""
    return np.ceil(value / np.maximum(divisor, 1e-300))


def tiled_bytes(kernels: KernelColumns, tile_m: Floats | float, tile_n: Floats | float, item_bytes: float) -> Floats:
    """Return the bytes that tiles of this size read of both operands, at least the operands themselves.

    A tile of m x n outputs reads K (m + n) elements; data shared by several tiles is read again by each. Operands that
    the kernel itself computes are on chip and are not read.
    Source: the standard blocked-GEMM count, e.g. Goto and van de Geijn, ACM TOMS 34(3), 2008.
    """
    work = kernels.work
    reads = work.mac_count * (1.0 / np.maximum(tile_m, 1.0) + 1.0 / np.maximum(tile_n, 1.0)) * item_bytes
    return np.maximum(reads * kernels.outside_read_share, kernels.input_bytes + kernels.weight_bytes)


STREAMED: Final = 0.5
"""Excess over a level's capacity, as a share of it, at which a kernel finds nothing of its data there. Source: 3,008
measured rows of all classes: mean error 11.47 % at 0.5, 11.49 % at 1 and 11.42 % with a step, which is no cache. At 1,
nine models of AITemplate on an A100 err by two points more."""

SWEPT: Final = 0.25
"""Excess for a sweep over all weights, whose next use is farthest. Source: 1,286 GEMMs on an L40S
(AIConfigurator), each as one of six layers: mean error 19.6 % at 0.1, 19.8 % at 0.25, 20.7 % at 1."""


def held_share(byte_count: Floats | float, capacity_bytes: Floats | float, excess: float = STREAMED) -> Floats:
    """Return the share of data that a level of this capacity still holds when it is used next.

    All of it if it fits, and less, on a line, the more it exceeds the capacity; nothing from `excess` on.
    """
    over = byte_count / capacity_bytes - 1.0
    share: Floats = np.minimum(np.maximum(1.0 - over / excess, 0.0), 1.0)
    return share


def held_weights(kernels: KernelColumns, capacity_bytes: Floats | float) -> Floats:
    """Return the share of the model's weights that a level of this capacity holds beside its live activations."""
    return held_share(kernels.total_weight_bytes + kernels.peak_activation_bytes, capacity_bytes, SWEPT)


def held_data(kernels: KernelColumns, capacity_bytes: Floats | float) -> Floats:
    """Return the share of each operator's data at the kernel boundary that a level of this capacity holds.

    All steps of a recurrence are checked together.
    """
    return held_share(kernels.working_bytes, capacity_bytes)


def far_bytes(kernels: KernelColumns, held: Floats) -> tuple[Floats, Floats]:
    """Return (read, written) activation bytes per operator from and to beyond a level that holds this share of them."""
    read = kernels.input_bytes - held * (kernels.input_bytes - kernels.entering_bytes)
    return read, kernels.output_bytes - held * (kernels.output_bytes - kernels.leaving_bytes)


def kept_share(kernels: KernelColumns, capacity_bytes: Floats | float, *, keeps_weights: bool) -> Floats:
    """Return the share of the reads of each operator's weights that a level of this capacity serves.

    It serves later reads in a run as far as it holds all weights that are read in between and, if it keeps weights from
    run to run, all reads as far as it holds the weights of the model; each time beside the live activations.
    """
    first: Floats | float = 0.0
    if np.ndim(kernels.repeat_count):
        read = kernels.per_operator(kernels.per_kernel(kernels.weight_bytes)) * kernels.repeat_count
        span = np.where(np.greater(kernels.repeat_count, 1.0), kernels.weight_span_bytes, 0.0)
        first = span / np.maximum(read, 1.0)
    between = kernels.weight_span_bytes + kernels.peak_activation_bytes
    later: Floats = (1.0 - first) * held_share(between, capacity_bytes, SWEPT)
    return np.maximum(later, held_weights(kernels, capacity_bytes)) if keeps_weights else later


def pinned_share(kernels: KernelColumns, capacity_bytes: Floats | float) -> Floats:
    """Return the share of the weights that a compiler pins in a level of this capacity beside the live activations."""
    room = np.maximum(capacity_bytes - kernels.peak_activation_bytes, 0.0)
    return np.asarray(np.minimum(room / np.maximum(kernels.total_weight_bytes, 1.0), 1.0))


def block_edges(rows: Floats, columns: Floats, area: Floats | float) -> tuple[Floats, Floats]:
    """Return (rows, columns) of blocks of at most `area` outputs that tile a GEMM, as square as possible."""
    edge = np.sqrt(area)
    height = np.minimum(rows, np.maximum(edge, area / np.maximum(columns, 1.0)))
    width = np.minimum(columns, np.maximum(edge, area / np.maximum(rows, 1.0)))
    return np.maximum(height, 1.0), np.maximum(width, 1.0)


def level_bytes(
    kernels: KernelColumns, capacity_bytes: Floats | float, item_bytes: float, unit_count: float = 1.0
) -> Floats:
    """Return the bytes that each GEMM reads from beyond a memory level with one instance of this capacity per unit.

    The outputs are cut into one part per unit. A unit may hold its part's smaller operand piece by piece and stream the
    larger past every piece, or use square blocks, three of which fit. The smaller traffic counts. A unit whose smaller
    operand fits reads each operand once, which is the minimum at any capacity. Source: Goto and van de Geijn, ACM TOMS
    34(3), 2008.
    """
    work = kernels.work
    per_group = np.maximum(unit_count / np.maximum(work.gemm_groups, 1.0), 1.0)
    part = work.gemm_m * work.gemm_n / per_group
    rows, columns = block_edges(work.gemm_m, work.gemm_n, part)
    block = tiled_bytes(kernels, *block_edges(rows, columns, capacity_bytes / (3.0 * item_bytes)), item_bytes)
    # A part with all columns reads its rows once; otherwise rows are read once per part along the columns.
    row_copies = np.maximum(work.gemm_n, 1.0) / columns
    column_copies = np.maximum(work.gemm_m, 1.0) / rows
    groups = np.maximum(work.gemm_groups, 1.0)
    left, right, outside_left, outside_right = operand_bytes(kernels)
    left_part, right_part = left / column_copies / groups, right / row_copies / groups
    left_read, right_read = outside_left * row_copies, outside_right * column_copies
    pieces = np.maximum(ceil_divide(np.minimum(left_part, right_part), capacity_bytes), 1.0)
    held = left_read + right_read + (pieces - 1.0) * np.where(left_part >= right_part, left_read, right_read)
    return np.maximum(np.minimum(held, block), kernels.input_bytes + kernels.weight_bytes)


def dram_bytes(
    kernels: KernelColumns, capacity_bytes: Floats | float, *, keeps_weights: bool, pins_weights: bool = False
) -> tuple[Floats, Floats]:
    """Return (read, written) DRAM bytes per operator under a last on-chip level of this capacity.

    Activations of an operator stay on chip as far as its working set fits (`held_share`); data that enters or leaves
    the model always moves. Weights stay on chip between inferences only in a level that keeps them: a cache, not a
    scratchpad (`kept_share`). With `pins_weights`, a compiler chooses the weights that stay. A GEMM that does not fit
    reads operands again for its tiles.
    """
    kept = kept_share(kernels, capacity_bytes, keeps_weights=keeps_weights and not pins_weights)
    if pins_weights and keeps_weights:
        kept = np.maximum(kept, pinned_share(kernels, capacity_bytes))
    weights = (1.0 - kept) * kernels.weight_bytes
    held = held_data(kernels, capacity_bytes)
    read, written = far_bytes(kernels, held)
    crossing = kernels.input_bytes + kernels.weight_bytes
    again = level_bytes(kernels, capacity_bytes, PRECISION_BYTES[kernels.precision]) - crossing
    return read + weights + np.where(kernels.work.has_macs, (1.0 - held) * again, 0.0), written


def memory_time(
    kernels: KernelColumns, hardware: Hardware, last_level: MemoryLevel, *, pins_weights: bool = False
) -> tuple[Floats, Floats, Floats]:
    """Return (seconds, DRAM bytes read, DRAM bytes written) per operator under the last on-chip level.

    All bytes that cross a kernel's boundary pass the last level; bytes that do not fit there also pass DRAM. The time
    is that of the slower of the two. Efficiencies are the coefficients `LEVEL_efficiency` and `dram_efficiency`.
    """
    keeps = last_level.kind == "cache"
    read, written = dram_bytes(kernels, last_level.capacity.value, keeps_weights=keeps, pins_weights=pins_weights)
    bandwidth = (last_level.bandwidth or hardware.memory_bandwidth).value
    level_rate = bandwidth * hardware.coefficient(f"{last_level.name}_efficiency")
    dram_rate = hardware.memory_bandwidth.value * hardware.coefficient("dram_efficiency")
    return np.maximum(kernels.moved_bytes / level_rate, (read + written) / dram_rate), read, written


def operand_bytes(kernels: KernelColumns) -> tuple[Floats, Floats, Floats, Floats]:
    """Return the bytes of (left, right, outside left, outside right) operands of each GEMM, over all groups.

    Outside bytes come from beyond the kernel. For a GEMM with weights, the operands are the input and the weights.
    For two activations, the bytes read are split in proportion to M and N.
    """
    work = kernels.work
    size = work.gemm_m + work.gemm_n
    share = np.divide(work.gemm_m, size, out=np.ones_like(size), where=size > 0)
    own, outside = kernels.own_read_bytes, kernels.input_bytes + kernels.weight_bytes
    against_weight = kernels.own_weight_bytes > 0
    left = np.where(against_weight, own - kernels.own_weight_bytes, own * share)
    outside_left = np.where(against_weight, kernels.input_bytes, outside * share)
    return left, own - left, outside_left, outside - outside_left
