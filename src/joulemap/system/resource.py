"""Locate parts of the installed package: SQL files (next to it or at the top of a checkout), code, and package
versions.

Results that depend only on these files are cached until one of the files changes.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import re
from collections.abc import Callable, Collection, Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeVar

from joulemap.system.cache import cache_folder, read_cached, write_cached

_PACKAGE = Path(__file__).parents[1]

Value = TypeVar("Value", str, dict[str, Any])
"""JSON-compatible value."""

_COMMENT: Final = re.compile(r"^[ \t]*#.*\n|^[ \t]*\n", re.MULTILINE)


@cache
def folder(name: str) -> Path:
    """Return the folder `schemas` or `queries`; FileNotFoundError in a broken installation."""
    for candidate in (_PACKAGE / name, _PACKAGE.parents[1] / name):
        if candidate.is_dir():
            return candidate
    raise FileNotFoundError(f"the folder {name} is missing from this installation of joulemap")


@cache
def package_version(name: str) -> str:
    """Return the installed version of a package without importing it, or `absent`."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "absent"


def need_package(name: str, extra: str) -> None:
    """Raise MissingPackageError if an optional package is not installed, naming the extra that installs it."""
    from importlib.util import find_spec

    from joulemap.system.errors import MissingPackageError

    if find_spec(name) is None:
        raise MissingPackageError(name, extra)


OLDEST_TORCH: Final = (2, 9)
"""Lowest supported PyTorch release, as tested and as required in pyproject.toml."""


def need_torch(what: str, package: str = "") -> None:
    """Raise ModelError if PyTorch, which `what` needs, is missing or older than the tested releases.

    Raises it too if `package` is missing, which provides the classes of a published model.
    """
    from joulemap.system.errors import ModelError

    if package and package_version(package) == "absent":
        raise ModelError(
            f"{what} needs PyTorch and {package}: pip install 'joulemap[models]'; its built-in input needs neither"
        )
    version = package_version("torch")
    if version == "absent":
        raise ModelError(f"{what} needs PyTorch: pip install 'joulemap[torch]'; built-in models work without it")
    release = re.match(r"(\d+)\.(\d+)", version)
    if release is not None and tuple(map(int, release.groups())) < OLDEST_TORCH:
        oldest = ".".join(map(str, OLDEST_TORCH))
        raise ModelError(f"{what} needs PyTorch {oldest} or newer, this is {version}: pip install 'joulemap[torch]'")


def digest_code(*places: str, without: Collection[str] = ()) -> str:
    """Return a digest of the code of files and folders of the package, as sixteen hexadecimal digits.

    Files in `without` are left out. Comments, docstrings, layout and the wording of errors do not count; in other
    files, comment lines do not.
    """
    name = " ".join((*places, *(f"-{path}" for path in sorted(without))))
    return remember(name, lambda: read_code(*places, without=without))


def read_code(*places: str, without: Collection[str] = ()) -> str:
    """Compute the digest that `digest_code` caches."""
    digest = hashlib.sha256()
    for path in places:
        for name, file in list_code(path).items():
            if name not in without:
                digest.update(f"{name}\n{_normalize(file)}\n".encode())
    return digest.hexdigest()[:16]


def list_code(name: str) -> dict[str, Path]:
    """Return name -> path of a file of the package, or of the Python files in a folder of it."""
    path = _PACKAGE / name
    files = sorted(path.rglob("*.py")) if path.is_dir() else [path]
    return {file.relative_to(_PACKAGE).as_posix(): file for file in files}


def _normalize(file: Path) -> str:
    text = file.read_text(encoding="utf-8")
    if file.suffix != ".py":
        return _COMMENT.sub("", text)
    from joulemap.system.code import normalize_code

    return normalize_code(text)


def remember(name: str, make: Callable[[], Value]) -> Value:
    """Return the cached result of `make`, which depends only on the package's files; recompute it if they change."""
    kept = cache_folder() / "code.json"
    seen, values = _read_remembered(kept)
    if name not in values:
        values |= {**_values_at(kept, seen), name: make()}  # with those that other processes cached meanwhile
        write_cached(kept, {"seen": seen, "values": values})
    value: Value = values[name]
    return value


@cache
def _read_remembered(kept: Path) -> tuple[str, dict[str, Any]]:
    """Return a hash of the state of all files of the package, and the cached values (name -> value) for it."""
    seen = hashlib.sha256(repr(sorted(_look(str(_PACKAGE)))).encode()).hexdigest()
    return seen, _values_at(kept, seen)


def _values_at(kept: Path, seen: str) -> dict[str, Any]:
    """Return the values in a cache file; empty if they are of another state of the files."""
    cached = read_cached(kept)
    values = cached.get("values")
    return values if cached.get("seen") == seen and isinstance(values, dict) else {}


def _look(top: str) -> Iterator[tuple[object, ...]]:
    """Yield the state of every file below a folder, except bytecode; it changes whenever a file is written."""
    with os.scandir(top) as entries:
        for entry in entries:
            if entry.is_dir():
                if entry.name != "__pycache__":
                    yield from _look(entry.path)
            else:
                status = entry.stat()
                yield entry.path, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
