"""Load built-in and user-supplied data files as `Hardware` records."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from joulemap.catalog.chip import resolve_file
from joulemap.catalog.design import is_design_file
from joulemap.catalog.digest import DATA, catalogue_digest, own_files, shipped_files
from joulemap.catalog.parser import MAX_FILE_BYTES, name_file, read_file
from joulemap.catalog.schema import HardwareFile
from joulemap.domain.catalogue import Catalogue
from joulemap.physics.record.hardware import Hardware
from joulemap.system.errors import CatalogueError
from joulemap.system.name import fold_name


def load_catalogue() -> Catalogue:
    """Load the built-in hardware and the files in `$JOULEMAP_HARDWARE`.

    Raises CatalogueError, naming file, key and reason, also if two files share an id or alias.
    """
    return _load(tuple(path for path in own_files() if not is_box_file(path)), catalogue_digest())


@cache
def _load(own: tuple[Path, ...], digest: str) -> Catalogue:
    from joulemap.catalog.family import load_listed

    hardware = (*load_files((*shipped_files(), *own)), *load_listed())
    return Catalogue({one.id: one for one in hardware}, digest)


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


def load_hardware(path: Path) -> Hardware:
    """Load the hardware of one file; CatalogueError names file, key and reason."""
    label = name_file(path)
    if is_box_file(path):
        raise CatalogueError(f"{label}: it is a box of several devices, expected a single chip")
    if is_design_file(path):
        raise CatalogueError(
            f"{label}: it is a design based on another chip: `joulemap compare MODEL --hardware {path}`"
        )
    chip, _ = read_file(path, HardwareFile)
    if not re.fullmatch(r"[a-z0-9][a-z0-9_]*", chip.id):
        raise CatalogueError(f"{label}: id: {chip.id!r} is not lower case letters, digits and _")
    if path.parent == DATA / "hardware" and chip.id != path.stem:
        raise CatalogueError(f"{label}: id: {chip.id!r}, expected the file's name {path.stem!r}")
    return resolve_file(chip, label)


def find_hardware(name: str) -> Hardware:
    """Return the hardware of the catalogue or of a family with this id or alias; UnknownNameError suggests others."""
    from joulemap.catalog.family import find_members, load_member
    from joulemap.domain.catalogue import find_alike

    catalogue = load_catalogue()
    members = () if find_alike(catalogue.entries, name) else find_members([name])
    return load_member(members[0]) if len(members) == 1 else catalogue.find(name)


def is_box_file(path: Path) -> bool:
    """Return True if a file has a table `[[devices]]`, as a box file does; False if it cannot be read."""
    try:
        return path.is_file() and path.stat().st_size <= MAX_FILE_BYTES and b"[[devices]]" in path.read_bytes()
    except OSError:
        return False
