"""Rows into tables, through numpy arrays, or Arrow where there are many. Callers hold the transaction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from joulemap.store.connection import Connection

ARROW_ROWS: Final = 200_000
"""From here Arrow's faster scan is worth importing pyarrow for."""


def insert_columns(connection: Connection, table: str, columns: Mapping[str, Any]) -> None:
    """Insert columns (numpy arrays or lists of equal length, None for null) into a table by name."""
    frame: Any = {name: as_array(values) for name, values in columns.items()}
    if len(next(iter(frame.values()))) >= ARROW_ROWS:
        import pyarrow as pa

        frame = pa.table(frame)
    connection.register("_incoming", frame)
    names = ", ".join(columns)
    connection.execute(f"INSERT INTO {table} ({names}) SELECT {names} FROM _incoming")
    connection.unregister("_incoming")


def as_array(values: Any) -> Any:
    """Return an array that the engine scans as it is: numbers as numbers, missing ones masked, all else as objects."""
    if isinstance(values, np.ndarray):
        return values.astype(object) if values.dtype.kind == "U" else values
    known = [value for value in values if value is not None]
    if known and all(isinstance(value, int | float) for value in known):
        if len(known) == len(values):
            return np.array(values)
        filled = np.array([known[0] if value is None else value for value in values])
        return np.ma.masked_array(filled, mask=[value is None for value in values])
    objects = np.empty(len(values), dtype=object)
    for index, value in enumerate(values):
        objects[index] = value
    return objects


def insert_records(
    connection: Connection, table: str, records: Sequence[Any], fields: Iterable[str], **constants: Any
) -> None:
    """Insert these fields of records, beside columns that are the same in every row."""
    if not records:
        return
    columns: dict[str, Any] = {name: [value] * len(records) for name, value in constants.items()}
    for field in fields:
        columns[field] = [getattr(record, field) for record in records]
    insert_columns(connection, table, columns)


def next_id(connection: Connection, table: str, column: str) -> int:
    """Return the first number that no row of a table has."""
    (number,) = connection.execute(f"SELECT coalesce(max({column}), 0) + 1 FROM {table}").fetchall()[0]
    return int(number)
