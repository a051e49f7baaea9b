"""Version of the intervals that a database holds: the formulas and error scales that they were computed with."""

from __future__ import annotations

import duckdb

from joulemap.store.literal import execute


def has_intervals(connection: duckdb.DuckDBPyConnection, version: str) -> bool:
    """Return whether the recorded version of the intervals of stored runs is this one."""
    return connection.execute("SELECT version FROM internal.interval_version").fetchall() == [(version,)]


def has_other_intervals(connection: duckdb.DuckDBPyConnection, version: str) -> bool:
    """Return whether the database has runs, and their intervals are of another version."""
    is_same = has_intervals(connection, version)
    return not is_same and bool(connection.execute("SELECT 1 FROM internal.run_total LIMIT 1").fetchall())


def record_intervals(connection: duckdb.DuckDBPyConnection, version: str) -> None:
    """Store the version of the intervals of all stored runs. The caller holds the transaction."""
    connection.execute("DELETE FROM internal.interval_version")
    execute(connection, "INSERT INTO internal.interval_version VALUES ($version)", {"version": version})
