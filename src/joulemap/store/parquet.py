"""Tables written to Parquet files with the engine's own writer, and types that Python lacks, converted to text."""

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
from joulemap.store.insert import describe_arrays
from joulemap.store.literal import execute, quote_name, quote_text
from joulemap.store.migration import SCHEMA_VERSION
from joulemap.system.errors import SqlError
from joulemap.system.resource import package_version

ABSENT: Final = frozenset({"TIMESTAMP WITH TIME ZONE", "TIME WITH TIME ZONE", "INTERVAL", "TIMESTAMP_NS", "TIME_NS"})
"""SQL types that Python cannot represent without a further library or a loss of months, nanoseconds or time zone."""

CLIPPED: Final = frozenset({"DATE", "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS"})
"""SQL types whose infinite values become the first or last date that Python can represent."""

ENDS: Final = frozenset({date.min, date.max, datetime.min, datetime.max})

_PARTS: Final = re.compile(
    r"""(?P<quoted>"(?:[^"]|"")*"|'(?:[^']|'')*')|(?P<type>TIMESTAMP WITH TIME ZONE|TIME WITH TIME ZONE|\w+)"""
)


def replace_types(kind: str, types: Iterable[str]) -> str:
    """Return an SQL type in which each of `types` is replaced by VARCHAR, at any depth; empty if it contains none."""
    replaced = frozenset(types)
    text = _PARTS.sub(lambda match: "VARCHAR" if match["type"] in replaced else match[0], kind)
    return "" if text == kind else text


def has_endless(values: Iterable[Any]) -> bool:
    """Return whether a value contains an infinite date or time, or the first or last that Python can represent."""
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
"""Integer types that Parquet lacks; they are written as decimals, because the engine would round them to DOUBLE."""


WIDEST: Final = "DECIMAL(38, 0)"
"""SQL type that replaces integers of more than 64 bits in Parquet."""


def save_table(path: Path, table: Table[Any]) -> None:
    """Write a table to a Parquet file whose metadata contain its statement, parameters, columns and versions.

    Raises SqlError for a type that Parquet cannot represent, OSError if the file cannot be written.
    """
    write_parquet(path, [(column.name, column.type) for column in table.columns], table.cells, describe_table(table))


def describe_table(table: Table[Any]) -> dict[str, Any]:
    """Return the metadata for a table's file: statement, parameters, columns and versions."""
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
    """Write rows to a Parquet file. `columns` are (name, DuckDB type); `about` is stored as JSON metadata `joulemap`.

    Raises SqlError for a type that Parquet cannot represent, OSError if the file cannot be written.
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
    """Let the engine write the rows of a statement to a Parquet file; return their number.

    Raises SqlError for a type or number that Parquet cannot represent, OSError if the file cannot be written, and
    duckdb.Error for other failures.
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
