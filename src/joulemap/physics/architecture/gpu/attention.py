"""Time of fused attention, a kernel of a named family that computes scores, softmax and weighted sum.

With H query heads on H_kv pairs of keys and values (g = H / H_kv), S queries and L keys of D elements, batch B, q MACs
of a unit in a clock, U units, f the highest clock:

    several queries, values of V elements
        blocks  = B H_kv ceil(S g / 128)                     heads of a group share a block, if the family packs g
        seen    = L, or under a causal mask min(L, (L - S) + (S + max(128 / g, 1)) / 2 + 32 [S > 64])
        pass(x) = 128 (D + V) x / (share q) + 128 exponential x / special function lanes     clocks for x keys
        compute = max(blocks / U (pass(seen) + tile), pass(L) + tile) / f
    one query, p bytes of keys and values for each token
        pairs   = B H_kv;  parts = floor(U / pairs), at least 1, at most ceil(L / 256)
        turn(s) = max(pair, p ceil(L / s) / unit_bytes)      clocks for one of s parts of the keys
        compute = min(ceil(pairs / U) turn(1), ceil(pairs parts / U) turn(parts) + merge) / f
    one query, keys that hold their values (latent attention), which all heads share
        pairs   = B ceil(H / 64), and turn(s) at least 64 (D + V) ceil(L / s) / (share q): a matrix with a matrix

Time is (start + append) / f + ‖compute, memory‖. Kernels differ more between frameworks than between GPUs. The numbers
start, tile, pair, share and unit_bytes are therefore coefficients of a kernel family (a table of the class's file). The
workload names the family; the default is `sdpa`.

Source: fitted on context and generation attention that others measured on H200, A100 and B200 (aiconfigurator).
"""

from __future__ import annotations

from typing import Final

import attrs
import numpy as np

from joulemap.physics.architecture.gpu.device import Engine, carried_engine, stream_seconds
from joulemap.physics.kernel import KernelColumns
from joulemap.physics.traffic import ceil_divide
from joulemap.physics.workload import Booleans, Floats, Integers, Texts, put
from joulemap.system.record import frozen

ROWS: Final = 128.0
"""Maximum queries of one thread block, counted over all heads of a group."""

LEAST_ROWS: Final = 64.0
"""Number of queries to which a smaller block is padded."""

KEY_BLOCK: Final = 64.0
PART_KEYS: Final = 256.0
"""Minimum keys per part if the keys of one key-value head are split over several units."""


OLDER_MACS: Final = 1536.0
"""Two-byte MACs per unit and clock that separate Ampere (1024) from Hopper (2048), the first GPU with wgmma."""

NEWER_MACS: Final = 3072.0
"""Two-byte MACs per unit and clock that separate Hopper (2048) from Blackwell (4096). Kernels for Blackwell multiply a
one-byte cache as it is stored.
"""

LATENT_ROWS: Final = 64.0
"""Heads per block of latent attention. Source: FlashMLA, BLOCK_SIZE_M (recalled)."""


@frozen
class Family:
    """Family of attention kernels that share one design."""

    name: str
    """Name of the family in the class's table of attention coefficients."""
    appends: bool = False
    """True if the family's coefficients include the append of keys and values to a cache."""
    most_packed: tuple[float, float] = (np.inf, np.inf)
    """Maximum query heads per block: (with several queries, with one query). Larger groups have one head per block."""
    widens: bool = False
    """True if quantized keys and values are first copied to the width at which they are multiplied. Otherwise, with
    several queries, the queries, keys and values are converted to one byte.
    """
    has_older: bool = False
    """True if GPUs without wgmma use an older kernel: it loads keys before it multiplies them, and one SM processes a
    whole query.
    """


PLAIN: Final = Family("sdpa")

_TRTLLM: Final = ("vllm_flashinfer_trtllmprefill", "vllm_flashinfer_trtllmdecode", "flashinfer_trtllm")

_NAMES: Final = (
    (("flash_attention", "flash_attention_2"), Family("flash_attention_2", appends=True)),
    (("vllm_flash_attn_fa3", "flash_attention_3"), Family("flash_attention_3", appends=True)),
    (("vllm_flash_attn", "flash_attention_3_bare"), Family("flash_attention_3")),
    (("torch_flow", "trtllm"), Family("trtllm", appends=True, most_packed=(1.0, 32.0))),
    (("vllm_flashinfer", "flashinfer"), Family("flashinfer", most_packed=(1.0, np.inf))),
    (_TRTLLM, Family("flashinfer", appends=True, most_packed=(1.0, np.inf))),
    (("sglang_flash_attention",), Family("mla_flash", widens=True)),
    (("trtllm_default", "sglang_trtllm_mla"), Family("mla_trtllm", has_older=True)),
)

FAMILIES: Final = {name: family for names, family in _NAMES for name in names}
"""Kernel name in workloads and sources -> family; any other name runs as `sdpa`."""


_EACH: Final = (PLAIN, *(family for _, family in _NAMES))


def _find_families(names: Texts, engine: Engine) -> Integers:
    """Return the index in `_EACH` of the family of each kernel name."""
    family_of = {name: _find_family(engine, name) for name in set(names.tolist())}
    return np.array([family_of[name] for name in names.tolist()], dtype=np.int64)


def _find_family(engine: Engine, name: str) -> int:
    """Return the index in `_EACH` of the family of a kernel name.

    A name may have several words, one per GPU generation, such as `Hopper:flash_attention`. The word of the hardware's
    generation applies.
    """
    words = {generation: word for generation, _, word in (one.rpartition(":") for one in name.split())}
    generation = engine.hardware.microarchitecture.partition(" ")[0]
    return _EACH.index(FAMILIES.get(words.get(generation, words.get("", "")), PLAIN))


@frozen(kw_only=True, eq=False)
class Attention:
    """Times of fused attention, per operator; 0 for all other operators."""

    start_s: Floats
    """Seconds to start the kernel, at the operator that leads it."""
    busy_s: Floats
    """Busy seconds of the units; each of the two GEMMs has half of its kernel's time."""
    blocks: Floats
    seen_share: Floats
    """Share of the keys that the kernel does not skip because of a causal mask; 1 for all other operators."""


def time_attention(kernels: KernelColumns, engine: Engine, products: Booleans) -> Attention:
    """Return the times of fused attention kernels. `products` marks their two GEMMs: scores and weighted sums."""
    work, engine = kernels.work, carried_engine(engine)
    start, busy, blocks = (np.zeros(work.operator_count) for _ in range(3))
    rows = np.flatnonzero(products)
    if not len(rows):
        return Attention(start_s=start, busy_s=busy, blocks=blocks, seen_share=np.ones(work.operator_count))
    scores = rows[np.unique(kernels.kernel_index[rows], return_index=True)[1]]
    sums = np.zeros(kernels.kernel_count, dtype=np.int64)
    sums[kernels.kernel_index[rows]] = rows  # NumPy keeps the last row written for each kernel
    families = _find_families(work.kernel_family[scores], engine)
    of_kernel, seen_of = np.zeros(kernels.kernel_count), np.ones(kernels.kernel_count)
    members = [(one, *part) for one in np.unique(families).tolist() for part in engine.split(scores[families == one])]
    for number, mine, own in members:
        owner = kernels.kernel_index[mine]
        shapes, numbers = _read_shapes(kernels, mine, sums[owner]), _Numbers(own, _EACH[number])
        some, one = _time_several_queries(shapes, numbers), _time_single_query(shapes, numbers)
        taken, count = (np.where(shapes.queries > 1.0, *pair) for pair in zip(some, one, strict=True))
        of_kernel = put(of_kernel, owner, taken)
        seen_of[owner] = np.minimum(shapes.seen / shapes.keys, 1.0)
        blocks = put(blocks, mine, count)
        start = put(start, kernels.leader[owner], _start_seconds(shapes, numbers))
    busy = put(busy, rows, of_kernel[..., kernels.kernel_index[rows]] / 2.0)
    seen = kernels.per_operator(seen_of)
    return Attention(start_s=start, busy_s=busy, blocks=blocks, seen_share=seen)


@frozen
class _Numbers:
    """Coefficients of one kernel family on one engine."""

    engine: Engine
    family: Family

    def value(self, name: str) -> Floats | float:
        family, width = self.family.name, self.engine.width
        return self.engine.hardware.coefficient(f"attention_{name}", f"{family}_{width}", family)

    @property
    def is_older(self) -> Booleans:
        """True if the engine has no wgmma and the family has an older kernel for it; see `Family.has_older`."""
        older: Booleans = np.asarray(self.engine.macs_per_clock < OLDER_MACS) & self.family.has_older
        return older

    def macs_per_clock(self, shapes: _Shapes) -> Floats:
        """Return the MACs that a unit computes per clock, for each kernel.

        Four-byte elements run on the vector lanes, even if GEMMs run on tensor cores. A quantized cache that is
        multiplied as stored runs at the one-byte rate.
        """
        macs = _attending_macs(self.engine) * self.value("share")
        narrow = macs if self.family.widens else macs * _narrow_gain(self.engine)
        return np.where(shapes.is_float, narrow, macs)


def _multiplies_narrow(engine: Engine) -> float:
    return float("fp8" in engine.hardware.peaks)


def _narrow_gain(engine: Engine) -> Floats | float:
    peaks = engine.hardware.peaks
    if "fp8" not in peaks:
        return 1.0
    gain = peaks["fp8"].rate.value / peaks[engine.precision].rate.value
    return np.where(np.less(engine.macs_per_clock, NEWER_MACS), 1.0, gain)


def _attending_macs(engine: Engine) -> Floats | float:
    wide = engine.width == "wide" and "fp32" in engine.hardware.peaks
    return Engine.of(engine.hardware, "fp32").macs_per_clock if wide else engine.macs_per_clock


@frozen(kw_only=True, eq=False)
class _Shapes:
    """Dimensions and formats of each attention kernel."""

    queries: Floats
    keys: Floats
    depth: Floats
    values: Floats
    """Elements of one value vector."""
    token_bytes: Floats
    """Bytes of one head's keys and values per token."""
    pairs: Floats
    """Number of key-value heads, over all samples."""
    group: Floats
    """Query heads per key-value head."""
    is_causal: Booleans
    is_latent: Booleans
    is_narrow: Booleans
    """True if keys and values are stored in one byte each."""
    is_float: Booleans
    """True if keys and values are stored as fp8, which some units multiply directly. Integers are converted on arrival.
    """

    def packed(self, most: float) -> _Shapes:
        """Return the shapes with all query heads of a group in one block. A group of more than `most` heads has a block
        per head.
        """
        fits = self.group <= most
        return attrs.evolve(
            self,
            pairs=np.where(fits, self.pairs, self.pairs * self.group),
            group=np.where(fits, self.group, 1.0),
        )

    @property
    def padded_keys(self) -> Floats:
        """Number of keys, rounded up to whole blocks."""
        return ceil_divide(self.keys, KEY_BLOCK) * KEY_BLOCK

    @property
    def seen(self) -> Floats:
        """Mean number of keys that a query attends to, in whole blocks."""
        diagonal = (self.queries + np.maximum(ROWS / self.group, 1.0)) / 2.0
        diagonal = diagonal + np.where(self.queries > KEY_BLOCK, KEY_BLOCK / 2.0, 0.0)
        masked = np.minimum(self.padded_keys, self.keys - self.queries + diagonal)
        return np.where(self.is_causal, masked, self.padded_keys)


def _read_shapes(kernels: KernelColumns, scores: Integers, sums: Integers) -> _Shapes:
    work = kernels.work
    item = np.where(work.has_wide_cache[scores], 2.0, kernels.carried_bytes)
    item = np.where(work.has_narrow_cache[scores], 1.0, item)
    queries, keys, depth, heads = (
        column[scores] for column in (work.gemm_m, work.gemm_n, work.gemm_k, work.gemm_groups)
    )
    cache_bytes = kernels.input_bytes[..., scores] - heads * queries * depth * kernels.carried_bytes
    apart = kernels.input_bytes[..., sums]
    pairs = np.clip(cache_bytes / (keys * depth * item), 1.0, heads)
    return _Shapes(
        queries=queries,
        keys=keys,
        depth=depth,
        values=work.gemm_n[sums],
        token_bytes=(cache_bytes + apart) / (keys * pairs),
        pairs=pairs,
        group=heads / pairs,
        is_causal=work.is_causal[scores],
        is_latent=(apart == 0.0) & ((heads > pairs) | (work.gemm_n[sums] < depth)),
        is_narrow=work.has_narrow_cache[scores],
        is_float=work.has_float_cache[scores],
    )


def _start_seconds(shapes: _Shapes, numbers: _Numbers) -> Floats:
    """Return the seconds to start each kernel, with the append of keys and values if the coefficients include it."""
    engine = numbers.engine
    start = np.ones_like(shapes.depth) * (numbers.value("start_clocks") / engine.clock_hz)
    if shapes.is_narrow.any():
        start = start + np.where(shapes.is_narrow, _convert_seconds(shapes, numbers), 0.0)
    if not numbers.family.appends:
        return start
    rate = engine.hardware.memory_bandwidth.value * engine.value("product_dram_efficiency")
    appended = 4.0 * shapes.token_bytes * shapes.queries * shapes.pairs  # copied twice, each time read and written
    return start + numbers.value("append_clocks") / engine.clock_hz + appended / rate


def _convert_seconds(shapes: _Shapes, numbers: _Numbers) -> Floats:
    """Return the seconds to widen a quantized cache element by element, or to narrow queries, keys and values."""
    engine = numbers.engine
    if numbers.family.widens:
        cache_bytes = shapes.keys * shapes.pairs * shapes.token_bytes
        start = (engine.value("start_clocks.index") + engine.value("gap_clocks")) / engine.clock_hz
        return start + cache_bytes * engine.value("issue_slots.index") / engine.slots_hz
    asked = shapes.queries * shapes.pairs * (shapes.group * shapes.depth + shapes.token_bytes)
    start = (engine.value("start_clocks.light") + engine.value("gap_clocks")) / engine.clock_hz
    moved = (engine.item_bytes + 1.0) * asked
    converted = np.where(shapes.queries > 1.0, start + stream_seconds(engine, moved), 0.0)
    return np.where(shapes.is_float, converted * _multiplies_narrow(engine), 0.0)


def _count_parts(shapes: _Shapes, blocks: Floats, engine: Engine) -> Floats:
    """Return the number of parts into which the keys are split so that every unit has work."""
    parts: Floats = np.clip(np.floor(engine.units / blocks), 1.0, ceil_divide(shapes.keys, PART_KEYS))
    return parts


def _time_several_queries(shapes: _Shapes, numbers: _Numbers) -> tuple[Floats, Floats]:
    """Return (busy seconds, blocks) of kernels with several queries for each head."""
    engine, packed = numbers.engine, shapes.packed(numbers.family.most_packed[0])
    blocks = packed.pairs * ceil_divide(packed.queries * packed.group, ROWS)
    lanes = engine.hardware.geometry["special_function_lanes_per_unit"].value
    rows = np.minimum(ceil_divide(packed.queries * packed.group, LEAST_ROWS) * LEAST_ROWS, ROWS)
    per_key = rows * (packed.depth + packed.values) / numbers.macs_per_clock(shapes)
    per_key = per_key + rows * numbers.value("exponential") / lanes
    tile = numbers.value("tile_clocks")
    together = blocks / engine.units * (per_key * packed.seen + tile)
    alone = per_key * packed.padded_keys
    parts = np.where(shapes.is_latent, _count_parts(shapes, blocks, engine), 1.0)
    split = np.where(parts > 1.0, alone / parts + numbers.value("merge_clocks"), alone)
    return np.maximum(together, np.minimum(alone, split) + tile) / engine.clock_hz, blocks


def _time_single_query(shapes: _Shapes, numbers: _Numbers) -> tuple[Floats, Floats]:
    """Return (busy seconds, blocks) of kernels with one query for each head, the next token of a language model."""
    engine, pairs = numbers.engine, shapes.packed(numbers.family.most_packed[1]).pairs
    pairs = np.where(shapes.is_latent, shapes.pairs * ceil_divide(shapes.group, LATENT_ROWS), pairs)
    per_key = LATENT_ROWS * (shapes.depth + shapes.values) / numbers.macs_per_clock(shapes)
    per_key = np.where(shapes.is_latent, per_key, 0.0)
    parts = _count_parts(shapes, pairs, engine)
    parts = np.where(numbers.is_older, 1.0, parts)
    is_widened = numbers.is_older & shapes.is_narrow
    token_bytes = np.where(is_widened, shapes.token_bytes * engine.item_bytes, shapes.token_bytes)

    def clocks(count: Floats) -> Floats:
        keys = ceil_divide(shapes.keys, count)
        streamed, multiplied = token_bytes * keys / numbers.value("unit_bytes"), per_key * keys
        waits = np.where(numbers.is_older, streamed + multiplied, np.maximum(streamed, multiplied))
        turn = np.maximum(numbers.value("pair_clocks"), waits)
        return ceil_divide(pairs * count, engine.units) * turn

    whole, split = clocks(np.ones(np.shape(parts))), clocks(parts) + numbers.value("merge_clocks")
    return np.minimum(whole, split) / engine.clock_hz, pairs * np.where(split < whole, parts, 1.0)
