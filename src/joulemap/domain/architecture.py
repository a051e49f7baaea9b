"""Architecture classes and the default hardware of each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from joulemap.system.name import fold_name, unmark
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.physics.record.configuration import Precision


@frozen(kw_only=True)
class HardwareClass:
    """Architecture class of hardware."""

    name: str
    chip: str
    """Default chip, a common one that represents the class.

    It runs int8; it also runs fp32 if any chip of its class does. Its key numbers are published, unless no chip of its
    class has published ones.
    """
    is_design: bool
    """True if its chips are designs, described without a host and its system."""
    is_embedded: bool
    """True if its chips are on development boards, never in PCs."""


CLASSES: Final = (
    HardwareClass(name="cpu", chip="xeon_8490h", is_design=False, is_embedded=False),
    HardwareClass(name="gpu", chip="h100_sxm5", is_design=False, is_embedded=False),
    HardwareClass(name="tpu", chip="tpu_v4", is_design=False, is_embedded=False),
    HardwareClass(name="kpu", chip="kpu_t256", is_design=True, is_embedded=False),
    HardwareClass(name="dsp", chip="tda4vm_c7x_mma", is_design=False, is_embedded=True),
    HardwareClass(name="npu", chip="cloud_ai_100_pro", is_design=False, is_embedded=False),
    HardwareClass(name="dpu", chip="dpu_b4096_kv260", is_design=False, is_embedded=True),
    HardwareClass(name="cgra", chip="plasticine", is_design=True, is_embedded=False),
)
"""Architecture classes."""

CLASS_HARDWARE: Final[Mapping[str, str]] = {one.name: one.chip for one in CLASSES}
"""Architecture class -> its default chip."""

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
