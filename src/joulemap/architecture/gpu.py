"""GPU: thread blocks of a SIMT machine in waves over streaming multiprocessors.

Time. A GEMM (convolution as implicit GEMM: M = batch x positions, N = channels out, K = channels in x taps) is cut
into tiles of tile_m x tile_n outputs, one thread block each. With r the rate of one SM:

    throughput  waves x tile_m tile_n (K + epilogue) / (r / (1 + overhead (1/tile_m + 1/tile_n)))
    chain       K x step latency, which one block cannot beat however idle the chip is
    compute     min over tile shapes of max(throughput, chain)

Source: the forms are those found on a measured H200 (graph replay), whose coefficients the catalogue carries as
fractions of peak and as clocks. Depthwise and native grouped convolutions, pooling and data movement have issue
rates of their own.

Energy. Circuit level: datapath, register file, instruction overhead per warp instruction (335 pJ at 7 nm, split),
shared memory, L2 with crossbar, DRAM, SIMT control. Used with active static power, never mixed with constants fitted
at the board.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from joulemap.columns.workload import Floats
from joulemap.domain.hardware import Hardware
from joulemap.domain.precision import FLOPS_PER_MAC, PRECISION_BYTES
from joulemap.domain.workload import KINDS
from joulemap.energy.ledger import ActionCounts
from joulemap.mapping.kernel import KernelColumns, Placement
from joulemap.mapping.traffic import ceil_divide, memory_time, tiled_bytes

TENSOR_PRECISIONS: Final = frozenset({"tf32", "fp16", "bf16", "fp8", "int8"})
"""Precisions whose dense peak is that of the tensor cores."""

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
BYTES_PER_MEMORY_INSTRUCTION: Final = 128.0
"""One warp instruction moves 32 lanes x 4 bytes."""
BYTES_PER_SHARED_INSTRUCTION: Final = 512.0
"""One warp instruction reads 32 lanes x 16 bytes of shared memory."""
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
    "int8": "fp16_mac",
}
"""What a MAC costs on the CUDA cores, for the convolutions that do not run on tensor cores."""


def _mode(precision: str) -> str:
    return "tensor" if precision in TENSOR_PRECISIONS else "vector"


class Gpu:
    """SIMT data-parallel processors."""

    name = "gpu"

    def place(self, kernels: KernelColumns, hardware: Hardware) -> Placement:
        """Return tiles, waves and times; see the module's formulas."""
        work = kernels.work
        peak = hardware.peaks[kernels.precision]
        mode = _mode(kernels.precision)
        units = peak.unit_count
        issue = units * hardware.peaks.get("fp32", peak).clock_hz
        compute, tiles, waves, executed, tile_m, tile_n = self._gemm(kernels, hardware)

        direct = work.of_kind(*DIRECT_KINDS)
        rate = np.where(
            work.of_kind("depthwise_conv"),
            hardware.coefficient("depthwise_macs_per_clock", mode),
            hardware.coefficient("grouped_macs_per_clock", mode),
        )
        compute = np.where(direct, work.mac_count / (rate * issue), compute)
        width = REGISTER_BYTES / max(PRECISION_BYTES[kernels.precision], REGISTER_BYTES)
        lanes = hardware.geometry["fp32_lanes_per_unit"].value * width
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

        memory, read, written = memory_time(kernels, hardware, hardware.level("l2"))
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
            units_total=units,
            executed_macs=np.where(active, executed, 0.0),
            detail={"tile_m": tile_m, "tile_n": tile_n},
        )

    def _gemm(
        self, kernels: KernelColumns, hardware: Hardware
    ) -> tuple[Floats, Floats, Floats, Floats, Floats, Floats]:
        """Return (seconds, tiles, waves, executed MACs, tile m, tile n) of the best tile shape per operator."""
        work = kernels.work
        peak = hardware.peaks[kernels.precision]
        mode = _mode(kernels.precision)
        units = float(peak.unit_count)
        rate = peak.rate.value / FLOPS_PER_MAC / units * hardware.coefficient("peak_efficiency", mode)
        overhead = hardware.coefficient("tile_overhead", mode)
        step_s = hardware.coefficient("k_step_clocks", mode) / hardware.peaks.get("fp32", peak).clock_hz
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
        mode = _mode(kernels.precision)
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
        on_tensor = may_use_tensor if precision in TENSOR_PRECISIONS else np.zeros_like(is_gemm)
        macs = np.where(active, work.mac_count, 0.0)
        tensor_macs = np.where(on_tensor, macs, 0.0)
        vector_macs = macs - tensor_macs
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

        lane_operations = vector_macs + elementwise + special + indexed
        warp = hardware.geometry["warp_size"].value
        warps = (
            lane_operations / warp
            + (l2_read + kernels.output_bytes) / BYTES_PER_MEMORY_INSTRUCTION
            + shared_read / BYTES_PER_SHARED_INSTRUCTION
        )
        tensor_instructions = tensor_macs / hardware.coefficient("mma_macs_per_instruction")
        padding = np.where(is_gemm & ~on_tensor, placement.executed_macs - macs, 0.0) / warp
        lane_reads = (3.0 * vector_macs + 2.0 * elementwise + special + indexed) * REGISTER_BYTES
        lane_writes = (vector_macs + elementwise + special + indexed) * REGISTER_BYTES
        tensor_registers = tensor_macs * hardware.coefficient("tensor_register_bytes_per_mac")
        k_blocks = ceil_divide(work.gemm_k, hardware.coefficient("k_block"))
        arrivals = placement.tile_count * hardware.coefficient("warps_per_block") * k_blocks
        fences = placement.units_used[kernels.leader]
        return {
            ("tensor_core", f"{precision}_mac"): tensor_macs,
            ("cuda_core", _VECTOR_MAC[precision]): vector_macs,
            ("cuda_core", "elementwise"): elementwise,
            ("integer_unit", "index_operation"): indexed,
            ("special_function_unit", "operation"): special,
            ("register_file", "read"): lane_reads + tensor_registers * 2.0 / 3.0,
            ("register_file", "write"): lane_writes + tensor_registers / 3.0,
            ("operand_collector", "transfer"): lane_reads,
            ("instruction_cache", "fetch"): warps,
            ("decoder", "decode"): warps,
            ("dispatcher", "dispatch"): warps,
            ("result_bus", "commit"): warps,
            ("tensor_core", "instruction"): np.where(on_tensor, placement.executed_macs, 0.0),
            ("shared_memory", "read"): shared_read,
            ("shared_memory", "write"): np.where(is_gemm, l2_read, 0.0),
            ("l1", "load"): loaded,
            ("l1", "store"): kernels.output_bytes,
            ("l2", "read"): l2_read,
            ("l2", "write"): kernels.output_bytes + placement.dram_read_bytes,
            ("crossbar", "transfer"): l2_read + kernels.output_bytes,
            ("dram", "read"): placement.dram_read_bytes,
            ("dram", "write"): placement.dram_write_bytes,
            ("warp_scheduler", "schedule"): warps + tensor_instructions,
            ("scoreboard", "check"): warps + tensor_instructions,
            ("divergence", "replay"): padding * hardware.coefficient("idle_lane_share"),
            ("coalescing", "extra_sector"): np.where(
                moves, kernels.moved_bytes / SECTOR_BYTES * hardware.coefficient("uncoalesced_share"), 0.0
            ),
            ("barrier", "arrival"): np.where(is_gemm, arrivals, 0.0),
            ("coherence", "fence"): kernels.at_leader(fences),
            ("thread_block", "launch"): placement.tile_count,
            ("kernel", "launch"): kernels.host_launch_count,
        }


ARCHITECTURE = Gpu()
