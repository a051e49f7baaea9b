"""Numbered, forward-only migrations. Each runs in one transaction with the record of it."""

from __future__ import annotations

import re
from functools import cache
from typing import Final

import attrs
import duckdb

from joulemap.errors import DatabaseError
from joulemap.resource import folder
from joulemap.store.clock import utc_now

SCHEMA_VERSION: Final = 12
"""The newest migration that this code knows; a test compares it with the files."""

_RECORD_TABLE: Final = """
CREATE TABLE IF NOT EXISTS schema_migration (
    version INTEGER PRIMARY KEY,
    name VARCHAR NOT NULL,
    checksum VARCHAR NOT NULL,
    applied_at TIMESTAMP NOT NULL
);
COMMENT ON TABLE schema_migration IS 'Which migrations this database has had';
COMMENT ON COLUMN schema_migration.version IS 'Number of the file';
COMMENT ON COLUMN schema_migration.name IS 'Name of the file';
COMMENT ON COLUMN schema_migration.checksum IS 'SHA-256 of the file when it was applied';
COMMENT ON COLUMN schema_migration.applied_at IS 'When, UTC';
"""


@attrs.frozen
class Migration:
    """One migration file."""

    version: int
    name: str
    sql: str

    @property
    def checksum(self) -> str:
        """SHA-256 of the file's text."""
        import hashlib

        return hashlib.sha256(self.sql.encode()).hexdigest()


@cache
def load_migrations() -> tuple[Migration, ...]:
    """Return the migrations in order; DatabaseError if a number is missing or stands twice."""
    migrations = []
    for path in sorted(folder("schemas").glob("*.sql")):
        found = re.fullmatch(r"(\d{4})_([a-z0-9_]+)", path.stem)
        if found is None:
            raise DatabaseError(f"{path.name}: a migration is called NNNN_name.sql")
        migrations.append(Migration(int(found[1]), found[2], path.read_text(encoding="utf-8")))
    if [migration.version for migration in migrations] != list(range(1, len(migrations) + 1)):
        raise DatabaseError("the migrations in schemas/ are not numbered 1, 2, 3 …")
    return tuple(migrations)


def schema_version(connection: duckdb.DuckDBPyConnection) -> int | None:
    """Return the newest migration that the database has had; 0 for an empty database, None for one of others."""
    try:
        (version,) = connection.execute("SELECT coalesce(max(version), 0) FROM schema_migration").fetchall()[0]
    except duckdb.CatalogException:
        (tables,) = connection.execute("SELECT count(*) FROM duckdb_tables()").fetchall()[0]
        return None if tables else 0
    return int(version)


def migrate(connection: duckdb.DuckDBPyConnection, up_to: int | None = None) -> tuple[int, ...]:
    """Apply the migrations that the database lacks, only those `up_to` a number if it is given; return their numbers.

    Raises DatabaseError if there is one to apply and an applied one differs from its file.
    """
    if (schema_version(connection) or 0) > 0:
        applied = dict(connection.execute("SELECT version, checksum FROM schema_migration").fetchall())
    else:
        applied = {}
    done = []
    if len(applied) >= SCHEMA_VERSION:
        return ()
    for migration in load_migrations()[:up_to]:
        checksum = applied.get(migration.version)
        if checksum is not None:
            if checksum != migration.checksum:
                raise DatabaseError(f"migration {migration.version} was changed after it had been applied")
            continue
        connection.execute("BEGIN TRANSACTION")
        try:
            connection.execute(_RECORD_TABLE)
            connection.execute(migration.sql)
            connection.execute(
                "INSERT INTO schema_migration VALUES (?, ?, ?, ?)",
                [
                    migration.version,
                    migration.name,
                    migration.checksum,
                    utc_now(),
                ],
            )
        except BaseException:
            connection.execute("ROLLBACK")
            raise
        connection.execute("COMMIT")
        done.append(migration.version)
    return tuple(done)
