"""CGRA: pattern compute units (PCU) and pattern memory units (PMU) joined by a static interconnect.

Time. A PCU is a pipeline of `stages` SIMD stages of `lanes` lanes. An inner product takes one multiply stage and a
reduction tree across the lanes. A PCU computes d inner products at once, lanes x d MACs per clock:

    d       = max(1, floor(stages / (2 + log2 lanes)))         multiply, tree, accumulate
    tiles   = G ⌈M / tile_rows⌉ ⌈N / tile_columns⌉             without MACs ⌈O / (tile_rows tile_columns)⌉
    gemm    = waves x (tile_rows tile_columns ⌈K / lanes⌉ / d + pipeline_depth) / f
    other   = waves x (⌈operations of an element / stages⌉ ⌈elements of a tile / lanes⌉ + pipeline_depth) / f
    launch  = reconfiguration_cost + operators of the kernel x configuration_bytes / (memory_bandwidth dram_efficiency)

with min(M, tile_rows) and min(N, tile_columns) where the outputs are fewer, EW + special_function_stages SF operations,
and tiles dealt to the PCUs in waves. A chain of operations occupies successive stages and streams one vector per clock.
Operators of a fused kernel occupy separate PCUs and run as one pipeline, so operators after a GEMM take no time.

Each kernel is a configuration. Its bits are loaded from DRAM before it starts, once for all units that do the same
work. Nothing is fetched or decoded while it runs. PMUs are scratchpads: weights stream from DRAM every time. Words are
32 bits wide on chip at every precision.

Energy. A PMU is read max(share x 8 MACs / operand_reuse, 4 R / p) bytes with MACs, else 4 R / p. Source: Prabhakar et
al., Plasticine, ISCA 2017; FlooNoC.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from joulemap.physics.kernel import KernelColumns
from joulemap.physics.ledger import ActionCounts
from joulemap.physics.placement import Indifferent, Placement
from joulemap.physics.record.configuration import PRECISION_BYTES
from joulemap.physics.record.hardware import Hardware
from joulemap.physics.record.quantity import Quantity
from joulemap.physics.record.silicon import UnitArea
from joulemap.physics.traffic import ceil_divide, memory_time
from joulemap.physics.workload import Floats
from joulemap.system.record import frozen

WORD_BYTES: Final = 4.0
"""Bytes of a word: lanes, links and scratchpads are 32 bits wide. Source: Prabhakar et al., ISCA 2017."""


@frozen(kw_only=True, eq=False)
class CgraPlacement(Placement):
    """Operators placed on the pattern compute units."""

    configuration_bytes: Floats
    """Configuration bytes that are loaded before the operator starts; part of the DRAM reads."""
    cycles: Floats
    """Clock cycles of each operator, over all its waves of tiles."""


def _products_at_once(hardware: Hardware) -> Floats | float:
    """Return the number of inner products that one pattern compute unit computes at the same time."""
    lanes, stages = (hardware.geometry[name].value for name in ("lane_count", "stage_count"))
    products: Floats | float = np.maximum(1.0, np.floor(stages / (2.0 + np.log2(lanes))))
    return products


class Cgra(Indifferent):
    """Model of coarse-grained reconfigurable arrays."""

    unit_area = UnitArea(
        datapath=Quantity(
            value=0.26,
            unit="1",
            basis="derived",
            source="Plasticine: 64 units take what memories leave of 113 mm2 at 28 nm (Prabhakar et al., ISCA 2017)",
        )
    )

    def place(self, kernels: KernelColumns, hardware: Hardware) -> CgraPlacement:
        """Return the kernels placed in tiles and waves, with their times. The module docstring has the formulas."""
        work = kernels.work
        peak = hardware.peaks[kernels.precision]
        units = peak.unit_count
        lanes = hardware.geometry["lane_count"].value
        stages = hardware.geometry["stage_count"].value
        rows = hardware.coefficient("tile_rows")
        columns = hardware.coefficient("tile_columns")
        depth = hardware.coefficient("pipeline_depth")
        products = _products_at_once(hardware)

        elements = rows * columns
        tiles = np.where(
            work.has_macs,
            work.gemm_groups * ceil_divide(work.gemm_m, rows) * ceil_divide(work.gemm_n, columns),
            np.maximum(ceil_divide(work.output_element_count, elements), 1.0),
        )
        waves = ceil_divide(tiles, units)
        # a tile at the edge covers only the remaining outputs, but takes as long as the largest tile of its wave
        tile_outputs = np.minimum(work.gemm_m, rows) * np.minimum(work.gemm_n, columns)
        gemm_cycles = waves * (tile_outputs * ceil_divide(work.gemm_k, lanes) / products + depth)
        operations = work.elementwise_count + hardware.coefficient("special_function_stages") * work.special_count
        outputs = np.maximum(work.output_element_count, 1.0)
        passes = np.maximum(ceil_divide(operations / outputs, stages), np.where(operations > 0, 1.0, 0.0))
        per_tile = np.minimum(outputs, elements)
        simple_cycles = waves * (passes * ceil_divide(per_tile, lanes) + np.where(operations > 0, depth, 0.0))
        cycles = np.where(work.has_macs, gemm_cycles, np.where(kernels.rides & kernels.has_product, 0.0, simple_cycles))

        memory, read, written = memory_time(kernels, hardware, hardware.level("pmu"))
        used = np.where(~kernels.rides, np.minimum(tiles, units), 0.0)
        configuration = np.where(kernels.is_repeated, 0.0, hardware.coefficient("configuration_bytes"))
        rate = hardware.memory_bandwidth.value * hardware.coefficient("dram_efficiency")
        launch = hardware.coefficient("reconfiguration_cost") + kernels.per_kernel(configuration) / rate
        executed = np.where(work.has_macs, tiles * tile_outputs * ceil_divide(work.gemm_k, lanes) * lanes, 0.0)
        return CgraPlacement(
            compute_s=cycles / peak.clock_hz,
            memory_s=memory,
            launch_s=launch,
            dram_read_bytes=read + configuration / kernels.repeat_count,
            dram_write_bytes=written,
            tile_count=np.where(~kernels.rides, tiles, 0.0),
            wave_count=np.where(~kernels.rides, waves, 0.0),
            units_used=used,
            units_total=peak.unit_count,
            executed_macs=executed,
            configuration_bytes=configuration / kernels.repeat_count,
            cycles=cycles,
        )

    def count(self, kernels: KernelColumns, placement: CgraPlacement, hardware: Hardware) -> ActionCounts:
        """Return the count of each action per operator. `joulemap hardware show ID --energy` lists the actions."""
        work = kernels.work
        precision = kernels.precision
        item = PRECISION_BYTES[precision]
        lanes = hardware.geometry["lane_count"].value
        macs = work.mac_count
        operations = macs + work.elementwise_count + work.special_count
        words = WORD_BYTES / item
        crossing = (kernels.input_bytes + kernels.weight_bytes) * words
        written = kernels.output_bytes * words
        reuse = hardware.coefficient("operand_reuse")
        operands = 2.0 * macs / reuse * WORD_BYTES * kernels.outside_read_share
        pmu_read = np.maximum(np.where(macs > 0, operands, crossing), crossing)
        network = pmu_read + written
        hops = hardware.coefficient("switch_hops")
        dram = placement.dram_read_bytes + placement.dram_write_bytes
        requests = dram / hardware.coefficient("burst")
        idle = np.maximum(placement.cycles * placement.units_total * lanes - macs, 0.0)
        return {
            ("functional_unit", f"{precision}_mac"): macs,
            ("functional_unit", "elementwise"): work.elementwise_count,
            ("functional_unit", "special_function"): work.special_count,
            ("functional_unit", "idle_cycle"): np.where(macs > 0, idle, 0.0),
            ("pipeline_register", "access"): 3.0 * operations * WORD_BYTES,
            ("reduction_tree", "forward"): macs,
            ("functional_unit", "configuration_read"): operations / lanes,
            ("pmu", "read"): pmu_read,
            ("pmu", "write"): written,
            ("pmu", "fill"): np.maximum(placement.dram_read_bytes - placement.configuration_bytes, 0.0) * words,
            ("pmu", "drain"): placement.dram_write_bytes * words,
            ("pmu", "address"): (pmu_read + written) / (lanes * WORD_BYTES),
            ("switch", "hop"): network * hops,
            ("link", "transfer"): network * hops * hardware.coefficient("hop_length"),
            ("control_token", "transfer"): 2.0 * placement.tile_count,
            ("configuration", "load"): placement.configuration_bytes * np.maximum(placement.units_used, 1.0),
            ("configuration", "start"): kernels.start_count,
            ("address_generator", "operation"): requests,
            ("coalescing_unit", "request"): requests,
            ("dram_controller", "read"): placement.dram_read_bytes,
            ("dram_controller", "write"): placement.dram_write_bytes,
            ("dram", "read"): placement.dram_read_bytes,
            ("dram", "write"): placement.dram_write_bytes,
            ("program", "launch"): kernels.host_launch_count,
        }


ARCHITECTURE = Cgra()
