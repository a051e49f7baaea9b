"""Assumptions of use and grids to rows: those of the current catalogue, and no others."""

from __future__ import annotations

from collections.abc import Sequence

from joulemap.domain.cost import CostAssumption, GridRegion
from joulemap.store.connection import Connection
from joulemap.store.insert import insert_columns


def write_cost(connection: Connection, assumptions: Sequence[CostAssumption], regions: Sequence[GridRegion]) -> None:
    """Replace what is stored of assumptions and grids by these."""
    connection.execute("DELETE FROM cost_assumption")
    insert_columns(
        connection,
        "cost_assumption",
        {
            "assumption_index": list(range(len(assumptions))),
            "assumption": [one.name for one in assumptions],
            **{
                field: [getattr(one.quantity, field) for one in assumptions]
                for field in ("value", "unit", "basis", "source", "note")
            },
        },
    )
    connection.execute("DELETE FROM grid_region")
    insert_columns(
        connection,
        "grid_region",
        {
            "region_index": list(range(len(regions))),
            "gco2_per_kwh": [one.intensity.value for one in regions],
            **{field: [getattr(one, field) for one in regions] for field in ("region", "name", "year")},
            **{field: [getattr(one.intensity, field) for one in regions] for field in ("basis", "source", "note")},
        },
    )
