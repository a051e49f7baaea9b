"""The hardware of the catalogue, a line for each."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, cast

from joulemap.domain.architecture import find_class
from joulemap.domain.settings import Settings
from joulemap.domain.table import Table
from joulemap.plan.catalogue import opening_catalogue
from joulemap.plan.source import Source
from joulemap.record import frozen
from joulemap.store.query import fetch, find_projected

if TYPE_CHECKING:
    from joulemap.domain.configuration import Precision
    from joulemap.domain.settings import Deployment


@frozen
class ListedHardware:
    """A hardware of the catalogue in a line."""

    query: ClassVar[str] = "hardware.list"

    hardware: str
    name: str
    architecture: str
    deployment: str
    units_total_count: int
    unit_name: str
    precisions: str
    memory_capacity_bytes: float
    memory_bandwidth_bytes_per_s: float
    tdp_w: float
    power_modes: str
    price_purchase_usd: float | None
    price_cloud_usd_per_hour: float | None
    fact_count: int
    recalled_fact_count: int
    assumed_fact_count: int
    aliases: str
    is_projection: bool
    projection: str
    """Why; empty where its key numbers are published."""
    is_available: bool
    unavailable: str
    """Why it cannot be bought; empty where it can."""


def list_hardware(
    source: Source, *, architecture: str, deployment: str, precision: str, **limits: float
) -> Table[ListedHardware]:
    """Return the hardware of the catalogue that pass every filter, as `Workspace.hardware_list` documents it."""
    architecture = find_class(architecture) or architecture
    if architecture:
        from joulemap.plan.catalogue import known_hardware
        from joulemap.plan.selection import check_architectures

        check_architectures([architecture], {entry.architecture for entry in known_hardware().values()})
    filters = Settings(
        deployment=cast("Deployment", deployment) if deployment else (),
        precision=cast("Precision", precision) if precision else (),
    )
    given = {
        "architecture": architecture,
        "deployment": next(iter(filters.deployment), ""),
        "precision": next(iter(filters.precision), ""),
        **limits,
    }
    with opening_catalogue(source) as connection:
        return find_projected(connection, fetch(connection, ListedHardware, **given))
