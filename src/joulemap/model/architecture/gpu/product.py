"""Time of products on a SIMT machine: tiles of outputs, one thread block each, in waves over the units.

With r the rate of one unit, U units, n tiles of m x n outputs and K steps along the inner dimension:

    w           = n / U, rounded up in part: w + (ceil w - w) / (1 + (floor w / 6)^2)
    throughput  = w m n (K + epilogue) / (r min(efficiency / (1 + overhead d (1 / m + 1 / n)), 1))
    chain       = K x step latency x (m n / 4096)^exponent, which one block cannot beat however idle the chip is
    busy        = min over tile shapes of (throughput^3 + chain^3)^(1/3)

Groups of a grouped convolution wait for one another in part: their chain is sqrt(groups) times that of one, whatever
the tile. d is the operand bytes that a unit's peak asks for each clock, relative to the unit that the overhead was
found on. Where n < U the inner dimension may be split over several blocks, which then add up their parts.

Source: the forms are those found on a measured H200 (graph replay of cuDNN and cuBLAS kernels), whose coefficients the
catalogue carries as fractions of peak and as clocks.
"""

from __future__ import annotations

from typing import Final

import attrs
import numpy as np

from joulemap.domain.configuration import FLOPS_PER_MAC
from joulemap.model.architecture.gpu.device import Engine
from joulemap.model.kernel import KernelColumns
from joulemap.model.traffic import ceil_divide
from joulemap.model.workload import Booleans, Floats

TILES: Final = {
    "vector": ((32, 32), (64, 32), (64, 64), (128, 64), (128, 128)),
    "tensor": ((64, 64), (128, 64), (128, 128), (256, 128)),
}
"""Tile shapes of the kernels that cuBLAS and cuDNN choose from. Source: kernel names in H200 profiles."""

REFERENCE_TILE_AREA: Final = 64.0 * 64.0
"""Tile at which the step latency is quoted."""

PLAIN_EDGE: Final = 64.0
"""Edge of the blocks of products that are not cut by shape: batched and grouped ones, images, attention."""

SMOOTHING_WAVES: Final = 6.0
"""Beyond about this many waves, blocks are out of step and the last wave fills up."""

SPLIT_STEPS: Final = 128.0
"""A part of a split inner dimension is at least this long."""

ALIGNMENT_BYTES: Final = 16.0
"""Channels that are no multiple of this keep a tensor-core kernel from its widest loads."""

SPLITS: Final = (1.0, 2.0, 4.0)
"""Parts that an inner dimension is cut into, where there are units for all of them."""

NATIVE_WIDTH: Final = 32.0
"""Channels that a kernel for small groups pads each to."""

SHARPNESS: Final = 3.0


def smooth_max(first: Floats, second: Floats, sharpness: Floats | float = SHARPNESS) -> Floats:
    """Return the p-norm of two times: near the larger, and somewhat above it where they are alike."""
    if isinstance(sharpness, float) and sharpness == SHARPNESS:
        cubes: Floats = np.cbrt(first * first * first + second * second * second)
        return cubes
    larger = np.maximum(np.maximum(first, second), 1e-30)
    total: Floats = larger * ((first / larger) ** sharpness + (second / larger) ** sharpness) ** (1.0 / sharpness)
    return total


@attrs.define(kw_only=True, eq=False)
class Tiling:
    """Products cut into tiles. Per-operator arrays; zero where there is no product."""

    busy_s: Floats
    count: Floats
    waves: Floats
    rows: Floats
    columns: Floats
    executed_macs: Floats
    """MAC slots of the tiles, padding included."""
    occupancy: Floats
    """Part of the units that have a block, over the time of the product: whole waves less what the last lacks."""
    multiplication_share: Floats
    """Multiplications over MACs: below 1 under Winograd's algorithm."""


FEW_ROWS: Final = 4.0
"""A product of at most so many rows is one of a matrix with a few vectors, which no tile pads."""


@attrs.define(kw_only=True, eq=False)
class Products:
    """Which operators are products, and of which sort. Masks over operators; each product is of exactly one sort."""

    dense: Booleans
    """Convolutions of several taps."""
    pointwise: Booleans
    """Convolutions of one tap."""
    stem: Booleans
    """Convolutions of several taps over an image, fewer channels than one wide load has, on tensor cores."""
    linear: Booleans
    batched: Booleans
    """Products of two activations."""
    grouped: Booleans
    strided: Booleans
    """Convolutions, of any sort, that leave out input positions."""

    @property
    def tiled(self) -> Booleans:
        """All that a tiled kernel computes as one product."""
        mask: Booleans = self.dense | self.pointwise | self.linear | self.grouped
        return mask


STEM_CHANNELS: Final = 8.0
LEFT_OUT: Final = 1.9
"""Input positions for each output position from which on a convolution counts as strided."""


def sort_products(kernels: KernelColumns, engine: Engine) -> Products:
    """Return the sorts of the products of these kernels on an engine."""
    work = kernels.work
    conv = work.of_kind("conv") & work.has_macs
    channels = work.gemm_k / np.maximum(work.tap_count, 1.0)
    positions = input_positions(kernels)
    several = work.tap_count > 1.0
    image = conv & several & (channels < STEM_CHANNELS) & (engine.mode == "tensor")
    matmul = work.of_kind("matmul") & work.has_macs
    return Products(
        dense=conv & several & ~image,
        pointwise=conv & ~several,
        stem=image,
        linear=(work.of_kind("linear") & work.has_macs) | (matmul & (work.gemm_groups <= 1.0)),
        batched=matmul & (work.gemm_groups > 1.0),
        grouped=work.of_kind("grouped_conv") & work.has_macs,
        strided=work.of_kind("conv", "grouped_conv", "depthwise_conv") & (positions > LEFT_OUT * work.gemm_m),
    )


def input_positions(kernels: KernelColumns) -> Floats:
    """Return the positions of a convolution's input, all samples: elements read over channels."""
    work = kernels.work
    channels = work.gemm_k / np.maximum(work.tap_count, 1.0) * np.maximum(work.gemm_groups, 1.0)
    elements = (kernels.own_read_bytes - kernels.own_weight_bytes) / kernels.item_bytes
    return elements / np.maximum(channels, 1.0)


def tile_products(kernels: KernelColumns, engine: Engine, sorts: Products) -> Tiling:
    """Return the best tile shape of each tiled product, and the time that it keeps the units busy."""
    work = kernels.work
    gain = _winograd_gain(kernels, engine, sorts)
    found = np.flatnonzero(sorts.tiled)
    efficiency, epilogue, step_s, inner, split_limit = (column[found] for column in _settings(kernels, engine, sorts))
    m, n, groups = work.gemm_m[found], work.gemm_n[found], np.maximum(work.gemm_groups[found], 1.0)
    edges = np.array(TILES[engine.mode], dtype=np.float64)[:, :, None]
    tile_m, tile_n = edges[:, 0], edges[:, 1]
    area = tile_m * tile_n
    overhead = engine.value("tile_overhead") * _operand_demand(engine) * (1.0 / tile_m + 1.0 / tile_n)
    rate = engine.macs_per_s / engine.units * np.minimum(efficiency / (1.0 + overhead), 1.0) * gain[found]
    tiles = groups * ceil_divide(m, tile_m) * ceil_divide(n, tile_n)
    growth = (area / REFERENCE_TILE_AREA) ** engine.value("k_step_exponent")
    growth = np.where(sorts.grouped[found], np.sqrt(groups), growth)
    split_s = engine.value("split_cost")
    best = np.full(tiles.shape, np.inf)
    taken = np.zeros(tiles.shape)
    for most in SPLITS:
        split = np.minimum(split_limit, most)
        share = tiles * (split / engine.units)
        steps = inner / split
        throughput = _waves_taken(share) * (area / rate) * (steps + epilogue)
        seconds = smooth_max(throughput, (steps * step_s) * growth) + split_s * np.log2(split)
        better = (seconds < best) & ((share <= 1.0) | (split == 1.0))
        best = np.where(better, seconds, best)
        taken = np.where(better, share, taken)
    shape = np.argmin(best, axis=0)
    each = np.arange(len(found))

    def spread(values: Floats, elsewhere: float = 0.0) -> Floats:
        column = np.full(work.operator_count, elsewhere)
        column[found] = values
        return column

    executed = tiles[shape, each] * area[shape, 0] * inner
    few = sorts.linear & (work.gemm_m <= FEW_ROWS)
    return Tiling(
        busy_s=spread(best[shape, each]),
        count=spread(tiles[shape, each]),
        waves=spread(np.ceil(taken[shape, each])),
        rows=spread(tile_m[shape, 0], PLAIN_EDGE),
        columns=spread(tile_n[shape, 0], PLAIN_EDGE),
        executed_macs=np.where(few, work.mac_count, spread(executed)),
        occupancy=spread(taken[shape, each] / _waves_taken(taken[shape, each])),
        multiplication_share=1.0 / gain,
    )


def _waves_taken(share: Floats) -> Floats:
    """Return waves in units of a full one's time: whole at first, the last one less and less empty after several."""
    floor = np.floor(share)
    filled = share + (np.ceil(share) - share) / (1.0 + (floor / SMOOTHING_WAVES) ** 2)
    return np.maximum(filled, 1.0)


def _operand_demand(engine: Engine) -> float:
    """Return MACs per clock times operand bytes of one unit, relative to those that the tile overhead holds for."""
    peak = engine.hardware.peaks[engine.precision]
    demand = peak.operations_per_clock / FLOPS_PER_MAC * engine.item_bytes
    return demand / engine.value("tile_overhead_demand")


def _settings(kernels: KernelColumns, engine: Engine, sorts: Products) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """Return (share of peak, epilogue steps, step seconds, inner dimension, most splits) of each tiled product."""
    work = kernels.work
    on_tensor = engine.mode == "tensor"
    efficiency = np.where(sorts.linear, engine.value("peak_efficiency.linear"), engine.value("peak_efficiency.conv"))
    channels = work.gemm_k / np.maximum(work.tap_count, 1.0)
    if on_tensor:
        unaligned = _unaligned(kernels, engine, channels)
        mixed = (sorts.dense & (channels % (ALIGNMENT_BYTES / engine.item_bytes) != 0)) | (sorts.pointwise & unaligned)
        efficiency = np.where(mixed, engine.value("peak_efficiency.unaligned"), efficiency)
        width = np.maximum(channels / engine.value("grouped_width"), 1.0)
        wide = engine.value("peak_efficiency.grouped") * width ** engine.value("grouped_width_exponent")
        efficiency = np.where(sorts.grouped, np.minimum(wide, efficiency), efficiency)
    strided = sorts.strided & sorts.pointwise
    efficiency = np.where(strided, efficiency / engine.value("strided_slowdown"), efficiency)
    steps = engine.value("epilogue_steps")
    epilogue = np.where(sorts.linear, engine.value("epilogue_ratio.linear") * steps, steps)
    epilogue = np.where(sorts.dense | sorts.grouped, engine.value("epilogue_ratio.conv") * steps, epilogue)
    step = engine.value("k_step_clocks") / engine.clock_hz
    step_s = np.where(sorts.linear, engine.value("k_step_ratio.linear") * step, step)
    step_s = np.where(sorts.dense, engine.value("k_step_ratio.conv") * step, step_s)
    inner = work.gemm_k
    if on_tensor:
        block = engine.value("channel_block")
        inner = np.where(sorts.dense, ceil_divide(channels, block) * block * work.tap_count, inner)
    splits = np.where(sorts.linear, engine.value("split_limit.linear"), engine.value("split_limit.conv"))
    splits = np.where(sorts.grouped, 1.0, np.minimum(splits, np.maximum(work.gemm_k / SPLIT_STEPS, 1.0)))
    return efficiency, epilogue, step_s, inner, np.maximum(splits, 1.0)


def _unaligned(kernels: KernelColumns, engine: Engine, channels: Floats) -> Booleans:
    """Return where rows of either operand begin off the boundary of a wide load, in products large enough to care."""
    multiple = ALIGNMENT_BYTES / engine.item_bytes
    off = (channels % multiple != 0) | (kernels.work.gemm_n % multiple != 0)
    mask: Booleans = off & (kernels.work.gemm_m >= 256.0)
    return mask


def _is_power_of_two(values: Floats) -> Booleans:
    safe = np.maximum(values, 1.0)
    mask: Booleans = 2.0 ** np.round(np.log2(safe)) == safe
    return mask


def _winograd_gain(kernels: KernelColumns, engine: Engine, sorts: Products) -> Floats:
    """Return how much faster than direct 3 x 3 convolutions of stride 1 are, at least 1.

    The fewer multiplications of Winograd's algorithm pay where there are many channels to transform and enough
    tiles to fill the units. Source: Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", 2016: 2.25
    times fewer for F(2x2, 3x3).
    """
    work = kernels.work
    if engine.mode == "tensor":
        return np.ones_like(work.gemm_m)
    channels = work.gemm_k / np.maximum(work.tap_count, 1.0)
    suits = (sorts.dense | sorts.grouped) & (work.tap_count == 9.0) & ~sorts.strided
    fewest = np.minimum(channels, work.gemm_n)
    depth = np.minimum(1.0, fewest / engine.value("winograd_channels"))
    fill = np.clip(work.gemm_m * work.gemm_n / engine.value("winograd_outputs"), 0.0, 1.0)
    return np.where(suits, 1.0 + engine.value("winograd_gain") * depth * fill, 1.0)


def stem_seconds(kernels: KernelColumns, engine: Engine, sorts: Products) -> Floats:
    """Return busy time of convolutions over images on tensor cores, which cannot load three channels at a time.

    Each output costs the arithmetic of its address, in blocks of 32 channels, and its MACs run at the unaligned rate,
    or, where windows do not overlap (patches), at that of the plain kernel that takes them one channel at a time.
    """
    work = kernels.work
    outputs = work.gemm_m * ceil_divide(work.gemm_n, 32.0) * 32.0
    is_patch = input_positions(kernels) >= 0.99 * work.gemm_m * work.tap_count
    rate = np.where(is_patch, engine.value("peak_efficiency.patch"), engine.value("peak_efficiency.stem"))
    busy = outputs / (engine.value("indexed_elements_per_clock") * engine.issue_hz)
    busy = busy + work.mac_count / (rate * engine.macs_per_s)
    chain = work.gemm_k * engine.value("stem_step_clocks") / engine.clock_hz
    return np.where(sorts.stem, smooth_max(busy, chain), 0.0)


def plain_blocks(kernels: KernelColumns, sorts: Products) -> Floats:
    """Return the blocks of products that are not cut by shape: of two activations, and over images; 0 for others."""
    work = kernels.work
    blocks = work.gemm_groups * ceil_divide(work.gemm_m, PLAIN_EDGE) * ceil_divide(work.gemm_n, PLAIN_EDGE)
    return np.where(sorts.batched | sorts.stem, blocks, 0.0)


def batched_seconds(kernels: KernelColumns, engine: Engine, sorts: Products) -> Floats:
    """Return busy seconds of products of two activations: a fixed time for each block, and its MACs."""
    work = kernels.work
    blocks = plain_blocks(kernels, sorts)
    fixed = engine.value("batched_block_clocks") / engine.issue_hz
    macs = REFERENCE_TILE_AREA * ceil_divide(work.gemm_k, 16.0) * 16.0
    rate = engine.macs_per_s * engine.value("peak_efficiency.batched")
    busy = np.maximum(blocks, engine.units) * (fixed + macs / rate)
    return np.where(sorts.batched, busy, 0.0)


def native_seconds(kernels: KernelColumns, engine: Engine, sorts: Products) -> tuple[Floats, Floats, Floats]:
    """Return (busy seconds, seconds at the rate alone, MAC slots) of grouped convolutions in one kernel; 0 for others.

    Groups of a power of two of at most 32 channels have a kernel of their own, bound by memory where all channels are
    a multiple of 64, else by the groups' padding to 32. Other groups of at most 48 channels fall back to a kernel of
    constant rate; wider groups run as products, one after the other, and are none of these.
    """
    work = kernels.work
    if engine.mode != "tensor":
        zero = np.zeros_like(work.gemm_m)
        return zero, zero, zero
    width = work.gemm_k / np.maximum(work.tap_count, 1.0)
    own = sorts.grouped & _is_power_of_two(width) & (width <= NATIVE_WIDTH)
    slow = sorts.grouped & ~own & (width <= 48.0)
    aligned = width * work.gemm_groups % 64.0 == 0.0
    padded_macs = work.mac_count * NATIVE_WIDTH / np.maximum(width, 1.0)
    padded = padded_macs / (engine.value("peak_efficiency.padded") * engine.macs_per_s)
    native = np.where(aligned, engine.value("native_group_time"), padded)
    fallback = work.mac_count / (engine.value("peak_efficiency.fallback") * engine.macs_per_s)
    latency = engine.value("group_latency") * np.sqrt(np.maximum(work.gemm_groups, 1.0))
    busy = np.where(own, native, np.where(slow, smooth_max(fallback, latency), 0.0))
    rate = np.where(own, np.where(aligned, 0.0, padded), np.where(slow, fallback, 0.0))
    return busy, rate, np.where(own, padded_macs, np.where(slow, work.mac_count, 0.0))
