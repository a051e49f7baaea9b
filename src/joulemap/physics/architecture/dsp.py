"""DSP: VLIW packets drive a vector unit and, if there is one, a tightly coupled matrix engine.

Time. A GEMM is cut into tiles of r x c outputs that the vector contexts take in waves. Without a matrix engine for the
precision, a tile is vector_tile_rows rows by one vector register of 32-bit accumulators. With one, a tile is the
engine's outputs, and K is padded to the r rows of the panel that the engine holds. With q MACs per clock of a unit and
v = lanes x vector_pipes:

    tiles   = G ⌈M / r⌉ ⌈N / c⌉ of a GEMM, else ⌈O / 4096⌉, at least 1                 waves = ⌈tiles / U⌉
    matrix  = waves (⌈K / r⌉ r / gemm_efficiency.matrix + r + c) / f                   one row of c results per clock
    vector  = waves (tile MACs / rate + (EW + special_function_operations SF) / tiles / v) / f
    rate    = q gemm_efficiency.vector of a GEMM, else min(v, q) depthwise_efficiency
    launch  = layer_cost

Depthwise and grouped convolutions and all work other than GEMMs run on the vector unit, at 16 bits for int8. Matrix
engine and vector unit work side by side: a kernel takes as long as the busier one.

Data moves by DMA into a software-managed scratch (L2, MSMC or VTCM), which keeps no weights between inferences.

Energy. Vector and matrix instructions are issued in packets; each packet is fetched, decoded and dispatched once,
however many of its slots work. There is no register renaming and no branch prediction: inner loops are hardware loops.

    local read = max(share x MACs (1 / r + 1 / c) p, R) of a GEMM, else R
    packets    = vector instructions / vector_per_packet + cycles of the matrix engine

Source: Horowitz, ISSCC 2014; Ariane, Zaruba and Benini, 2019.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from joulemap.physics.kernel import KernelColumns
from joulemap.physics.ledger import ActionCounts
from joulemap.physics.placement import Indifferent, Placement, overlap_engines
from joulemap.physics.record.configuration import PRECISION_BYTES
from joulemap.physics.record.hardware import Hardware
from joulemap.physics.record.quantity import Quantity
from joulemap.physics.record.silicon import UnitArea
from joulemap.physics.traffic import ceil_divide, memory_time
from joulemap.physics.workload import Booleans, Floats
from joulemap.system.record import frozen

MATRIX_PRECISIONS: Final = frozenset({"int8"})
"""Precisions of the matrix engine. Source: TI SPRY344 (the unit also runs 16 bits, which are not modelled)."""
ACCUMULATOR_BYTES: Final = 4.0
NARROWEST_ELEMENTWISE_BYTES: Final = 2.0
"""Minimum bytes of an element in elementwise work: 8 bits are widened to 16 before requantization."""
ELEMENTS_PER_TASK: Final = 4096.0
"""Outputs per vector context of an operator that is not a GEMM: 32 vector registers of 1024 bits."""


@frozen(kw_only=True, eq=False)
class DspPlacement(Placement):
    """Operators placed on the vector unit and the matrix engine."""

    on_matrix: Booleans
    """True for operators that the matrix engine computes."""
    matrix_packets: Floats
    """VLIW packets that drive the matrix engine, per operator."""
    tile_rows: Floats
    tile_columns: Floats


class Dsp(Indifferent):
    """Model of digital signal processors with a wide vector unit."""

    unit_area = UnitArea(
        datapath=Quantity(
            value=0.05,
            unit="1",
            basis="assumed",
            source="between a GPU and an NPU",
        )
    )

    def place(self, kernels: KernelColumns, hardware: Hardware) -> DspPlacement:
        """Return the kernels placed in tiles and waves, with their times. The module docstring has the formulas."""
        work = kernels.work
        peak = hardware.peaks[kernels.precision]
        units = peak.unit_count
        unit_macs = peak.macs_per_clock
        is_gemm = work.is_gemm & work.has_macs
        on_matrix = is_gemm & self._has_matrix(kernels.precision, hardware)
        lanes = self._lanes(kernels.precision, hardware)
        lane_rate = lanes * hardware.coefficient("vector_pipes")

        columns = hardware.geometry["simd_width"].value / 8.0 / ACCUMULATOR_BYTES
        rows = hardware.coefficient("vector_tile_rows")
        if self._has_matrix(kernels.precision, hardware):
            rows = hardware.geometry["matrix_rows"].value
            columns = hardware.geometry["matrix_columns"].value
        tiles = np.where(
            is_gemm,
            work.gemm_groups * ceil_divide(work.gemm_m, rows) * ceil_divide(work.gemm_n, columns),
            ceil_divide(work.output_element_count, ELEMENTS_PER_TASK),
        )
        tiles = np.maximum(tiles, 1.0)
        waves = ceil_divide(tiles, units)

        depth = ceil_divide(work.gemm_k, rows) * rows
        panel = depth / hardware.coefficient("gemm_efficiency", "matrix") + rows + columns
        matrix_cycles = np.where(on_matrix, waves * panel, 0.0)
        tile_macs = np.where(is_gemm, rows * columns * work.gemm_k, work.mac_count / np.maximum(tiles, 1.0))
        mac_rate = np.where(
            is_gemm,
            unit_macs * hardware.coefficient("gemm_efficiency", "vector"),
            np.minimum(lane_rate, unit_macs) * hardware.coefficient("depthwise_efficiency"),
        )
        simple = work.elementwise_count + hardware.coefficient("special_function_operations") * work.special_count
        vector_cycles = waves * (
            np.where(work.has_macs & ~on_matrix, tile_macs / mac_rate, 0.0)
            + simple / np.maximum(tiles, 1.0) / lane_rate
        )
        compute = overlap_engines(kernels, matrix_cycles / peak.clock_hz, vector_cycles / peak.clock_hz)

        memory, read, written = memory_time(kernels, hardware, hardware.memory_levels[-1])
        launch = hardware.coefficient("layer_cost")
        shown = np.where(kernels.rides, 0.0, tiles)
        executed = np.where(is_gemm, tiles * rows * columns * np.where(on_matrix, depth, work.gemm_k), work.mac_count)
        return DspPlacement(
            compute_s=compute,
            memory_s=memory,
            launch_s=kernels.each_kernel(launch),
            dram_read_bytes=read,
            dram_write_bytes=written,
            tile_count=shown,
            wave_count=np.where(shown > 0, waves, 0.0),
            units_used=np.minimum(shown, units),
            units_total=peak.unit_count,
            executed_macs=executed,
            on_matrix=on_matrix,
            matrix_packets=np.where(on_matrix, tiles * panel, 0.0),
            tile_rows=np.where(is_gemm, rows, 1.0),
            tile_columns=np.where(is_gemm, columns, 1.0),
        )

    @staticmethod
    def _has_matrix(precision: str, hardware: Hardware) -> bool:
        return precision in MATRIX_PRECISIONS and "matrix_rows" in hardware.geometry

    @staticmethod
    def _lanes(precision: str, hardware: Hardware) -> float:
        """Return the number of elements that one vector register holds in elementwise work."""
        item = max(PRECISION_BYTES[precision], NARROWEST_ELEMENTWISE_BYTES)
        return hardware.geometry["simd_width"].value / 8.0 / item

    def count(self, kernels: KernelColumns, placement: DspPlacement, hardware: Hardware) -> ActionCounts:
        """Return the count of each action per operator. `joulemap hardware show ID --energy` lists the actions."""
        work = kernels.work
        precision = kernels.precision
        item = PRECISION_BYTES[precision]
        width = hardware.geometry["simd_width"].value / 8.0
        lanes = self._lanes(precision, hardware)
        on_matrix = placement.on_matrix
        macs = work.mac_count
        matrix_macs = macs * on_matrix
        vector_macs = macs - matrix_macs
        special_operations = work.special_count * hardware.coefficient("special_function_operations")
        written = kernels.output_bytes
        crossing = kernels.input_bytes + kernels.weight_bytes
        panels = macs * (1.0 / placement.tile_rows + 1.0 / placement.tile_columns) * item
        local_read = np.where(work.is_gemm, np.maximum(panels * kernels.outside_read_share, crossing), crossing)

        macs_per_instruction = np.where(
            work.is_gemm,
            hardware.peaks[precision].macs_per_clock / hardware.coefficient("vector_pipes"),
            lanes,
        )
        fmas = vector_macs / macs_per_instruction
        simple = (work.elementwise_count + special_operations) / lanes
        loads = (1.0 - on_matrix) * local_read / width
        stores = written / width
        vector_instructions = fmas + simple + loads + stores
        packets = vector_instructions / hardware.coefficient("vector_per_packet")
        packets = packets + placement.matrix_packets
        scalar = packets * hardware.coefficient("scalar_per_packet")
        moved = crossing + written
        transfers = ceil_divide(moved, hardware.coefficient("dma_block"))
        counts: ActionCounts = {
            ("vliw_packet", "fetch"): packets,
            ("vliw_packet", "decode"): packets,
            ("vliw_packet", "dispatch"): packets,
            ("hardware_loop", "iteration"): packets / hardware.coefficient("packets_per_iteration"),
            ("scalar_alu", "operation"): scalar,
            ("vector_fma", f"{precision}_mac"): vector_macs,
            ("vector_alu", "elementwise"): work.elementwise_count,
            ("vector_alu", "special_function"): work.special_count,
            ("vector_register", "read"): (3.0 * fmas + 2.0 * simple + stores) * width,
            ("vector_register", "write"): (fmas + simple + loads) * width,
            ("address_generation", "operation"): local_read / width + stores,
            ("local_memory", "read"): local_read,
            ("local_memory", "write"): written,
            ("local_memory", "fill"): placement.dram_read_bytes,
            ("local_memory", "drain"): placement.dram_write_bytes,
            ("onchip_wire", "load"): crossing * hardware.coefficient("wire_length"),
            ("onchip_wire", "store"): written * hardware.coefficient("wire_length"),
            ("dma", "descriptor"): transfers,
            ("sync_flag", "wait"): transfers + placement.tile_count,
            ("layer", "configure"): kernels.start_count,
            ("dram_controller", "read"): placement.dram_read_bytes,
            ("dram_controller", "write"): placement.dram_write_bytes,
            ("dram", "read"): placement.dram_read_bytes,
            ("dram", "write"): placement.dram_write_bytes,
            ("program", "launch"): kernels.host_launch_count,
        }
        if self._has_matrix(precision, hardware):
            counts |= self._matrix_counts(matrix_macs, kernels, placement, hardware)
        return counts

    @staticmethod
    def _matrix_counts(
        macs: Floats, kernels: KernelColumns, placement: DspPlacement, hardware: Hardware
    ) -> ActionCounts:
        """Return the action counts of the matrix engine: MACs, panel loads, partial sums, and idle MAC slots."""
        rows = hardware.geometry["matrix_rows"].value
        on_matrix = placement.on_matrix
        depth_blocks = ceil_divide(kernels.work.gemm_k, rows) * on_matrix
        results = kernels.work.gemm_groups * kernels.work.gemm_m * kernels.work.gemm_n
        return {
            ("matrix_unit", "int8_mac"): macs,
            ("matrix_unit", "panel_load"): macs / rows,
            ("matrix_unit", "idle_cycle"): np.maximum(placement.executed_macs - macs, 0.0) * on_matrix,
            ("accumulator", "access"): 2.0 * ACCUMULATOR_BYTES * results * depth_blocks,
        }


ARCHITECTURE = Dsp()
