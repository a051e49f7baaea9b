"""GPU: thread blocks of a SIMT machine in waves over streaming multiprocessors.

`device` describes the device that one kernel sees, `product` times GEMMs, `kernel_class` times all other work, and
`time` combines them. This module places kernels and counts their actions.

    kernel = launch + ‖sum of busy, sum of memory‖         ‖a, b‖ = (a^2.5 + b^2.5)^(1/2.5)
    launch = (start of its kernel class + gap_clocks) / f

The excess of the norm over the larger sum is attributed to the larger sum. In eager the host runs ahead of the device.

The hardware file states which precisions run on tensor cores (matrix cores, on an AMD part): each peak names its
engine. It also states the warp (32 lanes, or a wavefront of 64) and the last cache before DRAM (L2, or an L3 after it).
A kernel sees one device of a board with several (`device_count`). Each device processes its own batch, so the board
starts device_count batches in the latency of one.

Energy. Circuit level: datapath, register file, instruction overhead per warp instruction (335 pJ at 7 nm, split),
shared memory, L2 with crossbar, DRAM, SIMT control. Used with active static power, never mixed with constants fitted at
the board. With m x n the tile, 64 x 32 the part of a warp, mult the MAC slots of the tiles divided by Winograd's gain,
k MACs of a lane and clock, and x the outputs of data movement:

    L2 read         = max(share x MACs (1 / m + 1 / n) p, R) of a GEMM, else R; plus bytes that extra passes read
                      again and the last cache does not hold
    shared read     = mult (64 + 32) / (64 32) p of a GEMM
    instructions    = (MACs on lanes / k + EW + SF + x + (L2 read + out) / 4 + shared read / 16) / warp_size
    near            = R + out - DRAM bytes + bytes of extra passes that the last cache holds

Source: Dally, AHA 2023 and DAC 2021 (335 pJ); AccelWattch (lanes of V100); board: Antepara et al., SC'25.
"""

from __future__ import annotations

from typing import Any, Final

import attrs
import numpy as np

from joulemap.physics.architecture.gpu.area import UNIT_AREA
from joulemap.physics.architecture.gpu.device import (
    REGISTER_BYTES,
    Engine,
    find_device,
    find_last_level,
    lanes_per_unit,
    name_memory,
    shows_tensor_cores,
    stream_seconds,
)
from joulemap.physics.architecture.gpu.expert import find_supply
from joulemap.physics.architecture.gpu.mixed import find_engine
from joulemap.physics.architecture.gpu.product import SHARPNESS
from joulemap.physics.architecture.gpu.time import Times, time_operators
from joulemap.physics.architecture.gpu.trait import Traits
from joulemap.physics.column import decide
from joulemap.physics.communication import KIND as COLLECTIVE
from joulemap.physics.kernel import KernelColumns
from joulemap.physics.ledger import ActionCounts
from joulemap.physics.placement import Overlap, Placement, balance
from joulemap.physics.record.configuration import CARRIED, PRECISION_BYTES, TF32, WORKING_BYTES, carried_precision
from joulemap.physics.record.engine import name_engine
from joulemap.physics.record.hardware import Hardware
from joulemap.physics.record.reference import (
    BOARD,
    CLOCK_ACTION,
    CYCLE_ACTION,
    OVERHEAD,
    STANDBY_ACTION,
)
from joulemap.physics.run import DEVICES
from joulemap.physics.traffic import ceil_divide, dram_bytes, held_share, tiled_bytes
from joulemap.physics.workload import Floats, Work
from joulemap.system.record import frozen, vary

ELEMENTS_PER_BLOCK: Final = 1024.0
"""Outputs of one thread block of a kernel that is not a GEMM: 256 threads, four elements each."""

SHARED_LANE_BYTES: Final = 16.0
"""Maximum bytes of shared memory that one lane reads with one instruction."""

WARP_SHARE: Final = (64.0 + 32.0) / (64.0 * 32.0)
"""Shared-memory elements that a warp reads per MAC, for CUTLASS's default of 64 x 32 outputs per warp."""

BLOCK_THREADS: Final = 256.0
"""Threads per block of a GEMM or of any other kernel, as libraries launch them."""

K_STEP: Final = 32.0
"""Elements along K between two barriers of a thread block, as in CUTLASS by default."""

COPIES: Final = 6.0
"""Number of equal layers, each with its own weights, among which the only kernel of a workload is assumed to run.
Benchmarks time a layer in this way. Source: aiconfigurator, collector/vllm/collect_gemm.py,
collector/sglang/collect_gemm.py.
"""

LANES_PRICED: Final = 32.0
"""Lanes of the warp instruction whose energy the catalogue states. A wavefront of 64 lanes takes twice that energy."""

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
"""Precision -> action of one MAC on the vector lanes, for work that does not run on tensor cores."""


@frozen(kw_only=True, eq=False)
class GpuPlacement(Placement):
    """Operators placed on the streaming multiprocessors."""

    engine: Engine
    """Units of the device on which the kernels run, at the run's precision."""
    tile_rows: Floats
    tile_columns: Floats
    issue_s: Floats
    """Seconds in which instructions are issued at their full rate, without stalls; tiled GEMMs are excluded."""
    occupancy: Floats
    """Share of the units that hold a block of the kernel."""
    product_s: Floats
    """Seconds of GEMMs, weighted by the share of the units that work on them."""
    multiplied_macs: Floats
    """MAC slots, excluding MACs that a causal mask or Winograd's algorithm saves."""
    seen_share: Floats
    """Share of an attention's scores that no mask skips; 1 for all other operators."""
    near_bytes: Floats
    """Bytes that the last cache before DRAM serves itself."""
    start_s: Floats
    """Fixed cost per kernel on the device, without any wait for the host."""

    def seen(self, count: Floats) -> Floats:
        """Return the operations of `count` that no causal mask skips."""
        return count * self.seen_share


def _replay(device: Hardware) -> Hardware:
    """Return the device with the gap between kernels that the replay of a CUDA graph leaves."""
    gap, share = device.coefficients["gap_clocks"], device.coefficients["graph_gap_share"].value
    if isinstance(share, float) and share == 1.0:  # chips that are evaluated together have an array
        return device
    return vary(device, coefficients={**device.coefficients, "gap_clocks": vary(gap, value=gap.value * share)})


class Gpu:
    """Model of GPUs: SIMT data-parallel processors."""

    unit_area = UNIT_AREA

    def decides(self, hardware: Hardware, work: Work, precision: str, /) -> tuple[Any, ...]:
        """Return which peaks and tensor cores exist, the inference engine, the memory type, and whether the board is
        one device.
        """
        count = hardware.geometry.get("device_count")
        return (
            *(one in hardware.peaks and shows_tensor_cores(hardware, one) for one in (precision, CARRIED, "int8")),
            *(one in hardware.peaks for one in ("fp32", CARRIED)),
            *((TF32 in hardware.peaks and shows_tensor_cores(hardware, TF32),) if precision == "fp32" else ()),
            count is None or np.equal(count.value, 1.0),
            name_engine(hardware.architecture, hardware.vendor),
            name_memory(hardware.memory_type),
            *(find_supply(hardware) if work.of_operation("grouped_mm").any() else ()),
            *(("fp8" in hardware.peaks,) if work.has_float_cache.any() else ()),
            hardware.microarchitecture.partition(" ")[0]
            if any(":" in one for one in set(work.kernel_family.tolist()))
            else "",
        )

    def place(self, kernels: KernelColumns, hardware: Hardware) -> GpuPlacement:
        """Return the kernels placed in tiles and waves, with their times. `product`, `kernel_class` and `time` have the
        formulas.
        """
        kernels = surround_lone_kernels(kernels)
        work = kernels.work
        device = find_device(hardware)
        if kernels.runtime.is_captured:
            device = _replay(device)
        engine = find_engine(kernels, device)
        level = find_last_level(device)
        read, written = dram_bytes(kernels, level.capacity.value, keeps_weights=level.kind == "cache")
        times = time_operators(kernels, engine, stream_seconds(engine, kernels.moved_bytes, read + written))
        tiles = np.where(times.tiles > 0.0, times.tiles, ceil_divide(work.output_element_count, ELEMENTS_PER_BLOCK))
        tiles = np.where(kernels.rides, 0.0, tiles)
        compute, memory = _balance(kernels, times)
        far = np.minimum(read + written, kernels.moved_bytes)
        again = _beyond(times.pass_bytes, level.capacity.value)
        occupancy = np.where(times.occupancy > 0.0, times.occupancy, np.minimum(tiles / engine.units, 1.0))
        multiplied = np.where(times.executed_macs > 0.0, times.multiplied_macs, work.mac_count)
        starts = kernels.leads | times.starts
        launch = kernels.per_kernel(np.where(starts, times.start_s + engine.seconds("gap_clocks"), 0.0))
        rate = engine.issue_hz * (hardware.unit_count.value / device.unit_count.value)
        return GpuPlacement(
            engine=engine,
            compute_s=compute,
            memory_s=memory,
            launch_s=launch,
            pass_s=kernels.per_kernel(np.where(starts, times.pass_s, 0.0)),
            overlap=_share_devices(hardware, compute, memory, launch),
            dram_read_bytes=read + again / 2.0,
            dram_write_bytes=written + again / 2.0,
            tile_count=tiles,
            wave_count=np.where(times.waves > 0.0, times.waves, ceil_divide(tiles, engine.units)),
            units_used=np.minimum(tiles, engine.units),
            units_total=hardware.peaks[kernels.precision].unit_count,
            executed_macs=np.maximum(times.executed_macs, work.mac_count),
            host_call_count=1.0 + kernels.of_leader(times.looped_count),
            host_runs_ahead=True,
            tile_rows=times.tile_rows,
            tile_columns=times.tile_columns,
            issue_s=times.issue_s,
            occupancy=occupancy,
            product_s=times.product_s * occupancy,
            multiplied_macs=multiplied,
            computed_macs=np.minimum(work.mac_count * times.seen_share, multiplied),
            seen_share=times.seen_share,
            start_s=launch,
            near_bytes=np.maximum(kernels.moved_bytes - far + times.pass_bytes - again, 0.0),  # may round below 0
            pass_bytes=times.pass_bytes,
            sharpness=SHARPNESS,
            lane_rate=lanes_per_unit(device, engine.precision) * rate,
            special_rate=hardware.geometry["special_function_lanes_per_unit"].value * rate,
        )

    def count(self, kernels: KernelColumns, placement: GpuPlacement, hardware: Hardware) -> ActionCounts:
        """Return the count of each action per operator. `joulemap hardware show ID --energy` lists the actions."""
        kernels = surround_lone_kernels(kernels)
        work = kernels.work
        engine, device = placement.engine, placement.engine.hardware
        precision, item = engine.precision, engine.item_bytes
        carried = carried_precision(precision)
        traits = Traits.of(kernels, engine)
        on_tensor = traits.on_tensor_cores & (work.is_gemm | work.of_kind("grouped_conv")) & ~traits.is_plain
        on_tensor &= ~work.is_streamed
        skipped = placement.multiplied_macs / np.maximum(placement.executed_macs, 1.0)
        padding = placement.executed_macs - work.mac_count
        macs = (work.mac_count + engine.value("padding_energy") * padding) * skipped
        tensor_macs = np.where(on_tensor, macs, 0.0)
        is_carried = traits.is_attention | work.is_kept
        own_macs = np.where(is_carried, 0.0, tensor_macs) if precision != carried else tensor_macs
        vector_macs = macs - tensor_macs
        slots = np.where(on_tensor, 0.0, placement.multiplied_macs)
        packed = np.where(work.is_gemm, engine.packed, 1.0)
        dot_macs = np.where(work.is_gemm, vector_macs, 0.0) if precision == "int8" else np.zeros_like(macs)
        moves = work.of_kind("data_movement", "pool", "uncounted")
        indexed = np.where(moves, work.output_element_count, 0.0)

        read_in = kernels.input_bytes + kernels.weight_bytes
        staged = np.where(
            work.is_gemm,
            np.maximum(
                tiled_bytes(kernels, placement.tile_rows, placement.tile_columns, item) * placement.seen_share, read_in
            ),
            0.0,
        )
        again = _beyond(placement.pass_bytes, find_last_level(device).capacity.value) / 2.0
        loaded = np.where(work.is_gemm, 0.0, read_in) + again
        l2_read, stored = staged + loaded, kernels.output_bytes + again
        shared_read = np.where(work.is_gemm, macs * WARP_SHARE * item, 0.0)

        mac_lanes = slots / packed
        elementwise = work.elementwise_count * placement.seen_share
        special = work.special_count * placement.seen_share
        plain = elementwise + special + indexed
        warp = hardware.geometry["warp_size"].value
        moving = (l2_read + stored) / REGISTER_BYTES + shared_read / SHARED_LANE_BYTES
        warps = (mac_lanes + plain + moving) / warp
        lane_groups = (mac_lanes + plain) / LANES_PRICED
        moving_groups = moving / LANES_PRICED
        padded = traits.padded_rows
        idle_lanes = np.where(work.of_kind("softmax"), padded - work.output_element_count, 0.0)
        register = max(REGISTER_BYTES, item)
        mac_register = np.maximum(register / packed, item)
        operands = vector_macs * mac_register
        fragment_scale = item / PRECISION_BYTES["fp16"]
        tensor_registers = tensor_macs * hardware.coefficient("tensor_register_bytes_per_mac") * fragment_scale
        instruction_macs = hardware.coefficient("tensor_instruction_macs") / fragment_scale
        if item < PRECISION_BYTES["fp16"]:
            instruction_macs = instruction_macs * hardware.coefficient("byte_instruction_share")
        arrivals = placement.tile_count * BLOCK_THREADS / warp * ceil_divide(work.gemm_k, K_STEP)
        sector = hardware.coefficient("cache_sector")
        fences = kernels.of_leader(placement.units_used)
        return {
            ("tensor_core", f"{carried}_mac"): tensor_macs - own_macs,
            ("tensor_core", f"{precision}_mac"): own_macs,
            **{
                ("tensor_core", f"{own.precision}_mac"): np.where(mine, own_macs, 0.0)
                for mine, own in engine.parts
                if engine.parts[0][1].precision != engine.parts[1][1].precision
            },
            ("cuda_core", _VECTOR_MAC[precision]): vector_macs - dot_macs,
            ("cuda_core", "int8_mac"): dot_macs,
            ("cuda_core", "elementwise"): elementwise,
            ("integer_unit", "index_operation"): indexed,
            ("special_function_unit", "operation"): special,
            ("register_file", "operand"): 3.0 * operands,
            ("register_file", "result"): operands,
            ("register_file", "read"): (elementwise + plain) * register + tensor_registers * 2.0 / 3.0,
            ("register_file", "write"): plain * register + tensor_registers / 3.0,
            ("operand_collector", "transfer"): 3.0 * operands,
            ("instruction_cache", "fetch"): warps,
            ("instruction_buffer", "access"): warps,
            ("decoder", "decode"): warps,
            ("dispatcher", "dispatch"): lane_groups,
            ("dispatcher", "memory_dispatch"): moving_groups,
            ("result_bus", "commit"): lane_groups,
            ("result_bus", "memory_commit"): moving_groups,
            ("tensor_core", "instruction"): tensor_macs / instruction_macs,
            **_count_cycles(kernels, placement, hardware),
            ("shared_memory", "read"): shared_read,
            ("shared_memory", "write"): staged,
            ("l1", "tag_lookup"): (loaded + stored) / sector,
            ("l1", "load"): loaded,
            ("l1", "store"): stored,
            **self._cache_counts(kernels, placement, device, l2_read, stored),
            ("dram_controller", "read"): placement.dram_read_bytes,
            ("dram_controller", "write"): placement.dram_write_bytes,
            ("dram", "read"): placement.dram_read_bytes,
            ("dram", "write"): placement.dram_write_bytes,
            ("warp_scheduler", "schedule"): warps,
            ("scoreboard", "reserve"): warps,
            ("scoreboard", "release"): warps,
            ("divergence", "replay"): idle_lanes / LANES_PRICED * hardware.coefficient("idle_lane_share"),
            ("coalescing", "extra_sector"): np.where(
                moves, kernels.moved_bytes / sector * hardware.coefficient("uncoalesced_share"), 0.0
            ),
            ("barrier", "arrival"): np.where(work.is_gemm, arrivals, 0.0),
            ("coherence", "fence"): kernels.at_leader(fences),
            ("thread_block", "launch"): placement.tile_count,
            ("thread", "start"): placement.tile_count * BLOCK_THREADS,
            ("kernel", "launch"): kernels.host_launch_count,
        }

    @staticmethod
    def _cache_counts(
        kernels: KernelColumns, placement: GpuPlacement, hardware: Hardware, inner_read: Floats, inner_written: Floats
    ) -> ActionCounts:
        """Return the access counts of the caches that all units share: an L2, an L2 and an L3, or an L3 alone.

        `inner_read` and `inner_written` are the bytes per operator that the units read and write there.
        """
        levels = {level.name: level for level in hardware.memory_levels}
        out, fills = inner_written, placement.dram_read_bytes
        counts: ActionCounts = {("crossbar", "load"): inner_read, ("crossbar", "store"): out}
        if "l3" not in levels:
            return {**counts, ("l2", "read"): inner_read, ("l2", "write"): out, ("l2", "fill"): fills}
        read, written = inner_read, out
        if "l2" in levels:
            again = inner_written - kernels.output_bytes
            missed, spilled = dram_bytes(kernels, levels["l2"].capacity.value, keeps_weights=True)
            read, written = missed + again, spilled + again
            counts |= {
                ("l2", "read"): inner_read,
                ("l2", "write"): out,
                ("l2", "fill"): read,
                ("l3", "transfer"): read + written,
            }
        return {**counts, ("l3", "read"): read, ("l3", "write"): written, ("l3", "fill"): fills}


def _count_cycles(kernels: KernelColumns, placement: GpuPlacement, hardware: Hardware) -> ActionCounts:
    """Return the counts that follow from time: clock cycles of units that work, and bytes that these pass on.

    If the board's power sets the energy of its cycles, all its units and its memory are awake while kernels run. A unit
    that waits for memory works as many cycles as the bytes that arrive take it.
    """
    engine = placement.engine
    if CYCLE_ACTION not in hardware.reference:
        product = placement.product_s * engine.issue_hz * engine.issue_share
        issue = placement.issue_s * engine.issue_hz * engine.issue_share
        return {
            (BOARD, "unattributed_product_cycle"): product,
            (BOARD, "unattributed_issue_cycle"): issue,
            ("unit", "active_cycle"): product + issue,
            ("load_store_unit", "transfer"): placement.near_bytes,
        }
    is_gap = kernels.work.of_kind(OVERHEAD)[kernels.leader]
    own_start_s = placement.start_s * hardware.coefficient("launch_time_scale")
    own_start_s = np.minimum(own_start_s, placement.launch_s)  # a hidden collective takes no time of its own
    start_s = np.where(is_gap, placement.launch_s, own_start_s)
    starting_s = kernels.at_leader(kernels.each_kernel(start_s)) / kernels.repeat_count  # all steps start once
    is_own = ~kernels.work.of_kind(COLLECTIVE)
    running_s, own_s = (starting_s + placement.own_s(kernels)) * is_own, placement.own_s(kernels) * is_own
    cycles = hardware.clock.value * np.rint(hardware.unit_count.value)
    moved = placement.near_bytes + placement.dram_read_bytes + placement.dram_write_bytes
    held = kernels.per_operator(kernels.of_leader(placement.occupancy)) * cycles
    reached = np.maximum(moved / hardware.coefficient(WORKING_BYTES), placement.compute_s * held)
    working = np.minimum(own_s * held, reached)
    working = np.where(kernels.work.of_kind(OVERHEAD), running_s * cycles, working)
    return {
        CYCLE_ACTION: working,
        ("unit", "active_cycle"): working,
        ("load_store_unit", "transfer"): moved,
        CLOCK_ACTION: running_s * cycles,
        STANDBY_ACTION: running_s * hardware.memory_bandwidth.value,
    }


def surround_lone_kernels(kernels: KernelColumns) -> KernelColumns:
    """Return the kernels; the only kernel of a workload becomes one of COPIES equal layers.

    Its activations then come from and go to neighbouring layers, and the weights of all layers compete for the caches.
    """
    is_lone = (kernels.sum_kernels(np.ones(kernels.kernel_count)) == 1.0)[kernels.workload_index]
    if not is_lone.any():
        return kernels
    return attrs.evolve(
        kernels,
        entering_bytes=np.where(is_lone, 0.0, kernels.entering_bytes),
        leaving_bytes=np.where(is_lone, 0.0, kernels.leaving_bytes),
        total_weight_bytes=kernels.total_weight_bytes * np.where(is_lone, COPIES, 1.0),
    )


def _beyond(moved_bytes: Floats | float, capacity_bytes: float) -> Floats:
    """Return the bytes of extra passes that miss the last cache."""
    return moved_bytes * (1.0 - held_share(moved_bytes, capacity_bytes))


def _share_devices(hardware: Hardware, compute_s: Floats, memory_s: Floats, launch_s: Floats) -> Overlap | None:
    """Return the times of a batch, divided by the number of devices that each run their own batch.

    Return None if the board is a single device.
    """
    count = hardware.geometry.get("device_count")
    if count is None or decide(np.equal(count.value, 1.0)):
        return None
    whole = Overlap(
        limit=DEVICES, compute_s=compute_s, memory_s=memory_s, launch_s=launch_s, shared_s=np.zeros_like(memory_s)
    )
    return whole.scaled(1.0 / count.value, 1.0 / count.value)


def _balance(kernels: KernelColumns, times: Times) -> tuple[Floats, Floats]:
    """Return (compute, memory) seconds per operator; the larger of the two sums over a kernel is the kernel's own time.

    A kernel takes the p-norm of its compute time and its memory time: close to the larger, and somewhat above it if
    they are similar. The excess is attributed to the larger.
    """
    busy, memory = kernels.per_kernel(times.busy_s), kernels.per_kernel(times.memory_s)
    busier, longer = balance(busy, memory, SHARPNESS)
    return times.busy_s * kernels.growth(busy, busier), times.memory_s * kernels.growth(memory, longer)


ARCHITECTURE = Gpu()
