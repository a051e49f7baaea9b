"""Copies of a model on the units of a chip, with a batch divided among them.

Source: AWS Neuron documentation, Data Parallel Inference on torch_neuronx.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from joulemap.domain.hardware import Hardware
from joulemap.model.kernel import KernelColumns
from joulemap.model.stream import DIVIDED, STREAM_UNITS
from joulemap.model.workload import Floats
from joulemap.system.record import vary

START: Final = "program_start"
WHOLE: Final = "whole_batches"
"""Geometry constant of hardware whose programs are compiled for one stream: a batch stays there, as one request."""


def take_fullest(kernels: KernelColumns, hardware: Hardware) -> tuple[KernelColumns, Floats | float]:
    """Return the kernels of the copy with the most samples of a batch, and the number of its units."""
    count: Floats | float = hardware.peaks[kernels.precision].unit_count
    if DIVIDED not in hardware.geometry:
        return kernels, count
    of_stream = hardware.geometry[STREAM_UNITS].value
    if WHOLE in hardware.geometry:
        return kernels, of_stream
    streams = np.maximum(1.0, np.floor(count / of_stream))
    return kernels.part(kernels.batch / np.ceil(kernels.batch / streams)), of_stream


def count_copies(kernels: KernelColumns, hardware: Hardware) -> Floats | float:
    """Return the number of model copies that share a batch; each copy reads its own weights."""
    if DIVIDED not in hardware.geometry or WHOLE in hardware.geometry:
        return 1.0
    streams = hardware.peaks[kernels.precision].unit_count / hardware.geometry[STREAM_UNITS].value
    copies: Floats | float = np.minimum(np.maximum(1.0, np.floor(streams)), kernels.batch)
    return copies


def join_units(hardware: Hardware) -> Hardware:
    """Return the hardware with one model over all units, and without the program start, which is charged to the
    host.
    """
    if DIVIDED not in hardware.geometry:
        return hardware
    return vary(
        hardware,
        geometry={name: one for name, one in hardware.geometry.items() if name != DIVIDED},
        coefficients={**hardware.coefficients, START: vary(hardware.coefficients[START], value=0.0)},
    )
