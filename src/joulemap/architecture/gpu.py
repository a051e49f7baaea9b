"""GPU: thread blocks of a SIMT machine in waves over streaming multiprocessors.

Time. A GEMM (convolution as implicit GEMM: M = batch x positions, N = channels out, K = channels in x taps) is cut
into tiles of tile_m x tile_n outputs, one thread block each. With r the rate of one SM:

    throughput  waves x tile_m tile_n (K + epilogue) / (r / (1 + overhead d (1/tile_m + 1/tile_n)))
    chain       K x step latency, which one block cannot beat however idle the chip is
    compute     min over tile shapes of max(throughput, chain)

d is the operand bytes that a unit's peak asks for each clock, relative to the unit that the overhead was found on: the
overhead is the feeding of operands through a shared memory of much the same width in all these machines.

Source: the forms are those found on a measured H200 (graph replay), whose coefficients the catalogue carries as
fractions of peak and as clocks. Depthwise and native grouped convolutions, pooling and data movement have issue
rates of their own.

Which precisions run on tensor cores (matrix cores, on an AMD part) is the target's: each peak names its engine. What a
warp is (32 lanes, or a wavefront of 64), which cache is the last before DRAM (L2, or an L3 behind it), and whether a
board is several devices of which one kernel sees one (`device_count`) are the target's too.

Energy. Circuit level: datapath, register file, instruction overhead per warp instruction (335 pJ at 7 nm, split),
shared memory, L2 with crossbar, DRAM, SIMT control. Used with active static power, never mixed with constants fitted
at the board.
"""

from __future__ import annotations

from typing import Final

import attrs
import numpy as np

from joulemap.columns.workload import Floats
from joulemap.domain.hardware import Hardware, MemoryLevel
from joulemap.domain.kind import KINDS
from joulemap.domain.precision import FLOPS_PER_MAC, PRECISION_BYTES
from joulemap.domain.quantity import Quantity
from joulemap.energy.ledger import ActionCounts
from joulemap.mapping.kernel import KernelColumns, Placement
from joulemap.mapping.traffic import ceil_divide, dram_bytes, memory_time, tiled_bytes

TENSOR: Final = "tensor_core"
"""The engine of a peak that the tensor or matrix cores give."""

BEYOND_LANES: Final = 1.5
"""A peak that names no engine is that of tensor cores if it exceeds the packed vector lanes by this factor."""

TILES: Final = {
    "vector": ((32, 32), (64, 64), (128, 64), (128, 128)),
    "tensor": ((64, 64), (128, 64), (128, 128), (256, 128)),
}
"""Tile shapes of the kernels that cuBLAS and cuDNN choose from. Source: kernel names in H200 profiles."""

REFERENCE_TILE_AREA: Final = 64.0 * 64.0
"""Tile at which the step latency is quoted."""

ELEMENTS_PER_BLOCK: Final = 1024.0
"""Outputs of one thread block of a kernel that is not a GEMM: 256 threads, four elements each."""

REGISTER_BYTES: Final = 4.0
SHARED_LANE_BYTES: Final = 16.0
"""What one lane reads of shared memory with one instruction."""
LANES_PRICED: Final = 32.0
"""Lanes of the warp instruction that the catalogue prices; what drives lanes costs twice that for a wavefront of 64."""
SECTOR_BYTES: Final = 32.0

GEMM_KINDS: Final = ("conv", "linear", "matmul")
DIRECT_KINDS: Final = ("depthwise_conv", "grouped_conv")

_VECTOR_MAC: Final = {
    "fp64": "fp64_mac",
    "fp32": "fp32_mac",
    "tf32": "fp32_mac",
    "fp16": "fp16_mac",
    "bf16": "fp16_mac",
    "fp8": "fp16_mac",
    "fp4": "fp16_mac",
    "int8": "fp16_mac",
    "int4": "fp16_mac",
}
"""What a MAC costs on the vector lanes, for what does not run on tensor cores."""


def uses_tensor_cores(hardware: Hardware, precision: str) -> bool:
    """Whether the peak at this precision is that of the tensor cores: as the target says, else as the rate shows."""
    peak = hardware.peaks[precision]
    if peak.engine:
        return peak.engine == TENSOR
    vector = hardware.peaks.get("fp32", peak).operations_per_clock
    packed = max(1.0, REGISTER_BYTES / PRECISION_BYTES[precision])
    return peak.operations_per_clock > BEYOND_LANES * packed * vector


def find_device(hardware: Hardware) -> Hardware:
    """Return what one kernel sees: the hardware, or its share where the board is several devices to the software."""
    count = hardware.geometry.get("device_count")
    if count is None or count.value == 1.0:
        return hardware

    def share(quantity: Quantity) -> Quantity:
        return attrs.evolve(quantity, value=quantity.value / count.value)

    return attrs.evolve(
        hardware,
        unit_count=share(hardware.unit_count),
        memory_bandwidth=share(hardware.memory_bandwidth),
        memory_levels=tuple(
            attrs.evolve(
                level,
                capacity=share(level.capacity) if level.per == "chip" else level.capacity,
                bandwidth=share(level.bandwidth) if level.bandwidth else None,
            )
            for level in hardware.memory_levels
        ),
        peaks={
            precision: attrs.evolve(
                peak, rate=share(peak.rate), unit_count=max(1, round(peak.unit_count / count.value))
            )
            for precision, peak in hardware.peaks.items()
        },
    )


def find_last_level(hardware: Hardware) -> MemoryLevel:
    """Return the cache before DRAM; a bandwidth that nobody published is bytes per clock times units times clock."""
    level = hardware.memory_levels[-1]
    if level.bandwidth is not None:
        return level
    rule = hardware.coefficients["last_level_bytes_per_clock"]
    value = rule.value * hardware.unit_count.value * _vector_clock_hz(hardware)
    return attrs.evolve(level, bandwidth=Quantity(value=value, unit="B/s", basis=rule.basis, source=rule.source))


def _vector_clock_hz(hardware: Hardware) -> float:
    """Return the clock that coefficients per clock use: that of the fp32 peak, or the chip's."""
    peak = hardware.peaks.get("fp32")
    return peak.clock_hz if peak else hardware.clock.value


def _mode(hardware: Hardware, precision: str) -> str:
    return "tensor" if uses_tensor_cores(hardware, precision) else "vector"


def _packing(hardware: Hardware, precision: str) -> float:
    """Return the MACs that one vector lane does each clock, at least 1: four in DP4A, two in packed fp32."""
    if uses_tensor_cores(hardware, precision):
        return 1.0
    lanes = hardware.geometry["fp32_lanes_per_unit"].value
    return max(1.0, hardware.peaks[precision].operations_per_clock / FLOPS_PER_MAC / lanes)


class Gpu:
    """SIMT data-parallel processors."""

    name = "gpu"

    def place(self, kernels: KernelColumns, hardware: Hardware) -> Placement:
        """Return tiles, waves and times; see the module's formulas."""
        work = kernels.work
        units_total = hardware.peaks[kernels.precision].unit_count
        hardware = find_device(hardware)
        mode = _mode(hardware, kernels.precision)
        units = hardware.peaks[kernels.precision].unit_count
        issue = units * _vector_clock_hz(hardware)
        compute, tiles, waves, executed, tile_m, tile_n = self._gemm(kernels, hardware)

        direct = work.of_kind(*DIRECT_KINDS)
        lanes = self._lanes(hardware, kernels.precision)
        depthwise, grouped = self._direct_rates(hardware, kernels.precision, lanes)
        rate = np.where(work.of_kind("depthwise_conv"), depthwise, grouped)
        compute = np.where(direct, work.mac_count / (rate * issue), compute)
        special_lanes = hardware.geometry["special_function_lanes_per_unit"].value
        compute = compute + work.elementwise_count / (lanes * issue) + work.special_count / (special_lanes * issue)
        moves = work.of_kind("data_movement", "uncounted")
        indexed = hardware.coefficient("indexed_elements_per_clock")
        compute = np.where(moves, work.output_element_count / (indexed * issue), compute)
        pools = work.of_kind("pool")
        taps = hardware.coefficient("pooled_taps_per_clock")
        compute = np.where(pools, work.output_element_count * work.tap_count / (taps * issue), compute)

        simple = ~work.of_kind(*GEMM_KINDS) & kernels.is_active
        tiles = np.where(simple, ceil_divide(work.output_element_count, ELEMENTS_PER_BLOCK), tiles)
        tiles = np.where(kernels.rides, 0.0, tiles)
        waves = np.where(simple, ceil_divide(tiles, float(units)), waves)
        executed = np.where(work.of_kind(*GEMM_KINDS), executed, work.mac_count)

        memory, read, written = memory_time(kernels, hardware, find_last_level(hardware))
        factor = hardware.coefficient("batch_norm_traffic_factor", mode)
        memory = np.where(work.of_kind("batch_norm") & kernels.leads, memory * factor, memory)
        active = kernels.is_active
        compute = np.where(active, compute, 0.0)
        device = np.maximum(kernels.per_kernel(compute), kernels.per_kernel(memory))
        return Placement(
            compute_s=compute,
            memory_s=np.where(active, memory, 0.0),
            launch_s=self._launch(kernels, hardware, device),
            dram_read_bytes=np.where(active, read, 0.0),
            dram_write_bytes=np.where(active, written, 0.0),
            tile_count=np.where(active, tiles, 0.0),
            wave_count=np.where(active, waves, 0.0),
            units_used=np.where(active, np.minimum(tiles, units), 0.0),
            units_total=units_total,
            executed_macs=np.where(active, executed, 0.0),
            detail={"tile_m": tile_m, "tile_n": tile_n},
        )

    @staticmethod
    def _lanes(hardware: Hardware, precision: str) -> float:
        """Return the elements per clock and unit that plain arithmetic at this precision runs at."""
        lanes = hardware.geometry["fp32_lanes_per_unit"].value
        single = hardware.peaks.get("fp32")
        if single is None:
            return lanes * REGISTER_BYTES / max(PRECISION_BYTES[precision], REGISTER_BYTES)
        return lanes * min(1.0, hardware.peaks[precision].operations_per_clock / single.operations_per_clock)

    @staticmethod
    def _operand_demand(hardware: Hardware, precision: str) -> float:
        """Return MACs per clock times operand bytes of one unit, relative to those that the tile overhead holds for."""
        demand = hardware.peaks[precision].operations_per_clock / FLOPS_PER_MAC * PRECISION_BYTES[precision]
        return demand / hardware.coefficient("tile_overhead_demand", _mode(hardware, precision))

    @staticmethod
    def _direct_rates(hardware: Hardware, precision: str, lanes: float) -> tuple[float, float]:
        """Return the MACs per clock and unit of depthwise and of native grouped convolutions."""
        mode = _mode(hardware, precision)
        peak = hardware.peaks[precision].operations_per_clock / FLOPS_PER_MAC
        depthwise = min(hardware.coefficient("depthwise_macs_per_clock", mode), lanes)
        share = hardware.coefficient("grouped_peak_share", mode)
        return depthwise, min(hardware.coefficient("grouped_macs_per_clock", mode), share * peak)

    def _gemm(
        self, kernels: KernelColumns, hardware: Hardware
    ) -> tuple[Floats, Floats, Floats, Floats, Floats, Floats]:
        """Return (seconds, tiles, waves, executed MACs, tile m, tile n) of the best tile shape per operator."""
        work = kernels.work
        peak = hardware.peaks[kernels.precision]
        mode = _mode(hardware, kernels.precision)
        units = float(peak.unit_count)
        rate = peak.rate.value / FLOPS_PER_MAC / units * hardware.coefficient("peak_efficiency", mode)
        overhead = hardware.coefficient("tile_overhead", mode) * self._operand_demand(hardware, kernels.precision)
        step_s = hardware.coefficient("k_step_clocks", mode) / _vector_clock_hz(hardware)
        exponent = hardware.coefficient("k_step_exponent", mode)
        epilogue = hardware.coefficient("epilogue_steps", mode)
        is_gemm = work.of_kind(*GEMM_KINDS) & (work.mac_count > 0)
        best = np.where(is_gemm, np.inf, 0.0)
        tiles, waves, executed = (np.zeros_like(best) for _ in range(3))
        chosen_m, chosen_n = np.ones_like(best), np.ones_like(best)
        for tile_m, tile_n in TILES[mode]:
            area = float(tile_m * tile_n)
            count = work.gemm_groups * ceil_divide(work.gemm_m, tile_m) * ceil_divide(work.gemm_n, tile_n)
            wave = ceil_divide(count, units)
            tile_rate = rate / (1.0 + overhead * (1.0 / tile_m + 1.0 / tile_n))
            throughput = wave * area * (work.gemm_k + epilogue) / tile_rate
            chain = work.gemm_k * step_s * (area / REFERENCE_TILE_AREA) ** exponent
            seconds = np.maximum(throughput, chain)
            better = is_gemm & (seconds < best)
            best = np.where(better, seconds, best)
            tiles = np.where(better, count, tiles)
            waves = np.where(better, wave, waves)
            executed = np.where(better, count * area * work.gemm_k, executed)
            chosen_m = np.where(better, float(tile_m), chosen_m)
            chosen_n = np.where(better, float(tile_n), chosen_n)
        return best, tiles, waves, executed, chosen_m, chosen_n

    def _launch(self, kernels: KernelColumns, hardware: Hardware, device_s: Floats) -> Floats:
        """Return the fixed cost per kernel: that of its leader's kind, the gap, and in `eager` the host's pace."""
        mode = _mode(hardware, kernels.precision)
        by_kind = np.array([self._fixed_cost(kind, mode, hardware) for kind in KINDS])
        cost = by_kind[kernels.work.kind[kernels.leader]]
        is_pointwise = kernels.work.of_kind("conv")[kernels.leader] & (kernels.work.tap_count[kernels.leader] == 1)
        cost = np.where(is_pointwise, hardware.coefficient("fixed_cost.pointwise_conv", mode), cost)
        cost = cost + hardware.coefficient("kernel_gap")
        if kernels.runtime == "eager":
            cost = np.maximum(cost, hardware.coefficient("host_launch") - device_s)
        return cost

    @staticmethod
    def _fixed_cost(kind: str, mode: str, hardware: Hardware) -> float:
        if kind == "view":
            return 0.0
        named = "data_movement" if kind == "uncounted" else kind
        return hardware.coefficient(f"fixed_cost.{named}", mode)

    def count(self, kernels: KernelColumns, placement: Placement, hardware: Hardware) -> ActionCounts:
        """Return the counts of the seven categories; the catalogue states each formula in words."""
        work = kernels.work
        active = kernels.is_active
        precision = kernels.precision
        item = PRECISION_BYTES[precision]
        is_gemm = work.of_kind(*GEMM_KINDS) & active
        may_use_tensor = work.of_kind(*GEMM_KINDS, "grouped_conv") & active
        on_tensor = may_use_tensor if uses_tensor_cores(hardware, precision) else np.zeros_like(is_gemm)
        macs = np.where(active, work.mac_count, 0.0)
        tensor_macs = np.where(on_tensor, macs, 0.0)
        vector_macs = macs - tensor_macs
        packing = np.where(is_gemm, _packing(hardware, precision), 1.0)
        dot_macs = np.where(is_gemm, vector_macs, 0.0) if precision == "int8" else np.zeros_like(macs)
        elementwise = np.where(active, work.elementwise_count, 0.0)
        special = np.where(active, work.special_count, 0.0)
        moves = work.of_kind("data_movement", "pool", "uncounted") & active
        indexed = np.where(moves, work.output_element_count, 0.0)

        read_in = kernels.input_bytes + kernels.weight_bytes
        l2_read = np.where(
            is_gemm,
            tiled_bytes(kernels, placement.detail["tile_m"], placement.detail["tile_n"], item),
            read_in,
        )
        warp_m = hardware.coefficient("warp_tile_m")
        warp_n = hardware.coefficient("warp_tile_n")
        shared_read = np.where(is_gemm, macs * (warp_m + warp_n) / (warp_m * warp_n) * item, 0.0)
        loaded = np.where(is_gemm, 0.0, read_in)

        mac_lanes = vector_macs / packing
        plain = elementwise + special + indexed
        warp = hardware.geometry["warp_size"].value
        warps = (
            (mac_lanes + plain) / warp
            + (l2_read + kernels.output_bytes) / (warp * REGISTER_BYTES)
            + shared_read / (warp * SHARED_LANE_BYTES)
        )
        lane_groups = warps * warp / LANES_PRICED
        tensor_instructions = tensor_macs / hardware.coefficient("mma_macs_per_instruction")
        padded = np.where(is_gemm & ~on_tensor, placement.executed_macs - macs, 0.0)
        register = max(REGISTER_BYTES, item)
        mac_register = np.maximum(register / packing, item)
        lane_reads = 3.0 * vector_macs * mac_register + (elementwise + plain) * register
        lane_writes = vector_macs * mac_register + plain * register
        fragment_scale = item / PRECISION_BYTES["fp16"]
        tensor_registers = tensor_macs * hardware.coefficient("tensor_register_bytes_per_mac") * fragment_scale
        k_blocks = ceil_divide(work.gemm_k, hardware.coefficient("k_block"))
        arrivals = placement.tile_count * hardware.coefficient("warps_per_block") * k_blocks
        fences = placement.units_used[kernels.leader]
        return {
            ("tensor_core", f"{precision}_mac"): tensor_macs,
            ("cuda_core", _VECTOR_MAC[precision]): vector_macs - dot_macs,
            ("cuda_core", "int8_mac"): dot_macs,
            ("cuda_core", "elementwise"): elementwise,
            ("integer_unit", "index_operation"): indexed,
            ("special_function_unit", "operation"): special,
            ("register_file", "read"): lane_reads + tensor_registers * 2.0 / 3.0,
            ("register_file", "write"): lane_writes + tensor_registers / 3.0,
            ("operand_collector", "transfer"): lane_reads,
            ("instruction_cache", "fetch"): warps,
            ("decoder", "decode"): warps,
            ("dispatcher", "dispatch"): lane_groups,
            ("result_bus", "commit"): lane_groups,
            ("tensor_core", "instruction"): np.where(on_tensor, placement.executed_macs, 0.0),
            ("shared_memory", "read"): shared_read,
            ("shared_memory", "write"): np.where(is_gemm, l2_read, 0.0),
            ("l1", "load"): loaded,
            ("l1", "store"): kernels.output_bytes,
            **self._cache_counts(kernels, placement, find_device(hardware), l2_read),
            ("dram_controller", "transfer"): placement.dram_read_bytes + placement.dram_write_bytes,
            ("dram", "read"): placement.dram_read_bytes,
            ("dram", "write"): placement.dram_write_bytes,
            ("warp_scheduler", "schedule"): warps + tensor_instructions,
            ("scoreboard", "check"): warps + tensor_instructions,
            ("divergence", "replay"): padded / packing / LANES_PRICED * hardware.coefficient("idle_lane_share"),
            ("coalescing", "extra_sector"): np.where(
                moves, kernels.moved_bytes / SECTOR_BYTES * hardware.coefficient("uncoalesced_share"), 0.0
            ),
            ("barrier", "arrival"): np.where(is_gemm, arrivals, 0.0),
            ("coherence", "fence"): kernels.at_leader(fences),
            ("thread_block", "launch"): placement.tile_count,
            ("kernel", "launch"): kernels.host_launch_count,
        }

    @staticmethod
    def _cache_counts(
        kernels: KernelColumns, placement: Placement, hardware: Hardware, inner_read: Floats
    ) -> ActionCounts:
        """Return the counts of the caches beyond the units: of an L2, an L3 behind it, or an L3 alone."""
        levels = {level.name: level for level in hardware.memory_levels}
        out, fills = kernels.output_bytes, placement.dram_read_bytes
        counts: ActionCounts = {("crossbar", "transfer"): inner_read + out}
        if "l3" not in levels:
            return {**counts, ("l2", "read"): inner_read, ("l2", "write"): out + fills}
        read, written = inner_read, out
        if "l2" in levels:
            missed = dram_bytes(kernels, levels["l2"].capacity.value, keeps_weights=True)
            read, written = (np.where(kernels.is_active, column, 0.0) for column in missed)
            counts |= {
                ("l2", "read"): inner_read,
                ("l2", "write"): out + read,
                ("l3", "transfer"): read + written,
            }
        return {**counts, ("l3", "read"): read, ("l3", "write"): written + fills}


ARCHITECTURE = Gpu()
