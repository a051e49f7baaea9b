"""Architecture classes and the default hardware of each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from joulemap.system.name import fold_name, unmark

if TYPE_CHECKING:
    from joulemap.physics.record.configuration import Precision

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
"""Architecture class -> its default chip, a common one that represents the class.

Each chip runs int8; it also runs fp32 if any chip of its class does. Its key numbers are published, unless no chip of
its class has published ones.
"""

COMMON_PRECISION: Final[Precision] = "int8"
"""Precision that all hardware in `CLASS_HARDWARE` supports."""


def find_whole_class(name: str) -> str:
    """Return the architecture class for its plural, such as `gpu` for `gpus` (all GPUs); empty for any other name."""
    folded = fold_name(unmark(name))
    return find_class(folded.removesuffix("s")) if folded.endswith("s") else ""


def find_class(name: str) -> str:
    """Return the architecture class of this name; empty if there is none."""
    folded = fold_name(unmark(name))
    return folded if folded in CLASS_HARDWARE else ""
