"""Inputs and outputs of a model on the link to the host (USB, PCIe), as lines of their own.

    chip without memory of its own      they are part of the bytes off chip, which cross the link anyway
    chip with memory                    transfer = (input bytes + output bytes) x host_transfer, before and after a run
    device only                         they are left out, as if they were in the chip's memory

`host_transfer` is 0 for hardware whose published rates exclude transfers; a counted host sets it from the link. A
request waits for its transfers; other streams compute meanwhile, and share the link.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import numpy as np

from joulemap.domain.configuration import HOST_TRANSFER, LINK_LANES, NO_HOST

if TYPE_CHECKING:
    from joulemap.domain.hardware import Hardware
    from joulemap.model.kernel import KernelColumns
    from joulemap.model.placement import Placed
    from joulemap.model.workload import Floats


def leave_out_transfers(kernels: KernelColumns, hardware: Hardware) -> KernelColumns:
    """Return the kernels of a device alone: without the inputs and outputs that cross the link of a chip without
    memory.
    """
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
    """Return hardware whose own memory holds inputs and outputs, for probes of its power."""
    own = hardware.coefficients.get(HOST_TRANSFER)
    if own is None or own.value == 0.0:
        return hardware
    return attrs.evolve(hardware, coefficients={**hardware.coefficients, HOST_TRANSFER: attrs.evolve(own, value=0.0)})


def time_transfers(kernels: KernelColumns, hardware: Hardware) -> Floats | float:
    """Return the seconds of each operator's inputs and outputs on the host link of a chip with memory of its own."""
    if HOST_TRANSFER not in hardware.coefficients:
        return 0.0
    return (kernels.entering_bytes + kernels.leaving_bytes) * hardware.coefficient(HOST_TRANSFER)


def add_transfers(placement: Placed, kernels: KernelColumns, hardware: Hardware) -> Placed:
    """Return the placement with the time of transfers to and from a chip that has memory of its own."""
    if HOST_TRANSFER not in hardware.coefficients:
        return placement
    seconds = kernels.per_kernel(kernels.each(time_transfers(kernels, hardware)))
    return attrs.evolve(placement, launch_s=placement.launch_s + seconds)


def find_shares(hardware: Hardware) -> tuple[float, Floats | float]:
    """Return the shares of a model's inputs and outputs that (off-chip bytes include, cross the host link): 0 or 1."""
    if LINK_LANES in hardware.geometry:
        return 1.0, 1.0
    return 0.0, np.where(np.greater(hardware.coefficient(HOST_TRANSFER), 0.0), 1.0, 0.0)
