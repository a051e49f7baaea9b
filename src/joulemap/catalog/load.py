"""Load built-in and user-supplied data files as `Hardware` records."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

import attrs

from joulemap.catalog.design import is_design_file
from joulemap.catalog.digest import DATA, catalogue_digest, own_files, shipped_files
from joulemap.catalog.hardware import resolve_hardware
from joulemap.catalog.parser import name_file, parse_content, read_file, structure
from joulemap.catalog.schema import ArchitectureFile, HardwareFile
from joulemap.catalog.sheet import load_offers
from joulemap.domain.catalogue import Catalogue
from joulemap.domain.hardware import Hardware
from joulemap.domain.name import fold_name
from joulemap.domain.offer import Offer, reference_offers
from joulemap.system.errors import CatalogueError

PRICE_WAYS: Final = {"price_cloud": "rented", "price_purchase": "bought"}
"""Price of a chip -> way of paying."""


def load_catalogue() -> Catalogue:
    """Load the built-in hardware and that in `$JOULEMAP_HARDWARE`.

    Raises CatalogueError, naming file, key and reason, also if two files share an id or alias.
    """
    from joulemap.catalog.box import is_box_file

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
    from joulemap.catalog.box import is_box_file

    label = name_file(path)
    if is_box_file(path):
        raise CatalogueError(f"{label}: it is a box of several devices, where one chip is asked for")
    if is_design_file(path):
        raise CatalogueError(f"{label}: it is a design like another chip: `joulemap compare MODEL --hardware {path}`")
    chip, _ = read_file(path, HardwareFile)
    if not re.fullmatch(r"[a-z0-9][a-z0-9_]*", chip.id):
        raise CatalogueError(f"{label}: id: {chip.id!r} is not lower case letters, digits and _")
    if path.parent == DATA / "hardware" and chip.id != path.stem:
        raise CatalogueError(f"{label}: id: {chip.id!r}, expected the file's name {path.stem!r}")
    return _resolve(chip, label)


def _with_offers(hardware: Hardware) -> Hardware:
    """Return a chip with offers for its id as prices, where its file gives none."""
    found = _reference_offers()
    missing = {name: way for name, way in PRICE_WAYS.items() if getattr(hardware, name) is None}
    given: dict[str, Any] = {
        name: one.quantity for name, way in missing.items() if (one := found.get((hardware.id, way))) is not None
    }
    return attrs.evolve(hardware, **given).with_own_digest() if given else hardware


@cache
def _reference_offers() -> dict[tuple[str, str], Offer]:
    return reference_offers(load_offers())


def load_text(text: str, label: str) -> Hardware:
    """Load a chip from the text of a file; CatalogueError names `label`, key and reason."""
    return _resolve(parse_content(label, text.encode(), HardwareFile), label)


def load_content(content: Mapping[str, Any], label: str) -> Hardware:
    """Load a chip from the parsed content of a file; CatalogueError names `label`, key and reason."""
    return _resolve(structure(label, content, HardwareFile), label)


def _resolve(chip: HardwareFile, label: str) -> Hardware:
    shared = load_class(chip.architecture, label)
    try:
        return _with_offers(resolve_hardware(chip, shared))
    except (ValueError, KeyError, TypeError) as error:
        raise CatalogueError(f"{label}: {error.args[0]}") from error


def load_class(architecture: str, asker: str) -> ArchitectureFile:
    """Return the data of an architecture class; CatalogueError, on behalf of the asking file, if there is none."""
    known = list_architectures()
    if architecture not in known:
        raise CatalogueError(f"{asker}: architecture: {architecture!r} is none of {', '.join(known)}")
    return _read_class(architecture)


@cache
def _read_class(architecture: str) -> ArchitectureFile:
    found = read_file(DATA / "architecture" / f"{architecture}.toml", ArchitectureFile)[0]
    tabled = [entry for table in found.coefficient_tables for entry in table.entries()]
    return attrs.evolve(found, coefficients=[*found.coefficients, *tabled])


@cache
def list_architectures() -> tuple[str, ...]:
    """Return the architecture classes with a data file."""
    return tuple(sorted(path.stem for path in (DATA / "architecture").glob("*.toml")))
