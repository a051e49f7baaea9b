"""Labels of the closed sets of `physics`, and other texts for people about its numbers.

They stand outside that folder, because no result depends on them: an edit here outdates no stored run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from joulemap.physics.record.runtime import RUNTIME_NAMES

if TYPE_CHECKING:
    from joulemap.physics.record.configuration import BoundaryName

RUNTIME_SOFTWARE: Final[Mapping[str, str]] = {"fused": "torch.compile", "engine": "TensorRT"}
"""Runtime -> software that it usually means, of runtimes with one."""

RUNTIME_LABEL: Final[Mapping[str, str]] = {
    name: f"{name} ({RUNTIME_SOFTWARE[name]})" if name in RUNTIME_SOFTWARE else name for name in RUNTIME_NAMES
}
"""Runtime -> name in lists of choices, with the software that it usually means."""

BOUNDARY_LABEL: Final[Mapping[BoundaryName, str]] = {
    "chip": "chip (with memory)",
    "board": "board (adds regulators)",
    "system": "system (wall: adds host, fans and supply)",
}
"""Energy boundary -> name in lists of choices, with what it contains."""

PACE_MEANING: Final = "factor on the device time of an engine's passes of language models"
"""Meaning of a coefficient whose name begins with `served_time`."""

MEASURED_HOST: Final = "a virtual 5th-generation Xeon"
"""Host on which the default of the coefficient `host_launch` was measured."""
