"""Time of every operator on a SIMT machine: what its kernel costs before it runs, and how long the units are busy.

Elementwise kernels are bound by bytes; whatever computes an address for each element (broadcasts, permutations,
concatenations, pooling) by the rate of index arithmetic, which does not depend on the element's size (`issue`).
Products take (`product`), by sort:

    dense, pointwise, linear, grouped    tiles; a linear one of at most 4 rows K x vector_product_step on tensor cores
                                         up to K = 2048, else its bytes bound it; grouped ‖tiles, group_latency √G‖
                                         on tensor cores, where no kernel of its own takes it
    stem, batched, native grouped        forms of their own
    attention      half of ‖max(b / U, 1) x MACs / b / rate of a unit, max(N, K) / 2 x step‖4 for each product, b blocks

Memory takes the time of its bytes x reduction_traffic_factor for reductions, x batch_norm_traffic_factor for a batch
norm alone. The softmax of a fused attention has no time of its own.

An operator that runs alone may be several kernels: a convolution adds its bias in one of its own, batch norm at
half precision converts its parameters first, a roll moves data once per direction. A compiler merges them, and leaves
products to a library, whose result goes through memory epilogue_passes times more where something follows.

Source: as `product`.
"""

from __future__ import annotations

from typing import Final

import attrs
import numpy as np

from joulemap.model.architecture.gpu.device import Engine
from joulemap.model.architecture.gpu.issue import is_broadcast, issue_work
from joulemap.model.architecture.gpu.product import (
    FEW_ROWS,
    Products,
    Tiling,
    batched_seconds,
    native_seconds,
    plain_blocks,
    smooth_max,
    sort_products,
    stem_seconds,
    tile_products,
)
from joulemap.model.kernel import KernelColumns
from joulemap.model.traffic import ceil_divide
from joulemap.model.workload import Booleans, Floats

ATTENTION_ROWS: Final = 64.0
"""Queries of one thread block of a fused attention kernel."""

CHANNEL_FLOOR: Final = 64.0
"""Channels that a half-precision batch norm kernel loads at least."""

LOOPED_WIDTH: Final = 48.0
"""Channels of a group from which on a library launches a grouped convolution group by group."""

SHARPNESS_OF: Final = {"depthwise_conv": 2.0, "softmax": 2.0, "normalization": 2.0, "batch_norm": 8.0}
"""How abruptly busy time takes over from memory time, by kind of the kernel's leader; 3 for all others."""


@attrs.define(kw_only=True, eq=False)
class Times:
    """Per-operator arrays, seconds."""

    fixed_s: Floats
    """Cost of starting the operator's kernels, if it leads."""
    kernel_count: Floats
    """Kernels that the device runs for the operator, if it leads."""
    busy_s: Floats
    memory_s: Floats
    product_s: Floats
    """The part of busy time that is products."""
    instruction_s: Floats
    """What the instructions of other work than products take at their rate, without waiting."""
    sharpness: Floats
    tiling: Tiling
    native_macs: Floats
    """MAC slots of grouped convolutions that no tiles are cut for; 0 for all else."""
    block_count: Floats
    """Thread blocks of products that are not tiled."""
    looped_count: Floats
    """Further launches of a grouped convolution that the library runs group by group."""
    pass_bytes: Floats
    """What a pass of its own reads and writes again: to add a bias that no compiler merged, to follow a library's
    product with what the compiler fused to it."""


def time_operators(kernels: KernelColumns, engine: Engine, memory_s: Floats) -> Times:
    """Return the times of operators, given those of their bytes (`mapping.traffic.memory_time`)."""
    work = kernels.work
    sorts = sort_products(kernels, engine)
    tiling = tile_products(kernels, engine, sorts)
    native, native_rate, native_macs = native_seconds(kernels, engine, sorts)
    is_native = native_macs > 0.0
    batched = batched_seconds(kernels, engine, sorts)
    attends = _attends(kernels)
    products = np.where(is_native, native, tiling.busy_s)
    if engine.mode == "tensor":
        waits = engine.value("group_latency") * np.sqrt(np.maximum(work.gemm_groups, 1.0))
        products = np.where(sorts.grouped & ~is_native, smooth_max(products, waits), products)
        products = np.where(sorts.stem, stem_seconds(kernels, engine, sorts), products)
    products = np.where(sorts.batched, np.where(attends, _attention_seconds(kernels, engine), batched), products)
    products = np.where(sorts.linear & (work.gemm_m <= FEW_ROWS), _vector_seconds(kernels, engine), products)
    issue = issue_work(kernels, engine, sorts)
    passes = _passes(kernels, engine, attends)
    hidden = attends & work.of_kind("softmax")
    busy = np.where(hidden, 0.0, products + issue.busy_s + passes.busy_s)
    instruction = np.where(is_native, native_rate, issue.instruction_s) + passes.instruction_s
    group_width = work.gemm_k / np.maximum(work.tap_count, 1.0)
    sharpness = np.full_like(busy, 3.0)
    for kind, value in SHARPNESS_OF.items():
        sharpness = np.where(work.of_kind(kind), value, sharpness)
    return Times(
        fixed_s=_fixed_seconds(kernels, engine, sorts, attends) + passes.fixed_s,
        kernel_count=1.0 + passes.count,
        busy_s=busy,
        memory_s=memory_s * _traffic_factor(kernels, engine),
        product_s=products,
        instruction_s=instruction,
        sharpness=sharpness,
        tiling=tiling,
        native_macs=native_macs,
        block_count=plain_blocks(kernels, sorts),
        looped_count=np.where(sorts.grouped & ~is_native & (group_width >= LOOPED_WIDTH), work.gemm_groups, 0.0),
        pass_bytes=passes.moved_bytes,
    )


def _attends(kernels: KernelColumns) -> Booleans:
    """Return the operators of kernels that compute scores, softmax and weighted sum in one: fused attention."""
    work = kernels.work
    has_softmax = kernels.per_kernel(np.where(work.of_kind("softmax"), 1.0, 0.0)) > 0.0
    products = kernels.per_kernel(np.where(work.of_kind("matmul"), 1.0, 0.0))
    mask: Booleans = kernels.per_operator(np.where(has_softmax & (products >= 2.0), 1.0, 0.0)) > 0.0
    return mask


def _vector_seconds(kernels: KernelColumns, engine: Engine) -> Floats:
    """Return busy time of products of so few rows that they are bound by the bytes of the matrix."""
    inner = kernels.work.gemm_k
    if engine.mode != "tensor":
        return np.zeros_like(inner)
    return np.where(inner <= 2048.0, inner * engine.value("vector_product_step"), 0.0)


def _attention_seconds(kernels: KernelColumns, engine: Engine) -> Floats:
    """Return half of a fused attention kernel's busy time, for each of its two products.

    Blocks of 64 queries pass over all keys: time is that of the blocks on all units at a rate of their own, and at
    least the chain of steps along the keys.
    """
    work = kernels.work
    blocks = work.gemm_groups * ceil_divide(work.gemm_m, ATTENTION_ROWS)
    per_block = np.where(blocks > 0.0, work.mac_count / np.maximum(blocks, 1.0), 0.0)
    rate = engine.value("peak_efficiency.attention") * engine.macs_per_s / engine.units
    keys = np.maximum(work.gemm_n, work.gemm_k)
    chain = 0.5 * keys * engine.value("attention_step_clocks") / engine.clock_hz
    return smooth_max(np.maximum(blocks / engine.units, 1.0) * per_block / rate, chain, 4.0)


def _traffic_factor(kernels: KernelColumns, engine: Engine) -> Floats:
    """Return how much longer than its bytes a kernel takes that streams them badly."""
    work = kernels.work
    factor = np.ones_like(work.mac_count)
    factor = np.where(work.of_kind("reduction"), engine.value("reduction_traffic_factor"), factor)
    alone = work.of_kind("batch_norm") & kernels.leads & (kernels.runtime != "fused")
    norm = np.full_like(factor, engine.value("batch_norm_traffic_factor"))
    if engine.width == "narrow":
        channels = np.maximum(kernels.own_weight_bytes / kernels.item_bytes / 4.0, 1.0)
        norm = norm * np.maximum(channels, CHANNEL_FLOOR) / channels
    return np.where(alone, norm, factor)


@attrs.define(kw_only=True, eq=False)
class _Passes:
    fixed_s: Floats
    count: Floats
    busy_s: Floats
    instruction_s: Floats
    moved_bytes: Floats


def _passes(kernels: KernelColumns, engine: Engine, attends: Booleans) -> _Passes:
    """Return the further kernels of operators that run alone."""
    work = kernels.work
    if kernels.runtime == "fused":
        return _epilogue_passes(kernels, engine, attends)
    outputs = work.output_element_count
    weights = kernels.own_weight_bytes / kernels.item_bytes
    products = work.gemm_n * work.gemm_k * np.maximum(work.gemm_groups, 1.0)
    biased = work.of_kind("conv", "depthwise_conv", "grouped_conv") & (weights > 1.000001 * products)
    moved = np.where(biased, 2.0 * outputs * kernels.item_bytes, 0.0)
    small = work.gemm_m <= kernels.batch
    start = engine.value("fixed_cost.broadcast") * np.where(small, engine.value("small_broadcast_ratio"), 1.0)
    index_s = outputs / (engine.value("indexed_elements_per_clock") * engine.issue_hz)
    fixed = np.where(biased, start, 0.0)
    count = np.where(biased, 1.0, 0.0)
    busy = np.where(biased, smooth_max(index_s, engine.stream_seconds(moved)), 0.0)
    if engine.width == "narrow":
        norm = work.of_kind("batch_norm") & kernels.leads
        channels = np.maximum(weights / 4.0, 1.0)
        growth = 1.0 + 0.25 * np.clip(np.log2(channels / 128.0), 0.0, 4.0)
        fixed = np.where(norm, engine.value("fixed_cost.elementwise") * growth, fixed)
        count = np.where(norm, 1.0, count)
    rolled = work.of_operation("roll")
    fixed = np.where(rolled, engine.value("fixed_cost.broadcast"), fixed)
    count = np.where(rolled, 1.0, count)
    return _Passes(
        fixed_s=fixed,
        count=count,
        busy_s=busy,
        instruction_s=busy,
        moved_bytes=moved,
    )


def _epilogue_passes(kernels: KernelColumns, engine: Engine, attends: Booleans) -> _Passes:
    """Return the further kernels of compiled code: what follows a library's product, in one kernel of its own.

    torch.compile leaves products to cuBLAS and cuDNN and generates the rest, so that their result goes through memory
    once more; `epilogue_passes` is how often that happens where something follows, 0 for a compiler that generates
    products too.
    """
    work = kernels.work
    follows = kernels.per_operator(kernels.per_kernel(np.where(kernels.rides, 1.0, 0.0))) > 0.0
    passes = kernels.leads & follows & work.has_macs & ~attends
    often = np.where(passes, engine.value("epilogue_passes"), 0.0)
    moved = 2.0 * often * work.output_element_count * kernels.item_bytes
    return _Passes(
        fixed_s=often * engine.value("fixed_cost.elementwise"),
        count=often,
        busy_s=engine.stream_seconds(moved),
        instruction_s=np.zeros_like(moved),
        moved_bytes=moved,
    )


def _fixed_seconds(kernels: KernelColumns, engine: Engine, sorts: Products, attends: Booleans) -> Floats:
    """Return the cost of starting a kernel of each operator's kind."""
    work = kernels.work
    fixed = np.full_like(work.mac_count, engine.value("fixed_cost.elementwise"))
    broadcast = is_broadcast(kernels) | work.of_kind("data_movement", "uncounted")
    fixed = np.where(broadcast, engine.value("fixed_cost.broadcast"), fixed)
    fixed = np.where(work.of_operation("index"), 2.0 * engine.value("fixed_cost.broadcast"), fixed)
    fills = work.of_operation("fill", "new_zeros", "zeros", "ones", "full")
    fixed = np.where(fills, engine.value("small_fill_ratio") * engine.value("fixed_cost.elementwise"), fixed)
    for kind in ("softmax", "normalization", "reduction", "pool", "depthwise_conv", "grouped_conv"):
        fixed = np.where(work.of_kind(kind), engine.value(f"fixed_cost.{kind}"), fixed)
    if kernels.runtime != "fused":
        fixed = np.where(work.of_kind("batch_norm"), engine.value("fixed_cost.batch_norm"), fixed)
    dense, pointwise = engine.value("fixed_cost.conv"), engine.value("fixed_cost.pointwise_conv")
    fixed = np.where(sorts.dense | sorts.stem, dense, fixed)
    few = work.gemm_m <= FEW_ROWS
    alone = np.where(few, engine.value("few_rows_ratio") * pointwise, pointwise)
    alone = np.where(sorts.strided, 0.5 * (pointwise + dense), alone)
    fixed = np.where(sorts.pointwise, alone, fixed)
    fixed = np.where(sorts.stem, engine.value("stem_ratio") * dense, fixed)
    fixed = np.where(sorts.linear, engine.value("fixed_cost.linear"), fixed)
    fixed = np.where(sorts.batched, engine.value("fixed_cost.matmul"), fixed)
    return np.where(attends & sorts.batched, engine.value("fixed_cost.attention"), fixed)
