"""Insert rows into tables, through numpy arrays, or Arrow for many rows. Callers hold the transaction."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from operator import attrgetter
from typing import Any, Final

import duckdb

from joulemap.store.literal import write

ARROW_ROWS: Final = 200_000
"""Rows above which Arrow's faster scan is worth the import of pyarrow, where it is installed."""


LISTED: Final = 10_000
"""Maximum distinct objects of a column that a statement lists."""


def insert_columns(connection: duckdb.DuckDBPyConnection, table: str, columns: Mapping[str, Any]) -> None:
    """Insert columns (numpy arrays or lists of equal length, None for null) into a table by name."""
    arrays, values = describe_arrays(columns)
    frame: Any = arrays
    if len(next(iter(arrays.values()))) >= ARROW_ROWS:
        with contextlib.suppress(ImportError):
            import pyarrow as pa

            frame = pa.table(arrays)
    connection.register("_incoming", frame)
    connection.execute(f"INSERT INTO internal.{table} ({', '.join(columns)}) SELECT {', '.join(values)} FROM _incoming")
    connection.unregister("_incoming")


def describe_arrays(columns: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return number arrays that the engine scans directly, and the SQL of each column over them.

    Missing numbers are marked in an array of their own, because engines disagree on masks. Other objects become a list
    in the statement with indices into it, because the engine would import pandas to inspect objects.
    """
    arrays, values = {}, []
    for name, column in columns.items():
        array = as_array(column)
        if hasattr(array, "mask"):
            arrays[f"{name}__missing"] = array.mask
            values.append(f"CASE WHEN NOT {name}__missing THEN {name} END")
            array = array.data
        elif array.dtype.kind == "O" and (listed := _list(array)) is not None:
            array, literal = listed
            values.append(f"({literal})[{name}]")
        else:
            values.append(name)
        arrays[name] = array
    return arrays, values


def _list(objects: Any) -> tuple[Any, str] | None:
    """Return the 1-based place of each object in a list, and the list as SQL; None if an object has no literal."""
    import numpy as np

    if set(map(type, objects)) == {str}:
        return _list_texts(objects)
    places: dict[str, int] = {}
    texts: dict[str, int] = {}
    indices = np.empty(len(objects), dtype=np.int32)
    for index, value in enumerate(objects):
        position = texts.get(value) if type(value) is str else None
        if position is None:
            literal = write(value)
            if literal is None or len(places) > LISTED:
                return None
            position = places.setdefault(literal, len(places) + 1)
            if type(value) is str:
                texts[value] = position
        indices[index] = position
    return indices, f"[{', '.join(places)}]"


def _list_texts(texts: Any) -> tuple[Any, str] | None:
    """Return the same as `_list` for texts, whose distinct ones alone are written."""
    import numpy as np

    one_of = dict.fromkeys(texts)
    if len(one_of) > LISTED:
        return None
    literals = list(map(write, one_of))
    if None in literals:
        return None
    places = {text: position for position, text in enumerate(one_of, 1)}
    indices = np.fromiter(map(places.__getitem__, texts), np.int32, len(texts))
    return indices, f"[{', '.join(map(str, literals))}]"


def as_array(values: Any) -> Any:
    """Return values as an array: numbers with missing ones masked, anything else as objects."""
    import numpy as np

    if isinstance(values, np.ndarray):
        return values.astype(object) if values.dtype.kind == "U" else values
    if isinstance(values, range):
        return np.arange(values.start, values.stop, values.step)
    kinds = set(map(type, values))
    if kinds == {str}:
        return np.array(values, dtype=object)
    known = [value for value in values if value is not None] if type(None) in kinds else values
    if known and all(issubclass(kind, int | float) for kind in kinds - {type(None)}) and not _is_rounded(known):
        if len(known) == len(values):
            return np.array(values)
        filled = np.array([known[0] if value is None else value for value in values])
        return np.ma.masked_array(filled, mask=[value is None for value in values])
    objects = np.empty(len(values), dtype=object)
    for index, value in enumerate(values):
        objects[index] = list(value) if isinstance(value, tuple) else value
    return objects


def _is_rounded(numbers: Sequence[Any]) -> bool:
    """Return whether integers would become floats, as numpy does if no integer type holds all of them."""
    import numpy as np

    return np.array([min(numbers), max(numbers)]).dtype.kind == "f" and not any(
        isinstance(one, float) for one in numbers
    )


def insert_records(connection: duckdb.DuckDBPyConnection, table: str, records: Sequence[object], **given: Any) -> None:
    """Insert records: every column of the table takes the attribute of its name, unless it is in `given`.

    A list or range in `given` has a value per row; anything else applies to all rows.
    """
    if not records:
        return
    count = len(records)
    columns: dict[str, Any] = {}
    for name, *_ in connection.execute(f"FROM internal.{table} LIMIT 0").description or ():
        if name not in given:
            columns[name] = list(map(attrgetter(name), records))
        else:
            value = given[name]
            columns[name] = value if isinstance(value, list | range) else [value] * count
    insert_columns(connection, table, columns)


def replace_records(connection: duckdb.DuckDBPyConnection, table: str, records: Sequence[object], **given: Any) -> None:
    """Replace all rows of a table by records, as `insert_records` inserts them."""
    connection.execute(f"DELETE FROM internal.{table}")
    insert_records(connection, table, records, **given)


def next_id(connection: duckdb.DuckDBPyConnection, table: str, column: str) -> int:
    """Return the first number that no row of a table has."""
    (number,) = connection.execute(f"SELECT coalesce(max({column}), 0) + 1 FROM internal.{table}").fetchall()[0]
    return int(number)


def utc_now() -> datetime:
    """Return the current time in UTC, in the form of TIMESTAMP columns."""
    return datetime.now(UTC).replace(tzinfo=None)
