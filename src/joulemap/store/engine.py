"""The engine, as every database of joulemap is opened with it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import duckdb

IN_MEMORY: Final = ":memory:"

AVOIDED: Final = (("disabled_optimizers", "statistics_propagation"),)
"""What engine 2.0.0 does wrong: statistics of a text column that lies partly in a checkpoint's dictionary and partly in
later rows let a join fail with an internal error (docs/reliability.md)."""


def connect(
    place: str | Path, *, is_reading: bool = False, config: Iterable[tuple[str, str]] = ()
) -> duckdb.DuckDBPyConnection:
    """Return a connection to a file or to memory; raises duckdb.Error."""
    settings: dict[str, str | bool | int | float | list[str]] = {**dict(AVOIDED), **dict(config)}
    return duckdb.connect(os.fspath(place), read_only=is_reading, config=settings)
