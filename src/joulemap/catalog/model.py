"""The models that ship by name, with the figures that torchvision publishes for them."""

from __future__ import annotations

import csv
from functools import cache
from typing import Final

from joulemap.catalog.digest import DATA, ZOO
from joulemap.domain.catalogue import ModelEntry, ShippedWorkload

MODELS: Final = DATA / "model" / "zoo.csv"
SHIPPED: Final = ZOO / "index.csv"


@cache
def load_models() -> dict[str, ModelEntry]:
    """Return the models by name, without importing torch."""
    with MODELS.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
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
        for row in rows
    }


@cache
def load_shipped() -> dict[str, ShippedWorkload]:
    """Return what ships traced, by model, without opening it."""
    if not SHIPPED.exists():
        return {}
    with SHIPPED.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
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
        for row in rows
    }
