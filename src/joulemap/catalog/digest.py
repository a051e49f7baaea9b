"""The identity of the catalogue, known without parsing it."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import Final

DATA: Final = Path(__file__).parent / "data"

ZOO: Final = DATA / "zoo"
"""Workloads that ship with the package."""


def _data_files() -> list[Path]:
    folders = (DATA / "architecture", DATA / "hardware", DATA / "model", ZOO)
    return [path for folder in folders for path in sorted(folder.iterdir()) if path.suffix in (".toml", ".csv")]


@cache
def catalogue_digest() -> str:
    """Return sixteen hexadecimal digits over the bytes of all data files, without parsing them."""
    digest = hashlib.sha256()
    for path in _data_files():
        digest.update(path.name.encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
