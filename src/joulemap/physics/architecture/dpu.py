"""DPU: convolution cores of fixed parallelism in FPGA fabric, one image per core.

Time. A core takes pp pixels x ip input channels x op output channels per clock. With X = M / batch pixels of an image
and Ci = K / taps input channels:

    convolution = G ⌈X / pp⌉ steps ⌈N / op⌉ / array_efficiency
    steps       = ⌈Ci / ip⌉ taps, or where Ci < ip the lesser of that and ⌈Ci k / ip⌉ ⌈taps / k⌉, k = ⌊√taps⌋
    depthwise   = ⌈X / ap⌉ ⌈channels / ip⌉ taps / depthwise_efficiency        on the misc engine, ap pixels
    other       = EW / batch / (ap ip)                                        on the misc engine
    processor   = (MACs + EW + special_function_operations SF + O if uncounted) / processor_rate
    compute     = ⌈batch / U⌉ x clocks of an image / f + processor
    launch      = layer_cost

Batch norm and activations in a convolution's kernel cost nothing: they are folded, or applied at write-back. The
quantizer replaces sigmoid and SiLU by their hard forms. These, sums with another tensor, pooling and separate operators
run on the misc engine, in parallel with the convolution engine. A kernel takes as long as the busier of the two.
Operators without a DPU instruction run on the Arm cores of the same chip: softmax, layer norm, GEMMs of two
activations, special functions other than sigmoid and SiLU. A layer with fewer input channels than ip takes the taps of
a row of its window as further channels (channel augmentation).

Memory. If weights, inputs and outputs of one image fit the buffers of a core, the activations stay there. Every image
streams the weights for itself. A core reaches DDR through its own ports, so that one image cannot use all of the
bandwidth. Shared weights are read once but enter every core. int8 only:

    read   = (entering if it fits, else in) + copies w + max(⌈min(in / batch, w) / C⌉ - 1, 0) max(in, copies w)
    copies = batch, or ⌈batch / U⌉ where the images of a batch share the weights (`shared_weights`)
    port   = bytes with copies = batch
    memory = max(port ⌈batch / U⌉ / batch / (port_bytes_per_clock f), bytes / (memory_bandwidth dram_efficiency))

Throughput. Every core takes its own images, so that batches overlap if there are more cores than images. A core that
always has work has its share of the memory while it works on an image; the Arm cores are shared:

    units  = sum of layer_cost batch / U + max(convolution batch / U / f + processor, memory)
    memory = max(port / (U port_bytes_per_clock f), bytes / (memory_bandwidth dram_efficiency))

Energy. Each clock takes pp x ip activations and ip x op weights. Weights stay for weight_reuse rows of pixels, and a
sum leaves and returns for each ⌈Ci / ip⌉. An operation in FPGA fabric costs 7.1 times as much as in standard cells.
Hard multipliers account for twice the energy of a MAC, interconnect for the rest. Source: AMD PG338 and UG1354; Kuon
and Rose, IEEE TCAD 26(2), 2007.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from joulemap.physics.kernel import KernelColumns
from joulemap.physics.ledger import ActionCounts
from joulemap.physics.placement import Overlap, Placement, overlap_engines
from joulemap.physics.record.hardware import Hardware
from joulemap.physics.record.quantity import Quantity
from joulemap.physics.record.silicon import UnitArea
from joulemap.physics.run import CORES
from joulemap.physics.stream import SHARED
from joulemap.physics.traffic import ceil_divide
from joulemap.physics.workload import Booleans, Floats, Work
from joulemap.system.record import frozen

CONVOLUTION_KINDS: Final = ("conv", "grouped_conv", "linear")
PROCESSOR_KINDS: Final = ("softmax", "normalization", "uncounted", "matmul")
"""Operator kinds that no DPU instruction computes, so that the Arm cores do. Source: AMD UG1414, operators supported by
the DPU.
"""
HARD: Final = ("sigmoid", "silu", "hardsigmoid", "hardswish")
"""Special functions that the quantizer replaces by piecewise linear ones, which the misc engine computes.

Source: AMD UG1414, supported operations.
"""
ACCUMULATOR_BYTES: Final = 4.0


@frozen(kw_only=True, eq=False)
class DpuPlacement(Placement):
    """Operators placed on the engines of the cores."""

    on_array: Booleans
    """True for operators that the convolution engine computes."""
    array_cycles: Floats
    """Cycles of the convolution engine, over all images."""
    misc_cycles: Floats
    """Cycles of the misc engine, over all images."""


class Dpu:
    """Model of deep-learning processor overlays on an FPGA."""

    unit_area = UnitArea(
        datapath=Quantity(
            value=0.03,
            unit="1",
            basis="assumed",
            source="FPGA: logic takes tens of times the area of standard cells",
        )
    )

    def decides(self, hardware: Hardware, _work: Work, precision: str, /) -> tuple[Any, ...]:
        """Return whether the hardware has several cores, and whether they share the weights."""
        return np.greater(hardware.peaks[precision].unit_count, 1), SHARED in hardware.geometry

    def place(self, kernels: KernelColumns, hardware: Hardware) -> DpuPlacement:
        """Return the kernels placed on the cores, with cycles and times. The module docstring has the formulas."""
        work = kernels.work
        peak = hardware.peaks[kernels.precision]
        units = peak.unit_count
        batch = kernels.batch
        rounds = np.ceil(batch / units)
        geometry = hardware.geometry
        on_array = self._on_array(kernels)
        is_depthwise = work.of_kind("depthwise_conv")
        on_processor = self._on_processor(kernels)
        pixels = work.gemm_m / batch
        taps = np.maximum(work.tap_count, 1.0)
        array_cycles = (
            work.gemm_groups
            * ceil_divide(pixels, geometry["pixel_parallelism"].value)
            * self._input_steps(kernels, hardware)
            * ceil_divide(work.gemm_n, geometry["output_channel_parallelism"].value)
        )
        misc_pixels = geometry["misc_pixel_parallelism"].value
        channels = geometry["input_channel_parallelism"].value
        depthwise_cycles = ceil_divide(pixels, misc_pixels) * ceil_divide(work.gemm_groups * work.gemm_n, channels)
        macs_per_clock = peak.macs_per_clock
        executed = np.where(is_depthwise, depthwise_cycles * taps * misc_pixels * channels * batch, work.mac_count)
        executed = np.where(on_array, array_cycles * macs_per_clock * batch, executed)
        depthwise_cycles = depthwise_cycles * taps / hardware.coefficient("depthwise_efficiency")
        is_folded = kernels.rides & (kernels.input_bytes == 0.0) & ~np.isin(work.operation, HARD)
        simple = np.where(is_folded | on_array | is_depthwise | on_processor, 0.0, work.elementwise_count)
        misc_cycles = np.where(is_depthwise, depthwise_cycles, simple / batch / (misc_pixels * channels))
        array_cycles = np.where(on_array, array_cycles / hardware.coefficient("array_efficiency"), 0.0)
        image_s = overlap_engines(kernels, array_cycles, misc_cycles) / peak.clock_hz
        processor_s = self._processor_operations(kernels, hardware) / hardware.coefficient("processor_rate")

        read, written = self._dram_bytes(kernels, hardware, self._weight_copies(kernels, hardware))
        moved = read + written
        at_ports = self._dram_bytes(kernels, hardware, batch)[0] + written
        port_rate = hardware.coefficient("port_bytes_per_clock") * peak.clock_hz
        dram_rate = hardware.memory_bandwidth.value * hardware.coefficient("dram_efficiency")
        memory = np.maximum(at_ports / batch * rounds / port_rate, moved / dram_rate)
        launch = hardware.coefficient("layer_cost")
        runs = on_array | is_depthwise
        return DpuPlacement(
            compute_s=image_s * rounds + processor_s,
            memory_s=memory,
            launch_s=kernels.each_kernel(launch),
            overlap=Overlap(
                limit=CORES,
                compute_s=image_s * batch / units + processor_s,
                memory_s=np.maximum(at_ports / (units * port_rate), moved / dram_rate),
                launch_s=launch * kernels.of_leader(kernels.each(batch)) / units,
                shared_s=moved / dram_rate,
            )
            if np.all(np.greater(units, 1))
            else None,
            dram_read_bytes=read,
            dram_write_bytes=written,
            tile_count=np.where(runs, batch, 0.0),
            wave_count=np.where(runs, rounds, 0.0),
            units_used=np.where(runs, np.minimum(batch, units), 0.0),
            units_total=peak.unit_count,
            executed_macs=executed,
            on_array=on_array,
            array_cycles=array_cycles * batch,
            misc_cycles=misc_cycles * batch,
        )

    @staticmethod
    def _input_steps(kernels: KernelColumns, hardware: Hardware) -> Floats:
        """Return the clocks that one block of outputs takes, over all input channels and all taps of the window."""
        work = kernels.work
        parallelism = hardware.geometry["input_channel_parallelism"].value
        taps, channels = work.window, work.channels
        row = np.maximum(np.floor(np.sqrt(taps)), 1.0)
        plain = ceil_divide(channels, parallelism) * taps
        augmented = ceil_divide(channels * row, parallelism) * ceil_divide(taps, row)
        steps: Floats = np.where(channels < parallelism, np.minimum(plain, augmented), plain)
        return steps

    @staticmethod
    def _on_array(kernels: KernelColumns) -> Booleans:
        mask: Booleans = kernels.work.of_kind(*CONVOLUTION_KINDS) & kernels.work.has_macs
        return mask

    @staticmethod
    def _on_processor(kernels: KernelColumns) -> Booleans:
        work = kernels.work
        needs: Booleans = work.of_kind(*PROCESSOR_KINDS) | (
            work.of_kind("elementwise", "reduction") & (work.special_count > 0) & ~np.isin(work.operation, HARD)
        )
        return needs

    def _processor_operations(self, kernels: KernelColumns, hardware: Hardware) -> Floats:
        """Return the operations per operator that the Arm cores execute; 0 for operators that run elsewhere.

        An uncounted operator has one operation per output element.
        """
        work = kernels.work
        special = hardware.coefficient("special_function_operations") * work.special_count
        uncounted = np.where(work.of_kind("uncounted"), work.output_element_count, 0.0)
        operations = work.mac_count + work.elementwise_count + special + uncounted
        return np.where(self._on_processor(kernels), operations, 0.0)

    @staticmethod
    def _weight_copies(kernels: KernelColumns, hardware: Hardware) -> Floats | float:
        """Return how often a batch reads the weights: once per image, or once per wave of images that share them."""
        if SHARED not in hardware.geometry:
            return kernels.batch
        waves: Floats | float = np.ceil(kernels.batch / hardware.peaks[kernels.precision].unit_count)
        return waves

    def _dram_bytes(self, kernels: KernelColumns, hardware: Hardware, copies: Floats | float) -> tuple[Floats, Floats]:
        """Return (read, written) DRAM bytes per operator if the weights are read `copies` times.

        Activations move once, and weights once per copy. The smaller operand of an image's GEMM is cut into parts that
        fit the buffers of a core. The larger operand is read again for each further part.
        """
        batch = kernels.batch
        loaded = kernels.weight_bytes * copies
        buffer = hardware.level("buffer").capacity.value
        image = kernels.input_bytes / batch
        fits = (kernels.input_bytes + kernels.output_bytes) / batch + kernels.weight_bytes <= buffer
        inputs = np.where(fits, kernels.entering_bytes, kernels.input_bytes)
        outputs = np.where(fits, kernels.leaving_bytes, kernels.output_bytes)
        parts = ceil_divide(np.minimum(image, kernels.weight_bytes), buffer)
        repeated = np.where(image > kernels.weight_bytes, kernels.input_bytes, loaded)
        again = np.maximum(parts - 1.0, 0.0) * repeated
        read = inputs + loaded + np.where(self._on_array(kernels), again, 0.0)
        return read, outputs

    def count(self, kernels: KernelColumns, placement: DpuPlacement, hardware: Hardware) -> ActionCounts:
        """Return the count of each action per operator. `joulemap hardware show ID --energy` lists the actions."""
        work = kernels.work
        geometry = hardware.geometry
        macs_per_clock = hardware.peaks[kernels.precision].macs_per_clock
        on_array = placement.on_array
        on_processor = self._on_processor(kernels)
        macs = np.where(~on_processor, work.mac_count, 0.0)
        array_cycles = placement.array_cycles
        misc = np.where(~on_processor, work.elementwise_count, 0.0)
        crossing = placement.dram_read_bytes
        loaded = kernels.weight_bytes * self._weight_copies(kernels, hardware)
        inputs = np.maximum(crossing - loaded, 0.0)
        written = placement.dram_write_bytes
        pixels = geometry["pixel_parallelism"].value
        out_channels = geometry["output_channel_parallelism"].value
        # each clock of the array takes pp x ip activations and ip x op weights; weights stay for a row of pixels
        array_macs = macs * on_array
        window = np.maximum(array_macs / out_channels, 0.0)
        weights = np.maximum(array_macs / (pixels * hardware.coefficient("weight_reuse")), loaded)
        moved = crossing + written
        block = hardware.coefficient("dma_block")
        transfers = ceil_divide(moved, block)
        layers = kernels.start_count * kernels.batch
        cycles_per_instruction = hardware.coefficient("cycles_per_instruction")
        instructions = (array_cycles + placement.misc_cycles) / cycles_per_instruction + transfers
        # accumulators sum over the taps; a partial sum is written and read for each block of input channels
        depth = np.maximum(work.channels, 1.0)
        results = work.output_element_count * ceil_divide(depth, geometry["input_channel_parallelism"].value)
        busy = overlap_engines(kernels, array_cycles, placement.misc_cycles) * hardware.coefficient("device_time_scale")
        operations = self._processor_operations(kernels, hardware)
        return {
            ("dsp_slice", "int8_mac"): macs,
            ("dsp_slice", "idle_cycle"): np.maximum(array_cycles * macs_per_clock - array_macs, 0.0),
            ("accumulator", "access"): 2.0 * ACCUMULATOR_BYTES * results * on_array,
            ("fabric_interconnect", "route"): macs + misc,
            ("fabric_clock", "cycle"): busy,
            ("misc_engine", "elementwise"): misc,
            ("feature_buffer", "read"): np.maximum(window, kernels.input_bytes),
            ("feature_buffer", "write"): kernels.output_bytes,
            ("feature_buffer", "fill"): inputs,
            ("feature_buffer", "drain"): written,
            ("weight_buffer", "read"): weights,
            ("weight_buffer", "write"): loaded,
            ("axi_port", "transfer"): moved,
            ("dma", "descriptor"): transfers,
            ("instruction", "fetch"): instructions,
            ("instruction", "decode"): instructions,
            ("schedule", "dispatch"): layers,
            ("layer", "configure"): layers,
            ("interrupt", "handle"): kernels.host_launch_count * kernels.batch,
            ("processor", "operation"): operations,
            ("dram_controller", "read"): crossing,
            ("dram_controller", "write"): written,
            ("dram", "read"): crossing,
            ("dram", "write"): written,
            ("program", "launch"): kernels.host_launch_count,
        }


ARCHITECTURE = Dpu()
