"""The models that ship by name, with the figures that torchvision publishes for them."""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path
from typing import Final

import attrs

MODELS: Final = Path(__file__).parent / "data" / "model" / "torchvision.csv"


@attrs.frozen(kw_only=True)
class ModelEntry:
    """A model of torchvision's zoo. Published figures are for its default weights, at batch 1."""

    name: str
    family: str
    task: str
    """`classification`, `segmentation`, `video` …"""
    input_shape: tuple[int, ...]
    """Of one sample, without the batch; empty where the input is not one tensor."""
    parameter_count: int | None
    """As published by torchvision."""
    published_mac_count: int | None
    """torchvision's `_ops`, which counts MACs, in units."""
    is_traceable: bool
    reason: str
    """Why not, if not."""


@cache
def load_models() -> dict[str, ModelEntry]:
    """Return torchvision's models by name, without importing torch."""
    with MODELS.open(newline="") as file:
        rows = list(csv.DictReader(file))
    return {
        row["name"]: ModelEntry(
            name=row["name"],
            family=row["family"],
            task=row["task"],
            input_shape=tuple(int(size) for size in row["input_shape"].split("x") if size),
            parameter_count=int(row["parameter_count"]) if row["parameter_count"] else None,
            published_mac_count=int(row["published_mac_count"]) if row["published_mac_count"] else None,
            is_traceable=row["is_traceable"] == "true",
            reason=row["reason"],
        )
        for row in rows
    }
