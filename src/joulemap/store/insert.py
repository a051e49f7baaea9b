"""Rows into tables, through Arrow. Callers hold the transaction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from joulemap.store.connection import Connection


def insert_columns(connection: Connection, table: str, columns: Mapping[str, Any]) -> None:
    """Insert columns (numpy arrays or lists of equal length) into a table by name."""
    arrow = pa.table(dict(columns))
    connection.register("_incoming", arrow)
    names = ", ".join(columns)
    connection.execute(f"INSERT INTO {table} ({names}) SELECT {names} FROM _incoming")
    connection.unregister("_incoming")


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
