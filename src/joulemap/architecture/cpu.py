"""CPU: a stored-program machine; register-blocked tiles over the cores.

Time. A GEMM is cut into register blocks of tile_rows x tile_columns outputs; cores take them in waves:

    compute = waves x tile_rows tile_columns K / (core rate x efficiency)

with the vector or, for bf16 and int8, the matrix (AMX) rate. The working set of a kernel comes from L3 if it fits
there, else from DRAM. Each kernel pays one thread fork and join.

Energy. Instructions drive the pipeline, register file and branch categories: one vector FMA is accompanied by
loads and by a share of scalar loop instructions. Control energies are those of an out-of-order core and are not
shrunk by node.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from joulemap.columns.workload import Floats
from joulemap.domain.hardware import Hardware
from joulemap.domain.precision import FLOPS_PER_MAC, PRECISION_BYTES
from joulemap.energy.ledger import ActionCounts
from joulemap.mapping.kernel import KernelColumns, Placement
from joulemap.mapping.traffic import ceil_divide, memory_time, tiled_bytes

MATRIX_PRECISIONS: Final = frozenset({"bf16", "int8"})
"""Precisions that run on the matrix unit."""

GEMM_KINDS: Final = ("conv", "linear", "matmul")
MATRIX_TILE_BYTES: Final = 1024.0
"""One tile register: 16 rows of 64 bytes. Source: Intel AMX."""
ELEMENTS_PER_TASK: Final = 16384.0
"""Outputs that one thread takes of an operator that is not a GEMM: 64 KiB of fp32, a large share of an L1."""
FETCH_BLOCKS_PER_INSTRUCTION: Final = 0.5
"""A fetch block holds two instructions; the table's fetch energy already carries it, the TLB's does not."""


class Cpu:
    """Stored-program multicores with vector and matrix units."""

    name = "cpu"

    def place(self, kernels: KernelColumns, hardware: Hardware) -> Placement:
        """Return tiles, waves and times; see the module's formulas."""
        work = kernels.work
        active = kernels.is_active
        peak = hardware.peaks[kernels.precision]
        units = float(peak.unit_count)
        core_macs = peak.operations_per_clock / FLOPS_PER_MAC * peak.clock_hz
        lanes = self._lanes(kernels.precision, hardware)
        vector_rate = lanes * hardware.geometry["fma_pipe_count"].value * peak.clock_hz
        tile_m = hardware.coefficient("tile_rows")
        tile_n = hardware.coefficient("tile_columns")
        mode = "matrix" if kernels.precision in MATRIX_PRECISIONS else "vector"
        is_gemm = work.of_kind(*GEMM_KINDS)
        is_depthwise = work.of_kind("depthwise_conv")
        is_grouped = work.of_kind("grouped_conv")
        has_macs = work.mac_count > 0

        tiles = np.where(
            is_gemm | is_grouped,
            work.gemm_groups * ceil_divide(work.gemm_m, tile_m) * ceil_divide(work.gemm_n, tile_n),
            ceil_divide(work.output_element_count, ELEMENTS_PER_TASK),
        )
        tiles = np.where(active, np.maximum(tiles, 1.0), 0.0)
        waves = ceil_divide(tiles, units)
        shown = np.where(kernels.rides, 0.0, tiles)
        efficiency = np.where(
            is_depthwise,
            hardware.coefficient("depthwise_efficiency"),
            np.where(
                is_grouped,
                hardware.coefficient("grouped_efficiency"),
                hardware.coefficient("gemm_efficiency", mode),
            ),
        )
        padded_n = np.where(is_gemm, tile_n, np.minimum(work.gemm_n, tile_n))
        tile_macs = np.where(
            is_gemm | is_grouped, tile_m * padded_n * work.gemm_k, work.mac_count / np.maximum(tiles, 1)
        )
        dense_rate = np.where(is_gemm, core_macs, vector_rate) * efficiency
        fmas = hardware.coefficient("special_function_fmas")
        simple = (work.elementwise_count + fmas * work.special_count) / np.maximum(tiles, 1.0)
        compute = waves * (np.where(has_macs, tile_macs / dense_rate, 0.0) + simple / vector_rate)

        memory, read, written = memory_time(kernels, hardware, hardware.level("l3"))
        launch = hardware.coefficient("region_cost")
        if kernels.runtime == "eager":
            launch += hardware.coefficient("host_launch")
        return Placement(
            compute_s=np.where(active, compute, 0.0),
            memory_s=np.where(active, memory, 0.0),
            launch_s=np.full(kernels.kernel_count, launch),
            dram_read_bytes=np.where(active, read, 0.0),
            dram_write_bytes=np.where(active, written, 0.0),
            tile_count=shown,
            wave_count=np.where(kernels.rides, 0.0, np.where(active, waves, 0.0)),
            units_used=np.minimum(shown, units),
            units_total=peak.unit_count,
            executed_macs=np.where(active & has_macs, tiles * tile_macs, 0.0),
            detail={},
        )

    @staticmethod
    def _lanes(precision: str, hardware: Hardware) -> float:
        """Elements of one vector register; bf16 and int8 elementwise work is done at 32 bits."""
        item = 4.0 if precision in MATRIX_PRECISIONS else PRECISION_BYTES[precision]
        return hardware.geometry["simd_width"].value / 8.0 / item

    def count(self, kernels: KernelColumns, placement: Placement, hardware: Hardware) -> ActionCounts:
        """Return the counts of the five categories; the catalogue states each formula in words."""
        work = kernels.work
        active = kernels.is_active
        precision = kernels.precision
        item = PRECISION_BYTES[precision]
        lanes = self._lanes(precision, hardware)
        width = hardware.geometry["simd_width"].value / 8.0
        is_gemm = work.of_kind(*GEMM_KINDS) & active
        on_matrix = is_gemm if precision in MATRIX_PRECISIONS else np.zeros_like(is_gemm)
        macs = np.where(active, work.mac_count, 0.0)
        matrix_macs = np.where(on_matrix, macs, 0.0)
        vector_macs = macs - matrix_macs
        elementwise = np.where(active, work.elementwise_count, 0.0)
        special = np.where(active, work.special_count, 0.0)
        fma_work = vector_macs + special * hardware.coefficient("special_function_fmas")
        fmas = fma_work / lanes
        simple = elementwise / lanes
        crossing_read = kernels.input_bytes + kernels.weight_bytes
        streamed = np.where(is_gemm, 0.0, crossing_read / width)
        loads = vector_macs / lanes * hardware.coefficient("loads_per_fma") + streamed
        stores = kernels.output_bytes / width
        matrix_instructions, matrix_bytes = self._matrix(matrix_macs, precision, hardware)
        vector_instructions = fmas + simple + loads + stores + matrix_instructions
        scalar = vector_instructions * hardware.coefficient("scalar_per_vector")
        instructions = vector_instructions + scalar
        branches = scalar / 2.0
        misses = branches * np.where(
            is_gemm,
            hardware.coefficient("misprediction_rate", "gemm"),
            hardware.coefficient("misprediction_rate", "other"),
        )
        l1_read = loads * width + matrix_bytes
        reuse = hardware.coefficient("l2_block_reuse")
        l2_read = np.maximum(np.where(is_gemm, l1_read / reuse, 0.0), crossing_read)
        rows_per_core = np.maximum(work.gemm_m / placement.units_total, 1.0)
        tiled = np.minimum(tiled_bytes(kernels, rows_per_core, work.gemm_n, item), l2_read)
        l3_read = np.maximum(np.where(is_gemm, tiled, 0.0), crossing_read)
        written = kernels.output_bytes
        line = hardware.coefficient("cache_line")
        dram = placement.dram_read_bytes + placement.dram_write_bytes
        vector_mac_action = {"bf16": "fp32_mac", "int8": "fp32_mac"}.get(precision, f"{precision}_mac")
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
            ("l1", "read"): l1_read,
            ("l1", "write"): written + l2_read,
            ("load_queue", "insert"): loads,
            ("store_queue", "insert"): stores,
            ("data_tlb", "lookup"): loads + stores,
            ("l2", "read"): l2_read,
            ("l2", "write"): written + l3_read,
            ("l3", "read"): l3_read,
            ("l3", "write"): written + placement.dram_read_bytes,
            ("mesh", "hop"): (l3_read + written) * hardware.coefficient("mesh_hops"),
            ("coherence_directory", "lookup"): l3_read / line,
            ("dram_controller", "transfer"): dram,
            ("dram", "read"): placement.dram_read_bytes,
            ("dram", "write"): placement.dram_write_bytes,
            ("vector_fma", vector_mac_action): vector_macs,
            ("vector_alu", "elementwise"): elementwise,
            ("vector_alu", "special_function"): special,
            ("integer_alu", "operation"): scalar,
            ("address_generation", "operation"): loads + stores,
            ("branch_target_buffer", "lookup"): instructions,
            ("branch_predictor", "lookup"): branches,
            ("misprediction", "flush"): misses,
            ("misprediction", "restore"): misses,
        }
        if precision in MATRIX_PRECISIONS:
            counts["matrix_unit", f"{precision}_mac"] = matrix_macs
        return counts

    @staticmethod
    def _matrix(macs: Floats, precision: str, hardware: Hardware) -> tuple[Floats, Floats]:
        """Return (instructions, bytes read from L1) of the matrix unit: one multiply and its tile loads."""
        if precision not in MATRIX_PRECISIONS:
            return np.zeros_like(macs), np.zeros_like(macs)
        loaded = macs * hardware.coefficient("matrix_bytes_per_mac", precision)
        multiplies = macs / hardware.coefficient("matrix_macs_per_instruction", precision)
        return multiplies + loaded / MATRIX_TILE_BYTES, loaded


ARCHITECTURE = Cpu()
