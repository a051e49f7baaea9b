"""Streams, in which an engine processes many batches at once, each on some of the units; and transfers to the host.

    streams  = floor(U / stream_units)
    interval = time of a batch on stream_units units / streams, at least the memory time of its bytes off chip and the
               link time of its inputs and outputs; copies of a model stream parts of a batch if that is faster

A stream has its share of the chip-wide caches and scratchpads, and of the bandwidth of all levels; with
`shared_weights` it sees their whole capacity. It does not wait for other streams, and has the whole memory bandwidth
while others compute. Threads of a CPU fork and join in a tree, which is lower in a stream. The latency of a run is that
of a batch on all units.

Transfers of a model's inputs and outputs over the link to the host (USB, PCIe) depend on the chip:

    chip without its own memory      they are part of the bytes off chip, which cross the link anyway
    chip with memory                    transfer = (input bytes + output bytes) x host_transfer, before and after a run
    device only                         they are left out, as if they were in the chip's memory

`host_transfer` is 0 for hardware whose published rates exclude transfers; a counted host sets it from the link. A
request waits for its transfers; other streams compute meanwhile, and share the link.

Source: OpenVINO, `IStreamsExecutor::Config::get_default_num_streams` (a stream for four cores); Qualcomm Cloud AI
documentation, Tune performance (instances); AWS Neuron documentation, Data Parallel Inference on torch_neuronx.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs
import numpy as np

from joulemap.physics.kernel import KernelColumns
from joulemap.physics.placement import Overlap, Placement, balance, unbalance
from joulemap.physics.record.configuration import HOST_TRANSFER, LINK_LANES, NO_HOST
from joulemap.physics.record.hardware import ALL_UNITS, VECTOR_UNITS, Hardware
from joulemap.physics.record.quantity import Quantity
from joulemap.physics.record.runtime import Runtime
from joulemap.physics.run import CORES
from joulemap.physics.workload import Floats
from joulemap.system.record import vary

if TYPE_CHECKING:
    from joulemap.physics.placement import Placed

UNIT_STREAM: Final = "unit_stream"
"""Coefficient of a chip under an engine: bytes that a unit streams from memory per clock."""

STREAM_NORM: Final = 4.0
"""Exponent of the norm that combines the rates of memory and of the units that stream from it.

Source: llama.cpp on NVIDIA boards, as the coefficient `unit_stream` (wing/decoder/engine/data/stack/llamacpp.toml).
"""


def leave_out_transfers(kernels: KernelColumns, hardware: Hardware) -> KernelColumns:
    """Return the kernels without transfers over the host link, if the device is evaluated alone and has no memory."""
    if hardware.host != NO_HOST or LINK_LANES not in hardware.geometry:
        return kernels
    nothing = np.zeros_like(kernels.entering_bytes)
    return attrs.evolve(
        kernels,
        input_bytes=kernels.input_bytes - kernels.entering_bytes,
        output_bytes=kernels.output_bytes - kernels.leaving_bytes,
        entering_bytes=nothing,
        leaving_bytes=nothing,
    )


def stay_on_device(hardware: Hardware) -> Hardware:
    """Return the hardware with inputs and outputs in its own memory, so that power probes include no transfers."""
    own = hardware.coefficients.get(HOST_TRANSFER)
    if own is None or own.value == 0.0:
        return hardware
    return attrs.evolve(hardware, coefficients={**hardware.coefficients, HOST_TRANSFER: attrs.evolve(own, value=0.0)})


def time_transfers(kernels: KernelColumns, hardware: Hardware) -> Floats | float:
    """Return the seconds per operator that a model's inputs and outputs take on the host link of a chip with memory."""
    if HOST_TRANSFER not in hardware.coefficients:
        return 0.0
    return (kernels.entering_bytes + kernels.leaving_bytes) * hardware.coefficient(HOST_TRANSFER)


def add_transfers(placement: Placed, kernels: KernelColumns, hardware: Hardware) -> Placed:
    """Return the placement with the time of transfers to and from a chip that has its own memory."""
    if HOST_TRANSFER not in hardware.coefficients:
        return placement
    seconds = kernels.per_kernel(kernels.each(time_transfers(kernels, hardware)))
    return attrs.evolve(placement, launch_s=placement.launch_s + seconds)


def find_shares(hardware: Hardware) -> tuple[float, Floats | float]:
    """Return (share in off-chip bytes, share over the host link) of a model's inputs and outputs; each is 0 or 1."""
    if LINK_LANES in hardware.geometry:
        return 1.0, 1.0
    return 0.0, np.where(np.greater(hardware.coefficient(HOST_TRANSFER), 0.0), 1.0, 0.0)


STREAM_UNITS: Final = "stream_units"
"""Name of a geometry constant: units per stream, for hardware whose engine runs several streams."""
DIVIDED: Final = "divided_batches"
"""Name of a geometry constant: each stream has a copy of the model, and a batch is divided among the copies."""
SHARED: Final = "shared_weights"
"""Name of a geometry constant: all streams read one copy of the weights from a memory that they share."""


def count_streams(hardware: Hardware, runtime: Runtime) -> Floats | float:
    """Return the number of batches that the hardware processes at once.

    An engine may process several. Other runtimes process one, unless the units of a chip take their own requests
    (`DIVIDED`) and the host does not launch every kernel.
    """
    units = hardware.geometry.get(STREAM_UNITS)
    if units is None or (not runtime.is_built and (DIVIDED not in hardware.geometry or runtime.launches_each)):
        return 1.0
    streams: Floats | float = np.maximum(1.0, np.floor(np.rint(hardware.unit_count.value) / units.value))
    return streams


def find_share(hardware: Hardware) -> Hardware:
    """Return the hardware that one stream sees: its part of the chip."""
    units, whole = hardware.geometry[STREAM_UNITS].value, np.rint(hardware.unit_count.value)
    part = units / whole
    is_shared = SHARED in hardware.geometry

    def cut(quantity: Quantity) -> Quantity:
        return vary(quantity, value=quantity.value * part)

    return vary(
        hardware,
        unit_count=cut(hardware.unit_count),
        memory_levels=tuple(
            vary(
                level,
                capacity=cut(level.capacity) if level.per == "chip" and not is_shared else level.capacity,
                bandwidth=cut(level.bandwidth) if level.bandwidth else None,
            )
            for level in hardware.memory_levels
        ),
        peaks={
            precision: vary(peak, rate=cut(peak.rate), unit_count=np.maximum(1.0, np.rint(peak.unit_count * part)))
            for precision, peak in hardware.peaks.items()
        },
        geometry={
            name: cut(one) if name in {VECTOR_UNITS, ALL_UNITS} else one for name, one in hardware.geometry.items()
        },
    )


def choose_shorter(one: Overlap, other: Overlap, kernels: KernelColumns) -> Overlap:
    """Return for each workload the overlap whose units and shared memory take less time."""

    def total_s(overlap: Overlap) -> Floats:
        busy = np.maximum(kernels.per_kernel(overlap.compute_s), kernels.per_kernel(overlap.memory_s))
        return np.maximum(
            kernels.sum_kernels(overlap.launch_s + busy), kernels.sum_workload(np.asarray(overlap.shared_s))
        )

    is_shorter = total_s(other) < total_s(one)
    if not is_shorter.any():
        return one
    each, of_kernel = kernels.of_workload(is_shorter), kernels.kernel_workload(is_shorter.astype(float)) > 0.0
    return Overlap(
        limit=one.limit,
        compute_s=np.where(each, other.compute_s, one.compute_s),
        memory_s=np.where(each, other.memory_s, one.memory_s),
        launch_s=np.where(of_kernel, other.launch_s, one.launch_s),
        shared_s=np.where(each, other.shared_s, one.shared_s),
    )


def overlap_streams(one: Placement, kernels: KernelColumns, hardware: Hardware) -> Overlap:
    """Return a batch's times on units and memory of the whole hardware, given its placement on one stream's share."""
    streams = count_streams(hardware, kernels.runtime)
    rate = hardware.memory_bandwidth.value * hardware.coefficient("dram_efficiency")
    return Overlap(
        limit=CORES,
        compute_s=one.compute_s / streams,
        memory_s=one.memory_s / streams,
        launch_s=one.launch_s / streams,
        shared_s=np.maximum(one.dram_bytes / rate, time_transfers(kernels, hardware)),
    )


START: Final = "program_start"
WHOLE: Final = "whole_batches"
"""Name of a geometry constant: programs are compiled for one stream, so a batch stays there as one request."""


def take_fullest(
    kernels: KernelColumns, hardware: Hardware, divisor: float = 1.0
) -> tuple[KernelColumns, Floats | float]:
    """Return (kernels, units) of the copy of the model that gets the most samples of a batch.

    Of n streams, a batch uses n / `divisor`, rounded up.
    """
    count: Floats | float = hardware.peaks[kernels.precision].unit_count
    if DIVIDED not in hardware.geometry:
        return kernels, count
    of_stream = hardware.geometry[STREAM_UNITS].value
    if WHOLE in hardware.geometry:
        return kernels, of_stream
    streams = np.ceil(np.maximum(1.0, np.floor(count / of_stream)) / divisor)
    return kernels.part(kernels.batch / np.ceil(kernels.batch / streams)), of_stream


def count_copies(kernels: KernelColumns, hardware: Hardware, divisor: float = 1.0) -> Floats | float:
    """Return the number of model copies that share a batch; each copy reads its own weights."""
    if DIVIDED not in hardware.geometry or WHOLE in hardware.geometry:
        return 1.0
    streams = hardware.peaks[kernels.precision].unit_count / hardware.geometry[STREAM_UNITS].value
    copies: Floats | float = np.minimum(np.ceil(np.maximum(1.0, np.floor(streams)) / divisor), kernels.batch)
    return copies


def find_stream_ratio(hardware: Hardware) -> Floats | float:
    """Return the bandwidth of memory relative to the rate at which units stream from it; 0 without a limit of units."""
    own = hardware.coefficients.get(UNIT_STREAM)
    if own is None:
        return 0.0
    return hardware.memory_bandwidth.value / (own.value * hardware.unit_count.value * hardware.clock.value)


def slow_stream(ratio: Floats | float, clock: Floats | float = 1.0) -> Floats | float:
    """Return the factor on memory times where units stream from memory at a rate that follows their clock.

    The rates of memory and of units combine by the norm of `STREAM_NORM`. `ratio` is as in `find_stream_ratio`, `clock`
    a share of the full clock.
    """
    slower: Floats | float = (1.0 + (ratio / clock) ** STREAM_NORM) ** (1.0 / STREAM_NORM)
    return slower


def add_stream(placement: Placed, kernels: KernelColumns, hardware: Hardware) -> Placed:
    """Return the placement with the memory times that units reach at the full clock."""
    if UNIT_STREAM not in hardware.coefficients:
        return placement
    before = kernels.per_kernel(placement.compute_s), kernels.per_kernel(placement.memory_s)
    compute, memory = unbalance(*before, placement.sharpness)
    after = balance(compute, memory * slow_stream(find_stream_ratio(hardware)), placement.sharpness)
    return attrs.evolve(
        placement,
        compute_s=placement.compute_s * kernels.growth(before[0], after[0]),
        memory_s=placement.memory_s * kernels.growth(before[1], after[1]),
    )


def join_units(hardware: Hardware) -> Hardware:
    """Return the hardware with one copy of the model on all units, without streams and without the program start.

    The host is charged for the program start instead.
    """
    start = {START: vary(hardware.coefficients[START], value=0.0)} if DIVIDED in hardware.geometry else {}
    return vary(
        hardware,
        geometry={name: one for name, one in hardware.geometry.items() if name not in (DIVIDED, STREAM_UNITS)},
        coefficients={**hardware.coefficients, **start},
    )
