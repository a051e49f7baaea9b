"""The installed package: its SQL files, beside it or at the top of a checkout, code, cache, versions of others."""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import re
from functools import cache
from pathlib import Path
from typing import Final

_PACKAGE = Path(__file__).parent

CACHE: Final = "JOULEMAP_CACHE"
"""Environment variable: the folder for what joulemap keeps to be faster, and can do without."""

_PROSE: Final = re.compile(r'^[ \t]*"""(?s:.*?)"""[ \t]*\n|^[ \t]*#.*\n|^[ \t]*\n', re.MULTILINE)


@cache
def folder(name: str) -> Path:
    """Return the folder `schemas` or `queries`; raises FileNotFoundError in a broken installation."""
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


def digest_code(*places: str) -> str:
    """Return sixteen hexadecimal digits over the code of files and folders of the package.

    Comments on lines of their own, docstrings and empty lines do not count.
    """
    digest = hashlib.sha256()
    for place in places:
        path = _PACKAGE / place
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            digest.update(f"{file.relative_to(_PACKAGE).as_posix()}\n".encode())
            digest.update(_PROSE.sub("", file.read_text(encoding="utf-8")).encode())
    return digest.hexdigest()[:16]


def cache_folder() -> Path:
    """Return where joulemap keeps what it can do without: `$JOULEMAP_CACHE`, or its folder under the user's cache."""
    named = os.environ.get(CACHE)
    if named:
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "joulemap"
