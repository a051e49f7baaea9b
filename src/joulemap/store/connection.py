"""Open a database, and say in one line why it cannot be opened."""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import duckdb

from joulemap.errors import DatabaseError, LockedDatabaseError, OlderDatabaseError
from joulemap.store.migration import SCHEMA_VERSION, check_applied, migrate, read_applied

Connection = duckdb.DuckDBPyConnection

LOCK_TIMEOUT_S: Final = 2.0
"""How long to wait for another process to let go."""

STALE_S: Final = 60.0
"""Age from which a half-made database is taken for left behind."""

_FIRST_WAIT_S: Final = 0.02


def _refuse(path: Path, error: duckdb.Error) -> DatabaseError:
    text = str(error)
    if "Could not set lock" in text or "already open in" in text:
        found = re.search(r"PID (\d+)", text)
        holder = f"process {found.group(1)}" if found else "another process"
        return LockedDatabaseError(f"{path} is locked by {holder}; wait for it to finish or use another --db")
    if "not a valid DuckDB database file" in text:
        return DatabaseError(f"{path} is not a DuckDB database; choose another --db")
    reason = text.removeprefix("IO Error: ").splitlines()[0]
    return DatabaseError(f"cannot open {path}: {reason}")


def _connect(path: Path, *, read_only: bool) -> Connection:
    deadline = time.monotonic() + LOCK_TIMEOUT_S
    wait = _FIRST_WAIT_S
    while True:
        try:
            return duckdb.connect(str(path), read_only=read_only)
        except duckdb.Error as error:
            refused = _refuse(path, error)
            if not isinstance(refused, LockedDatabaseError) or time.monotonic() + wait > deadline:
                raise refused from error
            time.sleep(wait)
            wait *= 2


def check_version(connection: Connection, path: Path) -> int:
    """Return the schema version of an open database, 0 for an empty one.

    Raises DatabaseError for a database that is not joulemap's, or was made by another version of it.
    """
    applied = read_applied(connection)
    if applied is None:
        raise DatabaseError(f"{path} is a DuckDB database but not one of joulemap; choose another --db")
    try:
        check_applied(applied)
    except DatabaseError as error:
        raise DatabaseError(f"{path} {error}") from error
    return max(applied, default=0)


def open_for_reading(path: Path) -> Connection:
    """Open an existing database read-only; DatabaseError if it is missing, not ours, too new or too old."""
    if not path.exists():
        raise DatabaseError(
            f"there is no database at {path}; `joulemap compare MODEL` makes one, or name one with --db"
        )
    connection = _connect(path, read_only=True)
    try:
        version = check_version(connection, path)
        if version < SCHEMA_VERSION:
            raise OlderDatabaseError(
                f"{path} has schema {version}, this joulemap needs {SCHEMA_VERSION}: "
                f"run `joulemap db migrate --db {path}`"
            )
    except BaseException:
        connection.close()
        raise
    return connection


def open_for_writing(path: Path, template: Path | None = None) -> Connection:
    """Open a database for writing, making or migrating it as needed; DatabaseError says why it cannot be.

    A new one is a copy of `template`, or empty without one.
    """
    if not path.exists():
        _create(path, template)
    connection = _connect(path, read_only=False)
    try:
        check_version(connection, path)
        migrate(connection)
    except duckdb.Error as error:
        connection.close()
        raise _refuse(path, error) from error
    except BaseException:
        connection.close()
        raise
    return connection


def _create(path: Path, template: Path | None) -> None:
    """Make a new database complete, then give it its name, so that a half-made one is never seen."""
    import shutil
    import tempfile

    parent = path.parent
    if not parent.is_dir():
        raise DatabaseError(f"cannot create {path}: the folder {parent} does not exist")
    if not os.access(parent, os.W_OK):
        raise DatabaseError(f"cannot create {path}: the folder {parent} is not writable")
    _sweep(path)
    try:
        with tempfile.TemporaryDirectory(prefix=f".{path.name}.", dir=parent) as folder:
            draft = Path(folder) / path.name
            if template is not None:
                shutil.copyfile(template, draft)
            else:
                connection = duckdb.connect(str(draft))
                migrate(connection)
                connection.execute("CHECKPOINT")
                connection.close()
            _publish(draft, path)
    except OSError as error:
        raise DatabaseError(f"cannot create {path}: {error.strerror or error}") from error
    except duckdb.Error as error:
        raise _refuse(path, error) from error


def _publish(draft: Path, path: Path) -> None:
    """Give a finished database its name, unless another process was first; file systems without links rename."""
    try:
        os.link(draft, path)
    except FileExistsError:
        return
    except OSError:
        if not path.exists():
            draft.rename(path)


def _sweep(path: Path) -> None:
    """Remove what a killed process left while it made this database."""
    import shutil

    for left in path.parent.glob(f".{path.name}.*"):
        with contextlib.suppress(OSError):
            if left.is_dir() and time.time() - left.stat().st_mtime > STALE_S:
                shutil.rmtree(left)


def open_in_memory() -> Connection:
    """Return an empty joulemap database, without comments, that lives as long as the connection."""
    connection = duckdb.connect(":memory:")
    migrate(connection, has_comments=False)
    return connection


@contextlib.contextmanager
def using(connection: Connection, path: Path | str) -> Iterator[Connection]:
    """Give out an open connection, close it whatever happens, and tell an engine's failure in one line."""
    try:
        yield connection
    except duckdb.Error as error:
        raise DatabaseError(f"{path}: {str(error).splitlines()[0]}") from error
    finally:
        connection.close()


@contextlib.contextmanager
def transaction(connection: Connection) -> Iterator[None]:
    """Commit what happens inside, or nothing: after any exception the transaction is rolled back."""
    connection.execute("BEGIN TRANSACTION")
    try:
        yield
    except BaseException:
        with contextlib.suppress(duckdb.Error):
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def bound_memory(connection: Connection, memory_bytes: float) -> None:
    """Let the engine use so much memory, and no disk in its place."""
    connection.execute("SET temp_directory = ''")
    connection.execute(f"SET memory_limit = '{int(memory_bytes)}B'")


def confine(connection: Connection) -> None:
    """Forbid files, network, settings and variables of this program to statements that a person wrote."""
    for setting in (
        "SET python_enable_replacements = false",
        "SET enable_external_access = false",
        "SET autoinstall_known_extensions = false",
        "SET autoload_known_extensions = false",
        "SET lock_configuration = true",
    ):
        connection.execute(setting)


def read_everything(connection: Connection, path: Path) -> None:
    """Read every column of every table, because a damaged block is only noticed when it is read."""
    names = connection.execute(
        "SELECT table_name FROM duckdb_tables() WHERE NOT internal ORDER BY table_name"
    ).fetchall()
    for (name,) in names:
        try:
            connection.execute(f"SELECT bit_xor(hash(whole)) FROM {name} AS whole").fetchall()
        except duckdb.Error as error:
            reason = str(error).splitlines()[0]
            raise DatabaseError(f"{path}: the table {name} is damaged: {reason}") from error
