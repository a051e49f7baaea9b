"""The hardware of the catalogue, a line for each."""

from __future__ import annotations

from collections import Counter
from typing import Literal

from joulemap.domain.architecture import find_class
from joulemap.domain.configuration import Precision
from joulemap.domain.settings import Deployment, Settings
from joulemap.domain.table import Table
from joulemap.plan.catalogue import opening_catalogue
from joulemap.plan.source import Source
from joulemap.row.hardware import ListedHardware
from joulemap.store.query import fetch, find_projected


def hardware_list(
    source: Source,
    *,
    architecture: str = "",
    deployment: Deployment | Literal[""] = "",
    precision: Precision | Literal[""] = "",
    min_memory_bytes: float | None = None,
    max_power_w: float | None = None,
    max_price_usd: float | None = None,
) -> Table[ListedHardware]:
    """Return the hardware of the catalogue that pass every filter; a filter of None or "" lets all pass.

    Raises UnknownNameError for a class or deployment, UsageError for a precision that does not exist.
    """
    architecture = find_class(architecture) or architecture
    if architecture:
        from joulemap.plan.catalogue import known_hardware
        from joulemap.plan.selection import check_architectures

        check_architectures([architecture], {entry.architecture for entry in known_hardware().values()})
    filters = Settings(deployment=deployment or (), precision=precision or ())
    given = {
        "architecture": architecture,
        "deployment": next(iter(filters.deployment), ""),
        "precision": next(iter(filters.precision), ""),
        "min_memory_bytes": min_memory_bytes or 0.0,
        "max_power_w": max_power_w or 0.0,
        "max_price_usd": max_price_usd or 0.0,
    }
    with opening_catalogue(source) as connection:
        return find_projected(connection, fetch(connection, ListedHardware, **given))


def say_classes(rows: Table[ListedHardware]) -> str:
    """Return how many hardware of each class are listed, and how many of them cannot be had."""
    counts = Counter(row.architecture for row in rows).most_common()
    told = ", ".join(f"{count} {architecture}" for architecture, count in counts)
    lacking = sum(not row.is_available for row in rows)
    return f"{len(rows)} hardware: {told}; {lacking} of them cannot be had." if counts else "No hardware is like that."
