"""Microcontrollers: a core without caches, whose weights stay in flash and whose activations stay in SRAM.

Time. Each kind of kernel takes a number of clocks per MAC, which depends on the library:

    clocks  = core_ratio x conv_clocks x ratio x MACs          ratio: 1 for convolutions, `depthwise_ratio` or
                                                               `linear_ratio` for depthwise ones and other GEMMs
            = core_ratio x (element_clocks (EW + copied) + special_clocks SF)          of kernels without MACs
    compute = clocks / f

`conv_clocks`, `depthwise_ratio` and `linear_ratio` depend on the precision and the library. The library is `engine` for
a vendor's code generator, and `library` (runtime `fused`) for an interpreter with tuned kernels. It is `reference`
(runtimes `eager` and `graph`) for plain C kernels. Activations and quantization after a GEMM are part of its clocks.
A copied element takes as long as an elementwise operation, since both load and store it (assumed). `core_ratio`
compares a core with a Cortex-M33. Waits for flash are part of the clocks too, so memory time seldom bounds a kernel.

Energy. Power hardly depends on the network: on a core it varies by 1 to 5 % between networks. No measurement splits it
into fetches, registers, arithmetic and memories, so all of it is one line, the energy per clock of an active core:

    active clocks = compute f              the price in pJ is the active power in uW/MHz

Source: MLPerf Tiny v0.5, v0.7 and v1.2, closed division: 32 measured networks on five cores, with energy and clock.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from joulemap.physics.kernel import KernelColumns
from joulemap.physics.record.hardware import Hardware
from joulemap.physics.record.runtime import Runtime
from joulemap.physics.workload import Floats
from joulemap.system.errors import UnsupportedError

SRAM: Final = "sram"
"""Name of the memory level that holds activations; a CPU with this level is a microcontroller."""

FLASH: Final = "flash"
"""Name of the memory level that holds weights."""


def is_microcontroller(hardware: Hardware) -> bool:
    """Return whether a CPU is a microcontroller, that is, has a memory level `SRAM`."""
    return any(level.name == SRAM for level in hardware.memory_levels)


def name_library(runtime: Runtime) -> str:
    """Return the kind of library whose clocks per MAC apply: `engine`, `library` or `reference`."""
    if runtime.is_built and not runtime.of_class:  # TensorFlow Lite Micro calls the library
        return "engine"
    return "library" if runtime.merges else "reference"


def check_memory(kernels: KernelColumns, hardware: Hardware) -> None:
    """Raise UnsupportedError for weights that exceed the flash, or activations that exceed the SRAM."""
    for level, noun, required in (
        (FLASH, "weights", kernels.total_weight_bytes),
        (SRAM, "activations", kernels.peak_activation_bytes),
    ):
        capacity, needed = np.min(hardware.level(level).capacity.value), np.max(required)
        if needed > capacity:
            raise UnsupportedError(
                f"{hardware.id} has {capacity / 1e3:,.0f} kB of {level}; the {noun} need {needed / 1e3:,.0f} kB",
                code="memory",
                hardware=hardware.id,
                level=level,
                required_bytes=float(needed),
                capacity_bytes=float(capacity),
            )


def count_clocks(kernels: KernelColumns, hardware: Hardware) -> Floats:
    """Return the clock cycles that each operator takes. The module docstring has the formulas."""
    work = kernels.work
    names = f"{kernels.precision}_{name_library(kernels.runtime)}", kernels.precision
    core = hardware.coefficient("core_ratio")
    ratio = np.where(
        work.of_kind("depthwise_conv"),
        hardware.coefficient("depthwise_ratio", *names),
        np.where(work.of_kind("conv", "grouped_conv"), 1.0, hardware.coefficient("linear_ratio", *names)),
    )
    products = work.mac_count * ratio * (core * hardware.coefficient("conv_clocks", *names))
    moved = np.where(work.of_kind("data_movement"), kernels.output_bytes / kernels.item_bytes, 0.0)
    elements = (work.elementwise_count + moved) * (core * hardware.coefficient("element_clocks"))
    functions = work.special_count * (core * hardware.coefficient("special_clocks"))
    clocks: Floats = np.where(kernels.has_product, products, elements + functions)
    return clocks
