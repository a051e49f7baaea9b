"""The models that ship by name, with the figures that torchvision publishes for them."""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path
from typing import Final

from joulemap.domain.catalogue import ModelEntry

MODELS: Final = Path(__file__).parent / "data" / "model" / "zoo.csv"


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
