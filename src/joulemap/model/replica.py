"""Copies of a model on the units of a chip, among which a batch is divided.

Source: AWS Neuron documentation, Data Parallel Inference on torch_neuronx.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from joulemap.domain.hardware import Hardware
from joulemap.model.kernel import KernelColumns
from joulemap.model.stream import STREAM_UNITS
from joulemap.model.workload import Floats
from joulemap.system.record import vary

DIVIDED: Final = "divided_batches"
"""Geometry of hardware on which each stream has a copy of the model, and a batch is divided among them."""
START: Final = "program_start"


def count_units(kernels: KernelColumns, hardware: Hardware) -> Floats | float:
    """Return the units that a batch has: all, or those of the copies among which it is divided, on average."""
    count: Floats | float = hardware.peaks[kernels.precision].unit_count
    if DIVIDED not in hardware.geometry:
        return count
    of_stream = hardware.geometry[STREAM_UNITS].value
    streams = np.maximum(1.0, np.floor(count / of_stream))
    units: Floats | float = of_stream * kernels.batch / np.ceil(kernels.batch / streams)
    return units


def count_copies(kernels: KernelColumns, hardware: Hardware) -> Floats | float:
    """Return the copies of the model that a batch is divided among, each of which reads weights of its own."""
    if DIVIDED not in hardware.geometry:
        return 1.0
    streams = hardware.peaks[kernels.precision].unit_count / hardware.geometry[STREAM_UNITS].value
    copies: Floats | float = np.minimum(np.maximum(1.0, np.floor(streams)), kernels.batch)
    return copies


def join_units(hardware: Hardware) -> Hardware:
    """Return it where one model is divided over all units, and the host's part is not the hardware's."""
    if DIVIDED not in hardware.geometry:
        return hardware
    return vary(
        hardware,
        geometry={name: one for name, one in hardware.geometry.items() if name != DIVIDED},
        coefficients={**hardware.coefficients, START: vary(hardware.coefficients[START], value=0.0)},
    )
