"""Architecture classes, and the hardware that each means by itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from joulemap.domain.name import fold_name, unmark

if TYPE_CHECKING:
    from joulemap.domain.configuration import Precision

CLASS_HARDWARE: Final[Mapping[str, str]] = {
    "cpu": "xeon_8490h",
    "gpu": "h100_sxm5",
    "tpu": "tpu_v4",
    "kpu": "kpu_t256",
    "dsp": "tda4vm_c7x_mma",
    "npu": "cloud_ai_100_pro",
    "dpu": "dpu_b4096_kv260",
    "cgra": "plasticine",
}
"""Architecture class -> the hardware that it means where hardware is asked for, and that stands for it: a common one
that runs int8, and fp32 where any does, with published key numbers where the class has such."""

COMMON_PRECISION: Final[Precision] = "int8"
"""The one precision that all of those have."""


def find_whole_class(name: str) -> str:
    """Return the architecture class whose plural a name is, as `gpus`, which means all hardware of it; else empty."""
    folded = fold_name(unmark(name))
    return find_class(folded.removesuffix("s")) if folded.endswith("s") else ""


def find_class(name: str) -> str:
    """Return the architecture class that a name is; empty for none."""
    folded = fold_name(unmark(name))
    return folded if folded in CLASS_HARDWARE else ""
