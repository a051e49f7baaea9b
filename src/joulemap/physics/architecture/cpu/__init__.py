"""CPU: a stored-program machine; register-blocked tiles over the cores.

A CPU whose first memory level is `sram` is a microcontroller, with its own formulas: see `microcontroller`.

Time. A GEMM is cut into register blocks of tile_rows x tile_columns outputs; cores take them in waves:

    tiles   = G ⌈M / rows⌉ ⌈N / tile_columns⌉              GEMMs and grouped convolutions; else O / 16384, at least 1
    rows    = min(tile_rows, M)                            fewer rows make a shorter block
    waves   = ⌈tiles / U⌉
    special = max(special_function_fmas / vector rate, special_function_clocks / f)
    compute = waves x (tile MACs / (rate x efficiency) + (EW / vector rate + SF special) / tiles)
    pool    = max(compute, waves x O taps / tiles x pooled_tap_clocks / f)         in eager: tap by tap
    serial  = ⌈rows / U⌉ / rows (EW serial_clocks + SF serial_clocks.special) / f       sort, scan, nms, cumsum
    swish   = compute + O hardswish_clocks / f             on bytes: a runtime without a kernel takes one core
    launch  = region_cost log2(1 + min(U, tiles))   threads fork and join in a tree; region_cost with `flat_regions`
    launch  = min(launch, compute (tiles / waves - 1))     outside `engine`: one core computes a kernel alone if faster

Outside `engine` GEMMs and all convolutions in lanes run at min(0.9, gemm_efficiency framework_gain) of the rate, in
blocks of tile_rows x Wd / b. `eager` has what that mode adds: copies between layouts, set-up of convolutions, memory.

Fused attention under a causal mask omits the blocks of keys behind each block of b queries, except in `engine`:

    seen    = min(1, ((L - S) + (S + b) / 2) / L)          of the work; b = 256 from S = 768, 64 from 192, else 32

A GEMM of packed weights with a few vectors (llama.cpp) unpacks its codes again for each vector. Its MACs take
gemm_efficiency.streamed of the rate of fp32 lanes.

Cores share the caches and the memory that refill their registers. If n of U cores have a tile, each is faster by
`gain`, up to its peak. If the power mode has n cores, their clock rises from that of all cores to that of one:

    share  = min(1, MACs per clock b / (Wd fma_pipe_count))             bytes of operands that lanes take a clock
    q      = refill_ratio share                                         time of refills / own time, all cores busy
    gain   = ((1 + q^2.5) / (1 + (q n / U)^2.5))^(1/2.5)
    f      = clock + (clock_boost - clock) (U - n) / (U - 1)

In engines a 3 x 3 convolution of stride 1 in lanes takes 1 / winograd_gain of its MACs. Arithmetic of a named engine
takes 1 / engine_rate.NAME_PRECISION of the time of `engine`, or 1 / engine_rate without such a number.

Engines with streams give a request that has the whole chip only some of its cores, one of which works while the others
wait for part of the time (Amdahl's law). Products are linear layers and GEMMs of two activations:

    rate   *= request_share (1 in a stream) x product_share (products) / (1 + serial_share (U - 1))

In fp32 lanes gemm_efficiency is multiplied by fp32_share. The rate of a GEMM is that of the core's unit for the
precision: a matrix unit (the hardware's geometry says so, e.g. AMX), dot products of its vector unit (AVX-512 BF16 and
VNNI, SDOT, BFDOT, the MMLA instructions), or plain FMAs. Other work runs at the vector rate, Wd / b x fma_pipe_count x
f. A pipe has Wd = simd_width / 8 bytes. An element in a lane has b bytes, 4 at precisions that no lane computes in.
Memory time is the time of the last on-chip level.

Energy. Instructions drive the pipeline, register file and branch categories. With W bytes of an instruction
(vector_instruction_width / 8, else Wd), lanes = W / b, and D MACs of a dot product:

    FMAs          = MACs in lanes / lanes + MACs in dot products / D + special_function_fmas SF / lanes
    loads         = loads_per_fma x instructions of MACs (+ R / W if no GEMM) + copied / W
    stores        = (out + copied) / W
    vector        = FMAs + EW / lanes + loads + stores + instructions of the matrix unit and its tile loads
    scalar        = scalar_per_vector x vector                                         half of them branches
    L1, L2, L3    = each at least what the next reads, from level(C of the one before); L1 at least the loads

Blocks of attention: aten/src/ATen/native/cpu/FlashAttentionKernel.cpp. Control energies are those of an out-of-order
core and are not scaled by process node; `chip_energy` scales those of a narrower core. Source: McPAT 1.3, Xeon.xml at
22 nm; time: OpenVINO 2024.1 benchmark data of Xeon 8490H and 8380.
"""

from __future__ import annotations

import itertools
from typing import Final

import numpy as np

from joulemap.physics.architecture.cpu.eager import find_passes
from joulemap.physics.architecture.cpu.microcontroller import (
    check_memory,
    count_clocks,
    is_microcontroller,
)
from joulemap.physics.kernel import KernelColumns
from joulemap.physics.ledger import ActionCounts
from joulemap.physics.placement import Indifferent, Placement
from joulemap.physics.record.configuration import FLOPS_PER_MAC, PRECISION_BYTES
from joulemap.physics.record.hardware import ALL_UNITS, REFILL, Hardware, MemoryLevel
from joulemap.physics.record.quantity import Quantity
from joulemap.physics.record.silicon import UnitArea
from joulemap.physics.stream import STREAM_UNITS
from joulemap.physics.traffic import ceil_divide, held_data, level_bytes, memory_time
from joulemap.physics.width import LEAST_SOLVER
from joulemap.physics.workload import Booleans, Floats
from joulemap.system.errors import UnsupportedError
from joulemap.system.record import frozen, vary

LANE_PRECISIONS: Final = frozenset({"fp64", "fp32", "fp16"})
"""Precisions at which a vector lane computes. Other precisions have only GEMM instructions that add up in 32 bits
(AVX-512 BF16 and VNNI, AMX, SDOT, BFDOT, MMLA). Their other work runs in 32-bit lanes.
"""

CACHE_LEVELS: Final = ("l1", "l2", "l3")
"""Names of cache levels; a system-level cache is an `l3`."""
FLAT: Final = "flat_regions"
"""Name of a geometry constant: a kernel has the same fixed time on any number of cores."""

BITS_PER_BYTE: Final = 8.0
ELEMENTS_PER_TASK: Final = 16384.0
"""Elements per thread of an operator that is not a GEMM: 64 KiB of fp32, a large share of an L1."""
READING: Final = ("adaptive_avg_pool", "moment", "reduce", "scan")
"""Operations whose elements are those that they read, not those that they write; a pooling counts its windows'."""
MOST: Final = 0.9
"""Largest share of its rate that a framework's GEMM reaches, as the best kernels do."""
WINOGRAD_CHANNELS: Final = 8.0
"""Minimum number of input or output channels, whichever is larger, at which an engine uses Winograd's algorithm.
Source: ncnn, convolution_arm.cpp.
"""
SHARPNESS: Final = 2.5
"""Exponent of the norm that combines a core's own time with that of shared refills, as for kernels of GPUs."""
STRIDED: Final = 1.9
"""Input positions per output position above which a convolution counts as strided."""
QUERY_BLOCKS: Final = ((768.0, 256.0), (192.0, 64.0), (0.0, 32.0))
"""Block sizes of fused attention: (minimum queries of a sequence, queries per block). The first match applies."""
SERIAL: Final = ("sort", "scan", "nms", "cumsum")
"""Operations in loops whose steps wait for each other or for a branch, so that a row runs on the scalar units of one
core. `gemm_groups` states their independent rows. A `scan` of the kind `reduction` is such a search; others update a
state, whose elements are independent.
"""
FETCH_BLOCKS_PER_INSTRUCTION: Final = 0.5
"""Fetch blocks per instruction, because a block holds two instructions. The instruction TLB is looked up once per
block.
"""


@frozen(kw_only=True)
class _Vector:
    """Widths and rates of one core's vector unit at a precision."""

    instruction_bytes: Floats | float
    """Operand bytes of one vector instruction."""
    lanes: Floats | float
    """Elements per vector instruction, except in dot products."""
    lane_rate: Floats | float
    """FMAs per second of one core, counted per element, except in dot products."""
    macs_per_dot: Floats | float
    """MACs per dot-product instruction, derived from the peak at this precision."""


@frozen(kw_only=True, eq=False)
class CpuPlacement(Placement):
    """Operators placed on the cores of a CPU."""

    multiplied_macs: Floats
    """MACs, excluding MACs that Winograd's algorithm saves or a causal mask skips."""
    seen_share: Floats
    """Share of attention work that a causal mask does not skip; 1 for all other operators."""


def _vector(hardware: Hardware, precision: str) -> _Vector:
    """Return the widths and rates of a core's vector unit at a precision.

    A unit that is narrower than its instructions executes each in several passes (AVX-512 on Zen 4). The hardware then
    states `vector_instruction_width` in addition to `simd_width`.
    """
    peak = hardware.peaks[precision]
    datapath = hardware.geometry["simd_width"].value / BITS_PER_BYTE
    wide = hardware.geometry.get("vector_instruction_width")
    instruction = datapath if wide is None else wide.value / BITS_PER_BYTE
    pipes = hardware.geometry["fma_pipe_count"].value
    item = PRECISION_BYTES[precision if precision in LANE_PRECISIONS else "fp32"]
    macs_per_clock = peak.macs_per_clock
    return _Vector(
        instruction_bytes=instruction,
        lanes=instruction / item,
        lane_rate=datapath / item * pipes * peak.clock_hz,
        macs_per_dot=macs_per_clock / pipes * instruction / datapath,
    )


def _pipe_lanes(hardware: Hardware, precision: str) -> float:
    """Return the elements that one pipe computes at once at a precision of lanes."""
    lanes: float = hardware.geometry["simd_width"].value / BITS_PER_BYTE / PRECISION_BYTES[precision]
    return lanes


def _mode(precision: str, hardware: Hardware) -> str:
    """Return the unit that computes the GEMMs of a precision: `matrix`, `vector`, `dot_bf16` or `dot_int8`."""
    if f"matrix_macs_per_instruction_{precision}" in hardware.geometry:
        return "matrix"
    return "vector" if precision in LANE_PRECISIONS else f"dot_{precision}"


def _last_level(hardware: Hardware) -> MemoryLevel:
    """Return the last cache level before DRAM. The capacities of private caches are added up over the cores.

    Raise UnsupportedError for a level that is not in `CACHE_LEVELS`.
    """
    for level in hardware.memory_levels:
        if level.name not in CACHE_LEVELS:
            raise UnsupportedError(
                f"{hardware.id}: cache level {level.name}, expected one of {', '.join(CACHE_LEVELS)}"
            )
    level = hardware.memory_levels[-1]
    if level.per == "chip":
        return level
    units = np.rint(hardware.unit_count.value)
    return vary(level, capacity=vary(level.capacity, value=level.capacity.value * units))


def _find_gain(hardware: Hardware, precision: str, tiles: Floats) -> tuple[Floats | float, Floats | float]:
    """Return (gain, ratio of clocks) of a core that works on one of these tiles, relative to one among all cores of its
    chip. Cores without a tile refill no registers; cores that the power mode leaves out also raise the clock.
    """
    total = hardware.geometry.get(ALL_UNITS)
    if total is None:
        return 1.0, 1.0
    busy, peak = np.rint(hardware.unit_count.value), hardware.peaks[precision]
    taken = peak.macs_per_clock * PRECISION_BYTES[precision]
    lanes = hardware.geometry["simd_width"].value / BITS_PER_BYTE * hardware.geometry["fma_pipe_count"].value
    ratio = hardware.coefficient(REFILL) * np.minimum(taken / lanes, 1.0)
    shared = 1.0 + (ratio * np.minimum(tiles, busy) / np.maximum(total.value, busy)) ** SHARPNESS
    clocks = 1.0
    if hardware.clock_boost is not None:
        idle = (total.value - busy) / np.maximum(total.value - 1.0, 1.0)
        clocks = 1.0 + np.maximum(hardware.clock_boost.value / hardware.clock.value - 1.0, 0.0) * np.maximum(idle, 0.0)
    return ((1.0 + ratio**SHARPNESS) / shared) ** (1.0 / SHARPNESS), clocks


def _is_winograd(kernels: KernelColumns) -> Booleans:
    """Return a mask of the 3 x 3 convolutions of stride 1 that an engine computes by Winograd's algorithm."""
    work = kernels.work
    channels = work.channels
    elements = (kernels.own_read_bytes - kernels.own_weight_bytes) / kernels.item_bytes
    positions = elements / np.maximum(channels * np.maximum(work.gemm_groups, 1.0), 1.0)
    has_channels = np.maximum(channels, work.gemm_n) >= WINOGRAD_CHANNELS
    mask: Booleans = work.of_kind("conv") & (work.window == 9.0) & has_channels
    return mask & (positions <= STRIDED * work.gemm_m)


def _seen_share(kernels: KernelColumns) -> Floats:
    """Return the share of each operator's work that a causal mask leaves to fused attention; 1 for other operators."""
    work = kernels.work
    share = np.ones(kernels.kernel_count)
    masked = np.flatnonzero(work.is_causal & work.has_macs)
    kernel, first = np.unique(kernels.kernel_index[masked], return_index=True)
    scores = masked[first]
    # a backward kernel has the GEMM of its weighted sum alone, whose K are the keys
    queries, keys = work.gemm_m[scores], np.where(work.elementwise_count > 0.0, work.gemm_n, work.gemm_k)[scores]
    block = np.select([queries >= least for least, _ in QUERY_BLOCKS], [rows for _, rows in QUERY_BLOCKS])
    share[kernel] = np.minimum((keys - queries + (queries + np.minimum(block, queries)) / 2.0) / keys, 1.0)
    return np.where(work.is_causal, kernels.per_operator(share), 1.0)


def _is_serial(kernels: KernelColumns) -> Booleans:
    """Return a mask of the operators in loops of dependent steps."""
    work = kernels.work
    return work.of_operation(*SERIAL) & (~work.of_operation("scan") | work.of_kind("reduction"))


def _serial_s(kernels: KernelColumns, hardware: Hardware) -> Floats:
    """Return the seconds of operations in loops of dependent steps; each core takes whole rows, in turns."""
    work = kernels.work
    peak = hardware.peaks[kernels.precision]
    clocks = np.zeros(work.operator_count)
    for operation in SERIAL:
        each = np.where(work.of_operation(operation), work.elementwise_count, 0.0)
        clocks = clocks + each * hardware.coefficient("serial_clocks", operation)
    clocks = clocks + work.special_count * hardware.coefficient("serial_clocks", "special")
    rows = np.maximum(work.gemm_groups, 1.0)
    share: Floats = ceil_divide(rows, peak.unit_count) / rows
    return clocks * share / peak.clock_hz


def _efficiency(kernels: KernelColumns, hardware: Hardware) -> Floats:
    """Return the share of its unit's rate that each operator with MACs reaches in a full wave."""
    work, mode = kernels.work, _mode(kernels.precision, hardware)
    dense = hardware.coefficient("gemm_efficiency", mode, "vector")
    if kernels.precision == "fp32":
        dense = dense * hardware.coefficient("fp32_share")
    if not kernels.runtime.is_built and mode == "vector":
        gained: Floats = np.ones(work.operator_count) * np.minimum(dense * hardware.coefficient("framework_gain"), MOST)
        return gained
    return np.where(
        work.of_kind("depthwise_conv"),
        hardware.coefficient("depthwise_efficiency"),
        np.where(work.of_kind("grouped_conv"), hardware.coefficient("grouped_efficiency"), dense),
    )


def _place_serially(kernels: KernelColumns, hardware: Hardware) -> CpuPlacement:
    """Return the placement on a microcontroller, whose core runs one operator after another."""
    check_memory(kernels, hardware)
    work = kernels.work
    peak = hardware.peaks[kernels.precision]
    weights = np.asarray(kernels.weight_bytes, dtype=np.float64)
    runs = np.where(kernels.rides, 0.0, 1.0)
    return CpuPlacement(
        compute_s=count_clocks(kernels, hardware) / peak.clock_hz,
        memory_s=weights / hardware.memory_bandwidth.value,
        launch_s=kernels.each_kernel(0.0),
        dram_read_bytes=weights,
        dram_write_bytes=np.zeros(work.operator_count),
        tile_count=runs,
        wave_count=runs,
        units_used=runs,
        units_total=peak.unit_count,
        executed_macs=work.mac_count,
        multiplied_macs=work.mac_count,
        seen_share=np.ones(work.operator_count),
    )


class Cpu(Indifferent):
    """Model of CPUs: cores with vector and matrix units, and microcontrollers."""

    unit_area = UnitArea(
        datapath=Quantity(
            value=0.01,
            unit="1",
            basis="assumed",
            source="most of a core is control around its arithmetic units",
        )
    )

    def place(self, kernels: KernelColumns, hardware: Hardware) -> CpuPlacement:
        """Return the kernels placed in tiles and waves, with their times. The module docstring has the formulas.

        Raise UnsupportedError for a model that does not fit the memories of a microcontroller.
        """
        if is_microcontroller(hardware):
            return _place_serially(kernels, hardware)
        work = kernels.work
        peak = hardware.peaks[kernels.precision]
        units = peak.unit_count
        core_macs = peak.rate.value / FLOPS_PER_MAC / units
        vector_rate = _vector(hardware, kernels.precision).lane_rate
        mode = _mode(kernels.precision, hardware)
        tile_m = np.minimum(hardware.coefficient("tile_rows", mode), np.maximum(work.gemm_m, 1.0))
        is_eager = kernels.runtime.launches_each
        in_lanes = not kernels.runtime.is_built and mode == "vector"
        tile_n = _pipe_lanes(hardware, kernels.precision) if in_lanes else hardware.coefficient("tile_columns", mode)
        is_grouped, is_serial = work.of_kind("grouped_conv"), _is_serial(kernels)
        has_tiles = work.is_gemm | is_grouped
        state = kernels.own_read_bytes / kernels.carried_bytes
        taps = np.where(work.of_kind("pool"), np.maximum(work.tap_count, 1.0), 1.0)
        elements = np.where(work.of_operation(*READING), state, work.output_element_count * taps)

        tiles = np.where(
            has_tiles,
            work.gemm_groups * ceil_divide(work.gemm_m, tile_m) * ceil_divide(work.gemm_n, tile_n),
            np.where(is_serial, work.gemm_groups, elements / ELEMENTS_PER_TASK),
        )
        tiles = np.maximum(tiles, 1.0)
        waves = ceil_divide(tiles, units)
        shown = np.where(kernels.rides, 0.0, np.ceil(tiles))
        padded_n = np.where(work.is_gemm, tile_n, np.minimum(work.gemm_n, tile_n))
        own_macs = work.mac_count / tiles  # more than the shape has where a scan has several GEMMs
        tile_macs = np.where(has_tiles, np.maximum(tile_m * padded_n * work.gemm_k, own_macs), own_macs)
        gain, clocks = _find_gain(hardware, kernels.precision, tiles)
        efficiency = _efficiency(kernels, hardware)
        efficiency = np.maximum(np.minimum(efficiency * gain, 1.0), efficiency) / gain  # no core exceeds its peak
        dense_rate = np.where(work.is_gemm, core_macs, vector_rate) * efficiency
        saved = np.ones(work.operator_count)
        if kernels.runtime.is_built and mode == "vector":
            saved = np.where(_is_winograd(kernels), hardware.coefficient("winograd_gain"), saved)
        dense_rate = dense_rate * saved
        unpacks = work.is_streamed & (kernels.stored_share < 1.0)
        if unpacks.any():
            unpacked = _vector(hardware, "fp32").lane_rate * hardware.coefficient("gemm_efficiency.streamed")
            dense_rate = np.where(unpacks, unpacked, dense_rate)
        special_s = hardware.coefficient("special_function_fmas") / vector_rate
        special_clocks = hardware.coefficient("special_function_clocks", kernels.runtime.name)
        special_s = np.maximum(special_s, special_clocks / peak.clock_hz)
        simple = (work.elementwise_count + special_s * vector_rate * work.special_count) / np.maximum(tiles, 1.0)
        if work.decomposes.any():  # lanes of four bytes at least
            wide = PRECISION_BYTES[kernels.precision if kernels.precision in LANE_PRECISIONS else LEAST_SOLVER]
            slower = max(PRECISION_BYTES[LEAST_SOLVER] / wide, 1.0)
            simple = np.where(work.decomposes, simple * slower, simple)
        compute = waves * (np.where(work.has_macs, tile_macs / dense_rate, 0.0) + simple / vector_rate)
        named = f"{kernels.runtime.name}_{kernels.precision}"
        rate = hardware.coefficient("engine_rate", named) if kernels.runtime.of_class else 1.0
        if kernels.runtime.is_built and STREAM_UNITS in hardware.geometry:
            is_whole, is_product = units > hardware.geometry[STREAM_UNITS].value, work.of_kind("linear", "matmul")
            rate = rate * hardware.coefficient("request_share", kernels.precision) ** is_whole
            rate = rate / (1.0 + hardware.coefficient("serial_share") * (units - 1.0))
            compute = compute / hardware.coefficient("product_share", kernels.precision) ** is_product
        compute = compute / (gain * clocks * rate)
        if kernels.precision not in LANE_PRECISIONS:
            elements = np.where(work.of_operation("hardswish"), work.output_element_count, 0.0)
            compute = compute + elements * hardware.coefficient("hardswish_clocks") / peak.clock_hz
        if is_serial.any():
            compute = np.where(is_serial, _serial_s(kernels, hardware), compute)
        if is_eager:
            loads = work.output_element_count * work.tap_count / np.maximum(tiles, 1.0)
            scalar = waves * loads * hardware.coefficient("pooled_tap_clocks") / peak.clock_hz
            compute = np.where(work.of_kind("pool"), np.maximum(compute, scalar), compute)

        seen = np.ones(work.operator_count) if kernels.runtime.is_built else _seen_share(kernels)
        compute = compute * seen

        last_level = _last_level(hardware)
        memory, read, written = memory_time(kernels, hardware, last_level)
        threads = np.minimum(np.rint(hardware.unit_count.value), kernels.of_leader(tiles))
        levels = 1.0 if FLAT in hardware.geometry else np.log2(1.0 + threads)
        launch = kernels.each_kernel(hardware.coefficient("region_cost")) * levels
        if not kernels.runtime.is_built:
            launch = np.minimum(launch, kernels.per_kernel(compute * np.maximum(tiles / waves - 1.0, 0.0)))
        copied = np.zeros(work.operator_count)
        if is_eager:
            passes = find_passes(kernels, hardware)
            launch, copied = launch + kernels.per_kernel(passes.added_s), passes.copied_bytes
            beyond = (1.0 - held_data(kernels, last_level.capacity.value)) * copied
            read, written = read + beyond, written + beyond
        return CpuPlacement(
            compute_s=compute,
            memory_s=memory,
            launch_s=launch,
            pass_bytes=2.0 * copied,
            dram_read_bytes=read,
            dram_write_bytes=written,
            tile_count=shown,
            wave_count=np.where(kernels.rides, 0.0, waves),
            units_used=np.minimum(shown, units),
            units_total=peak.unit_count,
            executed_macs=np.where(has_tiles, tiles * tile_macs, work.mac_count),
            computed_macs=work.mac_count * seen / saved,
            multiplied_macs=work.mac_count * seen / saved,
            seen_share=seen,
        )

    def count(self, kernels: KernelColumns, placement: CpuPlacement, hardware: Hardware) -> ActionCounts:
        """Return the count of each action per operator. `joulemap hardware show ID --energy` lists the actions."""
        if is_microcontroller(hardware):
            clock_hz = hardware.peaks[kernels.precision].clock_hz
            return {("core", "active_clock"): placement.compute_s * clock_hz}
        work = kernels.work
        precision = kernels.precision
        vector = _vector(hardware, precision)
        lanes, width = vector.lanes, vector.instruction_bytes
        mode = _mode(precision, hardware)
        macs = placement.multiplied_macs
        gemm_macs = np.where(work.is_gemm, macs, 0.0)
        none = np.zeros_like(macs)
        matrix_macs = gemm_macs if mode == "matrix" else none
        dot_macs = gemm_macs if mode.startswith("dot") else none
        vector_macs = macs - matrix_macs - dot_macs
        mac_instructions = vector_macs / lanes + dot_macs / vector.macs_per_dot
        elementwise = work.elementwise_count * placement.seen_share
        special = work.special_count * placement.seen_share
        fmas = mac_instructions + special * hardware.coefficient("special_function_fmas") / lanes
        simple = elementwise / np.where(_is_serial(kernels), 1.0, lanes)
        crossing_read = kernels.input_bytes + kernels.weight_bytes
        copied = placement.pass_bytes / 2.0  # each byte is read and written
        streamed = np.where(work.is_gemm, 0.0, crossing_read / width)
        loads = mac_instructions * hardware.coefficient("loads_per_fma") + streamed + copied / width
        stores = (kernels.output_bytes + copied) / width
        matrix_instructions, matrix_bytes = self._matrix(matrix_macs, precision, hardware)
        vector_instructions = fmas + simple + loads + stores + matrix_instructions
        scalar = vector_instructions * hardware.coefficient("scalar_per_vector")
        instructions = vector_instructions + scalar
        branches = scalar / 2.0
        misses = branches * np.where(
            work.is_gemm,
            hardware.coefficient("misprediction_rate", "gemm"),
            hardware.coefficient("misprediction_rate", "other"),
        )
        reads = _level_reads(kernels, placement, loads * width + matrix_bytes, hardware)
        written = kernels.output_bytes + copied
        lane_precision = precision if precision in LANE_PRECISIONS else "fp32"
        counts: ActionCounts = {
            ("instruction_cache", "fetch"): instructions,
            ("instruction_tlb", "lookup"): instructions * FETCH_BLOCKS_PER_INSTRUCTION,
            ("instruction_buffer", "access"): instructions,
            ("decoder", "decode"): instructions,
            ("rename", "dispatch"): instructions,
            ("scheduler", "issue"): instructions,
            ("reorder_buffer", "commit"): instructions,
            ("result_bus", "bypass"): instructions,
            ("scalar_register", "read"): 2.0 * scalar,
            ("scalar_register", "write"): scalar,
            ("vector_register", "read"): (3.0 * fmas + 2.0 * simple) * width,
            ("vector_register", "write"): (fmas + simple + loads) * width,
            ("vector_bypass", "forward"): (4.0 * fmas + 3.0 * simple) * width,
            ("tile_register", "access"): matrix_macs,
            ("load_queue", "insert"): loads,
            ("store_queue", "insert"): stores,
            ("data_tlb", "lookup"): loads + stores,
            ("dram_controller", "read"): placement.dram_read_bytes,
            ("dram_controller", "write"): placement.dram_write_bytes,
            ("dram", "read"): placement.dram_read_bytes,
            ("dram", "write"): placement.dram_write_bytes,
            ("vector_fma", f"{lane_precision}_mac"): vector_macs,
            ("vector_alu", "elementwise"): elementwise,
            ("vector_alu", "special_function"): special,
            ("integer_alu", "operation"): scalar,
            ("address_generation", "operation"): loads + stores,
            ("branch_target_buffer", "lookup"): instructions,
            ("branch_predictor", "lookup"): branches,
            ("misprediction", "flush"): misses,
            ("misprediction", "restore"): misses,
        }
        if mode == "matrix":
            counts["matrix_unit", f"{precision}_mac"] = matrix_macs
        elif mode != "vector":
            counts["vector_fma", f"{precision}_mac"] = dot_macs
        return counts | _level_counts(reads, written, placement.dram_read_bytes, hardware)

    @staticmethod
    def _matrix(macs: Floats, precision: str, hardware: Hardware) -> tuple[Floats, Floats]:
        """Return (instructions, bytes read from L1) of the matrix unit for these MACs.

        Instructions are multiplies and the tile loads that they need.
        """
        if _mode(precision, hardware) != "matrix":
            return np.zeros_like(macs), np.zeros_like(macs)
        multiplies = macs / hardware.geometry[f"matrix_macs_per_instruction_{precision}"].value
        loads = multiplies * hardware.coefficient("matrix_loads_per_multiply")
        return multiplies + loads, loads * hardware.geometry["matrix_tile"].value / BITS_PER_BYTE


def _level_reads(kernels: KernelColumns, placement: Placement, loaded: Floats, hardware: Hardware) -> dict[str, Floats]:
    """Return cache level -> bytes read per operator.

    All loads read the first level; each further level is read for the misses of the level before it. Each level is read
    at least as much as the next outer level, whose data passes through it.
    """
    crossing = kernels.input_bytes + kernels.weight_bytes
    item = PRECISION_BYTES[kernels.precision]
    reads = {hardware.memory_levels[0].name: loaded}
    for level, following in itertools.pairwise(hardware.memory_levels):
        units = 1.0 if level.per == "chip" else placement.units_total
        missed = level_bytes(kernels, level.capacity.value, item, units)
        reads[following.name] = np.where(kernels.work.is_gemm, missed, crossing) + placement.pass_bytes / 2.0
    behind = placement.dram_read_bytes
    for name in reversed(reads):
        behind = reads[name] = np.maximum(reads[name], np.maximum(behind, crossing))
    return reads


def _level_counts(reads: dict[str, Floats], written: Floats, dram_read: Floats, hardware: Hardware) -> ActionCounts:
    """Return the access counts of all cache levels, and of the on-chip network if the cores share the last level.

    Results are written to every level. Misses of a level are filled from the next level, or from DRAM after the last.
    """
    names = [level.name for level in hardware.memory_levels]
    counts: ActionCounts = {}
    for name, following in zip(names, [*names[1:], None], strict=True):
        counts[name, "read"] = reads[name]
        counts[name, "write"] = written
        counts[name, "fill"] = dram_read if following is None else reads[following]
    if hardware.memory_levels[-1].per == "chip":
        read = reads[names[-1]]
        counts["mesh", "hop"] = (read + written) * hardware.coefficient("mesh_hops")
        counts["coherence_directory", "lookup"] = read / hardware.coefficient("cache_line")
    return counts


ARCHITECTURE = Cpu()
