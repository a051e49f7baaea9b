"""NPU: dense tensor engines and vector engines under a static schedule, fed from software-managed SRAM.

Time of a tensor engine, with q MACs per clock of a unit at the precision. The stationary operand depends on the
geometry of the engine:

    weight_rows x weight_columns (K x N)      a weight tile stays, rows of activations stream through it
        busy = waves x max(rows of a block R C / q, R / s) + (R + C) / s          s rows pass in a clock: array_step
    output_rows x output_columns (M x N)      a block of outputs stays, both operands stream
        busy = waves x (ceil(K R C / q) + tile_overhead)
    neither                                   as outputs, in a square of floor(sqrt(q))
    dataflow_intervals d                      every layer has its part of the fabric, images follow each other
        tensor = MACs / model's MACs x (batch + d - 1) x image         d = 1 in several contexts: see `fabric`

    tensor = busy / (clock x e)                                                  e = tensor_efficiency
    vector = (EW + special_function_clocks SF) / (vector lanes x clock x vector_clock_ratio x vector_efficiency)

    launch = layer_cost + its part of program_start + [several contexts] its part of the start of each

An array with `tap_rows` processes each tap of a convolution separately, with its channels along K. The channels are
padded to a multiple of `tap_rows`, and as many taps lie side by side as then fit. K / taps channels take ceil(taps / s)
ceil(K / taps / R) tiles along K, with s = max(1, floor(R / (tap_rows ceil(K / taps / tap_rows)))).

MACs run on the vector engine where that is faster (a depthwise convolution), except in a dataflow fabric. The engines
work in parallel: a kernel takes as long as the busier one. A tensor engine with `folded_activations` applies scale,
bias and ReLU as it writes results: elementwise operators of its kernels without special functions or another tensor.

Memory. SRAM is filled by DMA as the compiler scheduled it. In a fabric with C contexts, images leave C - 1 times,
equally likely at any kernel. A chip with `resident_programs` keeps a model in SRAM if its weights and the live
activations of one image fit. Images then follow one another on chip, and only model inputs and outputs move. With
`divided_batches` a copy has its part of the SRAM for that, unless all copies read the same weights (`shared_weights`).
A chip with `host_link_lanes` has no DRAM: data that leave its SRAM cross the link to the host.

With a copy of the model on each stream of units (`divided_batches`), a batch is divided among the copies. It takes as
long as the copy with the most samples, ceil(b / streams). A batch uses half of the streams, a quarter … where that is
faster. A copy has its part of the vector engines, the SRAM and its width, and the DMA engines. These reach
`unit_memory_share` of the memory's bandwidth for each unit. Each copy reads its own weights. With `whole_batches`, a
batch stays on one stream.

Throughput. In a dataflow fabric that keeps a model resident, a batch enters while others are in the layers. The
interval between batches is `batch` of the batch + d - 1 intervals in its latency, without a start of a layer. A fabric
that loads its contexts anew for each batch, and every other chip, starts a batch after the one before. Batches of a
fabric also wait for the transfers of others to and from the host.

Energy. Operands leave the SRAM as max(share x (activations + weights) p, R + weights of further copies) bytes, of which
noc_share goes over the network, as all results do. A slot of the tensor engines without a MAC is an idle cycle. Source:
AWS NKI architecture guide; `nki.isa.nc_matmul` (K along partitions, row tiles of 64); Intel Gaudi 3, Hot Chips 2024;
Abts et al., ISCA 2020; Hailo Model Zoo.
"""

from __future__ import annotations

from typing import Any, Final

import attrs
import numpy as np

from joulemap.physics.architecture.npu.fabric import lay_out, loaded_bytes, start_s
from joulemap.physics.architecture.npu.tile import Tiles, tile
from joulemap.physics.kernel import KernelColumns
from joulemap.physics.ledger import ActionCounts
from joulemap.physics.pace import SAME
from joulemap.physics.placement import Indifferent, Overlap, Placement, overlap_engines
from joulemap.physics.record.configuration import FLOPS_PER_MAC, LINK_LANES, PRECISION_BYTES
from joulemap.physics.record.hardware import Hardware
from joulemap.physics.record.quantity import Quantity
from joulemap.physics.record.silicon import UnitArea
from joulemap.physics.run import STAGE
from joulemap.physics.stream import (
    DIVIDED,
    SHARED,
    STREAM_UNITS,
    count_copies,
    find_shares,
    take_fullest,
    time_transfers,
)
from joulemap.physics.traffic import ceil_divide, dram_bytes
from joulemap.physics.workload import Booleans, Floats
from joulemap.system.record import frozen

ACCUMULATOR_BYTES: Final = 4.0
NARROWEST_VECTOR_BYTES: Final = 2.0
"""Minimum bytes of an element in a vector engine: 8-bit operands are widened to 16 bits."""
VECTOR_OPERANDS: Final = 3.0
FOLDED: Final = "folded_activations"
"""Name of a geometry constant: the tensor engines apply scale, bias and ReLU as they write results."""
VECTOR_ELEMENT: Final = "vector_element"
"""Name of a geometry constant: bits per element in the vector engines, independent of the stored width."""


@frozen(kw_only=True, eq=False)
class NpuPlacement(Placement):
    """Operators placed on the tensor engines or on the vector engines."""

    on_tensor: Booleans
    """True for operators that the tensor engines compute."""
    activations: Floats
    """Elements streamed into the tensor engines."""
    weights: Floats
    """Elements of the second operand that are streamed or loaded into the tensor engines."""
    sums: Floats
    """Partial sums that the tensor engines write."""
    slots: Floats
    """MAC slots of all tensor engines while the operator runs; in a dataflow fabric, only the slots of this batch."""
    copied_bytes: Floats
    """Weight bytes that all copies of the model except the first one read."""
    batch_share: tuple[Floats | float, Floats | float]
    """(share of the units, share of the memory bandwidth) of the model copies that process one batch."""

    @property
    def busy_s(self) -> tuple[Floats, Floats]:
        """(compute, memory) busy seconds of one batch. Unless batches overlap, both are times the batch's share of the
        chip.
        """
        compute_s, memory_s = super().busy_s
        if self.overlap:
            return compute_s, memory_s
        of_units, of_memory = self.batch_share
        return compute_s * of_units, memory_s * of_memory


def _choose_shorter(one: NpuPlacement, other: NpuPlacement, kernels: KernelColumns) -> NpuPlacement:
    """Return for each workload the placement that takes less time."""

    def total_s(placement: NpuPlacement) -> Floats:
        busy_s = np.maximum(kernels.per_kernel(placement.compute_s), kernels.per_kernel(placement.memory_s))
        return kernels.sum_kernels(placement.launch_s + busy_s)

    is_shorter = total_s(other) < total_s(one) * (1.0 - SAME)
    if not is_shorter.any():
        return one
    of_row, of_kernel = kernels.of_workload(is_shorter), kernels.kernel_workload(is_shorter.astype(float)) > 0.0

    def choose(first: Any, second: Any) -> Any:
        if isinstance(first, tuple):
            return tuple(map(choose, first, second))
        if first is second or first is None:
            return first
        is_kernel = np.shape(first)[-1:] == (kernels.kernel_count,)
        return np.where(of_kernel if is_kernel and not kernels.is_plain else of_row, second, first)

    fields = {field.name: getattr(one, field.name) for field in attrs.fields(NpuPlacement)}
    chosen = {
        name: choose(value, getattr(other, name))
        for name, value in fields.items()
        if name not in ("overlap", "sharpness", "host_runs_ahead", "units_total")
    }
    return attrs.evolve(one, **chosen)


def _geometry(hardware: Hardware, name: str) -> float:
    """Return the geometry constant `name`, a share or ratio; 1 if the hardware does not state it."""
    return hardware.geometry[name].value if name in hardware.geometry else 1.0


class Npu(Indifferent):
    """Model of neural processing units with a static schedule."""

    unit_area = UnitArea(
        datapath=Quantity(
            value=0.1,
            unit="1",
            basis="assumed",
            source="between a systolic array and a GPU",
        )
    )

    def place(self, kernels: KernelColumns, hardware: Hardware) -> NpuPlacement:
        """Return the kernels placed in tiles and waves, with their times. The module docstring has the formulas.

        A batch uses all copies of a model, or half, a quarter … of them if their weights make more copies slower.
        """
        best, divisor = self._place(kernels, hardware, 1.0), 1.0
        while np.max(count_copies(kernels, hardware, divisor)) > 1.0:
            divisor *= 2.0
            best = _choose_shorter(best, self._place(kernels, hardware, divisor), kernels)
        return best

    def _place(self, kernels: KernelColumns, hardware: Hardware, divisor: float) -> NpuPlacement:
        """Return the placement for a batch that uses n / `divisor` of the n copies of a model, rounded up."""
        peak = hardware.peaks[hardware.product_precision(kernels.precision)]
        unit_macs = peak.macs_per_clock
        copies = count_copies(kernels, hardware, divisor)
        own, copy_units = take_fullest(kernels, hardware, divisor)
        work, copy_part = own.work, copy_units / peak.unit_count
        at_once = own.part(np.asarray(own.batch)) if self._is_dataflow(hardware) else own
        engine = tile(at_once, hardware, copy_units)
        stays, tensor_s, begin_s, cuts = self._schedule(own, hardware, engine)
        vector_hz = peak.clock_hz * _geometry(hardware, "vector_clock_ratio")
        lane_rate = copy_part * np.minimum(
            self._lanes(kernels.precision, hardware) * vector_hz, peak.rate.value / FLOPS_PER_MAC
        )
        lane_rate = lane_rate * hardware.coefficient("vector_efficiency")
        on_tensor = work.has_macs & (self._is_dataflow(hardware) | (tensor_s <= work.mac_count / lane_rate))
        simple = np.where(self._folded(own, hardware), 0.0, work.elementwise_count)
        simple = simple + hardware.coefficient("special_function_clocks") * work.special_count
        vector_macs = np.where(work.has_macs & ~on_tensor, work.mac_count, 0.0)
        vector_s = (simple + vector_macs) / lane_rate
        tensor_s = np.where(on_tensor, tensor_s, 0.0)
        compute = overlap_engines(own, tensor_s, vector_s)

        reached = np.minimum(1.0, _geometry(hardware, "unit_memory_share") * copy_units * copies)
        read, written = self._outside_bytes(own, hardware, stays, cuts, copy_part)
        loaded = 0.0 if cuts is None else np.where(stays, 0.0, kernels.weight_bytes)
        crossing = np.maximum(read + written - loaded, 0.0)
        memory = self._memory_s(own.moved_bytes, crossing, hardware, copy_part, reached / copies)
        parts, times = kernels.batch / own.batch, kernels.batch / at_once.batch
        weights = np.where(stays, 0.0, kernels.weight_bytes)
        again = (copies - 1.0) * weights
        read, written = (read - weights) * parts + weights + again, written * parts
        kernel_count = np.maximum(kernels.kernel_workload(kernels.sum_kernels(np.ones(kernels.kernel_count))), 1.0)
        launch = hardware.coefficient("layer_cost") + hardware.coefficient("program_start") / kernel_count + begin_s
        share = np.where(stays, kernels.batch / (kernels.batch + self._waits(hardware)), 1.0)
        overlap = None
        if self._is_dataflow(hardware):
            overlap = Overlap(
                limit=STAGE,
                compute_s=tensor_s * share + vector_s,
                memory_s=np.where(stays, 0.0, memory),
                launch_s=np.where(kernels.of_leader(stays), 0.0, launch),
                shared_s=np.maximum(memory, time_transfers(kernels, hardware)),
            )
        slots = tensor_s * share * peak.clock_hz * peak.unit_count * unit_macs
        unit_lanes = self._lanes(kernels.precision, hardware) / peak.unit_count
        vector_rows = ceil_divide(vector_macs, unit_lanes)
        return NpuPlacement(
            compute_s=compute,
            memory_s=memory,
            launch_s=launch,
            overlap=overlap,
            dram_read_bytes=read,
            dram_write_bytes=written,
            tile_count=np.where(on_tensor, engine.tiles, 0.0) * times,
            wave_count=np.where(on_tensor, engine.waves, 0.0),
            units_used=copies * np.minimum(np.where(on_tensor, engine.tiles, vector_rows), copy_units),
            units_total=peak.unit_count,
            executed_macs=np.where(on_tensor, engine.slots * times, work.mac_count * parts),
            on_tensor=on_tensor,
            activations=np.where(on_tensor, engine.activations, 0.0) * times,
            weights=np.where(on_tensor, engine.weights, 0.0) * times,
            sums=np.where(on_tensor, engine.sums, 0.0) * times,
            slots=slots,
            copied_bytes=again,
            batch_share=(copy_part * parts, reached),
        )

    @staticmethod
    def _is_dataflow(hardware: Hardware) -> bool:
        return "dataflow_intervals" in hardware.geometry

    @staticmethod
    def _folded(kernels: KernelColumns, hardware: Hardware) -> Booleans | bool:
        """Return a mask of the elementwise operators that the tensor engine applies to its results."""
        if FOLDED not in hardware.geometry:
            return False
        work = kernels.work
        mask: Booleans = (
            kernels.rides & kernels.has_product & (kernels.input_bytes == 0.0) & (work.special_count == 0.0)
        )
        return mask

    @staticmethod
    def _own_bytes(hardware: Hardware) -> Floats | float:
        """Return the bytes of SRAM in which a copy of the model keeps its weights.

        They are the part of one stream, or the whole SRAM if streams share weights.
        """
        capacity: Floats | float = hardware.level("sram").capacity.value
        if DIVIDED not in hardware.geometry or SHARED in hardware.geometry:
            return capacity
        return capacity * hardware.geometry[STREAM_UNITS].value / hardware.unit_count.value

    @staticmethod
    def _waits(hardware: Hardware) -> float:
        """Return the number of intervals that a batch waits for others in a fabric that holds the whole model."""
        return hardware.geometry["dataflow_intervals"].value - 1.0 if Npu._is_dataflow(hardware) else 0.0

    def _schedule(
        self, kernels: KernelColumns, hardware: Hardware, engine: Tiles
    ) -> tuple[Booleans, Floats, Floats, Floats | None]:
        """Return (whether the workload stays in SRAM, engine seconds, start seconds, contexts that end at the
        operator).

        Start seconds are per kernel, all else per operator. The last is None except for a dataflow fabric.
        """
        image = kernels.peak_activation_bytes / kernels.batch
        fits = np.asarray(kernels.total_weight_bytes + image) <= Npu._own_bytes(hardware)
        stays = kernels.each(fits & ("resident_programs" in hardware.geometry))
        if not self._is_dataflow(hardware):
            peak = hardware.peaks[hardware.product_precision(kernels.precision)]
            seconds = engine.busy / (peak.clock_hz * hardware.coefficient("tensor_efficiency"))
            return stays, seconds, np.zeros(kernels.kernel_count), None
        layout = lay_out(kernels, hardware, engine.busy, engine.tile_share)
        is_one = layout.context_count == 1.0
        macs = kernels.work.mac_count
        share = macs / kernels.of_workload(np.maximum(kernels.sum_workload(macs), 1.0))
        seconds = share * layout.image_s * (kernels.batch + np.where(is_one, self._waits(hardware), 0.0))
        stays = stays & is_one
        cuts = (layout.context_count - 1.0) / layout.kernel_count
        return stays, seconds, np.where(kernels.of_leader(stays), 0.0, start_s(kernels, hardware)), cuts

    @staticmethod
    def _outside_bytes(
        kernels: KernelColumns, hardware: Hardware, stays: Booleans, cuts: Floats | None, part: Floats | float
    ) -> tuple[Floats, Floats]:
        """Return (read, written) bytes per operator that cross between the SRAM and the memory outside it."""
        if cuts is None:
            read, written = dram_bytes(kernels, part * hardware.level("sram").capacity.value, keeps_weights=False)
        else:
            inner, produced = (
                kernels.input_bytes - kernels.entering_bytes,
                kernels.output_bytes - kernels.leaving_bytes,
            )
            read = kernels.entering_bytes + loaded_bytes(kernels, hardware) + cuts * inner
            written = kernels.leaving_bytes + cuts * produced
        return np.where(stays, kernels.entering_bytes, read), np.where(stays, kernels.leaving_bytes, written)

    @staticmethod
    def _memory_s(
        moved: Floats, outside: Floats, hardware: Hardware, part: Floats | float, reached: Floats | float
    ) -> Floats:
        """Return the longer of two times: `moved` bytes at the SRAM's rate, and `outside` bytes at the outer memory's
        rate.
        """
        level = hardware.level("sram")
        width = part * (level.bandwidth or hardware.memory_bandwidth).value * hardware.coefficient("sram_efficiency")
        outside_rate = reached * hardware.memory_bandwidth.value * hardware.coefficient("dram_efficiency")
        slower: Floats = np.maximum(moved / width, outside / outside_rate)
        return slower

    @staticmethod
    def _lanes(precision: str, hardware: Hardware) -> float:
        """Return the elements that all vector engines process per clock."""
        item = max(PRECISION_BYTES[precision], NARROWEST_VECTOR_BYTES)
        if VECTOR_ELEMENT in hardware.geometry:
            item = hardware.geometry[VECTOR_ELEMENT].value / 8.0
        width = hardware.geometry["vector_width"].value / 8.0
        return hardware.geometry["vector_core_count"].value * width / item

    def count(self, kernels: KernelColumns, placement: NpuPlacement, hardware: Hardware) -> ActionCounts:
        """Return the count of each action per operator. `joulemap hardware show ID --energy` lists the actions."""
        work = kernels.work
        precision = kernels.precision
        item = PRECISION_BYTES[precision]
        multiplied = hardware.product_precision(precision)
        operand = PRECISION_BYTES[multiplied]
        on_tensor = placement.on_tensor
        tensor_macs = work.mac_count * on_tensor
        vector_macs = work.mac_count - tensor_macs
        crossing = kernels.input_bytes + kernels.weight_bytes
        streamed = (placement.activations + placement.weights) * operand
        written = kernels.output_bytes
        sram_read = np.maximum(streamed * kernels.outside_read_share, crossing + placement.copied_bytes)
        noc = sram_read * hardware.coefficient("noc_share") + written
        hops = hardware.coefficient("noc_hops")
        tiles = placement.tile_count
        outside = placement.dram_read_bytes + placement.dram_write_bytes
        transfers = ceil_divide(crossing + written, hardware.coefficient("dma_block"))
        lane_operations = work.elementwise_count + work.special_count + vector_macs
        layers = kernels.start_count
        instructions = tiles * hardware.coefficient("instructions_per_tile") + transfers + layers
        edge = "host_link" if LINK_LANES in hardware.geometry else "dram"
        included, crossing_share = find_shares(hardware)
        counts: ActionCounts = {
            ("tensor_engine", f"{multiplied}_mac"): tensor_macs,
            ("tensor_engine", "idle_cycle"): np.maximum(placement.slots - tensor_macs, 0.0),
            ("pe_register", "access"): tensor_macs,
            ("accumulator", "access"): 2.0 * ACCUMULATOR_BYTES * placement.sums,
            ("weight_buffer", "read"): placement.weights * operand,
            ("activation_buffer", "read"): placement.activations * operand,
            ("vector_engine", f"{precision}_mac"): vector_macs,
            ("vector_engine", "elementwise"): work.elementwise_count,
            ("vector_engine", "special_function"): work.special_count,
            ("vector_register", "access"): VECTOR_OPERANDS * lane_operations * max(item, NARROWEST_VECTOR_BYTES),
            ("sram", "read"): sram_read,
            ("sram", "write"): written,
            ("sram", "fill"): placement.dram_read_bytes,
            ("sram", "drain"): placement.dram_write_bytes,
            ("sram_bank", "arbitrate"): (sram_read + written) / hardware.coefficient("arbitration_block"),
            ("router", "hop"): noc * hops,
            ("link", "transfer"): noc * hops * hardware.coefficient("hop_length"),
            ("instruction", "fetch"): instructions,
            ("instruction", "decode"): instructions,
            ("schedule", "dispatch"): tiles + layers,
            ("sync_flag", "wait"): 2.0 * tiles + transfers,
            ("layer", "configure"): layers,
            ("dma", "descriptor"): transfers + ceil_divide(outside, hardware.coefficient("dma_block")),
            (edge, "read"): np.maximum(placement.dram_read_bytes - included * kernels.entering_bytes, 0.0),
            (edge, "write"): np.maximum(placement.dram_write_bytes - included * kernels.leaving_bytes, 0.0),
            ("host_link", "input"): crossing_share * kernels.entering_bytes,
            ("host_link", "output"): crossing_share * kernels.leaving_bytes,
            ("program", "launch"): kernels.host_launch_count,
        }
        return counts


ARCHITECTURE = Npu()
