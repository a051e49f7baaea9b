"""Kernels of an fp32 run that libraries compute in TF32: placed and counted at both precisions, and chosen by kernel.

    frameworks   convolutions in TF32, all other products in fp32     torch.backends.cudnn.allow_tf32 = True,
                                                                      torch.backends.cuda.matmul.allow_tf32 = False
    engine       all products in TF32                                 TensorRT, BuilderFlag.TF32

TF32 is stored as fp32, so that no byte differs. Source: PyTorch documentation, CUDA semantics, TensorFloat-32;
TensorRT documentation, builder flags. Both are the defaults of these libraries.
"""

from __future__ import annotations

from typing import Any, Final, TypeVar

import attrs
import numpy as np

from joulemap.domain.configuration import TF32
from joulemap.domain.hardware import Hardware
from joulemap.model.architecture.gpu.device import uses_tensor_cores
from joulemap.model.kernel import KernelColumns
from joulemap.model.ledger import ActionCounts
from joulemap.model.placement import Overlap, Placement
from joulemap.model.workload import Booleans

Placed = TypeVar("Placed", bound=Placement)

CONVOLUTIONS: Final = ("conv", "depthwise_conv", "grouped_conv")
"""Kinds of operators that cuDNN computes."""

OF_KERNELS: Final = ("launch_s", "host_call_count")
"""Columns of a placement with a value for each kernel; all other columns have one for each operator."""

OF_DEVICE: Final = ("units_total", "host_runs_ahead", "sharpness")
"""Fields of a placement that are the same at both precisions."""


def has_tf32(kernels: KernelColumns, hardware: Hardware) -> bool:
    """Return whether libraries compute some kernels of a run at fp32 in TF32 on tensor cores."""
    if kernels.weight_precision:  # kernels that widen weights are not those of cuDNN
        return False
    return bool(hardware.tf32) and uses_tensor_cores(hardware, TF32)


def in_tf32(kernels: KernelColumns) -> KernelColumns:
    """Return the same kernels at TF32, remembered with them."""
    found = kernels.memo.get((TF32,))
    if not isinstance(found, KernelColumns):
        found = kernels.memo[TF32,] = attrs.evolve(kernels, precision=TF32)
    return found


def find_fast(kernels: KernelColumns) -> Booleans:
    """Return the kernels that libraries compute in TF32, one value per kernel."""
    work = kernels.work
    if kernels.runtime == "engine":
        mask: Booleans = kernels.per_kernel(np.where(work.has_macs, 1.0, 0.0)) > 0.0
        return mask
    leads: Booleans = work.of_kind(*CONVOLUTIONS)[kernels.leader]
    return leads


def choose_placement(kernels: KernelColumns, is_fast: Booleans, fast: Placed, plain: Placed) -> Placed:
    """Return the placement with the fast one's columns for kernels that are fast."""
    fields = [one.name for one in attrs.fields(type(plain)) if one.name not in OF_DEVICE]
    return attrs.evolve(plain, **{name: _choose(kernels, is_fast, fast, plain, name) for name in fields})


def choose_counts(kernels: KernelColumns, is_fast: Booleans, fast: ActionCounts, plain: ActionCounts) -> ActionCounts:
    """Return the counts with the fast ones for operators of kernels that are fast."""
    mine = is_fast[kernels.kernel_index]
    return {key: np.where(mine, fast.get(key, 0.0), plain.get(key, 0.0)) for key in {**plain, **fast}}


def _choose(kernels: KernelColumns, is_fast: Booleans, fast: Any, plain: Any, name: str) -> Any:
    one, other = getattr(fast, name), getattr(plain, name)
    if isinstance(one, Overlap) and isinstance(other, Overlap):
        names = [field.name for field in attrs.fields(Overlap) if field.name != "limit"]
        return attrs.evolve(other, **{name: _choose(kernels, is_fast, one, other, name) for name in names})
    if one is None or other is None:
        return other
    return np.where(is_fast if name in OF_KERNELS else is_fast[kernels.kernel_index], one, other)
