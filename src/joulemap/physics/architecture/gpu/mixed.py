"""Kernels that multiply with other numbers than the rest of their run.

In an fp32 run, libraries compute some kernels in TF32: `physics/record/product.py` says which. TF32 is stored as fp32,
so that no byte differs. In an fp16 run, an inference engine's convolutions add in fp16, which GeForce does at twice the
rate of its peak.
"""

from __future__ import annotations

from typing import Final

import attrs
import numpy as np

from joulemap.physics.architecture.gpu.device import Engine, uses_tensor_cores
from joulemap.physics.kernel import KernelColumns
from joulemap.physics.record.hardware import Hardware
from joulemap.physics.workload import Booleans

CONVOLUTIONS: Final = ("conv", "depthwise_conv", "grouped_conv")
"""Kinds of operators that cuDNN computes."""


def find_engine(kernels: KernelColumns, device: Hardware) -> Engine:
    """Return the engine of kernels on a device.

    In an fp32 run, kernels that libraries compute in TF32 get the numbers of the TF32 engine; in an fp16 run,
    convolutions get the rate of fp16 sums.

    Source: NVIDIA Ampere GA102 whitepaper, table of peak rates (recalled). An RTX 3060, whose peak is 25.5 TFLOPS with
    fp32 sums, runs ResNet-34 at 39 and ResNet-152 at 36 TFLOPS under TensorRT (Juanx65/ArtTRT, commit 2e674a8). GEMMs
    of transformers keep fp32 sums: none was measured.
    """
    plain = Engine.of(device, kernels.precision)
    if kernels.precision == "fp16" and kernels.runtime.is_built:
        gain = device.find_sum_gain(kernels.weight_precision)
        if isinstance(gain, float) and gain == 1.0:  # chips that are evaluated together have an array
            return plain
        rate = plain.macs_per_clock * gain
        narrow = attrs.evolve(plain, macs_per_clock=rate, slots_per_clock=np.maximum(plain.slots_per_clock, rate))
        return _mix_convolutions(plain, narrow, kernels)
    if kernels.precision != "fp32" or kernels.weight_precision:  # kernels that widen weights are not those of cuDNN
        return plain
    products = device.find_products(is_engine=kernels.runtime.is_built)
    if products.convolution == kernels.precision or not uses_tensor_cores(device, products.convolution):
        return plain
    narrow = Engine.of(device, products.convolution)
    if products.gemm == products.convolution:
        return narrow
    return _mix_convolutions(plain, narrow, kernels)


def _mix_convolutions(plain: Engine, narrow: Engine, kernels: KernelColumns) -> Engine:
    """Return the engine `plain` with the numbers of `narrow` for kernels that a convolution leads."""
    led = kernels.leader[kernels.kernel_index]
    convolves: Booleans = kernels.work.of_kind(*CONVOLUTIONS)[led]
    return plain.mixed_with(narrow, convolves) if convolves.any() else plain
