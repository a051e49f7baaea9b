"""Name that WebGL reports for a GPU -> chips of the catalogue.

ANGLE (NVIDIA, NVIDIA GeForce RTX 4090 (0x00002684) Direct3D11 vs_5_0 ps_5_0, D3D11)
ANGLE (Apple, ANGLE Metal Renderer: Apple M1 Pro, Unspecified Version)
AMD Radeon RX 6800 XT (navi21, LLVM 15.0.7, DRM 3.49, 6.1.0)
NVIDIA GeForce RTX 3060/PCIe/SSE2
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from joulemap.bundle import load_chips
from joulemap.domain import HardwareEntry, find_alike

LONGEST: Final = 200
"""Characters of a reported name that are read."""

_ANGLE: Final = re.compile(r"ANGLE \([^,]*, (?:ANGLE Metal Renderer: )?(?P<name>[^,]*?)(?:, .*)?\)")
_TAIL: Final = re.compile(
    r"\s*(?:/PCIe.*|\(0x.*|\((?:\w+, )?(?:LLVM|DRM|ACO).*|Direct3D.*|OpenGL.*|Vulkan.*)$", re.IGNORECASE
)
_BEFORE: Final = re.compile(r"^(?:Mesa |Vulkan [\d.]+ \(|AMD RADV |llvmpipe )", re.IGNORECASE)
_CODE: Final = re.compile(r"\s*\([^)]*\)$")
_MARKS: Final = re.compile(r"\((?:R|TM)\)", re.IGNORECASE)


def find_chips(renderer: str) -> list[str]:
    """Return the ids of the chips that a reported name may mean; empty if none has this name."""
    chips = load_chips()
    entries = {name: HardwareEntry.of(chips.find(name)) for name in sorted(chips.ids)}
    graphics = {name: one for name, one in entries.items() if one.architecture == "gpu"}
    for name in spell_names(renderer):
        if alike := find_alike(graphics, name):
            return [one.id for one in alike]
    return []


def spell_names(renderer: str) -> Iterator[str]:
    """Yield the names that a GPU may have in the catalogue, the whole name first."""
    name = renderer[:LONGEST].strip()
    if match := _ANGLE.fullmatch(name):
        name = match["name"]
    name = _MARKS.sub("", _TAIL.sub("", _BEFORE.sub("", name))).strip()
    yield name
    if (plain := _CODE.sub("", name)) != name:
        yield plain
