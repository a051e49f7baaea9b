"""The engine, as every database of joulemap is opened with it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import duckdb

from joulemap.store.header import BLOCK

IN_MEMORY: Final = ":memory:"

SETTINGS: Final = (
    ("storage_compatibility_version", "latest"),
    ("default_block_size", str(BLOCK)),
    ("dynamic_or_filter_threshold", "1000"),
)
"""Files are of the engine's own newest layout: only there do file and log have an identity (see `header`).

Up to so many runs that are asked about are looked up in what is known of each group of rows, which is then left out
where it has none of them: above the threshold only what lies before the first or after the last.
"""

SMALL_BYTES: Final = 32 << 20
"""A file below this has tables of one row group each, which threads cannot share: a second one only costs."""


def connect(
    place: str | Path, *, is_reading: bool = False, config: Iterable[tuple[str, str]] = ()
) -> duckdb.DuckDBPyConnection:
    """Return a connection to a file or to memory, of one thread where there is little; raises duckdb.Error."""
    settings: dict[str, str | bool | int | float | list[str]] = {**dict(SETTINGS), **dict(config)}
    if not _is_large(place):
        settings["threads"] = 1
    return duckdb.connect(os.fspath(place), read_only=is_reading, config=settings)


def _is_large(place: str | Path) -> bool:
    """Return whether a file is there that threads can share; memory is none."""
    try:
        return os.stat(place).st_size >= SMALL_BYTES
    except (OSError, ValueError):
        return False
