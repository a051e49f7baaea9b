"""Kernels of an fp32 run that libraries compute in TF32. They get the numbers of TF32, all other kernels those of fp32.

`physics/record/product.py` says which products these are. TF32 is stored as fp32, so that no byte differs.
"""

from __future__ import annotations

from typing import Final

from joulemap.physics.architecture.gpu.device import Engine, uses_tensor_cores
from joulemap.physics.kernel import KernelColumns
from joulemap.physics.record.hardware import Hardware
from joulemap.physics.workload import Booleans

CONVOLUTIONS: Final = ("conv", "depthwise_conv", "grouped_conv")
"""Kinds of operators that cuDNN computes."""


def find_engine(kernels: KernelColumns, device: Hardware) -> Engine:
    """Return the engine of kernels on a device.

    In an fp32 run, kernels that libraries compute in TF32 get the numbers of the TF32 engine.
    """
    plain = Engine.of(device, kernels.precision)
    if kernels.precision != "fp32" or kernels.weight_precision:  # kernels that widen weights are not those of cuDNN
        return plain
    products = device.find_products(is_engine=kernels.runtime.is_built)
    if products.convolution == kernels.precision or not uses_tensor_cores(device, products.convolution):
        return plain
    narrow = Engine.of(device, products.convolution)
    if products.gemm == products.convolution:
        return narrow
    led = kernels.leader[kernels.kernel_index]
    convolves: Booleans = kernels.work.of_kind(*CONVOLUTIONS)[led]
    return plain.mixed_with(narrow, convolves) if convolves.any() else plain
