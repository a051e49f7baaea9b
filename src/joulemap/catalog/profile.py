"""Profiles of models on a device: device time by ATen operator, as a profiler lists it.

They ship as they were taken, with a TOML beside them that says how. `make profile` reduces each to times of traced
operators, a Parquet file beside it: that is what databases hold.
"""

from __future__ import annotations

import csv
import json
import tomllib
from collections import defaultdict
from pathlib import Path
from typing import Final

import attrs

from joulemap.catalog.digest import PROFILES
from joulemap.domain.measurement import ProfiledKernel

NAMESPACE: Final = "aten::"

Configuration = tuple[str, str, int]
"""Model, precision, batch."""


@attrs.frozen(kw_only=True)
class Profile:
    """One profile: what all of its rows share, and where they are."""

    path: Path
    """Of the TOML."""
    hardware: str
    runtime: str
    source: str
    conditions: str

    @property
    def operators(self) -> Path:
        """The file of times by traced operator."""
        return self.path.with_suffix(".parquet")

    def read_kernels(self) -> dict[Configuration, tuple[ProfiledKernel, ...]]:
        """Return the rows as they were taken, by model, precision and batch in the order of the file."""
        found: dict[Configuration, list[ProfiledKernel]] = defaultdict(list)
        with self.path.with_suffix(".csv").open(newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                kernel = ProfiledKernel(
                    model=row["model"],
                    precision=row["precision"],
                    batch=int(row["batch"]),
                    aten=row["op"].removeprefix(NAMESPACE),
                    shapes=tuple(tuple(shape) for shape in json.loads(row["input_shapes"])),
                    call_count=int(row["calls"]),
                    device_time_us=float(row["device_time_us_total"]),
                )
                found[kernel.model, kernel.precision, kernel.batch].append(kernel)
        return {configuration: tuple(kernels) for configuration, kernels in found.items()}


def load_profiles(folder: Path = PROFILES) -> tuple[Profile, ...]:
    """Return the profiles that ship, without their rows."""
    return tuple(
        Profile(path=path, **tomllib.loads(path.read_text(encoding="utf-8"))) for path in sorted(folder.glob("*.toml"))
    )
