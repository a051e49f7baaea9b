"""Assumptions of use and grids, from the data files of the package."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from functools import cache
from typing import Final

from joulemap.catalog.digest import DATA
from joulemap.domain.cost import CostAssumption, GridRegion
from joulemap.domain.quantity import Quantity
from joulemap.errors import UnknownNameError

FOLDER: Final = DATA / "cost"


@cache
def load_assumptions() -> tuple[CostAssumption, ...]:
    """Return what a price per inference assumes where a person says nothing else."""
    return tuple(
        CostAssumption(name=row["assumption"], quantity=_quantity(row, "value", row["unit"]))
        for row in _read("assumption.csv")
    )


@cache
def load_regions() -> tuple[GridRegion, ...]:
    """Return the grids that are known, the largest areas first."""
    return tuple(
        GridRegion(
            region=row["region"],
            name=row["name"],
            year=int(row["year"]),
            intensity=_quantity(row, "gco2_per_kwh", "g/kWh"),
        )
        for row in _read("grid.csv")
    )


def find_region(name: str) -> GridRegion:
    """Return the grid with this id or name, whatever the case; UnknownNameError offers the nearest."""
    regions = load_regions()
    asked = name.strip().lower()
    for region in regions:
        if asked in (region.region, region.name.lower()):
            return region
    raise UnknownNameError("grid region", name, [known for region in regions for known in (region.region, region.name)])


def _quantity(row: Mapping[str, str], column: str, unit: str) -> Quantity:
    return Quantity(value=float(row[column]), unit=unit, basis=row["basis"], source=row["source"], note=row["note"])


def _read(name: str) -> list[dict[str, str]]:
    with (FOLDER / name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))
