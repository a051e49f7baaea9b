"""Where the SQL files are: beside the package in a wheel, at the top of the tree in a checkout."""

from __future__ import annotations

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
