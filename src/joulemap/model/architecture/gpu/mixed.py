"""Kernels of an fp32 run that libraries compute in TF32. They get the numbers of TF32, all other kernels those of fp32.

    frameworks   convolutions in TF32, all other GEMMs in fp32     torch.backends.cudnn.allow_tf32 = True,
                                                                      torch.backends.cuda.matmul.allow_tf32 = False
    engine       all GEMMs in TF32                                 TensorRT, BuilderFlag.TF32

TF32 is stored as fp32, so that no byte differs. Source: PyTorch documentation, CUDA semantics, TensorFloat-32; TensorRT
documentation, builder flags. Both are the defaults of these libraries.
"""

from __future__ import annotations

from typing import Final

from joulemap.domain.configuration import TF32
from joulemap.domain.hardware import Hardware
from joulemap.model.architecture.gpu.device import Engine, uses_tensor_cores
from joulemap.model.kernel import KernelColumns
from joulemap.model.workload import Booleans

CONVOLUTIONS: Final = ("conv", "depthwise_conv", "grouped_conv")
"""Kinds of operators that cuDNN computes."""


def find_engine(kernels: KernelColumns, device: Hardware) -> Engine:
    """Return the engine of kernels on a device.

    In an fp32 run, kernels that libraries compute in TF32 get the numbers of the TF32 engine.
    """
    plain = Engine.of(device, kernels.precision)
    if kernels.precision != "fp32" or kernels.weight_precision:  # kernels that widen weights are not those of cuDNN
        return plain
    if not (device.tf32 and uses_tensor_cores(device, TF32)):
        return plain
    if kernels.runtime == "engine":
        return Engine.of(device, TF32)
    led = kernels.leader[kernels.kernel_index]
    convolves: Booleans = kernels.work.of_kind(*CONVOLUTIONS)[led]
    return plain.mixed_with(Engine.of(device, TF32), convolves) if convolves.any() else plain
