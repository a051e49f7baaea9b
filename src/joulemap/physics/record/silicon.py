"""Areas of silicon: SRAM cells by node, the largest die, and the parts of a unit."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from joulemap.physics.record.quantity import Quantity
from joulemap.system.record import frozen

SRAM_CELL_UM2: Final[Mapping[float, float]] = {7.0: 0.027, 5.0: 0.021, 4.0: 0.021, 3.0: 0.021}
"""Node in nm -> area of a high-density SRAM bit cell. Source: TSMC, IEDM 2022, reported by WikiChip: 0.021 um2 at N5,
no smaller at N3E (0.0199 at N3B), 0.027 at N7; 4 nm, a variant of N5, is assumed to use the N5 cell.
"""

RETICLE: Final = Quantity(
    value=858.0,
    unit="mm2",
    basis="recalled",
    source="26 mm x 33 mm, the field that a lithography scanner exposes at once",
)
"""Largest printable die (reticle limit); a larger chip is several dies in a package."""


def count_dies(area_mm2: float) -> int:
    """Return the minimum number of dies, each within the reticle limit, for a chip of this area."""
    return max(1, math.ceil(area_mm2 / RETICLE.value))


@frozen(kw_only=True)
class UnitArea:
    """Parts of the area of one unit of an architecture class."""

    datapath: Quantity
    """Share of multipliers and adders in the area of a unit, excluding memories and `beside`."""
    beside: Quantity | None = None
    """Area per unit at 45 nm outside its datapath, including its part of the rest of the die; None if the share of the
    datapath covers all.
    """
