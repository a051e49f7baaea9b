"""Empty databases of the current schema: copies of one, because making one takes a fifth of a second."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

import duckdb

from joulemap.store.connection import Connection, make_empty


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    """Return a folder that is there until the tests end, with the database to copy."""
    folder = tempfile.TemporaryDirectory(prefix="joulemap-blank-")
    make_empty(Path(folder.name) / "blank.duckdb")
    return folder


def open_blank() -> Connection:
    """Return an empty database in memory."""
    connection = duckdb.connect(":memory:")
    connection.execute(f"ATTACH '{_folder().name}/blank.duckdb' AS blank (READ_ONLY)")
    connection.execute("COPY FROM DATABASE blank TO memory")
    connection.execute("DETACH blank")
    return connection
