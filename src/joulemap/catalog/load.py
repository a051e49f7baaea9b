"""Load built-in and user-supplied data files as `Hardware` records."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from joulemap.catalog.chip import is_box_file, load_hardware
from joulemap.catalog.digest import catalogue_digest, own_files, shipped_files
from joulemap.catalog.parser import name_file
from joulemap.domain.catalogue import Catalogue, find_alike
from joulemap.physics.record.hardware import Hardware
from joulemap.system.cache import cache_folder, read_cached, write_cached
from joulemap.system.errors import CatalogueError
from joulemap.system.name import fold_name
from joulemap.system.package import list_packages

if TYPE_CHECKING:
    from joulemap.domain.supplied import Supplied

LEFT_OUT: Final = "packages.json"
"""File in the cache folder with the lines about the installed packages."""


def load_catalogue() -> Catalogue:
    """Load the built-in hardware, the files in `$JOULEMAP_HARDWARE` and the hardware of installed packages.

    Raises CatalogueError, naming file, key and reason, also if two files share an id or alias. Invalid files of
    packages are left out instead; the catalogue describes them.
    """
    return _load(tuple(path for path in own_files() if not is_box_file(path)), catalogue_digest())


@cache
def _load(own: tuple[Path, ...], digest: str) -> Catalogue:
    from joulemap.catalog.family import load_listed

    hardware = {one.id: one for one in (*load_files((*shipped_files(), *own)), *load_listed())}
    packages = list_packages()
    if not packages:
        return Catalogue(hardware, digest)
    from joulemap.catalog.package import list_owners, load_package

    supplied: list[Supplied] = []
    for package in packages:
        supplied.append(load_package(package, dict(list_owners(hardware.values()))))
        hardware |= {one.id: one for one in supplied[-1].hardware}
    lines = [line for one in supplied if (line := one.describe_faults())]
    write_cached(cache_folder() / LEFT_OUT, {"digest": digest, "lines": lines})
    return Catalogue(hardware, digest, tuple(supplied))


def list_left_out() -> list[str]:
    """Return a line for each installed package with files that are left out, without loading the catalogue again."""
    if not list_packages():
        return []
    cached = read_cached(cache_folder() / LEFT_OUT)
    if cached.get("digest") == catalogue_digest():
        return list(cached["lines"])
    return [line for one in load_catalogue().supplied if (line := one.describe_faults())]


def load_files(files: Iterable[Path]) -> tuple[Hardware, ...]:
    """Load the hardware of these files, in order.

    Raises CatalogueError for an invalid file or a name that another file has.
    """
    owner: dict[str, str] = {}
    loaded = []
    for path in files:
        hardware = load_hardware(path)
        for name in (hardware.id, *hardware.aliases):
            other = owner.setdefault(fold_name(name), str(path))
            if other != str(path):
                noun = "id" if name == hardware.id else "alias"
                raise CatalogueError(
                    f"{name_file(path)}: the {noun} {name!r} is already that of {other}; choose another"
                )
        loaded.append(hardware)
    return tuple(loaded)


def find_hardware(name: str) -> Hardware:
    """Return the hardware of the catalogue or of a family with this id or alias; UnknownNameError suggests others."""
    from joulemap.catalog.family import find_members, load_member

    catalogue = load_catalogue()
    members = () if find_alike(catalogue.entries, name) else find_members([name])
    return load_member(members[0]) if len(members) == 1 else catalogue.find(name)
