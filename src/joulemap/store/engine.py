"""The engine, as every database of joulemap is opened with it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import duckdb

IN_MEMORY: Final = ":memory:"

SETTINGS: Final = (("storage_compatibility_version", "latest"),)
"""Files are of the engine's own newest layout: only there do file and log have an identity (see `header`)."""


def connect(
    place: str | Path, *, is_reading: bool = False, config: Iterable[tuple[str, str]] = ()
) -> duckdb.DuckDBPyConnection:
    """Return a connection to a file or to memory; raises duckdb.Error."""
    settings: dict[str, str | bool | int | float | list[str]] = {**dict(SETTINGS), **dict(config)}
    return duckdb.connect(os.fspath(place), read_only=is_reading, config=settings)
