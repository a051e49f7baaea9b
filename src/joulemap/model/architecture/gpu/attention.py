"""Time of fused attention: scores, softmax and weighted sum in one kernel, of a family that has a name.

With H query heads on H_kv pairs of keys and values (g = H / H_kv), S queries and L keys of D elements, batch B, q MACs
of a unit in a clock, U units, f the highest clock:

    several queries
        blocks  = B H_kv ceil(S g / 128)                     heads of a group share a block, if the family packs g
        seen    = L, or under a causal mask min(L, (L - S) + (S + max(128 / g, 1)) / 2 + 32 [S > 64])
        pass(x) = 256 D x / (share q) + 128 exponential x / special function lanes     clocks for x keys
        compute = max(blocks / U (pass(seen) + tile), pass(L) + tile) / f
    one query
        pairs   = B H_kv;  parts = floor(U / pairs), at least 1, at most ceil(L / 256)
        turn(s) = max(pair, 2 D p ceil(L / s) / unit_bytes)    clocks for one of s parts of the keys, p bytes an element
        compute = min(ceil(pairs / U) turn(1), ceil(pairs parts / U) turn(parts) + merge) / f

Time is (start + append) / f + ‖compute, memory‖. Kernels differ more between frameworks than between GPUs, so start,
tile, pair, share and unit_bytes are coefficients of the family that a workload names (a table of the class's file);
those of `sdpa` where it names none.

Source: fitted on context and generation attention that others measured on H200, A100 and B200 (aiconfigurator).
"""

from __future__ import annotations

from typing import Final

import attrs
import numpy as np

from joulemap.model.architecture.gpu.device import Engine
from joulemap.model.column import of_each, take
from joulemap.model.kernel import KernelColumns
from joulemap.model.traffic import ceil_divide
from joulemap.model.workload import Booleans, Floats, Integers
from joulemap.system.record import frozen

ROWS: Final = 128.0
"""Queries of one block, those of all heads of a group together."""

LEAST_ROWS: Final = 64.0
"""What a block of fewer queries is padded to."""

KEY_BLOCK: Final = 64.0
PART_KEYS: Final = 256.0
"""Keys of a part, at least, where the keys of one pair are split over units."""


@frozen
class Family:
    """Kernels of one design."""

    name: str
    """Of its rows of the class's table of attention."""
    appends: bool = False
    """Whether its rows were timed with what appends keys and values to a cache."""
    most_packed: tuple[float, float] = (np.inf, np.inf)
    """Heads of a group that a block takes at most, of several queries and of one: of a larger group, each is alone."""


PLAIN: Final = Family("sdpa")

_TRTLLM: Final = ("vllm_flashinfer_trtllmprefill", "vllm_flashinfer_trtllmdecode", "flashinfer_trtllm")

_NAMES: Final = (
    (("flash_attention", "flash_attention_2"), Family("flash_attention_2", appends=True)),
    (("vllm_flash_attn_fa3", "flash_attention_3"), Family("flash_attention_3", appends=True)),
    (("vllm_flash_attn", "flash_attention_3_bare"), Family("flash_attention_3")),
    (("torch_flow", "trtllm"), Family("trtllm", appends=True, most_packed=(1.0, 32.0))),
    (("vllm_flashinfer", "flashinfer"), Family("flashinfer", most_packed=(1.0, np.inf))),
    (_TRTLLM, Family("flashinfer", appends=True, most_packed=(1.0, np.inf))),
)

FAMILIES: Final = {name: family for names, family in _NAMES for name in names}
"""Name of a kernel as workloads and sources give it -> family; a name that is not here runs as `sdpa`."""


@frozen(kw_only=True, eq=False)
class Attention:
    """Of each operator of a fused attention; 0 for all else."""

    start_s: Floats
    """If it leads its kernel."""
    busy_s: Floats
    """Half of the kernel's busy time for each of its two products."""
    blocks: Floats
    seen_share: Floats
    """Of the keys, that the kernel does not skip behind a causal mask; 1 for all else."""


def time_attention(kernels: KernelColumns, engine: Engine, products: Booleans) -> Attention:
    """Return the times of fused attention kernels; `products` are their scores and weighted sums."""
    work = kernels.work
    start, busy, blocks = (np.zeros(work.operator_count) for _ in range(3))
    rows = np.flatnonzero(products)
    _, first = np.unique(kernels.kernel_index[rows], return_index=True)
    scores = rows[first]
    families = [FAMILIES.get(name, PLAIN) for name in work.kernel_family[scores].tolist()]
    of_kernel, seen_of = np.zeros(kernels.kernel_count), np.ones(kernels.kernel_count)
    for family in set(families):
        mine = scores[np.array([one == family for one in families])]
        shapes = _read_shapes(kernels, mine)
        numbers = _Numbers(take(engine, mine), family)
        some, one = _several(shapes, numbers), _single(shapes, numbers)
        taken, count = (np.where(shapes.queries > 1.0, *pair) for pair in zip(some, one, strict=True))
        of_kernel[kernels.kernel_index[mine]] = taken
        seen_of[kernels.kernel_index[mine]] = np.minimum(shapes.seen / shapes.keys, 1.0)
        blocks[mine] = count
        start[kernels.leader[kernels.kernel_index[mine]]] = _start_seconds(shapes, numbers)
    busy[rows] = of_kernel[kernels.kernel_index[rows]] / 2.0
    seen = kernels.per_operator(seen_of)
    return Attention(start_s=start, busy_s=busy, blocks=blocks, seen_share=seen)


@frozen
class _Numbers:
    """Coefficients of a family on an engine."""

    engine: Engine
    family: Family

    def value(self, name: str) -> float:
        family, width = self.family.name, self.engine.width
        return self.engine.hardware.coefficient(f"attention_{name}", f"{family}_{width}", family)

    @property
    def macs_per_clock(self) -> float:
        """Of a unit: at four bytes an element attention runs on the vector lanes, whatever products do."""
        return _attending_macs(self.engine) * self.value("share")


@of_each
def _attending_macs(engine: Engine) -> float:
    wide = engine.width == "wide" and "fp32" in engine.hardware.peaks
    return Engine.of(engine.hardware, "fp32").macs_per_clock if wide else engine.macs_per_clock


@frozen(kw_only=True, eq=False)
class _Shapes:
    """Of each kernel."""

    queries: Floats
    keys: Floats
    depth: Floats
    pairs: Floats
    """Keys and values of one head, over all samples."""
    group: Floats
    """Query heads that share them."""
    is_causal: Booleans

    def packed(self, most: float) -> _Shapes:
        """Return the shapes where a block takes all heads of a group, if they are at most so many, else each alone."""
        fits = self.group <= most
        return attrs.evolve(
            self,
            pairs=np.where(fits, self.pairs, self.pairs * self.group),
            group=np.where(fits, self.group, 1.0),
        )

    @property
    def everything(self) -> Floats:
        """Keys in whole blocks."""
        return ceil_divide(self.keys, KEY_BLOCK) * KEY_BLOCK

    @property
    def seen(self) -> Floats:
        """Keys in the blocks that the mean query looks at."""
        diagonal = (self.queries + np.maximum(ROWS / self.group, 1.0)) / 2.0
        diagonal = diagonal + np.where(self.queries > KEY_BLOCK, KEY_BLOCK / 2.0, 0.0)
        masked = np.minimum(self.everything, self.keys - self.queries + diagonal)
        return np.where(self.is_causal, masked, self.everything)


def _read_shapes(kernels: KernelColumns, scores: Integers) -> _Shapes:
    work = kernels.work
    queries, keys, depth, heads = (
        column[scores] for column in (work.gemm_m, work.gemm_n, work.gemm_k, work.gemm_groups)
    )
    held = kernels.input_bytes[scores] / kernels.item_bytes - heads * queries * depth
    pairs = np.clip(held / (keys * depth), 1.0, heads)
    return _Shapes(
        queries=queries, keys=keys, depth=depth, pairs=pairs, group=heads / pairs, is_causal=work.is_causal[scores]
    )


def _start_seconds(shapes: _Shapes, numbers: _Numbers) -> Floats:
    """Return the fixed cost, with that of appending keys and values to a cache where the family's rows have it in."""
    engine = numbers.engine
    start = np.full_like(shapes.depth, numbers.value("start_clocks") / engine.clock_hz)
    if not numbers.family.appends:
        return start
    rate = engine.hardware.memory_bandwidth.value * engine.value("product_dram_efficiency")
    appended = 8.0 * engine.item_bytes * shapes.depth * shapes.queries * shapes.pairs  # two read and written, twice
    return start + numbers.value("append_clocks") / engine.clock_hz + appended / rate


def _several(shapes: _Shapes, numbers: _Numbers) -> tuple[Floats, Floats]:
    """Return (busy seconds, blocks) of kernels with several queries for each head."""
    engine, packed = numbers.engine, shapes.packed(numbers.family.most_packed[0])
    blocks = packed.pairs * ceil_divide(packed.queries * packed.group, ROWS)
    lanes = engine.hardware.geometry["special_function_lanes_per_unit"].value
    rows = np.minimum(ceil_divide(packed.queries * packed.group, LEAST_ROWS) * LEAST_ROWS, ROWS)
    per_key = 2.0 * rows * packed.depth / numbers.macs_per_clock + rows * numbers.value("exponential") / lanes
    tile = numbers.value("tile_clocks")
    together = blocks / engine.units * (per_key * packed.seen + tile)
    alone = per_key * packed.everything + tile
    return np.maximum(together, alone) / engine.clock_hz, blocks


def _single(shapes: _Shapes, numbers: _Numbers) -> tuple[Floats, Floats]:
    """Return (busy seconds, blocks) of kernels with one query for each head, the next token of a language model."""
    engine, pairs = numbers.engine, shapes.packed(numbers.family.most_packed[1]).pairs
    parts = np.clip(np.floor(engine.units / pairs), 1.0, ceil_divide(shapes.keys, PART_KEYS))

    def clocks(count: Floats) -> Floats:
        moved = 2.0 * engine.item_bytes * shapes.depth * ceil_divide(shapes.keys, count)
        turn = np.maximum(numbers.value("pair_clocks"), moved / numbers.value("unit_bytes"))
        return ceil_divide(pairs * count, engine.units) * turn

    whole, split = clocks(np.ones_like(parts)), clocks(parts) + numbers.value("merge_clocks")
    return np.minimum(whole, split) / engine.clock_hz, pairs * np.where(split < whole, parts, 1.0)
