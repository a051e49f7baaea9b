"""Load the chips, classes and measurements of packages; an invalid file is left out, and described in a line."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import attrs

from joulemap.catalog.chip import list_architectures, load_class, load_hardware
from joulemap.domain.architecture import find_class, find_whole_class
from joulemap.domain.catalogue import HardwareEntry, find_alike
from joulemap.domain.hardware_ref import HardwareRef
from joulemap.domain.supplied import Fault, Supplied
from joulemap.physics.architecture import find_architecture
from joulemap.system.errors import CatalogueError, JoulemapError
from joulemap.system.file import FileError, parse_toml, read_text
from joulemap.system.name import fold_name
from joulemap.system.package import GROUP, Package, find_class_package

if TYPE_CHECKING:
    from joulemap.catalog.family import Member
    from joulemap.catalog.measurement import MeasuredRow
    from joulemap.physics.record.hardware import Hardware

Loaded = TypeVar("Loaded")


def load_package(package: Package, owners: Mapping[str, str]) -> Supplied:
    """Load the chips, classes and measurements of a package.

    `owners` maps the names that are taken, as `fold_name` writes them, to their owners. A chip that has one is left
    out, and so is a package with a class that another package has.
    """
    faults: list[Fault] = []
    if not package.folder.is_dir():
        faults.append(Fault(file=package.folder, text=f"{package.folder}: its entry point names no package of Python"))
    elif not package.list_hardware():
        folder = package.folder / "hardware"
        faults.append(Fault(file=folder, text=f"{folder}: there is no hardware file (.toml)"))
    for path in package.list_classes():
        owner = find_class_package(path.stem)
        if owner is not None and owner != package:
            text = f"{path}: the class {path.stem!r} is already that of the package {owner.label}; choose another name"
            return Supplied(package=package, faults=(Fault(file=path, text=text),))
    classes = [one for path in package.list_classes() for one in _try(path, faults, partial(_check_class, path))]
    taken = dict(owners)
    chips = [
        one for path in package.list_hardware() for one in _try(path, faults, partial(_load_chip, path, package, taken))
    ]
    entries = {one.id: HardwareEntry.of(one) for one in chips}
    # rows about a chip that is left out fail too, which says nothing new
    found = [] if faults else faults
    rows = [
        row
        for path in package.list_measurements()
        for some in _try(path, found, partial(_read_measurements, path, entries))
        for row in some
    ]
    return Supplied(
        package=package,
        hardware=tuple(chips),
        architectures=tuple(classes),
        measurements=tuple(rows),
        faults=tuple(faults),
    )


def _try(path: Path, faults: list[Fault], load: Callable[[], Loaded]) -> tuple[Loaded, ...]:
    """Return what `load` returns; nothing if it raises, and then a fault is added."""
    try:
        return (load(),)
    except JoulemapError as error:
        text = str(error)
        faults.append(Fault(file=path, text=text if path.name in text else f"{path}: {text}"))
        return ()


def _check_class(path: Path) -> str:
    """Return the name of a class; JoulemapError if it is taken, or if its data or module cannot be used."""
    from joulemap.catalog.event import resolve_events, resolve_roles

    name = path.stem
    if name in list_architectures() or find_class(name) or find_whole_class(name):
        raise CatalogueError(f"{path}: the class {name!r} is built in; choose another name")
    module = path.with_suffix(".py")
    if not module.is_file():
        raise CatalogueError(f"{path}: its module is missing: put {module.name} beside it")
    shared = load_class(name, str(path))
    if shared.architecture != name:
        raise CatalogueError(f"{path}: architecture: {shared.architecture!r}, expected the file's name {name!r}")
    for resolve in (resolve_events, resolve_roles):
        tuple(resolve(shared))
    find_architecture(name)
    return name


def _load_chip(path: Path, package: Package, owners: dict[str, str]) -> Hardware:
    """Return the chip of a file, marked as the package's, and add its names to those that are taken."""
    hardware = load_hardware(path)
    find_architecture(hardware.architecture)
    names = tuple(dict.fromkeys((hardware.id, *hardware.aliases, hardware.name)))
    for name in names:
        if find_class(name) or find_whole_class(name):
            raise CatalogueError(f"{path}: the name {name!r} is that of a class of hardware; choose another")
        owner = owners.get(fold_name(name))
        if owner is not None:
            raise CatalogueError(f"{path}: the name {name!r} is already that of {owner}; choose another")
    owners |= {fold_name(name): f"{hardware.id} of the package {package.label}" for name in names}
    return attrs.evolve(hardware, package=package.label).with_own_digest()


def _read_measurements(path: Path, entries: Mapping[str, HardwareEntry]) -> tuple[MeasuredRow, ...]:
    """Return the rows of a file of measurements; CatalogueError for a row about other hardware than `entries`."""
    from joulemap.catalog.measurement import MAX_FILE_BYTES, list_measured, read_measurements
    from joulemap.catalog.sheet import load_models

    try:
        if len(read_text(path, MAX_FILE_BYTES).strip().splitlines()) == 1:  # a new package has only the header
            return ()
    except FileError as error:
        raise CatalogueError(f"{path}: cannot be read: {error}") from error
    foreign = [name for name in list_measured(path) if not find_alike(entries, HardwareRef.read(name).label)]
    if foreign:
        raise CatalogueError(
            f"{path}: hardware: {', '.join(foreign)}: rows of a package must be of its own chips, "
            f"{', '.join(entries) or 'of which there is none'}"
        )
    return read_measurements(path, lambda _names: entries, load_models())


def list_owners(hardware: Iterable[Hardware]) -> Iterator[tuple[str, str]]:
    """Yield (folded name, owner) of the hardware of the catalogue and of the members of families."""
    from joulemap.catalog.family import list_members

    named: tuple[Hardware | Member, ...] = (*hardware, *list_members().values())
    for one in named:
        package = getattr(one, "package", "")  # members of families are built in
        owner = f"{one.id} of the package {package}" if package else f"{one.id} in the catalogue"
        for name in (one.id, *one.aliases, one.name):
            yield fold_name(name), owner


def read_project(folder: Path) -> Package:
    """Return the package in a folder, which need not be installed, by its `pyproject.toml`.

    Raises CatalogueError for a folder without a package of hardware.
    """
    path = folder / "pyproject.toml"
    try:
        project: dict[str, Any] = parse_toml(path.read_text(encoding="utf-8"))["project"]
        address = next(iter(project["entry-points"][GROUP].values()))
        name, version = str(project["name"]), str(project.get("version", "0"))
    except OSError as error:
        raise CatalogueError(f"{path}: cannot be read: {error.strerror or error}") from error
    except (KeyError, StopIteration, AttributeError, TypeError) as error:
        raise CatalogueError(
            f'{path}: expected [project] with a name and [project.entry-points."{GROUP}"] NAME = "MODULE"'
        ) from error
    except ValueError as error:
        raise CatalogueError(f"{path}: not valid TOML: {error}") from error
    module = str(address).partition(":")[0].replace(".", "/")
    inside = (folder / "src" / module, folder / module)
    return Package(name=name, version=version, folder=next((one for one in inside if one.is_dir()), inside[0]))
