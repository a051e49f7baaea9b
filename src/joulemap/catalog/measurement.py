"""Measurements that ship with the package."""

from __future__ import annotations

import csv
from functools import cache
from typing import Final

from joulemap.catalog.digest import DATA
from joulemap.domain.measurement import Measurement

PROBES: Final = DATA / "measurement" / "h200_probes.csv"
"""Large matrix products and stream copies."""


@cache
def load_measurements() -> tuple[Measurement, ...]:
    """Return the measurements of single operations that every database holds."""
    with PROBES.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return tuple(
        Measurement(
            hardware=row["hardware"],
            model=row["model"],
            precision=row["precision"],
            batch=int(row["batch"]),
            runtime=row["runtime"],
            scope=row["scope"],
            latency_s=float(row["latency_s"]) if row["latency_s"] else None,
            power_w=float(row["power_w"]) if row["power_w"] else None,
            source=row["source"],
            conditions=row["conditions"],
        )
        for row in rows
    )
