"""Assumptions of use and carbon intensities of grids, which a price per inference rests on beside the chip."""

from __future__ import annotations

from typing import Final

import attrs

from joulemap.domain.quantity import Quantity

DEFAULT_REGION: Final = "world"
"""The grid that carbon is counted for where none is named."""


@attrs.frozen(kw_only=True)
class CostAssumption:
    """A number of use that a person may replace."""

    name: str
    """`utilization`, `lifetime`, `hours`, `pue` or `electricity`."""
    quantity: Quantity


@attrs.frozen(kw_only=True)
class GridRegion:
    """Where electricity comes from, as a yearly average."""

    region: str
    """Id: `world`, `eu`, or a country's two letters."""
    name: str
    year: int
    intensity: Quantity
    """In g/kWh of CO2 equivalents, unless its note says otherwise."""
