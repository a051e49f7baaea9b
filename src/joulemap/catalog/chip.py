"""Resolve the content of one hardware file: its class, its defaults, and the prices of sellers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

import attrs

from joulemap.catalog.digest import DATA
from joulemap.catalog.hardware import resolve_hardware
from joulemap.catalog.parser import MAX_FILE_BYTES, name_file, parse_content, read_file, structure
from joulemap.catalog.schema import ArchitectureFile, HardwareFile
from joulemap.catalog.sheet import load_offers
from joulemap.domain.offer import Offer, reference_offers
from joulemap.physics.record.hardware import Hardware
from joulemap.system.errors import CatalogueError
from joulemap.system.package import find_class_package

PRICE_WAYS: Final = {"price_cloud": "rented", "price_purchase": "bought"}
"""Name of a price of a chip -> way of paying."""


def _with_offers(hardware: Hardware) -> Hardware:
    """Return a chip whose missing prices are filled in from sellers' offers for its id."""
    offers = _reference_offers()
    missing = {name: way for name, way in PRICE_WAYS.items() if getattr(hardware, name) is None}
    given: dict[str, Any] = {
        name: one.quantity for name, way in missing.items() if (one := offers.get((hardware.id, way))) is not None
    }
    return attrs.evolve(hardware, **given).with_own_digest() if given else hardware


@cache
def _reference_offers() -> dict[tuple[str, str], Offer]:
    return reference_offers(load_offers())


def load_hardware(path: Path) -> Hardware:
    """Load the hardware of one file; CatalogueError names file, key and reason."""
    from joulemap.catalog.design import is_design_file

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


def load_text(text: str, label: str) -> Hardware:
    """Load a chip from the text of a file; CatalogueError names `label`, key and reason."""
    return resolve_file(parse_content(label, text.encode(), HardwareFile), label)


def load_content(content: Mapping[str, Any], label: str) -> Hardware:
    """Load a chip from the parsed content of a file; CatalogueError names `label`, key and reason."""
    return resolve_file(structure(label, content, HardwareFile), label)


def resolve_file(chip: HardwareFile, label: str) -> Hardware:
    """Return the hardware of a file's content; CatalogueError names `label`, key and reason."""
    shared = load_class(chip.architecture, label)
    try:
        return _with_offers(resolve_hardware(chip, shared))
    except (ValueError, KeyError, TypeError) as error:
        raise CatalogueError(f"{label}: {error.args[0]}") from error


def list_defaults(path: Path) -> frozenset[str]:
    """Return the dotted names of numbers that a hardware file omits and for which its class has a default."""
    chip, _ = read_file(path, HardwareFile)
    stated = {*attrs.asdict(chip.quantities, recurse=False, filter=lambda _, entry: entry is not None)}
    stated |= {f"geometry.{name}" for name in chip.geometry}
    stated |= {f"memory.{level.name}.{name}" for level in chip.memory_levels for name in ("capacity", "bandwidth")}
    rules = load_class(chip.architecture, name_file(path)).defaults
    return frozenset(one.quantity for one in rules) - stated


def load_class(architecture: str, asker: str) -> ArchitectureFile:
    """Return the data of an architecture class; CatalogueError, which names `asker`, for an unknown class."""
    if architecture in list_architectures():
        return _read_class(DATA / "architecture" / f"{architecture}.toml")
    package = find_class_package(architecture)
    if package is None:
        known = ", ".join(list_architectures())
        raise CatalogueError(f"{asker}: architecture: {architecture!r} is none of {known}")
    return _read_class(package.folder / "architecture" / f"{architecture}.toml")


@cache
def _read_class(path: Path) -> ArchitectureFile:
    class_file = read_file(path, ArchitectureFile)[0]
    tabled = [entry for table in class_file.coefficient_tables for entry in table.entries()]
    return attrs.evolve(class_file, coefficients=[*class_file.coefficients, *tabled])


@cache
def list_architectures() -> tuple[str, ...]:
    """Return the built-in architecture classes."""
    return tuple(sorted(path.stem for path in (DATA / "architecture").glob("*.toml")))


def is_box_file(path: Path) -> bool:
    """Return True if a file has a table `[[devices]]`, as a box file does; False if it cannot be read."""
    try:
        return path.is_file() and path.stat().st_size <= MAX_FILE_BYTES and b"[[devices]]" in path.read_bytes()
    except OSError:
        return False
