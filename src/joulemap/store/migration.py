"""Numbered, forward-only migrations of the schema. Each is applied and recorded in one transaction."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import cache
from typing import Final

import duckdb

from joulemap.store.literal import execute
from joulemap.store.surface import COMMENT, holds_surface, write_surface
from joulemap.system.errors import DatabaseError
from joulemap.system.record import frozen
from joulemap.system.resource import folder

SCHEMA_VERSION: Final = 1
"""Number of the newest migration; a test compares it with the files."""

_RECORD_TABLE: Final = """
CREATE SCHEMA IF NOT EXISTS internal;
CREATE TABLE IF NOT EXISTS internal.schema_migration (
    version INTEGER PRIMARY KEY,
    name VARCHAR NOT NULL,
    checksum VARCHAR NOT NULL,
    applied_at TIMESTAMP NOT NULL
);
COMMENT ON TABLE internal.schema_migration IS 'Which migrations this database has had';
COMMENT ON COLUMN internal.schema_migration.version IS 'Number of the migration';
COMMENT ON COLUMN internal.schema_migration.name IS 'Name of the migration';
COMMENT ON COLUMN internal.schema_migration.checksum IS 'SHA-256 of its text when it was applied';
COMMENT ON COLUMN internal.schema_migration.applied_at IS 'When, UTC';
"""


@frozen
class Migration:
    """Migration of the tables. Macros and views are not migrated: each version of the program replaces them."""

    version: int
    name: str
    sql: str

    @property
    def checksum(self) -> str:
        """SHA-256 of the migration's SQL, in hexadecimal digits."""
        import hashlib

        return hashlib.sha256(self.sql.encode()).hexdigest()


@cache
def load_migrations() -> tuple[Migration, ...]:
    """Return the migrations in order.

    Their text names no member of a closed set, so a new runtime, boundary, scope or class refuses no database. Raise
    DatabaseError if a number is missing or occurs twice.
    """
    migrations = []
    for path in sorted(folder("schemas").glob("*.sql")):
        match = re.fullmatch(r"(\d{4})_([a-z0-9_]+)", path.stem)
        if match is None:
            raise DatabaseError(f"{path.name}: a migration is called NNNN_name")
        migrations.append(Migration(int(match[1]), match[2], path.read_text(encoding="utf-8")))
    if [migration.version for migration in migrations] != list(range(1, len(migrations) + 1)):
        raise DatabaseError("the migrations in schemas/ are not numbered 1, 2, 3 …")
    return tuple(migrations)


def read_applied(connection: duckdb.DuckDBPyConnection) -> dict[int, str] | None:
    """Return number -> checksum of the applied migrations: empty for an empty database, None for one of another
    program.
    """
    try:
        rows = connection.execute("SELECT version, checksum FROM internal.schema_migration ORDER BY version").fetchall()
    except (duckdb.CatalogException, duckdb.BinderException):
        (tables,) = connection.execute(
            "SELECT (SELECT count(*) FROM duckdb_tables()) + (SELECT count(*) FROM duckdb_views() WHERE NOT internal)"
        ).fetchall()[0]
        return None if tables else {}
    return {int(version): str(checksum) for version, checksum in rows}


def schema_version(connection: duckdb.DuckDBPyConnection) -> int:
    """Return the number of the newest applied migration; 0 if none is."""
    return max(read_applied(connection) or {}, default=0)


def check_applied(applied: Mapping[int, str]) -> None:
    """Raise DatabaseError if an applied migration is unknown to this version, by number or checksum."""
    known = {migration.version: migration.checksum for migration in load_migrations()}
    changed = [version for version, checksum in applied.items() if known.get(version, checksum) != checksum]
    if changed:
        raise DatabaseError(
            "was made by another version of joulemap, with other tables: delete it, or choose another --db"
        )
    if max(applied, default=0) > SCHEMA_VERSION:
        raise DatabaseError(
            f"has schema {max(applied)}, newer than this joulemap (schema {SCHEMA_VERSION}): upgrade joulemap"
        )


def _now() -> datetime:
    """Return the time in UTC; that of a reproducible build if the environment states one."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    time = datetime.fromtimestamp(int(given), UTC) if given else datetime.now(UTC)
    return time.replace(tzinfo=None)


def migrate(
    connection: duckdb.DuckDBPyConnection,
    up_to: int | None = None,
    *,
    has_comments: bool = True,
    has_surface: bool = True,
) -> tuple[int, ...]:
    """Apply the missing migrations, up to number `up_to` if given. Return their numbers.

    After the last one, macros, views and the totals computed by them are those of this version. Comments double the
    time, so a database that nobody inspects omits them (`has_comments`). Without `has_surface`, a database has tables
    only. Raises DatabaseError if an applied migration is unknown.
    """
    applied = read_applied(connection) or {}
    check_applied(applied)
    done = []
    for migration in load_migrations()[:up_to]:
        if migration.version in applied:
            continue
        with _together(connection):
            connection.execute(_RECORD_TABLE)
            with _sealing(connection):
                connection.execute(migration.sql if has_comments else COMMENT.sub("", migration.sql))
            execute(
                connection,
                "INSERT INTO internal.schema_migration VALUES (?, ?, ?, ?)",
                [migration.version, migration.name, migration.checksum, _now()],
            )
        done.append(migration.version)
    if has_surface and not holds_surface(connection, by_this_engine=True) and up_to in (None, SCHEMA_VERSION):
        is_same = holds_surface(connection)
        with _together(connection):
            write_surface(connection, has_comments=has_comments)
            if applied and not is_same:
                from joulemap.store.total import renew_totals

                renew_totals(connection)
    return tuple(done)


@contextlib.contextmanager
def _together(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    connection.execute("BEGIN TRANSACTION")
    try:
        yield
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _sealing(connection: duckdb.DuckDBPyConnection) -> contextlib.AbstractContextManager[None]:
    """Return a context that keeps digests valid while columns change; it does nothing before digests exist."""
    (count,) = connection.execute("SELECT count(*) FROM duckdb_tables() WHERE table_name = 'table_digest'").fetchall()[
        0
    ]
    if not count:
        return contextlib.nullcontext()
    from joulemap.store.digest import resealing

    return resealing(connection)
