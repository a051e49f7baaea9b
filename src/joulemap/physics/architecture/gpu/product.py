"""Time of GEMMs on a SIMT machine: tiles of outputs, one thread block each, in waves over the units.

A unit computes q MACs per clock; there are U units, at the highest clock f. Blocks have b_m x b_n outputs, and K is cut
into s parts. Weights are stored at the share w of the bytes at which they are multiplied:

    waves    = ceil(G / g) ceil(ceil(m / b_m) ceil(n / b_n) s g / U)         of G groups g run at once, mostly all
    step     = max(a_m b_n / (share q), (b_m b_n + (min(b_m, m) + w min(b_n, n)) operand_reach) / issue)  one of K
    compute  = max(waves (K / s step + epilogue) + √waves turn, ceil(G / g) K / s x lone_step x (b_m + b_n)) / f
    split    = [s > 1] (split_clocks / f + 8 m n s / (7 memory bandwidth))                 parts are added up
    GEMM     = least over tiles and s of ‖compute, memory‖ + split

A unit loads q p / operand_reach bytes of operands per clock. This rate sets the cost of small tiles, and the speed at
which few units can stream weights. Splitting K lets GEMMs of few outputs use the whole chip. One side of a tile is at
least `instruction_edge`, the rows that an instruction of the tensor cores takes at the full rate. If a GEMM has fewer
rows than a tile, a library makes columns the long side of instructions, and lanes compute no rows that do not exist.
Then a_m is padded only to INSTRUCTION_ROWS, but loading the operands takes as long as before.

An engine builds a kernel per shape and takes the fastest of more tiles than a library chooses from. If an operator
follows a convolution, each block does additional work outside its loop, a turn: scales, residual, requantization. Turns
of successive blocks on a unit overlap, so the square root of their number counts.

Source: fitted on GEMMs that others measured on H200, A100 and B200 (cuBLAS under vLLM and SGLang) and on one H200.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from joulemap.physics.architecture.gpu.device import Engine
from joulemap.physics.column import before_points, drop_axes, merge_axes
from joulemap.physics.placement import p_norm
from joulemap.physics.traffic import ceil_divide
from joulemap.physics.workload import Booleans, Floats
from joulemap.system.record import define

TILES: Final = {
    "vector": ((32, 32), (64, 64), (128, 128)),
    "tensor": ((64, 64), (128, 128)),
}
"""Engine mode -> tile sizes (rows, columns) from which a library chooses. Predictions with more sizes fit worse,
because libraries do not find the best of many.
"""

BUILT_TILES: Final = {
    "vector": TILES["vector"],
    "tensor": ((64, 64), (128, 64), (128, 128), (256, 64), (256, 128)),
}
"""Engine mode -> tile sizes (rows, columns) that an inference engine measures when it builds a kernel."""

WHOLE_TILES: Final = ((128, 128), (256, 128))
"""Tile sizes (rows, columns) of fp4 GEMMs on tensor cores without their own memory. Few rows fill a tile, and K is not
cut. Source: CUTLASS kernels for compute capability 12.0 of vLLM and SGLang,
nvfp4_scaled_mm_sm120_kernels.cu; 13 GEMMs of 1 to 1,024 rows on an RTX 5090 (flashinfer pull request 3051, SGLang
pull request 38170) take 0.2 to 0.7 of the measured time with the tiles of other precisions, 0.7 to 1.3 with these.
"""

NATIVE_TILES: Final = dict.fromkeys(TILES, ((64, 32), (128, 32)))
"""Engine mode -> tile sizes (rows, columns) for small groups that one tensor core kernel computes side by side."""

SPLITS: Final = {"vector": (1.0, 2.0, 4.0, 8.0), "tensor": (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)}
"""Engine mode -> numbers of parts into which K may be cut."""

INSTRUCTION_ROWS: Final = {"vector": 1.0, "tensor": 8.0}
"""Engine mode -> rows of an instruction, to whose multiple few rows are padded: the short side of one for tensor cores.

Source: PTX ISA, mma.m16n8k16, wgmma.m64n8k16.
"""

K_BLOCK: Final = {"vector": 8.0, "tensor": 32.0}
"""Engine mode -> elements along K that a thread block processes at a time."""

SPLIT_WAVES: Final = {"vector": 1.0, "tensor": np.inf}
"""Engine mode -> maximum waves of a GEMM whose K is cut. Vector lanes cut short sums only if all parts find a free
unit.
"""

LONG_PART: Final = 2048.0
"""Elements along K per part from which vector lanes cut K at any number of waves.

Source: fp32 linear layers (NeuSight, commit 6945927d9a). The errors on each of A100, V100, P100 and MI100 are lowest
between 1024 and 4096; with 2048 or more, errors of vision models' layers on an H200 are as low as without this rule.
"""

LEAST_BLOCKS: Final = 4.0
"""Minimum blocks of K charged to each part of a split GEMM, even if the part is shorter."""

SPLIT_BYTES: Final = 8.0 / 7.0
"""DRAM bytes per output and part if K is cut. Each part is written and read at 4 bytes, mostly in the last cache."""

SHARPNESS: Final = 2.5
"""Exponent of the p-norm of two overlapping times; larger is closer to their maximum."""


def smooth_max(first: Floats, second: Floats) -> Floats:
    """Return the time that two overlapping times take together: their p-norm with the exponent SHARPNESS."""
    return p_norm(first, second, SHARPNESS)


@define(kw_only=True, eq=False)
class Shapes:
    """Shapes of the GEMMs to be tiled; one value per GEMM."""

    rows: Floats
    columns: Floats
    inner: Floats
    groups: Floats
    share: Floats
    """Share of the peak that a full unit reaches."""
    reach: Floats
    """Cost of loading one row or column of operands per step of K, as a number of outputs."""
    stored: Floats
    """Stored bytes of a column per byte at the multiplied precision; below 1 for weights that are stored in fewer
    bits."""
    at_once: Floats
    """Groups that run at once; the other groups wait for them."""
    splits: Booleans
    """True for linear layers and GEMMs of two activations. Their K may be cut into parts, and few rows may be the short
    side of an instruction.
    """
    turn: Floats
    """Clocks of a block outside its loop, in addition to the epilogue of a library kernel."""
    memory_s: Floats


@define(kw_only=True, eq=False)
class Tiling:
    """Times, tiles and waves of tiled GEMMs; one value per GEMM."""

    compute_s: Floats
    split_s: Floats
    tile_rows: Floats
    tile_columns: Floats
    tile_count: Floats
    waves: Floats
    executed_macs: Floats
    """MAC slots of the tiles, including padding."""
    occupancy: Floats
    """Mean share of the units that have a thread block while the GEMM runs."""


def tile_products(shapes: Shapes, choices: Sequence[tuple[int, int]], engine: Engine) -> Tiling:
    """Return the fastest tiling of each GEMM, out of the tile sizes in `choices` and the cuts of K."""
    edges = np.array(choices, dtype=np.float64)
    tile_m, tile_n = (before_points(one)[:, None] for one in edges.T)
    least = engine.value("instruction_edge") if engine.mode == "tensor" else 0.0
    tile_n = np.where(tile_m < least, np.maximum(tile_n, least), tile_n)
    split = before_points(np.array(SPLITS[engine.mode] if shapes.splits.any() else (1.0,)))[None]
    m, n, k = shapes.rows, shapes.columns, shapes.inner
    together = np.minimum(shapes.at_once, shapes.groups)
    turns = ceil_divide(shapes.groups, together)
    each_tiles = ceil_divide(m, tile_m) * ceil_divide(n, tile_n)
    tiles, share = shapes.groups * each_tiles, together * each_tiles * split / engine.units
    waves = turns * np.ceil(share)
    operands = (np.minimum(tile_m, m) + np.minimum(tile_n, n) * shapes.stored) * shapes.reach
    area = tile_m * tile_n
    slots = engine.slots_per_clock * np.maximum(shapes.share, 1.0)
    edge = INSTRUCTION_ROWS[engine.mode]
    full_m = np.where(shapes.splits, np.minimum(tile_m, ceil_divide(m, edge) * edge), tile_m)
    step = np.maximum(full_m * tile_n / (shapes.share * engine.macs_per_clock), (area + operands) / slots)
    blocks = ceil_divide(k / split, K_BLOCK[engine.mode])
    steps = np.where(split > 1.0, np.maximum(blocks, LEAST_BLOCKS), blocks) * K_BLOCK[engine.mode]
    clocks = waves * (steps * step + engine.value("epilogue_clocks")) + np.sqrt(waves) * shapes.turn
    lone_step = engine.value("lone_step_clocks") if engine.mode == "vector" else 0.0
    lone = turns * steps * (tile_m + tile_n) * lone_step
    compute = np.maximum(clocks, lone) / engine.clock_hz
    parts = SPLIT_BYTES * m * n * shapes.groups * split / engine.hardware.memory_bandwidth.value
    split_s = np.where(split > 1.0, engine.value("split_clocks") / engine.clock_hz + parts, 0.0)
    seconds = smooth_max(compute, shapes.memory_s) + split_s
    crowded = (share > SPLIT_WAVES[engine.mode]) & (k / split < LONG_PART)
    seconds = np.where((split > 1.0) & (crowded | ~shapes.splits), np.inf, seconds)
    best = merge_axes(drop_axes(np.argmin(seconds.reshape(-1, *seconds.shape[2:]), axis=0)))
    tile, part = np.divmod(best, split.size)

    def chosen(values: Floats) -> Floats:
        values = values.reshape(*values.shape[:2], *values.shape[-best.ndim :])
        points = _index((*values.shape[2:-1], best.shape[-1]))
        first = (index if count > 1 else 0 for index, count in zip((tile, part), values.shape, strict=False))
        some = *first, *points[:-1], points[-1] if values.shape[-1] > 1 else 0 * points[-1]
        return drop_axes(values[some])

    rows, columns, count = chosen(tile_m), chosen(tile_n), chosen(tiles)
    launched, rounds = chosen(tiles * split), chosen(waves)
    return Tiling(
        compute_s=chosen(compute),
        split_s=chosen(split_s),
        tile_rows=rows,
        tile_columns=columns,
        tile_count=launched,
        waves=rounds,
        executed_macs=count * chosen(full_m) * columns * k,
        occupancy=launched / engine.units / rounds,
    )


@lru_cache(maxsize=64)
def _index(shape: tuple[int, ...]) -> tuple[NDArray[np.intp], ...]:
    """Return indices that select every element of an array."""
    return np.ix_(*map(np.arange, shape))
