"""Streams: an engine that serves many batches at once, each on some of the units.

    streams  = floor(U / stream_units)
    interval = time of a batch on stream_units units / streams, and no less than its bytes off chip take of the memory,
               or its inputs and outputs of the host link

A stream has its share of the chip-wide caches and scratchpads, and of the bandwidth of all levels; with
`shared_weights` it sees their whole capacity. It does not wait for other streams, and has the whole memory bandwidth
while others compute. The latency of a run is the latency of a batch that has all units to itself.

Source: OpenVINO, `IStreamsExecutor::Config::get_default_num_streams` (a stream for four cores); Qualcomm Cloud AI
documentation, Tune performance (instances); AWS Neuron documentation, torch_neuronx.DataParallel.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from joulemap.domain.hardware import ALL_UNITS, VECTOR_UNITS, Hardware
from joulemap.domain.quantity import Quantity
from joulemap.model.kernel import KernelColumns
from joulemap.model.placement import Overlap, Placement
from joulemap.model.run import CORES
from joulemap.model.transfer import time_transfers
from joulemap.model.workload import Floats
from joulemap.system.record import vary

STREAM_UNITS: Final = "stream_units"
"""Geometry constant: units per stream, for hardware whose engine runs several streams."""
DIVIDED: Final = "divided_batches"
"""Geometry constant of hardware on which each stream has a copy of the model and a batch is divided among the copies.
"""
SHARED: Final = "shared_weights"
"""Geometry constant of chips whose streams read one copy of the weights from a memory that all of them share."""


def count_streams(hardware: Hardware, runtime: str) -> Floats | float:
    """Return the number of batches that are served at once.

    Only an engine serves several, unless the units of a chip take requests of their own (`DIVIDED`); a framework that
    launches every kernel serves one.
    """
    units = hardware.geometry.get(STREAM_UNITS)
    if units is None or (runtime != "engine" and (DIVIDED not in hardware.geometry or runtime == "eager")):
        return 1.0
    streams: Floats | float = np.maximum(1.0, np.floor(np.rint(hardware.unit_count.value) / units.value))
    return streams


def find_share(hardware: Hardware) -> Hardware:
    """Return the fraction of a chip that one stream uses."""
    part = hardware.geometry[STREAM_UNITS].value / np.rint(hardware.unit_count.value)
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
