"""The hardware of the catalogue, a line for each."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from joulemap.domain.architecture import find_class
from joulemap.domain.settings import Settings
from joulemap.domain.table import Table
from joulemap.plan.catalogue import opening_catalogue
from joulemap.plan.source import Source
from joulemap.row.hardware import ListedHardware
from joulemap.store.query import fetch, find_projected

if TYPE_CHECKING:
    from joulemap.domain.configuration import Precision
    from joulemap.domain.settings import Deployment


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
