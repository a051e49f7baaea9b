"""Comparison of a database's tables, views and macros with those that this version of joulemap creates."""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from collections.abc import Mapping
from functools import cache
from typing import Final

from joulemap.store.catalogue import write_metrics
from joulemap.store.connection import Connection
from joulemap.store.engine import connect
from joulemap.store.migration import migrate
from joulemap.store.surface import holds_surface

_DEFINITIONS: Final = """
WITH meaning AS (
    SELECT
        schema_oid,
        table_name AS name,
        string_agg(concat(column_name, data_type, ' -- ', comment), chr(10) ORDER BY column_index) AS columns
    FROM duckdb_columns()
    WHERE database_name = current_database() AND NOT internal
    GROUP BY schema_oid, table_name
)
SELECT
    concat('table ', nullif(t.schema_name, 'main') || '.', t.table_name),
    concat(t.sql, ' -- ', t.comment, m.columns)
FROM duckdb_tables() AS t
JOIN meaning AS m ON m.schema_oid = t.schema_oid AND m.name = t.table_name
WHERE database_name = current_database() AND NOT internal
UNION ALL
SELECT 'view ' || v.view_name, concat(v.sql, ' -- ', v.comment, m.columns)
FROM duckdb_views() AS v
JOIN meaning AS m ON m.schema_oid = v.schema_oid AND m.name = v.view_name
WHERE database_name = current_database() AND NOT internal
UNION ALL
SELECT
    'macro ' || function_name,
    string_agg(
        concat(CAST(parameters AS VARCHAR), CAST(parameter_types AS VARCHAR), macro_definition), '; '
        ORDER BY len(parameters), macro_definition
    )
FROM duckdb_functions()
WHERE database_name = current_database() AND NOT internal
GROUP BY function_name
UNION ALL
SELECT 'index ' || index_name, sql
FROM duckdb_indexes()
WHERE database_name = current_database()
UNION ALL
SELECT 'sequence ' || sequence_name, sql
FROM duckdb_sequences()
WHERE database_name = current_database()
UNION ALL
SELECT 'type ' || type_name, concat(logical_type, CAST(labels AS VARCHAR))
FROM duckdb_types()
WHERE database_name = current_database() AND NOT internal
UNION ALL
SELECT 'schema ' || schema_name, ''
FROM duckdb_schemas()
WHERE database_name = current_database() AND NOT internal
"""

_EXCLUDED: Final = re.compile(r"(?<=EXCLUDE \()[^()]*(?=\))")
"""Pattern of the columns in an `EXCLUDE`, which the engine lists in no fixed order."""


def find_changes(connection: Connection) -> list[tuple[str, str, str]]:
    """Return (kind and name, expected state, found state) of each table, view or macro that differs from joulemap's.

    Macros and views of another version are accepted, because no statement uses them. Those that another version of the
    engine stored are not compared, because their texts differ where their meaning does not.
    """
    ((storage,),) = connection.execute(
        "SELECT tags['storage_version'] FROM duckdb_databases() WHERE database_name = current_database()"
    ).fetchall()
    expected, actual = _expect(storage.removesuffix("+")), _describe(connection)
    changes = []
    asked = sorted(expected.keys() | actual.keys())
    if not holds_surface(connection, by_this_engine=True):
        asked = [what for what in asked if not what.startswith(("view ", "macro "))]
    for what in asked:
        if what not in actual:
            changes.append((what, "as joulemap makes it", "missing"))
        elif what not in expected:
            changes.append((what, "nothing", "one that joulemap does not make"))
        elif actual[what] != expected[what]:
            changes.append((what, "as joulemap makes it", "changed"))
    return changes


@cache
def _expect(storage: str) -> Mapping[str, str]:
    """Return kind and name -> SQL of each table, view and macro that joulemap creates in a new database.

    It is a file that is closed and opened again, because the engine prints what it read from a storage version
    differently from what it has just parsed.
    """
    with tempfile.TemporaryDirectory(prefix="joulemap-") as folder:
        path = os.path.join(folder, "expected.duckdb")
        config = (("storage_compatibility_version", storage),)
        with contextlib.closing(connect(path, config=config)) as fresh:
            migrate(fresh)
            write_metrics(fresh)
        with contextlib.closing(connect(path, is_reading=True)) as fresh:
            return _describe(fresh)


def _describe(connection: Connection) -> dict[str, str]:
    rows = connection.execute(_DEFINITIONS).fetchall()
    return {
        str(what): _EXCLUDED.sub(lambda one: ", ".join(sorted(one[0].split(", "))), str(definition))
        for what, definition in rows
    }
