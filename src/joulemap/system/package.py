"""Find packages with hardware: folders of data that other distributions install.

    [project.entry-points."joulemap.hardware"]
    acme = "acme_chips"

The entry point names a Python package. joulemap reads the files in its folder, which are laid out as in `catalog/data`:

    acme_chips/hardware/*.toml          one chip each
    acme_chips/measurement/*.csv        measured runs of these chips
    acme_chips/architecture/NAME.toml   a class of its own, with the module NAME.py
    acme_chips/page.md                  documentation

Of a package, only the module of a class is ever imported, and only to evaluate a chip of that class.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Final

from joulemap.system.entry_point import list_entry_points
from joulemap.system.record import frozen

GROUP: Final = "joulemap.hardware"
"""Entry-point group of packages with hardware."""

_TRIED: Final[list[Package]] = []
"""Packages that this process treats as installed."""


@frozen(kw_only=True)
class Package:
    """Package with hardware."""

    name: str
    """Name of its distribution, as in `pip install NAME`."""
    version: str
    folder: Path
    """Folder of the Python package; it may not exist."""

    @property
    def label(self) -> str:
        """Name and version, which the database stores with each of its chips."""
        return f"{self.name} {self.version}"

    @property
    def page(self) -> Path | None:
        """File with its documentation; None without one."""
        page = self.folder / "page.md"
        return page if page.is_file() else None

    def list_hardware(self) -> list[Path]:
        """Return its hardware files."""
        return _list_files(self.folder / "hardware", "*.toml")

    def list_measurements(self) -> list[Path]:
        """Return its files of measurements."""
        return _list_files(self.folder / "measurement", "*.csv")

    def list_classes(self) -> list[Path]:
        """Return the data files of its classes."""
        return _list_files(self.folder / "architecture", "*.toml")

    def digest(self) -> str:
        """Return its name and version with a digest of all files that joulemap reads."""
        files = (*self.list_hardware(), *self.list_measurements(), *self.list_classes())
        return f"{self.label} {_digest_files(self.folder, files)} {self.digest_code()}"

    def digest_code(self) -> str:
        """Return a digest of its Python files, which the formulas of its classes may use; empty without a class."""
        return _digest_files(self.folder, _list_files(self.folder, "**/*.py")) if self.list_classes() else ""


def list_packages() -> tuple[Package, ...]:
    """Return the installed packages with hardware by name, then those on trial."""
    tried = {one.name for one in _TRIED}
    return (*(one for one in _list_installed() if one.name not in tried), *_TRIED)


@contextlib.contextmanager
def trying(package: Package) -> Iterator[None]:
    """Treat a package as installed, in place of an installed one of its name."""
    _TRIED.append(package)
    try:
        yield
    finally:
        _TRIED.remove(package)


def digest_packages() -> str:
    """Return a text that changes with every file and version of the packages; empty without any."""
    return "|".join(one.digest() for one in list_packages())


def find_class_package(architecture: str) -> Package | None:
    """Return the package with a class of this name; None if there is none."""
    return next(
        (one for one in list_packages() if (one.folder / "architecture" / f"{architecture}.py").is_file()), None
    )


@cache
def _list_installed() -> tuple[Package, ...]:
    found = {
        one.distribution: Package(
            name=one.distribution, version=one.version, folder=_find_folder(one.address.partition(":")[0])
        )
        for one in list_entry_points(GROUP)
    }
    return tuple(found[name] for name in sorted(found))


def _find_folder(module: str) -> Path:
    """Return the folder of a Python package; a folder that does not exist if it has none.

    Only the first part of a dotted name is looked up, because a search for the whole name would import the others.
    """
    from importlib.util import find_spec

    first, *parts = module.split(".")
    with contextlib.suppress(ImportError, ValueError):
        spec = find_spec(first)
        for location in (spec and spec.submodule_search_locations) or ():
            if (folder := Path(location, *parts)).is_dir():
                return folder
    return Path(module.replace(".", "/"))


def _list_files(folder: Path, pattern: str) -> list[Path]:
    """Return the regular files that match a pattern: a named pipe would block its reader."""
    return sorted(one for one in folder.glob(pattern) if one.is_file())


def _digest_files(folder: Path, files: Iterable[Path]) -> str:
    """Return a digest of the names and bytes of files below a folder."""
    stamps = []
    for file in files:
        with contextlib.suppress(OSError):
            status = file.stat()
            stamps.append((file.relative_to(folder).as_posix(), status.st_ino, status.st_size, status.st_mtime_ns))
    return _digest(folder, tuple(stamps))


@cache
def _digest(folder: Path, stamps: tuple[tuple[str, int, int, int], ...]) -> str:
    digest = hashlib.sha256()
    for name, *_ in stamps:
        digest.update(name.encode())
        digest.update(hashlib.sha256((folder / name).read_bytes()).digest())
    return digest.hexdigest()[:16]
