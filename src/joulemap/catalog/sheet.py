"""Tables of the package: models, notes on architecture classes, assumptions of use, grids."""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path
from typing import Final

from joulemap.catalog.digest import DATA, ZOO
from joulemap.domain.catalogue import ModelEntry, ShippedWorkload
from joulemap.domain.cost import CostAssumption, GridRegion
from joulemap.domain.note import ArchitectureNote
from joulemap.domain.quantity import Quantity
from joulemap.errors import UnknownNameError

Row = dict[str, str]

SHIPPED: Final = ZOO / "index.csv"


def _read(path: Path) -> list[Row]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@cache
def load_models() -> dict[str, ModelEntry]:
    """Return the models by name, without importing torch, with the figures that torchvision publishes for them."""
    return {
        row["name"]: ModelEntry(
            name=row["name"],
            family=row["family"],
            task=row["task"],
            input_shape=tuple(int(size) for size in row["input_shape"].split("x") if size),
            input_layout=row["input_layout"],
            parameter_count=int(row["parameter_count"]) if row["parameter_count"] else None,
            published_mac_count=int(row["published_mac_count"]) if row["published_mac_count"] else None,
            is_traceable=row["is_traceable"] == "true",
            reason=row["reason"],
        )
        for row in _read(DATA / "model" / "zoo.csv")
    }


@cache
def load_shipped() -> dict[str, ShippedWorkload]:
    """Return what ships traced, by model, without opening it."""
    if not SHIPPED.exists():
        return {}
    return {
        row["model"]: ShippedWorkload(
            model=row["model"],
            is_affine=row["is_affine"] == "True",
            parameter_count=int(row["parameter_count"]),
            mac_count=int(row["mac_count"]),
            torch_version=row["torch_version"],
            torchvision_version=row["torchvision_version"],
            tracer_version=row["tracer_version"],
        )
        for row in _read(SHIPPED)
    }


@cache
def load_notes() -> tuple[ArchitectureNote, ...]:
    """Return every note on an architecture class, class by class."""
    return tuple(ArchitectureNote(**row) for row in _read(DATA / "note" / "architecture.csv"))


def find_notes(architectures: tuple[str, ...]) -> tuple[ArchitectureNote, ...]:
    """Return the notes on these classes, each class once and in this order."""
    return tuple(note for name in dict.fromkeys(architectures) for note in load_notes() if note.architecture == name)


@cache
def load_assumptions() -> tuple[CostAssumption, ...]:
    """Return what a price per inference assumes where a person says nothing else."""
    return tuple(
        CostAssumption(name=row["assumption"], quantity=_quantity(row, "value", row["unit"]))
        for row in _read(DATA / "cost" / "assumption.csv")
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
        for row in _read(DATA / "cost" / "grid.csv")
    )


def find_region(name: str) -> GridRegion:
    """Return the grid with this id or name, whatever the case; UnknownNameError offers the nearest."""
    regions = load_regions()
    asked = name.strip().lower()
    for region in regions:
        if asked in (region.region, region.name.lower()):
            return region
    raise UnknownNameError("grid region", name, [known for region in regions for known in (region.region, region.name)])


def _quantity(row: Row, column: str, unit: str) -> Quantity:
    return Quantity(value=float(row[column]), unit=unit, basis=row["basis"], source=row["source"], note=row["note"])
