"""Package of a Python file, and the source tree from which its imports come. Imports no torch."""

from __future__ import annotations

import contextlib
import hashlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Final

INSTALLED: Final = frozenset({"site-packages", "dist-packages"})
"""Names of folders with installed packages, which do not belong to the source tree around them."""


def find_package(path: Path) -> tuple[Path, str]:
    """Return (folder at which a file's absolute imports start, name of its package, empty without one).

    A package consists of the folders above the file that have an `__init__.py`.
    """
    root, names = path.resolve().parent, list[str]()
    while (root / "__init__.py").is_file() and root.name:
        names.insert(0, root.name)
        root = root.parent
    return root, ".".join(names)


def list_code(path: Path) -> list[Path]:
    """Return every Python file of the outermost package that contains a file; empty if it is in no package."""
    root, package = find_package(path)
    return sorted((root / package.partition(".")[0]).rglob("*.py")) if package else []


def digest_package(path: Path) -> str:
    """Return sixteen hexadecimal digits that identify all code of a file's package; empty if it is in none."""
    files = list_code(path)
    digest = hashlib.sha256()
    for file in files:
        digest.update(f"{file} {file.stat().st_size} ".encode(errors="surrogateescape"))
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16] if files else ""


@contextlib.contextmanager
def importing(tree: Path, other: Path) -> Iterator[None]:
    """Import from a source tree first in this context, and unload its modules afterwards.

    Modules imported before from the tree, or from its version `other`, are hidden meanwhile.
    """
    trees = (tree.resolve(), other.resolve())
    aside = _take_out(trees)
    before, path = set(sys.modules), list(sys.path)
    sys.path[:0] = [str(place) for place in (tree / "src", tree) if place.is_dir()]
    try:
        yield
    finally:
        sys.path[:] = path
        _take_out(trees, before)
        sys.modules.update(aside)


def _take_out(trees: tuple[Path, ...], kept: set[str] | frozenset[str] = frozenset()) -> dict[str, ModuleType]:
    """Remove and return the entries of `sys.modules` below these trees, except installed packages and joulemap."""
    found = {}
    for name, module in list(sys.modules.items()):
        place = getattr(module, "__file__", None) or next(iter(getattr(module, "__path__", ())), None)
        if not isinstance(place, str) or name in kept or name.partition(".")[0] in ("joulemap", "__main__"):
            continue
        parts = Path(place).resolve()
        if any(parts.is_relative_to(tree) and INSTALLED.isdisjoint(parts.relative_to(tree).parts) for tree in trees):
            found[name] = sys.modules.pop(name)
    return found
