"""Empty databases of the current schema: copies of one, because making one takes a fifth of a second."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import duckdb

from joulemap.store.connection import Connection, make_empty

Fill = Callable[[Connection], None]


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    """Return a folder that is there until the tests end, for the databases to copy."""
    return tempfile.TemporaryDirectory(prefix="joulemap-blank-")


@cache
def _make(fill: Fill | None) -> Path:
    """Return a database to copy."""
    path = Path(_folder().name) / f"{fill.__name__ if fill else 'blank'}.duckdb"
    make_empty(path)
    if fill is not None:
        with duckdb.connect(str(path)) as connection:
            fill(connection)
    return path


def open_blank(fill: Fill | None = None) -> Connection:
    """Return an empty database in memory, with what `fill` writes; that is written once."""
    connection = duckdb.connect(":memory:")
    connection.execute(f"ATTACH '{_make(fill)}' AS blank (READ_ONLY)")
    connection.execute("COPY FROM DATABASE blank TO memory")
    connection.execute("DETACH blank")
    return connection
