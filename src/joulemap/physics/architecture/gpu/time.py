"""Time of every operator on a SIMT machine: the start cost of its kernel, and the busy time of the units.

This module combines the kernel classes and coefficients of `kernel_class` with the tiles of `product`.

An operator that runs alone may be several kernels. A convolution adds its bias in a separate kernel, and batch norm at
half precision converts its parameters first. A roll moves data once per direction, and a linear layer at fp8 quantizes
its activations. A compiler merges these kernels and leaves GEMMs to a library. The library's result goes through memory
epilogue_passes more times if an operator follows. An operator in another's epilogue costs its arithmetic on registers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import attrs
import numpy as np

from joulemap.physics.architecture.gpu.attention import ROWS, time_attention
from joulemap.physics.architecture.gpu.device import (
    REGISTER_BYTES,
    Engine,
    carried_engine,
    find_last_level,
    lanes_per_unit,
    stream_seconds,
)
from joulemap.physics.architecture.gpu.expert import find_supply, time_experts
from joulemap.physics.architecture.gpu.kernel_class import SPLIT, ClassifiedTraits, ClassNumbers, read_again, read_table
from joulemap.physics.architecture.gpu.mixed import CONVOLUTIONS
from joulemap.physics.architecture.gpu.product import (
    BUILT_TILES,
    NATIVE_TILES,
    TILES,
    WHOLE_TILES,
    Shapes,
    Tiling,
    smooth_max,
    tile_products,
)
from joulemap.physics.architecture.gpu.trait import NATIVE_WIDTH, Traits
from joulemap.physics.column import decide
from joulemap.physics.kernel import KernelColumns
from joulemap.physics.record.engine import TENSORRT, name_engine
from joulemap.physics.traffic import ceil_divide, far_bytes, held_data, kept_share
from joulemap.physics.workload import Booleans, Floats, Integers, put
from joulemap.system.record import define, frozen

QUANTIZED_BLOCK: Final = 2048.0
"""Elements of a row that a thread block quantizes at a time. Source: the time of fp8 linear layers of few columns and
32,768 rows on H200 and B200 (aiconfigurator, commit 095f58a51c, vLLM 0.24) rises in equal steps of 2,048 along K."""

STATE_ROWS: Final = 8.0
"""Rows to whose multiple the sequences of a recurrence are padded on tensor cores. Source: PTX ISA, mma.m16n8k16."""

PACKED_ROWS: Final = 16.0
"""Rows per thread block of a kernel that dequantizes packed weights. Source: Marlin, `thread_m_blocks` of 16 rows."""

GROUPS_AT_ONCE: Final = 3.0
"""Groups of a convolution that a library computes at once, each a separate GEMM on one of its streams. Source: ten
models of grouped convolutions on one H200 (cuDNN 9.19): kernels of a profile overlap 1.6 to 3.3 times in a graph."""

WIDE: Final = 256.0
"""Columns of the thread blocks that are resident on a unit: two blocks of 128, limited by its registers."""

WIDEST: Final = 2.0
"""Waves of thread blocks along the columns of a layer above which its rate does not fall further.

Blocks of fewer columns than half a wave share weights. Source: fp32 layers of 300 to 65,536 columns on P100, V100 and
A100 (NeuSight, commit 6945927d9a): of 7.1 TFLOPS on a P100, 3.8 are left at one wave, 2.3 at two and at four.
"""

ACTIVATED_BYTES: Final = 2.0
"""Minimum bytes per element of a GEMM's result that an activation kernel reads. Source: assumed; GEMMs at 8 bits
store 16-bit results for an activation that quantizes what it returns."""

BLOCK_EDGE: Final = 64.0
"""Rows and columns per thread block that are assumed for GEMMs without a tiling."""


@define(kw_only=True, eq=False)
class Times:
    """Times of operators in seconds, with the tiles and bytes behind them; one value per operator."""

    start_s: Floats
    """Time to start the operator's kernels, if it leads one, and to add up the parts of a GEMM whose K is cut."""
    pass_s: Floats
    """Part of `start_s` in which extra passes read and write memory."""
    starts: Booleans
    """True if an operator leads no kernel but needs all of another's result, so that it is a separate kernel in any
    runtime. Examples: a gate's reduction and each of its GEMMs.
    """
    busy_s: Floats
    memory_s: Floats
    product_s: Floats
    """Seconds of GEMMs on their tiles, without stalls."""
    issue_s: Floats
    """Seconds in which instructions are issued at their full rate, without stalls; 0 for tiled GEMMs."""
    tiles: Floats
    """Thread blocks of GEMMs; 0 for all other operators."""
    waves: Floats
    tile_rows: Floats
    tile_columns: Floats
    executed_macs: Floats
    """MAC slots of GEMMs, including padding; 0 for all other operators."""
    multiplied_macs: Floats
    """Computed MAC slots, excluding MACs saved by a causal mask or Winograd's algorithm."""
    seen_share: Floats
    """Share of an attention's scores that no mask skips; 1 for all other operators."""
    occupancy: Floats
    """Mean fraction of units with a block during a GEMM; 0 for other operators."""
    looped_count: Floats
    """Additional launches of a grouped convolution that the library runs group by group."""
    pass_bytes: Floats
    """Bytes that extra passes read and write again, and that kernels move beyond their operands."""


def time_operators(kernels: KernelColumns, engine: Engine, memory_s: Floats) -> Times:
    """Return the times of operators. `memory_s` has the seconds that each operator's bytes take in plain copies."""
    traits = ClassifiedTraits.of(kernels, engine)
    table = read_table(traits, engine)
    work = kernels.work
    is_product = traits.is_product
    moves = np.where(is_product, 1.0, table.traffic_ratio * read_again(traits, engine))
    memory_s = np.where(is_product, product_memory(kernels, engine), memory_s * moves)
    times = _time_products(traits, engine, table, memory_s)
    issue = np.where(kernels.rides, np.minimum(_epilogue_seconds(kernels, engine), table.issue_s), table.issue_s)
    waiting = smooth_max(issue, np.where(is_product | kernels.rides, 0.0, table.chain_s))
    passes = _passes(kernels, engine, traits)
    hidden = traits.is_attention & work.of_kind("softmax")
    times.start_s = times.start_s + passes.start_s + passes.stream_s
    times.pass_s = passes.stream_s
    times.busy_s = np.where(hidden, 0.0, times.product_s + waiting + passes.busy_s)
    times.issue_s = issue + passes.issue_s
    times.pass_bytes = passes.moved_bytes + times.pass_bytes + (moves - 1.0) * kernels.moved_bytes
    return times


def _time_products(traits: ClassifiedTraits, engine: Engine, table: ClassNumbers, memory_s: Floats) -> Times:
    """Return the times of GEMMs. All other operators get only their start and memory time."""
    kernels, work = traits.kernels, traits.kernels.work
    is_product = traits.is_product
    attends, mixes = traits.is_of("attention"), traits.is_of("experts")
    attention, experts = time_attention(kernels, engine, attends), time_experts(kernels, engine, mixes)
    has_name = attends | mixes
    packed = traits.is_of("marlin")
    untiled = has_name | packed | traits.is_of("recurrence", "streamed", "few_rows")
    column = _tile(traits, engine, table, memory_s, is_product & ~untiled & ~kernels.is_sibling)
    rows = np.maximum(work.gemm_m, 1e-30)
    pads = traits.is_of("recurrence") & traits.on_tensor_cores
    least = np.where(packed, PACKED_ROWS, STATE_ROWS)
    padding = np.where(pads | packed, ceil_divide(rows, least) * least / rows, 1.0)
    executed = np.where(untiled, work.mac_count * padding, column.shared(lambda one: one.executed_macs))
    executed = np.maximum(executed, np.where(is_product, work.mac_count, 0.0))
    direct = np.where(untiled, executed / (np.maximum(table.share, 1e-30) * engine.macs_per_s), 0.0)
    named = np.where(_repeats_heads(kernels, engine, traits), direct, attention.busy_s + experts.busy_s)
    direct = np.where(has_name, named, np.where(traits.is_of("streamed", "few_rows"), 0.0, direct))
    if packed.any():
        unit_macs = np.minimum(engine.macs_per_clock, engine.value("packed_macs"))
        direct = np.where(packed, executed / (unit_macs * engine.issue_hz), direct)
    product = direct + column.shared(lambda one: one.compute_s)
    blocks = work.gemm_groups * ceil_divide(work.gemm_m, BLOCK_EDGE) * ceil_divide(work.gemm_n, BLOCK_EDGE)
    blocks = np.where(has_name, attention.blocks + experts.blocks, blocks)
    tiles = np.where(untiled, blocks, column.shared(lambda one: one.tile_count))
    start = np.where(has_name, attention.start_s + experts.start_s, table.start_s)
    return Times(
        start_s=start + column(lambda one: one.split_s),
        pass_s=np.zeros(work.operator_count),
        starts=~kernels.leads & ~kernels.rides & ~kernels.is_sibling & ~traits.is_attention & ~kernels.loops,
        busy_s=product,
        memory_s=np.where(mixes, experts.memory_s, memory_s),
        product_s=product,
        issue_s=np.zeros(work.operator_count),
        tiles=tiles,
        waves=np.where(untiled, ceil_divide(tiles, engine.units), column.shared(lambda one: one.waves)),
        tile_rows=np.where(attends, ROWS, np.where(untiled, BLOCK_EDGE, column(lambda one: one.tile_rows))),
        tile_columns=np.where(
            attends, work.gemm_n, np.where(untiled, BLOCK_EDGE, column(lambda one: one.tile_columns))
        ),
        executed_macs=executed,
        multiplied_macs=executed * attention.seen_share / np.maximum(table.share, 1.0),
        seen_share=attention.seen_share,
        occupancy=np.where(untiled, np.minimum(tiles / engine.units, 1.0), column(lambda one: one.occupancy)),
        looped_count=np.where(traits.is_looped & traits.on_tensor_cores, work.gemm_groups, 0.0),
        pass_bytes=experts.pass_bytes,
    )


@frozen
class _Tiled:
    """Lookup of tiling results by operator; 0 for operators without a tiling.

    GEMMs that an engine joins get the results of the joint GEMM.
    """

    parts: tuple[tuple[Integers, Tiling], ...]
    source: Integers
    """Index of the operator whose tiling applies to each operator."""
    share: Floats
    """Each operator's share of the columns of its GEMM."""

    def __call__(self, read: Callable[[Tiling], Floats]) -> Floats:
        column = np.zeros(len(self.source))
        for rows, tiling in self.parts:
            values = read(tiling)
            if values.ndim > 1:
                column = put(column, rows, values)
            else:
                column[..., rows] = values
        return np.asarray(column[..., self.source])

    def shared(self, read: Callable[[Tiling], Floats]) -> Floats:
        """Return each operator's part of a value of its joint GEMM, in proportion to its columns."""
        return self(read) * self.share


def _tile(
    traits: ClassifiedTraits, engine: Engine, table: ClassNumbers, memory_s: Floats, is_tiled: Booleans
) -> _Tiled:
    """Return the tilings of the GEMMs in `is_tiled`. GEMMs whose weights a checkpoint leaves at 16 bits run at that
    rate.
    """
    kernels = traits.kernels
    tiles = BUILT_TILES if kernels.runtime.is_built else TILES
    full, splits = is_tiled & ~traits.is_native, traits.is_of(*SPLIT)
    wide = carried_engine(engine)
    if wide is not engine:
        engine = engine.mixed_with(wide, kernels.work.is_kept)
    parts = []
    for mine, choices in ((full & splits, tiles), (full & ~splits, tiles), (is_tiled & traits.is_native, NATIVE_TILES)):
        for rows, part in engine.split(mine.nonzero()[0]):
            shapes, sizes = _shapes(traits, part, table, memory_s, rows), choices[part.mode]
            if part.precision == "fp4" and not decide(find_supply(part.hardware)[0]):
                shapes, sizes = attrs.evolve(shapes, splits=np.zeros_like(shapes.splits)), WHOLE_TILES
            parts.append((rows, tile_products(shapes, sizes, part)))
    each = np.arange(kernels.work.operator_count)
    source = np.where(kernels.is_sibling, kernels.leader[kernels.kernel_index], each)
    own = kernels.work.gemm_n
    return _Tiled(tuple(parts), source, own / np.maximum(kernels.over_siblings(own), 1e-30))


def product_memory(kernels: KernelColumns, engine: Engine) -> Floats:
    """Return the memory time of GEMMs in seconds.

    Operands stream at a lower efficiency than copies, and results at a lower one than operands. Bytes found in the last
    cache arrive at `product_near_bytes` per unit and clock, or at the DRAM rate if that is faster. The cache keeps
    activations from kernel to kernel, and the weights of the whole model, as far as they fit.
    """
    far_rate = engine.hardware.memory_bandwidth.value * engine.value("product_dram_efficiency")
    near_rate = np.maximum(far_rate, engine.value("product_near_bytes") * engine.issue_hz)
    more = engine.value("write_ratio") - 1.0
    capacity = find_last_level(engine.hardware).capacity.value
    read, written = far_bytes(kernels, held_data(kernels, capacity))
    read = read + (1.0 - kept_share(kernels, capacity, keeps_weights=True)) * kernels.weight_bytes
    near = (kernels.moved_bytes + more * kernels.output_bytes) / near_rate
    slower: Floats = np.maximum(near, (read + written + more * written) / far_rate)
    return slower


def _shapes(traits: ClassifiedTraits, engine: Engine, table: ClassNumbers, memory_s: Floats, rows: Integers) -> Shapes:
    """Return the shapes of the GEMMs at `rows`. GEMMs that an engine joins are one GEMM with the columns of all.

    Convolutions spend more on operands, because lanes compute the addresses. On tensor cores they do so only if
    channels do not fill whole lines. Lanes gather the few channels of an image, at their own rate. Small groups side by
    side are one GEMM as wide as NATIVE_WIDTH, zero except for its diagonal.
    """
    work = traits.kernels.work
    is_conv = ~work.of_kind("linear", "matmul")
    lanes = engine.lanes
    words = engine.item_bytes / REGISTER_BYTES
    share = table.share
    supply: Floats | float = engine.value("operand_reach")
    gathers: Floats | float = lanes.value("operand_reach") * engine.value("conv_reach_ratio")
    if engine.mode == "tensor":
        # operands arrive at the same bytes per clock as on the lanes, although the core could multiply more
        gathers = gathers * words * engine.macs_per_clock / lanes.macs_per_clock
        share = np.where(traits.is_image, share * lanes.macs_per_clock / words / engine.macs_per_clock, share)
    else:
        supply, gathers = supply * np.maximum(words, 1.0), gathers * np.maximum(words, 1.0)
    computes = is_conv & ((engine.mode == "vector") | traits.is_ragged)
    reach = np.where(computes, gathers, supply)
    is_built = traits.kernels.runtime.is_built
    if engine.mode == "vector":
        share = share * np.where(work.of_kind("linear"), _share_of_wide(work.gemm_n, engine), 1.0)
    turn = engine.value("turn_clocks") if is_built and engine.mode == "tensor" else 0.0
    packed = np.where(traits.is_native, NATIVE_WIDTH / np.maximum(traits.channels, 1.0), 1.0)
    groups = ceil_divide(np.maximum(work.gemm_groups, 1.0), packed)
    return Shapes(
        rows=work.gemm_m[rows],
        columns=(traits.kernels.over_siblings(work.gemm_n) * packed)[rows],
        inner=(work.gemm_k * packed)[rows],
        groups=groups[rows],
        share=share[..., rows],
        reach=traits.kernels.each(reach)[..., rows],
        stored=traits.kernels.stored_share[..., rows],
        at_once=np.where(traits.is_looped, GROUPS_AT_ONCE, groups)[rows],
        splits=traits.is_of(*SPLIT)[rows],
        turn=np.where(is_conv & _is_followed(traits.kernels), turn, 0.0)[..., rows],
        memory_s=traits.kernels.over_siblings(traits.kernels.each(memory_s))[..., rows],
    )


def _share_of_wide(columns: Floats, engine: Engine) -> Floats:
    """Return the rate of linear layers on vector lanes, relative to layers with few columns.

    The rate falls as a power of the columns, from half a wave of blocks along them to WIDEST waves.
    """
    waves = columns / (WIDE * engine.units)
    part = np.log(np.clip(waves, 0.5, WIDEST) / 0.5) / np.log(WIDEST / 0.5)
    share: Floats = engine.value("wide_share") ** part
    return share


def _is_followed(kernels: KernelColumns) -> Booleans:
    """Return a mask of the operators in kernels that process their leading operator's result further."""
    follows = np.where(kernels.rides & ~kernels.feeds, 1.0, 0.0)
    mask: Booleans = kernels.per_operator(kernels.per_kernel(follows)) > 0.0
    return mask


def _quantizes(kernels: KernelColumns, engine: Engine) -> Booleans:
    """Return a mask of the fp8 linear layers whose activations a separate kernel quantizes first, row by row.

    A compiler merges the quantization into the operator that makes the activations.
    """
    mask: Booleans = kernels.work.of_kind("linear") & (engine.precision == "fp8") & (not kernels.runtime.merges)
    return mask


def _epilogue_seconds(kernels: KernelColumns, engine: Engine) -> Floats:
    """Return the seconds of each operator if it runs in another's epilogue: plain arithmetic on registers."""
    work = kernels.work
    lanes = lanes_per_unit(engine.hardware, engine.precision)
    special = engine.hardware.geometry["special_function_lanes_per_unit"].value
    return (work.elementwise_count / lanes + work.special_count / special) / engine.issue_hz


UNGROUPED: Final = ("fp32", "tf32")
"""Precisions at which PyTorch 2.11 has no fused attention for fewer key heads than query heads."""

SHARED: Final = 0.75
"""Ratio of stored key bytes to one copy of the keys per query head, below which query heads count as sharing keys."""


@define(kw_only=True, eq=False)
class _Passes:
    start_s: Floats
    stream_s: Floats
    """Memory time of passes that run before or after the operator's own kernel."""
    busy_s: Floats
    issue_s: Floats
    moved_bytes: Floats


def _passes(kernels: KernelColumns, engine: Engine, traits: Traits) -> _Passes:
    """Return the costs of the additional kernels that the runtime launches for an operator, such as one that adds a
    bias.
    """
    work = kernels.work
    light, index = (engine.seconds("gap_clocks") + engine.seconds(f"start_clocks.{one}") for one in ("light", "index"))
    zero = np.zeros(work.operator_count)
    if kernels.runtime.merges:
        often = _late_passes(kernels, engine, traits)
        item = np.where(_is_activated(traits), max(kernels.carried_bytes, ACTIVATED_BYTES), kernels.carried_bytes)
        moved = 2.0 * often * work.output_element_count * item
        stream = stream_seconds(engine, moved)
        # the passes run after the GEMM, at the memory rate regardless of the clock
        passes = _Passes(start_s=often * light, stream_s=stream, busy_s=zero, issue_s=zero, moved_bytes=moved)
        return _unpack(kernels, engine, light, passes) if work.is_unpacked.any() else passes
    weights = kernels.own_weight_bytes / kernels.item_bytes
    products = work.gemm_n * work.gemm_k * np.maximum(work.gemm_groups, 1.0)
    biased = work.of_kind("conv", "depthwise_conv", "grouped_conv") & (weights > 1.000001 * products)
    converts = work.of_kind("batch_norm") & (engine.width == "narrow")
    quantizes = _quantizes(kernels, engine)
    moved = np.where(biased, 2.0 * work.output_element_count * kernels.carried_bytes, 0.0)
    issue = np.where(biased, work.output_element_count * engine.value("issue_slots.index") / engine.slots_hz, 0.0)
    start = np.where(biased | work.of_operation("roll"), index, np.where(converts, light, 0.0))
    busy = smooth_max(issue, stream_seconds(engine, moved))
    passes = _Passes(start_s=start, stream_s=zero, busy_s=busy, issue_s=issue, moved_bytes=moved)
    if work.is_unpacked.any():
        passes = _unpack(kernels, engine, light, passes)
    repeats = _repeats_heads(kernels, engine, traits)
    if repeats.any():
        passes = _repeat_heads(kernels, engine, repeats, passes)
    return _quantize(kernels, engine, quantizes, passes) if quantizes.any() else passes


def _late_passes(kernels: KernelColumns, engine: Engine, traits: Traits) -> Floats:
    """Return how often each compiled kernel writes its GEMM's result to memory and reads it again.

    torch.compile leaves GEMMs to cuBLAS and cuDNN and generates the rest: `epilogue_passes` if an operator follows, 0
    for a compiler that generates GEMMs too. TensorRT's convolutions compute ReLU, clipping and GELU. Any other
    activation, such as SiLU or hard swish, is a pointwise kernel of its own. The convolution still has its `turn` of
    clocks outside the loop, in which it adds the bias and converts its result; torch.compile's convolution has none.

    Source: nine compiled models on one H200 (torch 2.11, with freezing) err by 8.3 % uncalibrated with one pass, by
    24.6 % with none. For TensorRT, its documentation's layer fusion catalog (recalled) and pytorch/TensorRT issue 3678
    (SiLU of EfficientNet). Nothing is fitted. Mean errors fall from 35 to 12 % for YOLO11 on four Jetson boards, and
    from 10 to 7 % for int8 models of NVIDIA's quantization zoo on an A100. Without the turn they are 17 and 10 %.
    """
    leads = kernels.leads & kernels.work.has_macs & ~traits.is_attention & ~kernels.loops
    if kernels.runtime.is_compiled:
        return np.where(leads & _is_followed(kernels), engine.value("epilogue_passes"), 0.0)
    if name_engine(engine.hardware.architecture, engine.hardware.vendor) != TENSORRT:
        return np.zeros(kernels.work.operator_count)
    return np.where(leads & _is_activated(traits) & kernels.work.of_kind(*CONVOLUTIONS), 1.0, 0.0)


def _is_activated(traits: Traits) -> Booleans:
    """Return a mask of the operators in kernels with an activation that TensorRT's convolutions do not compute."""
    kernels = traits.kernels
    late = np.where(kernels.rides & traits.is_activation & ~kernels.work.of_operation("gelu"), 1.0, 0.0)
    mask: Booleans = kernels.per_operator(kernels.per_kernel(late)) > 0.0
    return mask


def _unpack(kernels: KernelColumns, engine: Engine, light_s: Floats | float, passes: _Passes) -> _Passes:
    """Add the passes that write dequantized weights to memory for GEMMs to read, and return all passes."""
    work = kernels.work
    unpacks = work.is_unpacked & (kernels.stored_share < 1.0)
    products = work.gemm_n * work.gemm_k * np.maximum(work.gemm_groups, 1.0)
    moved = np.where(unpacks, 2.0 * products * kernels.carried_bytes, 0.0)
    return _Passes(
        start_s=passes.start_s + np.where(unpacks, light_s, 0.0),
        stream_s=passes.stream_s + np.where(unpacks, stream_seconds(engine, moved), 0.0),
        busy_s=passes.busy_s,
        issue_s=passes.issue_s,
        moved_bytes=passes.moved_bytes + moved,
    )


def _repeats_heads(kernels: KernelColumns, engine: Engine, traits: Traits) -> Booleans:
    """Return a mask of attention GEMMs whose query heads share keys, at precisions without a fused kernel for this.

    PyTorch repeats keys and values for each head, scales queries and keys, and writes the scores and their softmax to
    memory. Source: `_scaled_dot_product_attention_math`; pytorch/pytorch pull request 181528, in which it takes 3.1
    times as long as repeated heads in a fused kernel (fp32, 4 x 3,081 tokens, 24 and 12 heads of 64; 2.6 times
    predicted on an RTX 5090). Nothing is fitted.
    """
    work = kernels.work
    products = traits.is_attention & work.of_kind("matmul") & (work.kernel_family == "")
    if engine.precision not in UNGROUPED or kernels.runtime.merges or not products.any():
        return np.zeros(work.operator_count, dtype=bool)
    heads = work.gemm_groups * work.gemm_n * work.gemm_k * kernels.carried_bytes
    queries = work.gemm_groups * work.gemm_m * work.gemm_k * kernels.carried_bytes
    shares = products & kernels.leads & (kernels.input_bytes - queries < SHARED * heads)
    mask: Booleans = products & (kernels.per_operator(kernels.per_kernel(np.where(shares, 1.0, 0.0))) > 0.0)
    return mask


def _repeat_heads(kernels: KernelColumns, engine: Engine, repeats: Booleans, passes: _Passes) -> _Passes:
    """Add the passes of an attention that repeats keys and values for each query head, and return all passes."""
    work = kernels.work
    rows = work.gemm_groups * np.where(repeats & kernels.leads, kernels.carried_bytes, 0.0)
    moved = rows * (6.0 * work.gemm_n * work.gemm_k + 2.0 * work.gemm_m * work.gemm_k + 4.0 * work.gemm_m * work.gemm_n)
    names = ("index", "index", "light", "light", "light", "product.vector")
    starts = sum(engine.seconds(f"start_clocks.{one}") + engine.seconds("gap_clocks") for one in names)
    return _Passes(
        start_s=passes.start_s + np.where(rows > 0.0, starts, 0.0),
        stream_s=passes.stream_s + np.where(rows > 0.0, stream_seconds(engine, moved), 0.0),
        busy_s=passes.busy_s,
        issue_s=passes.issue_s,
        moved_bytes=passes.moved_bytes + moved,
    )


def _quantize(kernels: KernelColumns, engine: Engine, quantizes: Booleans, passes: _Passes) -> _Passes:
    """Add the passes that quantize activations before their GEMMs begin, and return all passes.

    A thread block per row finds its largest element and divides by it, QUANTIZED_BLOCK elements at a time. The fixed
    work per row equals `row_elements.quantize` more elements. A unit is full with `row_blocks` of these blocks.
    """
    work = kernels.work
    rows = work.gemm_m * np.maximum(work.gemm_groups, 1.0)
    length = ceil_divide(work.gemm_k, QUANTIZED_BLOCK) * QUANTIZED_BLOCK + engine.value("row_elements.quantize")
    unit = length * engine.value("issue_slots.quantize") / engine.slots_hz * engine.units
    issue = rows * unit / engine.units
    moved = rows * work.gemm_k * (kernels.carried_bytes + kernels.item_bytes)
    busy = smooth_max(smooth_max(issue, engine.value("row_blocks.quantize") * unit), stream_seconds(engine, moved))
    start = engine.seconds("gap_clocks") + engine.seconds("start_clocks.light")
    return _Passes(
        start_s=np.where(quantizes, start, passes.start_s),
        stream_s=np.where(quantizes, busy, passes.stream_s),
        busy_s=np.where(quantizes, 0.0, passes.busy_s),
        issue_s=np.where(quantizes, issue, passes.issue_s),
        moved_bytes=np.where(quantizes, moved, passes.moved_bytes),
    )
