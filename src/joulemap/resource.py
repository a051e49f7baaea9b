"""What is installed: versions, and where the SQL files are, beside the package or at the top of a checkout."""

from __future__ import annotations

import importlib.metadata
from functools import cache
from pathlib import Path

_PACKAGE = Path(__file__).parent


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
