"""TPU: weight-stationary systolic arrays fed from software-managed memory.

Time. An array of Dr x Dc (array_rows, array_columns) holds one weight tile while activation rows stream through it, in
equal blocks of at most row_block. Blocks are dealt to the arrays in waves. An fp32 product takes P bf16 passes,
fp32_passes of the run's matmul precision; P is 1 at other precisions. h rows pass in a cycle: operations per clock of
one pass / (2 Dr Dc):

    tiles   = G ⌈K / Dr⌉ ⌈N / Dc⌉ b,   b = ⌈M / row_block⌉        waves = ⌈tiles / U⌉
    busy    = P waves max(⌈M / b⌉, Dr) / h + Dr + Dc cycles       fill and drain included
    v       = vector lanes x vector_operations_per_clock x f
    compute = min(busy / f, MACs / v) + EW / v + SF special_function_clocks / (vector lanes x f)
    launch  = program_cost + its part of program_start

Padding of K and N to the array, arrays without a block in the last wave, fill and drain are idle cycles. Work that
leaves most of the array idle (a depthwise convolution, a GEMM with one row) runs on the vector unit where that is
faster.

A paged attention that is one kernel, `ragged_paged_attention`, processes the sequences one after the other, in blocks
of queries. It gathers keys and values page by page. With B sequences of S queries on L keys:

    compute = (L - (S - 1) / 2) / L of the above under a causal mask, whose blocks it skips
    memory  = bytes off chip / (memory bandwidth x paged_dram_efficiency)
    launch  = program_cost + B (paged_sequence_clocks + S paged_query_clocks) / f

Scratchpads do not keep weights between inferences: parameters stream from DRAM every time. The last level is CMEM where
the chip has one, else its vector memory; an unpublished bandwidth is last_level_bytes_per_lane x lanes x clock. An Edge
TPU has one memory. Its compiler pins the parameters that fit there beside the activations and streams the rest. Its
DRAM is the host's, behind USB or PCIe.

Energy. A partial sum leaves the array for each of ⌈K / Dr⌉ weight tiles, and rows enter once for each of ⌈N / Dc⌉. The
bundles of a core are its cycles. VMEM is filled from CMEM by level(C of VMEM, all cores), or by DRAM. Source: Jouppi et
al., TPU v4, ISCA 2023; AccelForge tpu_v4i.yaml; paged attention fitted on a TPU v6e (LLMServingSim).
"""

from __future__ import annotations

from typing import Final

import numpy as np

from joulemap.physics.kernel import KernelColumns
from joulemap.physics.ledger import ActionCounts
from joulemap.physics.placement import Indifferent, Placement
from joulemap.physics.record.configuration import FLOPS_PER_MAC, PRECISION_BYTES
from joulemap.physics.record.hardware import Hardware, MemoryLevel
from joulemap.physics.record.quantity import Quantity
from joulemap.physics.record.silicon import UnitArea
from joulemap.physics.stream import find_shares
from joulemap.physics.traffic import ceil_divide, level_bytes, memory_time
from joulemap.physics.workload import Booleans, Floats
from joulemap.system.record import frozen, vary

VECTOR_BYTES: Final = 4.0
"""Bytes of an element in the vector unit, which computes in fp32."""
PAGED: Final = "ragged_paged_attention"
"""Family name of paged attention kernels in workloads."""

VECTOR_SOURCES: Final = 2.0
"""Operands that one vector operation reads; it writes one."""


def find_last_level(hardware: Hardware) -> MemoryLevel:
    """Return the last memory level before DRAM, with the capacity of all cores added up.

    An unpublished bandwidth is bytes per clock of a vector lane times lanes times clock.
    """
    level = hardware.memory_levels[-1]
    cores = hardware.geometry["core_count"].value
    if level.per == "core":
        level = vary(level, capacity=vary(level.capacity, value=level.capacity.value * cores))
    if level.bandwidth is not None:
        return level
    rule = hardware.coefficients["last_level_bytes_per_lane"]
    value = rule.value * hardware.geometry["vector_lane_count"].value * cores * hardware.clock.value
    return vary(level, bandwidth=vary(rule, value=value, unit="B/s"))


@frozen(kw_only=True, eq=False)
class TpuPlacement(Placement):
    """Operators placed on the arrays or on the vector unit."""

    on_mxu: Booleans
    """True for operators that the arrays compute."""
    weight_tiles: Floats
    row_blocks: Floats
    """Blocks of rows that are streamed through each weight tile."""
    cycles: Floats
    """Clock cycles of each operator on the arrays and the vector unit."""
    slots: Floats
    """MAC slots that all arrays offer in `cycles`, for one pass."""
    seen_share: Floats
    """Share of a paged attention's scores that no mask skips; 1 for all other operators."""


class Tpu(Indifferent):
    """Model of systolic-array machines."""

    unit_area = UnitArea(
        datapath=Quantity(
            value=0.13,
            unit="1",
            basis="assumed",
            source="TPU v1: 65,536 MACs of 8 bits take 24 % of a die of at most 331 mm2 at 28 nm",
        )
    )

    def place(self, kernels: KernelColumns, hardware: Hardware) -> TpuPlacement:
        """Return the kernels placed in tiles and waves, with their times. The module docstring has the formulas."""
        work = kernels.work
        peak = hardware.peaks[hardware.product_precision(kernels.precision)]
        units = peak.unit_count
        clock_hz = peak.clock_hz
        rows = hardware.geometry["array_rows"].value
        columns = hardware.geometry["array_columns"].value
        block = hardware.coefficient("row_block")
        passes = hardware.product_passes(kernels.precision)

        weight_tiles = work.gemm_groups * ceil_divide(work.gemm_k, rows) * ceil_divide(work.gemm_n, columns)
        row_blocks = ceil_divide(work.gemm_m, block)
        tiles = weight_tiles * row_blocks
        waves = ceil_divide(tiles, units)
        streamed_rows = np.maximum(ceil_divide(work.gemm_m, row_blocks), rows)
        row_rate = self._row_rate(hardware, kernels.precision)
        cycles = passes * waves * streamed_rows / row_rate + rows + columns
        on_array = cycles / clock_hz

        lanes = hardware.geometry["vector_lane_count"].value * hardware.geometry["core_count"].value
        vector_rate = lanes * hardware.coefficient("vector_operations_per_clock") * clock_hz
        special_s = work.special_count * hardware.coefficient("special_function_clocks") / (lanes * clock_hz)
        on_vector = work.mac_count / vector_rate
        uses_vector = work.has_macs & (on_vector < on_array)
        compute = np.where(work.has_macs, np.minimum(on_array, on_vector), 0.0)
        paged = np.array(work.kernel_family == PAGED, dtype=bool)
        seen = self._seen_share(kernels, paged)
        compute = seen * (compute + work.elementwise_count / vector_rate + special_s)

        memory, read, written = memory_time(kernels, hardware, find_last_level(hardware), pins_weights=True)
        gathered = (read + written) / (hardware.memory_bandwidth.value * hardware.coefficient("paged_dram_efficiency"))
        memory = np.where(paged, np.maximum(memory, gathered), memory)
        kernel_count = np.maximum(kernels.kernel_workload(kernels.sum_kernels(np.ones(kernels.kernel_count))), 1.0)
        start = hardware.coefficient("program_start") / kernel_count
        launch = kernels.each_kernel(hardware.coefficient("program_cost") + start)
        launch = launch + kernels.of_leader(self._paging_clocks(kernels, paged, hardware) / clock_hz)
        on_mxu = work.has_macs & ~uses_vector
        slots = np.where(on_mxu, cycles * units * rows * columns * row_rate / passes, 0.0)
        return TpuPlacement(
            compute_s=compute,
            memory_s=memory,
            launch_s=launch,
            dram_read_bytes=read,
            dram_write_bytes=written,
            tile_count=np.where(on_mxu, tiles, 0.0),
            wave_count=np.where(on_mxu, waves, 0.0),
            units_used=np.where(on_mxu, np.minimum(tiles, units), 0.0),
            units_total=peak.unit_count,
            executed_macs=np.where(on_mxu, tiles * streamed_rows * rows * columns, work.mac_count),
            on_mxu=on_mxu,
            weight_tiles=np.where(on_mxu, weight_tiles, 0.0),
            row_blocks=np.where(on_mxu, row_blocks, 0.0),
            computed_macs=work.mac_count * seen,
            cycles=compute * clock_hz,
            slots=slots * seen,
            seen_share=seen,
        )

    @staticmethod
    def _seen_share(kernels: KernelColumns, paged: Booleans) -> Floats:
        """Return the mean share of the keys that a query of a paged attention attends to; 1 for all other operators."""
        work = kernels.work
        scores = paged & kernels.leads
        keys = np.where(scores, np.maximum(work.gemm_n, 1.0), 1.0)
        hidden = np.where(scores & work.is_causal, (work.gemm_m - 1.0) / 2.0, 0.0)
        share: Floats = kernels.per_operator(np.minimum(1.0 - hidden / keys, 1.0)[kernels.leader])
        return share

    @staticmethod
    def _paging_clocks(kernels: KernelColumns, paged: Booleans, hardware: Hardware) -> Floats:
        """Return the clocks that a paged attention takes to look up pages; 0 for all other operators."""
        sequence, query = (hardware.coefficient(f"paged_{name}_clocks") for name in ("sequence", "query"))
        return np.where(paged, kernels.batch * (sequence + kernels.work.gemm_m * query), 0.0)

    @staticmethod
    def _row_rate(hardware: Hardware, precision: str) -> Floats | float:
        """Return the rows that an array takes per cycle in one pass: more than one if small integers run faster."""
        elements = hardware.geometry["array_rows"].value * hardware.geometry["array_columns"].value
        one_pass = hardware.peaks[hardware.product_precision(precision)]
        rate: Floats | float = one_pass.operations_per_clock / FLOPS_PER_MAC / elements
        return rate

    def count(self, kernels: KernelColumns, placement: TpuPlacement, hardware: Hardware) -> ActionCounts:
        """Return the count of each action per operator. `joulemap hardware show ID --energy` lists the actions."""
        work = kernels.work
        precision = kernels.precision
        item = PRECISION_BYTES[precision]
        multiplied = hardware.product_precision(precision)
        passes, pass_item = hardware.product_passes(precision), PRECISION_BYTES[multiplied]
        rows = hardware.geometry["array_rows"].value
        columns = hardware.geometry["array_columns"].value
        on_mxu = placement.on_mxu
        seen = placement.seen_share
        mxu_macs = seen * work.mac_count * on_mxu * passes
        vector_macs = seen * work.mac_count * (1.0 - on_mxu)
        elementwise = seen * work.elementwise_count + vector_macs
        weights = placement.weight_tiles * rows * columns * passes
        k_tiles = ceil_divide(work.gemm_k, rows)
        n_tiles = ceil_divide(work.gemm_n, columns)
        results = on_mxu * work.gemm_groups * work.gemm_m * work.gemm_n * k_tiles * passes
        streamed = on_mxu * work.gemm_groups * work.gemm_m * work.gemm_k * n_tiles * pass_item * passes
        read_in = kernels.input_bytes + kernels.weight_bytes
        vector_in = (1.0 - on_mxu) * read_in
        stationary = np.where(
            kernels.weight_bytes > 0, kernels.weight_bytes, work.gemm_groups * work.gemm_k * work.gemm_n * item
        )
        is_moved = work.of_kind("data_movement", "reduction", "softmax", "normalization", "uncounted")
        descriptor = hardware.coefficient("dma_block")
        dram = placement.dram_read_bytes + placement.dram_write_bytes
        included, crossing_share = find_shares(hardware)
        transfers = ceil_divide(read_in + kernels.output_bytes, descriptor)
        cores = hardware.geometry["core_count"].value
        bundles = placement.cycles * cores
        scalar = bundles * hardware.coefficient("scalar_per_bundle")
        tiles = placement.tile_count
        idle_slots = np.maximum(placement.slots * passes - mxu_macs, 0.0)
        has_cmem = any(level.name == "cmem" for level in hardware.memory_levels)
        vmem_bytes = hardware.level("vmem").capacity.value * (cores if hardware.level("vmem").per == "core" else 1.0)
        panels = np.where(work.has_macs, level_bytes(kernels, vmem_bytes, item), read_in)
        cmem_read = np.maximum(panels, placement.dram_read_bytes) if has_cmem else np.zeros_like(work.mac_count)
        filled = cmem_read if has_cmem else placement.dram_read_bytes
        drained = kernels.output_bytes if has_cmem else placement.dram_write_bytes
        return {
            ("mxu", f"{multiplied}_mac"): mxu_macs,
            ("pe_register", "shift"): mxu_macs,
            ("weight", "shift_in"): weights * placement.row_blocks,
            ("mxu", "idle_cycle"): idle_slots / self._row_rate(hardware, precision),
            ("partial_sum", "drain"): results,
            ("vpu", "elementwise"): elementwise,
            ("vpu", "special_function"): seen * work.special_count,
            ("vector_register", "read"): VECTOR_SOURCES * elementwise * VECTOR_BYTES,
            ("vector_register", "write"): elementwise * VECTOR_BYTES,
            ("cross_lane", "permute"): np.where(is_moved, work.output_element_count, 0.0),
            ("scalar_unit", "instruction"): scalar,
            ("scalar_register", "access"): scalar,
            ("vmem", "read"): np.maximum(streamed, on_mxu * kernels.input_bytes) + vector_in,
            ("vmem", "write"): kernels.output_bytes,
            ("vmem", "fill"): filled,
            ("vmem", "drain"): drained,
            ("weight_fifo", "write"): stationary * on_mxu,
            ("weight_fifo", "read"): weights * placement.row_blocks * pass_item,
            ("accumulator", "access"): 2.0 * hardware.coefficient("bytes_per_accumulator") * results,
            ("cmem", "read"): cmem_read,
            ("cmem", "write"): has_cmem * kernels.output_bytes,
            ("cmem", "fill"): has_cmem * placement.dram_read_bytes,
            ("dram", "read"): np.maximum(placement.dram_read_bytes - included * kernels.entering_bytes, 0.0),
            ("dram", "write"): np.maximum(placement.dram_write_bytes - included * kernels.leaving_bytes, 0.0),
            ("host_link", "input"): crossing_share * kernels.entering_bytes,
            ("host_link", "output"): crossing_share * kernels.leaving_bytes,
            ("dma", "chip_descriptor"): transfers,
            ("dma", "descriptor"): ceil_divide(dram, descriptor),
            ("vliw_bundle", "fetch"): bundles,
            ("vliw_bundle", "decode"): bundles,
            ("sync_flag", "wait"): transfers + 2.0 * tiles,
            ("loop", "branch"): tiles,
            ("program", "launch"): kernels.host_launch_count,
            ("onchip_wire", "load"): read_in * hardware.coefficient("wire_length"),
            ("onchip_wire", "store"): kernels.output_bytes * hardware.coefficient("wire_length"),
        }


ARCHITECTURE = Tpu()
