"""List the hardware of the catalogue."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator
from typing import Final, Literal

from joulemap.catalog.digest import is_hardware_path
from joulemap.domain.architecture import find_class
from joulemap.domain.catalogue import find_alike
from joulemap.domain.hardware_ref import HardwareRef
from joulemap.domain.settings import Deployment, Settings
from joulemap.domain.table import Table
from joulemap.generated.hardware import ListedHardware
from joulemap.physics.record.configuration import Precision
from joulemap.plan.catalogue import known_hardware, opening_catalogue, opening_chips
from joulemap.plan.kind import list_kinds
from joulemap.plan.source import Source
from joulemap.store.connection import Connection
from joulemap.store.query import fetch, find_projected
from joulemap.system.errors import UnknownNameError, UsageError

EVERY_FAMILY: Final = "all"
"""Value of `family` that selects the members of all families."""


def hardware_list(
    source: Source,
    *,
    architecture: str = "",
    deployment: Deployment | Literal[""] = "",
    precision: Precision | Literal[""] = "",
    min_memory_bytes: float | None = None,
    max_power_w: float | None = None,
    max_price_usd: float | None = None,
    family: str = "",
) -> Table[ListedHardware]:
    """Return the hardware of the catalogue that passes every filter; None or "" disables a filter.

    `family` selects the members of a family instead, `all` those of every family. Raises UnknownNameError for an
    unknown family, class or deployment, UsageError for an unknown precision.
    """
    architecture = find_class(architecture) or architecture
    if architecture:
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
    with _opening_family(family) if family else opening_catalogue(source) as connection:
        return find_projected(connection, fetch(connection, ListedHardware, **given))


@contextlib.contextmanager
def _opening_family(family: str) -> Iterator[Connection]:
    """Yield a connection to a temporary database with the members of a family, or of all families for `all`."""
    from joulemap.catalog.family import find_family, list_families

    families = list_families()
    if family != EVERY_FAMILY and family not in families:
        raise UnknownNameError("family", family, (EVERY_FAMILY, *families))
    chosen = families if family == EVERY_FAMILY else (family,)
    with opening_chips({one.id: one for name in chosen for one in find_family(name)}, family) as connection:
        yield connection


def count_members(architectures: Collection[str] = ()) -> int:
    """Return the number of chips that only families list, of these classes or of all."""
    from joulemap.catalog.family import list_members

    return sum(not architectures or one.architecture in architectures for one in list_members().values())


def list_others() -> list[tuple[str, tuple[str, ...]]]:
    """Return (question, columns that a narrow table keeps) of the list of each kind of hardware other than chips.

    Raises UsageError if no wing adds a kind.
    """
    if not (kinds := list_kinds()):
        raise UsageError("no installed wing adds hardware other than chips")
    return [(kind.list_question, kind.list_columns) for kind in kinds]


def find_description(name: str) -> str:
    """Return the question that describes hardware other than a chip, by name or file; empty for a chip."""
    if not is_hardware_path(name) and (find_class(name) or find_alike(known_hardware(), HardwareRef.read(name).label)):
        return ""
    return next((kind.show_question for kind in list_kinds() if kind.is_name(name)), "")
