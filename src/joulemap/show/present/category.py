"""Names of the energy categories: the only table of them, which every screen, figure, page and report reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

CATEGORY: Final[Mapping[str, str]] = {
    "compute": "computing",
    "register": "registers",
    "unit_memory": "unit memory",
    "chip_memory": "chip memory",
    "on_chip_memory": "on-chip memory",
    "interconnect": "network",
    "off_chip_memory": "off-chip memory",
    "control": "control",
    "static": "static power",
    "board": "board losses",
    "unattributed": "unattributed energy",
    "communication": "links",
    "host": "host",
}
"""Common category -> its name, in the order of figures.

`on_chip_memory` joins the memories of units and of the chip. `board` has the losses of regulators, power supply and
chassis; `unattributed` has the energy that no counted action explains, which a power limit implies or a fit to boards
leaves.
"""

OVERHEAD: Final = "registers, on-chip memory, network and control"
"""Names of the categories of architectural overhead, as in the SQL macro `is_overhead`."""


def name_category(name: str) -> str:
    """Return the name of a category; a name that is no common category is returned unchanged."""
    return CATEGORY.get(name, name)


BOUND: Final = {"launch": "launches", "operands": "operand supply"}
"""Bottleneck of a kernel -> what limits it, if it has another name."""


def name_bound(name: str) -> str:
    """Return what limits a kernel with a bottleneck."""
    return BOUND.get(name, name)


ON_CHIP: Final = "on_chip_memory"
"""Category that joins two others, so that no action belongs to it."""

DRAWN: Final = tuple(name for name in CATEGORY if name != ON_CHIP)
"""Common categories in the order of figures; categories that few runs have come last."""

NUMBERED: Final = tuple(f"{number} {CATEGORY[name]}" for number, name in enumerate(DRAWN, 1))
"""Names of the categories of `DRAWN` in figures, where a number links a bar to the legend."""
