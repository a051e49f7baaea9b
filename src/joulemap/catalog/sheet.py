"""Read the catalogue's tables: models, architecture notes, use assumptions, grid regions and scenarios."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeVar

import attrs

from joulemap.catalog.digest import DATA, ZOO
from joulemap.domain.catalogue import (
    ArchitectureNote,
    CostAssumption,
    GridRegion,
    ModelEntry,
    Scenario,
    ShippedWorkload,
)
from joulemap.domain.offer import Offer
from joulemap.physics.record.quantity import Quantity
from joulemap.system.errors import UnknownNameError

Row = dict[str, str]

Record = TypeVar("Record", bound=attrs.AttrsInstance)

SHIPPED: Final = ZOO / "index.csv"

PARSERS: Final[Mapping[str, Callable[[str], Any]]] = {
    "str": str,
    "DoubtQuantity": str,
    "PowerOf": str,
    "int": int,
    "float": float,
    "int | None": lambda text: int(text) if text else None,
    "bool": lambda text: text.lower() == "true",
    "tuple[int, ...]": lambda text: tuple(int(size) for size in text.split("x") if size),
    "tuple[str, ...]": lambda text: tuple(text.split()),
}
"""Type annotation of a field -> function that parses its cell."""


def read_rows(path: Path) -> list[Row]:
    """Return the rows of a table, each as column -> text."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def read_records(kind: type[Record], path: Path) -> tuple[Record, ...]:
    """Return the rows of a table as records; each column is a field. Empty if the file does not exist.

    A quantity has its basis and source in further columns, and no unit.
    """
    rows = read_rows(path) if path.exists() else []
    columns: list[list[Any]] = []
    for field in attrs.fields(kind):
        name, parser = field.name, PARSERS.get(str(field.type))
        if rows and name not in rows[0] and field.default is not attrs.NOTHING:
            columns.append([field.default] * len(rows))
        elif parser:
            columns.append([parser(row[name]) for row in rows])
        else:
            columns.append([_quantity(row, name, "1") for row in rows])
    names = [field.name for field in attrs.fields(kind)]
    return tuple(kind(**dict(zip(names, cells, strict=True))) for cells in zip(*columns, strict=True))


@cache
def load_models() -> dict[str, ModelEntry]:
    """Return name -> model, with the figures that torchvision publishes, without importing torch."""
    return {entry.name: entry for entry in read_records(ModelEntry, DATA / "model" / "zoo.csv")}


@cache
def load_shipped() -> dict[str, ShippedWorkload]:
    """Return model -> entry of its built-in workload, without opening the workload."""
    return {entry.model: entry for entry in read_records(ShippedWorkload, SHIPPED)}


@cache
def load_notes() -> tuple[ArchitectureNote, ...]:
    """Return every note on an architecture class, class by class."""
    return read_records(ArchitectureNote, DATA / "note" / "architecture.csv")


def find_notes(architectures: tuple[str, ...]) -> tuple[ArchitectureNote, ...]:
    """Return the notes on these classes, in their order and without repetition."""
    return tuple(note for name in dict.fromkeys(architectures) for note in load_notes() if note.architecture == name)


@cache
def load_assumptions() -> tuple[CostAssumption, ...]:
    """Return the default assumptions for the cost of an inference."""
    return tuple(
        CostAssumption(name=row["assumption"], quantity=_quantity(row, "value", row["unit"]))
        for row in read_rows(DATA / "cost" / "assumption.csv")
    )


@cache
def load_offers() -> tuple[Offer, ...]:
    """Return sellers' offers of hardware, the reference offer of each chip first."""
    return read_records(Offer, DATA / "cost" / "offer.csv")


@cache
def load_regions() -> tuple[GridRegion, ...]:
    """Return the known grid regions, the largest areas first."""
    return tuple(
        GridRegion(
            region=row["region"],
            name=row["name"],
            year=int(row["year"]),
            intensity=_quantity(row, "gco2_per_kwh", "g/kWh"),
        )
        for row in read_rows(DATA / "cost" / "grid.csv")
    )


def find_region(name: str) -> GridRegion:
    """Return the grid region with this id or name, in any case; UnknownNameError suggests the nearest."""
    regions = load_regions()
    asked = name.strip().lower()
    for region in regions:
        if asked in (region.region, region.name.lower()):
            return region
    raise UnknownNameError("grid region", name, [known for region in regions for known in (region.region, region.name)])


@cache
def load_scenarios() -> dict[str, Scenario]:
    """Return name -> scenario."""
    return {
        row["scenario"]: Scenario(
            name=row["scenario"],
            deployment=row["deployment"].split(),
            kinds=row["kinds"].split(),
            power_budget=_quantity(row, "power_budget_w", "W") if row["power_budget_w"] else None,
            battery=Quantity(value=float(row["battery_wh"]), unit="Wh", basis="recalled", source=row["battery"])
            if row["battery_wh"]
            else None,
            is_pulse=row["is_pulse"] == "true",
            note=row["note"],
        )
        for row in read_rows(DATA / "scenario" / "scenario.csv")
    }


def find_scenario(name: str) -> Scenario:
    """Return the scenario of this name, in any case; UnknownNameError lists the known ones."""
    scenarios = load_scenarios()
    scenario = scenarios.get(name.strip().lower())
    if scenario is None:
        raise UnknownNameError("scenario", name, scenarios)
    return scenario


def _quantity(row: Row, column: str, unit: str) -> Quantity:
    return Quantity(
        value=float(row[column]), unit=unit, basis=row["basis"], source=row["source"], note=row.get("note", "")
    )
