"""KPU: domain-flow programs on a mesh of processing-element tiles.

Time. A tile of R x C processing elements (array_rows, array_columns) keeps a block of as many outputs and streams both
operands through. Blocks are dealt in waves to the tiles that have the precision. With q MACs per clock of a tile:

    blocks  = G ⌈M / R⌉ ⌈N / C⌉, without MACs ⌈O / (R C)⌉                              waves = ⌈blocks / U⌉
    compute = waves (R C K / q + R + C) / f                                            fill and drain included
            = waves (EW + special_function_clocks SF) / blocks / elementwise_per_clock / f         without MACs
            = 0                                                    without MACs, riding in a kernel that has some
    launch  = program_cost

A feature map smaller than the mesh leaves tiles idle: a partial wave costs a whole one. Fused elementwise work is
applied to the stream as it leaves the array. Alone it streams through one edge.

Scratchpads do not keep weights between inferences: parameters stream from DRAM every time.

Energy. A panel staged once passes from tile to tile, so that the L2 of all tiles counts as one:

    staged   = max(level(U x C of L2), DRAM read), R for level without MACs
    entering = max(MACs (1 / min(M, R) + 1 / min(N, C)), staged / p) elements          leaving = out / p

Energies are mostly assumptions: no silicon has been published.
"""

from __future__ import annotations

import numpy as np

from joulemap.physics.kernel import KernelColumns
from joulemap.physics.ledger import ActionCounts
from joulemap.physics.placement import Indifferent, Placement
from joulemap.physics.record.configuration import PRECISION_BYTES
from joulemap.physics.record.hardware import Hardware
from joulemap.physics.record.quantity import Quantity
from joulemap.physics.record.silicon import UnitArea
from joulemap.physics.traffic import ceil_divide, level_bytes, memory_time
from joulemap.physics.workload import Floats
from joulemap.system.record import frozen


@frozen(kw_only=True, eq=False)
class KpuPlacement(Placement):
    """Operators placed on the tiles of a KPU."""

    cycles: Floats
    """Clock cycles of each operator, over all its waves of blocks."""


class Kpu(Indifferent):
    """Model of domain-flow architectures."""

    unit_area = UnitArea(
        datapath=Quantity(
            value=0.13,
            unit="1",
            basis="assumed",
            source="same as a systolic array",
        )
    )

    def place(self, kernels: KernelColumns, hardware: Hardware) -> KpuPlacement:
        """Return the kernels placed in blocks and waves, with their times. The module docstring has the formulas."""
        work = kernels.work
        peak = hardware.peaks[kernels.precision]
        units = peak.unit_count
        rows = hardware.geometry["array_rows"].value
        columns = hardware.geometry["array_columns"].value
        macs_per_clock = peak.macs_per_clock
        elements = rows * columns

        blocks = np.where(
            work.has_macs,
            work.gemm_groups * ceil_divide(work.gemm_m, rows) * ceil_divide(work.gemm_n, columns),
            ceil_divide(work.output_element_count, elements),
        )
        waves = ceil_divide(blocks, units)
        block_cycles = np.where(work.has_macs, elements * work.gemm_k / macs_per_clock + rows + columns, 0.0)
        stream = hardware.coefficient("elementwise_per_clock")
        special_clocks = hardware.coefficient("special_function_clocks")
        rides = kernels.rides & kernels.has_product
        simple = (work.elementwise_count + special_clocks * work.special_count) / np.maximum(blocks, 1.0)
        simple_cycles = np.where(rides | work.has_macs, 0.0, simple / stream)
        compute = waves * (block_cycles + simple_cycles) / peak.clock_hz

        memory, read, written = memory_time(kernels, hardware, hardware.level("l3"))
        launch = hardware.coefficient("program_cost")
        executed = np.where(work.has_macs, blocks * elements * work.gemm_k, 0.0)
        return KpuPlacement(
            compute_s=compute,
            memory_s=memory,
            launch_s=kernels.each_kernel(launch),
            dram_read_bytes=read,
            dram_write_bytes=written,
            tile_count=np.where(~kernels.rides, blocks, 0.0),
            wave_count=np.where(~kernels.rides, waves, 0.0),
            units_used=np.where(~kernels.rides, np.minimum(blocks, units), 0.0),
            units_total=peak.unit_count,
            executed_macs=executed,
            cycles=waves * (block_cycles + simple_cycles),
        )

    def count(self, kernels: KernelColumns, placement: KpuPlacement, hardware: Hardware) -> ActionCounts:
        """Return the count of each action per operator. `joulemap hardware show ID --energy` lists the actions."""
        work = kernels.work
        precision = kernels.precision
        item = PRECISION_BYTES[precision]
        rows = hardware.geometry["array_rows"].value
        columns = hardware.geometry["array_columns"].value
        elements = rows * columns
        macs = work.mac_count
        read_in = kernels.input_bytes + kernels.weight_bytes
        panels = level_bytes(kernels, hardware.level("l2").capacity.value * placement.units_total, item)
        staged = np.maximum(np.where(macs > 0, panels, read_in), placement.dram_read_bytes)
        filled_rows, filled_columns = np.minimum(work.gemm_m, rows), np.minimum(work.gemm_n, columns)
        streamed = macs * (1.0 / np.maximum(filled_rows, 1.0) + 1.0 / np.maximum(filled_columns, 1.0))
        entering = np.maximum(np.where(macs > 0, streamed, 0.0), staged / item)
        leaving = kernels.output_bytes / item
        tokens = entering + leaving
        written = kernels.output_bytes
        noc = staged + written
        dram = placement.dram_read_bytes + placement.dram_write_bytes
        hops = hardware.coefficient("mesh_hops")
        used = placement.units_used * elements
        cycles = placement.cycles
        macs_per_clock = hardware.peaks[precision].macs_per_clock
        slots = np.where(macs > 0, cycles * placement.units_total * macs_per_clock, 0.0)
        k_steps = np.where(macs > 0, placement.wave_count * work.gemm_k, placement.wave_count)
        return {
            ("pe", f"{precision}_mac"): macs,
            ("pe", "elementwise"): work.elementwise_count,
            ("special_function_unit", "operation"): work.special_count,
            ("pe_register", "access"): macs,
            ("l1_stream", "read"): entering * item,
            ("l1_stream", "write"): leaving * item,
            ("l2_tile", "read"): entering * item,
            ("l2_tile", "write"): staged,
            ("l3", "read"): staged,
            ("l3", "write"): written,
            ("l3", "fill"): placement.dram_read_bytes,
            ("l3_bank", "arbitrate"): noc / hardware.coefficient("arbitration_block"),
            ("dma", "descriptor"): ceil_divide(dram, hardware.coefficient("dma_block")),
            ("block_mover", "setup"): ceil_divide(noc, hardware.coefficient("block_mover_block")),
            ("streamer", "load_address"): entering * item / hardware.coefficient("stream_beat"),
            ("streamer", "store_address"): leaving * item / hardware.coefficient("stream_beat"),
            ("router", "hop"): noc * hops,
            ("link", "transfer"): noc * hops * hardware.coefficient("hop_length"),
            ("pe_neighbor", "forward"): 2.0 * macs,
            ("token", "injection"): entering,
            ("token", "extraction"): leaving,
            ("signature", "match"): tokens,
            ("token", "dispatch"): tokens,
            ("wavefront", "advance"): k_steps * used,
            ("program", "load"): used * kernels.start_count,
            ("tile", "barrier"): placement.tile_count,
            ("pe", "idle_cycle"): np.maximum(slots - macs, 0.0),
            ("dram", "read"): placement.dram_read_bytes,
            ("dram", "write"): placement.dram_write_bytes,
        }


ARCHITECTURE = Kpu()
