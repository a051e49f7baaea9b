"""An archive of runs to a database: first into one of its own, as old as the archive; then what is new into another."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import duckdb

from joulemap.errors import CatalogueError
from joulemap.store.archive import KEYS, Manifest
from joulemap.store.connection import Connection, transaction
from joulemap.store.migration import migrate
from joulemap.store.write_parquet import quote_name, quote_text

ACTION: Final = "architecture, category, common_category, component, action, part, per"
"""What tells two actions apart."""


def read_tables(folder: Path, manifest: Manifest, path: Path) -> Connection:
    """Return an open database at `path` with the archive's tables and nothing else, migrated to this schema.

    Raises CatalogueError, naming the file, for columns that are not those of the schema, or rows that break its checks.
    """
    connection = duckdb.connect(str(path))
    try:
        migrate(connection, manifest.schema_version)
        tables = {str(name) for (name,) in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()}
        missing = sorted((tables & set(KEYS)) - set(manifest.entries))
        surplus = sorted(set(manifest.entries) - tables)
        if missing or surplus:
            what = f"lacks {', '.join(missing)}" if missing else f"has {', '.join(surplus)}, later than its schema"
            raise CatalogueError(f"{folder} is not whole: it {what}")
        for table, entry in manifest.entries.items():
            file = folder / f"{table}.parquet"
            try:
                _load(connection, table, file, entry.rows)
            except duckdb.Error as error:
                raise CatalogueError(f"{file} is damaged: {str(error).splitlines()[0]}") from error
        migrate(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _load(connection: Connection, table: str, file: Path, row_count: int) -> None:
    source = f"read_parquet({quote_text(str(file))})"
    found = [str(name) for name, *_ in connection.execute(f"DESCRIBE FROM {source}").fetchall()]
    expected = _columns(connection, table)
    if set(found) != set(expected):
        raise CatalogueError(f"{file} has the columns {', '.join(found)}; expected {', '.join(expected)}")
    names = ", ".join(map(quote_name, expected))
    ((count,),) = connection.execute(f"INSERT INTO {table} ({names}) SELECT {names} FROM {source}").fetchall()
    if count != row_count:
        raise CatalogueError(f"{file} has {count} rows, the manifest says {row_count}")


def merge_archive(connection: Connection, path: Path) -> tuple[int, int]:
    """Store the runs of a database at `path`, which this one lacks, with all that they consist of.

    Returns (new runs, runs stored already), in one transaction. What has a key or digest is stored once; ids are new.
    """
    databases = {str(name) for (name,) in connection.execute("SELECT database_name FROM duckdb_databases()").fetchall()}
    archive = next(name for name in ("archive", "other_archive") if name not in databases)
    connection.execute(f"ATTACH {quote_text(str(path))} AS {archive} (READ_ONLY)")
    try:
        with transaction(connection):
            _number(connection, archive, "action", "action_id", ACTION)
            _number(connection, archive, "workload", "workload_id", "workload_key")
            _number(connection, archive, "run", "run_id", "run_key")
            for key, table in (("hardware_digest", "hardware_version"), ("calibration_digest", "calibration")):
                connection.execute(
                    f"CREATE TEMP TABLE fresh_{key} AS SELECT {key} FROM {archive}.{table} "
                    f"WHERE {key} NOT IN (SELECT {key} FROM {table})"
                )
            for table, key in KEYS.items():
                _insert(connection, archive, table, key)
            counts = connection.execute("SELECT count(*) FILTER (WHERE is_fresh), count(*) FROM new_run_id").fetchall()
    finally:
        connection.execute(f"DETACH {archive}")
    ((fresh, total),) = counts
    return int(fresh), int(total) - int(fresh)


def _number(connection: Connection, archive: str, table: str, id_column: str, identity: str) -> None:
    """Make a table of old id -> new id: that of the same row here, or the next numbers for what is fresh."""
    connection.execute(
        f"CREATE TEMP TABLE new_{id_column} AS "
        f"SELECT a.{id_column} AS old, h.{id_column} IS NULL AS is_fresh, coalesce(h.{id_column}, "
        f"(SELECT coalesce(max({id_column}), 0) FROM {table}) + row_number() OVER ("
        f"PARTITION BY h.{id_column} IS NULL ORDER BY a.{id_column} "
        f"ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)) AS new "
        f"FROM {archive}.{table} AS a LEFT JOIN {table} AS h USING ({identity})"
    )


def _insert(connection: Connection, archive: str, table: str, key: str) -> None:
    """Insert the rows of a table that belong to something fresh, in their order, ids replaced by those here."""
    columns = _columns(connection, table)
    source = f"{archive}.{table} AS t"
    values = {name: f"t.{quote_name(name)}" for name in columns}
    for name in columns:
        if name in ("action_id", "workload_id", "run_id"):
            values[name] = f"{name}_map.new"
            source += f" JOIN new_{name} AS {name}_map ON {name}_map.old = t.{name}"
    rows = f"{key}_map.is_fresh" if key.endswith("_id") else f"t.{key} IN (SELECT {key} FROM fresh_{key})"
    connection.execute(
        f"INSERT INTO {table} ({', '.join(map(quote_name, columns))}) SELECT {', '.join(values.values())} "
        f"FROM {source} WHERE {rows} ORDER BY t.rowid"
    )


def _columns(connection: Connection, table: str) -> list[str]:
    return [str(name) for name, *_ in connection.execute(f"DESCRIBE {table}").fetchall()]
