"""Area of the units of GPUs, fitted to the dies of four."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from joulemap.physics.record.quantity import Quantity
from joulemap.physics.record.silicon import UnitArea

DIES: Final[Mapping[str, tuple[float, int]]] = {
    "l4": (294.0, 60), "t4": (545.0, 48), "a100_sxm4_80gb": (826.0, 128), "h100_sxm5": (814.0, 144),
}  # fmt: skip
"""Chip -> (die area in mm2, units on the die, including disabled ones). Basis: recalled. Source: NVIDIA white papers on
AD104, TU104, GA100 and GH100.
"""

FITTED: Final = (
    "least squares over the ratios of the dies of DIES; areas of held-out dies are off by 1.3x in the geometric mean, "
    "1.6x at most (with a share of the datapath alone: 1.7x, 2.6x)"
)

UNIT_AREA: Final = UnitArea(
    datapath=Quantity(value=0.097, unit="1", basis="derived", source=FITTED),
    beside=Quantity(value=102.0, unit="mm2", basis="derived", source=FITTED),
)
