"""Write an answer to a Parquet file with the engine's own writer, and convert types that Python lacks to text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any, Final

import duckdb

from joulemap.domain.table import Table
from joulemap.store.connection import as_file_error
from joulemap.store.engine import IN_MEMORY, connect
from joulemap.store.literal import execute, quote_name, quote_text
from joulemap.store.migration import SCHEMA_VERSION
from joulemap.store.row import describe_arrays
from joulemap.system.errors import SqlError
from joulemap.system.resource import package_version

ABSENT: Final = frozenset({"TIMESTAMP WITH TIME ZONE", "TIME WITH TIME ZONE", "INTERVAL", "TIMESTAMP_NS", "TIME_NS"})
"""Types that need a library, or lose months, nanoseconds or a zone."""

CLIPPED: Final = frozenset({"DATE", "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS"})
"""Types whose infinity becomes the last or first day that Python can represent."""

ENDS: Final = frozenset({date.min, date.max, datetime.min, datetime.max})

_PARTS: Final = re.compile(
    r"""(?P<quoted>"(?:[^"]|"")*"|'(?:[^']|'')*')|(?P<type>TIMESTAMP WITH TIME ZONE|TIME WITH TIME ZONE|\w+)"""
)


def replace_types(kind: str, types: Iterable[str]) -> str:
    """Return a type with VARCHAR in place of each of some types, at any depth; "" if it has none of them."""
    replaced = frozenset(types)
    text = _PARTS.sub(lambda found: "VARCHAR" if found["type"] in replaced else found[0], kind)
    return "" if text == kind else text


def has_endless(values: Iterable[Any]) -> bool:
    """Return whether any date or time is infinite, or is the last one that Python can represent."""
    for value in values:
        if isinstance(value, date):
            if value in ENDS:
                return True
        elif isinstance(value, list | tuple):
            if has_endless(value):
                return True
        elif isinstance(value, dict) and has_endless(value.values()):
            return True
    return False


WIDE_TYPES: Final = ("HUGEINT", "UHUGEINT")
"""Integers that Parquet lacks, and that the engine would round to DOUBLE; they are written as decimals."""


WIDEST: Final = "DECIMAL(38, 0)"
"""Parquet type that replaces integers wider than 64 bits."""


def save_table(path: Path, table: Table[Any]) -> None:
    """Write a table as Parquet, with its statement, parameters, columns and versions in the file's metadata.

    Raises SqlError for a type that Parquet cannot hold, OSError if the file cannot be written.
    """
    write_parquet(path, [(column.name, column.type) for column in table.columns], table.cells, describe_table(table))


def describe_table(table: Table[Any]) -> dict[str, Any]:
    """Return the metadata of a table's file: statement, parameters, columns and versions."""
    return {
        "title": table.title,
        "sql": table.sql,
        "parameters": dict(table.parameters),
        "columns": [
            {"name": column.name, "type": column.type, "unit": column.unit, "meaning": column.meaning}
            for column in table.columns
        ],
        "package_version": package_version("joulemap"),
        "schema_version": SCHEMA_VERSION,
        "duckdb_version": package_version("duckdb"),
    }


def write_parquet(
    path: Path, columns: Sequence[tuple[str, str]], rows: Sequence[Sequence[Any]], about: Mapping[str, Any]
) -> None:
    """Write rows under columns of (name, DuckDB type); `about` becomes the file's metadata `joulemap`, as JSON.

    Raises SqlError for a type that Parquet cannot hold, OSError if the file cannot be written.
    """
    names = [quote_name(name) for name, _ in columns]
    kinds = [WIDEST if kind in WIDE_TYPES else kind for _, kind in columns]
    connection = connect(IN_MEMORY)
    try:
        connection.execute(f"CREATE TABLE answer ({', '.join(map(' '.join, zip(names, kinds, strict=True)))})")
        if rows:
            arrays, values = describe_arrays({f"c{n}": list(one) for n, one in enumerate(zip(*rows, strict=True))})
            connection.register("incoming", arrays)
            connection.execute(f"INSERT INTO answer SELECT {', '.join(values)} FROM incoming")
        copy_to_parquet(connection, "FROM answer", {}, path, about)
    except duckdb.Error as error:
        raise SqlError(f"cannot be written as Parquet: {str(error).splitlines()[0]}") from error
    finally:
        connection.close()


def copy_to_parquet(
    connection: duckdb.DuckDBPyConnection,
    statement: str,
    parameters: Mapping[str, Any],
    path: Path,
    about: Mapping[str, Any],
) -> int:
    """Write the rows of a statement to a file with the engine; return their number.

    Raises SqlError for a type or number that Parquet cannot hold, OSError if the file cannot be written, duckdb.Error.
    """
    metadata = quote_text(json.dumps(about, ensure_ascii=False, default=str))
    options = f"FORMAT parquet, USE_TMP_FILE false, KV_METADATA {{joulemap: {metadata}}}"
    copy = f"COPY ({statement}) TO {quote_text(str(path))} ({options})"
    try:
        done = execute(connection, copy, parameters)
        return int(done.fetchall()[0][0])
    except duckdb.IOException as error:
        raise as_file_error(error) from error
    except (duckdb.NotSupportedError, duckdb.ConversionException) as error:
        raise SqlError(f"cannot be written as Parquet: {str(error).splitlines()[0]}") from error
