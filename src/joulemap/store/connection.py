"""Connections to databases, and one-line reasons why a database cannot be opened."""

from __future__ import annotations

import contextlib
import errno
import math
import os
import random
import re
import stat
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Final, TypeVar
from weakref import WeakKeyDictionary

import duckdb

from joulemap.store import sharing
from joulemap.store.engine import IN_MEMORY, connect, read_head, renew_identity
from joulemap.store.journal import checkpoint, journal_of, log_of, open_beside, restore
from joulemap.store.literal import quote_text
from joulemap.store.migration import SCHEMA_VERSION, check_applied, migrate, read_applied
from joulemap.store.sharing import Kind, find_earlier, give_back, take
from joulemap.store.surface import begin_cursor, bring_surface
from joulemap.system.background import begin
from joulemap.system.cache import cache_folder
from joulemap.system.config import WAIT_S
from joulemap.system.draft import drafting, publish, sweep
from joulemap.system.errors import DatabaseError, EngineError, LockedDatabaseError, OlderDatabaseError, UsageError
from joulemap.system.handle import identify_file, is_in_use
from joulemap.system.record import frozen

Connection = duckdb.DuckDBPyConnection

Result = TypeVar("Result")

_BESIDE: Final[WeakKeyDictionary[Connection, list[tuple[Connection, Callable[[], Any]]]]] = WeakKeyDictionary()
"""Connection -> its background tasks: each task's connection, and a function that waits for the task."""

TURN_S: Final = 0.004
"""Seconds between checks whether processes ahead in the queue are done."""

POLL_S: Final = 0.02
"""Seconds between the first checks for the release of a database, plus a random delay; the interval falls as waiting
lasts.
"""

TELL_AFTER_S: Final = 1.0
"""Seconds of waiting after which the reason is reported."""

WRITING: Final = Kind(is_reading=False, config=(("wal_autocheckpoint", "1TB"),))
"""Access mode of writers. The engine checkpoints only on command: see `journal`."""

CONFINED: Final = (
    ("python_enable_replacements", "false"),
    ("enable_external_access", "false"),
    ("autoinstall_known_extensions", "false"),
    ("autoload_known_extensions", "false"),
)
"""Engine settings that deny read statements access to files, network, extensions and Python variables.

They apply to joulemap's own statements too, because a database from an unknown source may define views under the names
that these statements read.
"""

READING: Final = Kind(is_reading=True, config=CONFINED)

LOGGER: Final = "joulemap"
"""Name of the only logger, for programs that use joulemap as a library."""


def log(message: str) -> None:
    """Log a message about slow work. It is printed only if the program added a handler to the logger or the root
    logger.
    """
    import logging

    logger = logging.getLogger(LOGGER)
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())
    logger.info(message)


@frozen(kw_only=True)
class Patience:
    """Maximum seconds to wait for other users of a database, and the function that receives a message about it."""

    limit_s: float = WAIT_S
    tell: Callable[[str], None] = log


PATIENT: Final = Patience()


SYSTEM_ERRORS: Final = tuple(sorted(errno.errorcode.keys() - {errno.EIO}))
"""Error numbers with which the system refuses a file. Its content may be sound, so that no recovery helps."""


def _refuse(path: Path, error: duckdb.Error) -> DatabaseError | EngineError:
    text = str(error)
    if is_internal(error):
        return _blame_engine(path, error)
    if lacks_memory(error):
        return _blame_memory(path, error)
    if "Could not set lock" in text or "already open in" in text or is_in_use(path):
        match = re.search(r"PID (\d+)", text)
        holder = f"process {match.group(1)}" if match else "another process"
        return LockedDatabaseError(f"{path} is locked by {holder}")
    # The engine opens csv, json and parquet in memory.
    if "not a valid DuckDB database file" in text or "Cannot launch in-memory database" in text:
        return DatabaseError(f"{path} is not a DuckDB database; choose another --db")
    if "WAL" in text and ("does not match database file" in text or "older version of this database" in text):
        return DatabaseError(
            f"{log_of(path)} belongs to another database than {path}: put the right database back, or move the "
            ".wal away"
        )
    if re.search("version number|storage version", text, re.IGNORECASE) and (maker := read_head(path).maker):
        return DatabaseError(
            f"cannot open {path}: DuckDB {maker} stored it in a format that DuckDB {duckdb.__version__} does not read; "
            "install a newer duckdb, or choose another --db"
        )
    reason = text.removeprefix("IO Error: ").splitlines()[0]
    refusal = next((known for known in map(os.strerror, SYSTEM_ERRORS) if reason.endswith(known)), "")
    if refusal:
        return DatabaseError(f"cannot open {path}: {refusal}; choose another --db")
    return DatabaseError(f"cannot open {path}: {reason}; `joulemap db recover` recovers what can be read")


def is_wanted(path: Path) -> bool:
    """Return whether another process waits for a database that this process has open."""
    return sharing.is_wanted(os.path.realpath(path))


def _connect(path: Path, real_path: str, kind: Kind, patience: Patience, deadline: float) -> Connection:
    """Open a database when no other process holds it. Raise LockedDatabaseError, naming the holder, after the deadline.

    At the deadline, processes ahead in the queue are ignored, so that a stuck queue blocks no process.
    """
    began = time.monotonic()
    tell_at = began + TELL_AFTER_S
    while True:
        earlier, is_last = find_earlier(real_path), time.monotonic() >= deadline
        try:
            if earlier and not is_last:
                raise LockedDatabaseError(f"{path} is locked by {earlier}")
            restore(path)
            identity = identify_file(path)
            connection = connect(os.path.abspath(path), is_reading=kind.is_reading, config=kind.config)
            if identify_file(path) != identity:  # replaced by another process while this one waited for its lock
                connection.close()
                continue
            for name, value in kind.later:
                connection.execute(f"SET {name} = {value}")
            return connection
        except (duckdb.Error, LockedDatabaseError, OSError) as error:
            refused = _describe(path, error)
            if not isinstance(refused, LockedDatabaseError):
                raise refused from error
            if is_last:
                raise _give_up(str(refused), patience) from error
            if time.monotonic() > tell_at:
                patience.tell(f"waiting: {refused}")
                tell_at = math.inf  # report once
            time.sleep(TURN_S if earlier else POLL_S * (1 + random.random()) / (1 + time.monotonic() - began))


def _describe(path: Path, error: duckdb.Error | DatabaseError | OSError) -> DatabaseError | EngineError:
    if isinstance(error, duckdb.Error):
        return _refuse(path, error)
    return error if isinstance(error, DatabaseError) else DatabaseError(f"cannot open {path}: {error.strerror}")


def _give_up(reason: str, patience: Patience) -> LockedDatabaseError:
    return LockedDatabaseError(
        f"{reason} (waited {patience.limit_s:g} s); wait longer by JOULEMAP_WAIT=SECONDS, or use another --db"
    )


def place_database(path: str | Path) -> Path:
    """Return the path of a database. Raise UsageError for text that looks like the address of a service."""
    text = os.fspath(path)
    drive = os.path.splitdrive(text)[0]
    if re.match(r"[A-Za-z][\w+.-]*:|:", text.removeprefix(drive)) and not os.path.lexists(text):
        raise UsageError(
            f"--db {text!r} looks like the address of a service, expected a file; for a file of that name, write "
            f"./{text}"
        )
    return Path(text)


def check_path(path: Path) -> bool:
    """Return whether a file exists at a path. Raise DatabaseError if no database can be there."""
    try:
        status = path.stat()
    except FileNotFoundError:
        left = next((file for file in (log_of(path), journal_of(path)) if file.exists()), None)
        if left is not None and not path.exists():  # another process may have created it meanwhile
            raise DatabaseError(
                f"there is no database at {path}, but {left.name} remains of one: put the database back, or move "
                f"{left.name} away to start a new one"
            ) from None
        return left is not None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise DatabaseError(f"cannot use {str(path)[:80]!r} as a database: {reason}") from error
    if stat.S_ISDIR(status.st_mode):
        raise DatabaseError(
            f"{path} is a folder: only `joulemap sql` and `joulemap query` ask lakes; choose another --db"
        )
    if not stat.S_ISREG(status.st_mode):
        raise DatabaseError(f"{path} is not a file; choose another --db")
    return True


def check_version(connection: Connection, path: Path) -> int:
    """Return the schema version of an open database; 0 for an empty one.

    Raises DatabaseError for a database of another program or of an incompatible version of joulemap.
    """
    applied = read_applied(connection)
    if applied is None:
        raise DatabaseError(f"{path} is a DuckDB database but not one of joulemap; choose another --db")
    try:
        check_applied(applied)
    except DatabaseError as error:
        raise DatabaseError(f"{path} {error}") from error
    return max(applied, default=0)


def missing(path: Path) -> DatabaseError:
    """Return the error for a path without a database."""
    return DatabaseError(f"there is no database at {path}; `joulemap compare MODEL` makes one, or name one with --db")


@contextlib.contextmanager
def reading(path: Path, patience: Patience = PATIENT, kind: Kind = READING) -> Iterator[Connection]:
    """Yield a read-only connection to an existing database.

    Raises DatabaseError if the database is missing, not joulemap's, too new or too old, or if the engine fails inside
    the context.
    """
    if not check_path(path):
        raise missing(path)
    _sweep(path)
    with _opening(path, kind, patience) as connection:
        version = check_version(connection, path)
        if version < SCHEMA_VERSION:
            raise OlderDatabaseError(
                f"{path} has schema {version}, this joulemap needs {SCHEMA_VERSION}: "
                f"run `joulemap db migrate --db {path}`"
            )
        bring_surface(connection)
        yield connection


@contextlib.contextmanager
def writing(path: Path, template: Path | None = None, patience: Patience = PATIENT) -> Iterator[Connection]:
    """Yield the only connection to a database, which is created or migrated as needed. Raise DatabaseError if that
    fails.

    A new database is a copy of `template`, or empty without one. An empty database of another program is replaced by a
    new one. Afterwards, committed rows are in the database file rather than its log.
    """
    if not check_path(path):
        _create(path, template)
    _sweep(path)
    with contextlib.ExitStack() as stack:
        connection, version = _begin_writing(stack, path, patience)
        if version == 0 and _replace_blank(connection, path, template):
            stack.close()
            connection, _ = _begin_writing(stack, path, patience)
        with _checkpointing(connection, path):
            migrate(connection)
            yield connection


def _begin_writing(stack: contextlib.ExitStack, path: Path, patience: Patience) -> tuple[Connection, int]:
    """Return a connection that writes a database until the stack ends, and the database's schema version."""
    connection = stack.enter_context(_opening(path, WRITING, patience))
    connection.execute("PRAGMA disable_checkpoint_on_shutdown")
    return connection, check_version(connection, path)


def _sweep(path: Path) -> None:
    """Remove drafts of killed processes beside a database and in the cache, which commands seldom write."""
    sweep(path.parent)
    sweep(cache_folder())


class _Kept:
    """Database that a context keeps open between its readings, so that they open it in a twentieth of the time."""

    def __init__(self) -> None:
        self.path = ""
        self._stack = contextlib.ExitStack()

    def make_way(self, path: str, kind: Kind) -> bool:
        """Return whether the database at a real path is kept; close it for another use, or for others who wait."""
        if path == self.path and kind == READING and not sharing.is_awaited(path):
            return True
        if path == self.path:
            self.close()
        return False

    def keep(self, path: Path, real_path: str) -> None:
        """Keep a database open that the caller reads, unless one is kept already."""
        if not self.path and take(real_path, READING, 0.0, is_again=True):
            self._stack.callback(give_back, real_path, READING)
            with contextlib.suppress(duckdb.Error):
                kept = connect(os.path.abspath(path), is_reading=True, config=READING.config)
                self._stack.callback(kept.close)
                self.path = real_path

    def close(self) -> None:
        """Close the database."""
        self.path = ""
        self._stack.close()


_KEPT: Final = ContextVar[_Kept | None]("_KEPT", default=None)


@contextlib.contextmanager
def keeping_open() -> Iterator[None]:
    """Keep the database that is read in this context open until its end, or a context around it does.

    It is closed earlier for a writer, before a model is traced, and at the next reading if another thread or process
    waits for it.
    """
    if _KEPT.get() is not None:
        yield
        return
    kept = _Kept()
    token = _KEPT.set(kept)
    try:
        yield
    finally:
        _KEPT.reset(token)
        kept.close()


def close_kept() -> None:
    """Close the database that the caller's context keeps open, if any, because it is not read for a while."""
    if (kept := _KEPT.get()) is not None:
        kept.close()


@contextlib.contextmanager
def _opening(path: Path, kind: Kind, patience: Patience) -> Iterator[Connection]:
    """Yield a connection, close it at the end, and report engine failures on one line."""
    deadline = time.monotonic() + patience.limit_s
    real_path = os.path.realpath(path)
    kept = _KEPT.get()
    is_kept = kept is not None and kept.make_way(real_path, kind)
    if not take(real_path, kind, patience.limit_s, is_again=is_kept):
        raise _give_up(f"{path} is in use by another thread", patience)
    with contextlib.ExitStack() as stack:
        stack.callback(give_back, real_path, kind)
        stack.enter_context(reporting_failures(path))
        connection = _connect(path, real_path, kind, patience, deadline)
        stack.callback(close, connection)
        if kept is not None and kind == READING:
            kept.keep(path, real_path)
        yield connection


@contextlib.contextmanager
def _checkpointing(connection: Connection, path: Path) -> Iterator[None]:
    """Move rows committed in this context into the database file; if that fails, they stay in the log."""
    descriptor = open_beside(path)
    try:
        yield
    finally:
        with contextlib.suppress(OSError, duckdb.Error):
            if log_of(path).exists():
                checkpoint(connection, path, descriptor)
        close(connection)
        if descriptor is not None:
            os.close(descriptor)


_IS_BLANK: Final = """
SELECT count(*) = 0
FROM (
    SELECT internal, database_name, schema_name FROM duckdb_tables()
    UNION ALL SELECT internal, database_name, schema_name FROM duckdb_views()
    UNION ALL SELECT internal, database_name, schema_name FROM duckdb_functions()
    UNION ALL SELECT internal, database_name, schema_name FROM duckdb_types()
    UNION ALL SELECT FALSE, database_name, schema_name FROM duckdb_sequences()
    UNION ALL SELECT internal, database_name, schema_name FROM duckdb_schemas() WHERE schema_name <> 'main'
)
WHERE database_name = current_database() AND NOT internal
"""


def _replace_blank(connection: Connection, path: Path, template: Path | None) -> bool:
    """Replace an open database by a new one if it has nothing in it, not even a log. Return whether it was replaced.

    Its storage version may be older: its log would not name the state that it continues, and the file would be twice as
    large. The caller's connection keeps the engine's lock on the replaced file until the new one has its name.
    """
    if log_of(path).exists() or not connection.execute(_IS_BLANK).fetchall()[0][0]:
        return False
    try:
        _create(path, template, is_replacing=True)
    except OSError:  # the folder takes no new file, or Windows replaces none that is open: this one is used as it is
        return False
    return True


def _create(path: Path, template: Path | None, *, is_replacing: bool = False) -> None:
    """Create a new database under a temporary name and rename it when complete, so that no partial one is visible."""
    path = path.resolve() if is_replacing else path
    parent = path.parent
    if not parent.is_dir():
        raise DatabaseError(f"cannot create {path}: the folder {parent} does not exist")
    if not os.access(parent, os.W_OK):
        raise DatabaseError(f"cannot create {path}: the folder {parent} is not writable")
    try:
        with drafting(parent) as folder:
            draft = folder / "new.duckdb"
            if template is None or not _copy(template, draft):
                draft.unlink(missing_ok=True)
                make_empty(draft)
            if is_replacing:
                draft.chmod(stat.S_IMODE(path.stat().st_mode))
                draft.replace(path)
            else:
                publish(draft, path)
    except OSError as error:
        if is_replacing:
            raise
        raise DatabaseError(f"cannot create {path}: {error.strerror or error}") from error
    except duckdb.Error as error:
        raise _refuse(path, error) from error


def _copy(template: Path, draft: Path) -> bool:
    """Copy a template; return whether the copy got an identity of its own. False if another process just removed it."""
    import shutil

    try:
        shutil.copyfile(template, draft)
    except FileNotFoundError:
        return False
    return renew_identity(draft)


def make_empty(path: Path) -> None:
    """Create a database without rows. Raise duckdb.Error if the engine fails."""
    with contextlib.closing(connect(path)) as connection:
        migrate(connection)
        connection.execute("CHECKPOINT")


def open_in_memory(*, has_surface: bool = True) -> Connection:
    """Return a connection to a new, empty in-memory database.

    Without `has_surface` it has tables but no views or macros, which takes a quarter of the time.
    """
    connection = connect(IN_MEMORY)
    migrate(connection, has_comments=False, has_surface=has_surface)
    return connection


def is_full(error: duckdb.Error) -> bool:
    """Return whether the engine failed because the disk is full."""
    return any(reason in str(error) for reason in (os.strerror(errno.ENOSPC), os.strerror(errno.EFBIG)))


def as_file_error(error: duckdb.IOException) -> OSError | duckdb.IOException:
    """Return a failed write next to the database as an OSError; return the engine's error if reading the database
    failed.
    """
    first = str(error).splitlines()[0]
    return error if "Corrupt database file" in first else OSError(first)


def is_internal(error: duckdb.Error) -> bool:
    """Return whether an error is an internal fault of the engine, or follows from an earlier one."""
    return isinstance(error, duckdb.InternalError) or (
        isinstance(error, duckdb.FatalException) and "INTERNAL Error" in str(error)
    )


def lacks_memory(error: duckdb.Error) -> bool:
    """Return whether the engine failed because memory, not the disk, was exhausted."""
    return isinstance(error, duckdb.OutOfMemoryException) and not is_full(error)


def _blame_memory(path: Path | str, error: duckdb.Error) -> EngineError:
    reason = str(error).splitlines()[0].removeprefix("Out of Memory Error: ")
    return EngineError(
        f"{path}: the database engine ran out of memory ({reason}); ask about fewer models, hardware or batches at a "
        "time"
    )


REFUSED: Final = (duckdb.DataError, duckdb.IntegrityError, duckdb.NotSupportedError)
"""Errors that joulemap's own statements cause: an invalid value, or a row that violates a constraint."""


def _blame_engine(path: Path | str, error: duckdb.Error) -> EngineError:
    return EngineError(
        f"duckdb {duckdb.__version__} failed internally: {str(error).splitlines()[0]}; "
        f"`joulemap db check --db {path}` tells whether the file is damaged; if it is not, please report this"
    )


@contextlib.contextmanager
def reporting_failures(path: Path | str) -> Iterator[None]:
    """Convert engine failures in this context to errors of one line."""
    try:
        yield
    except duckdb.Error as error:
        if is_internal(error):
            raise _blame_engine(path, error) from error
        reason = str(error).splitlines()[0]
        if lacks_memory(error):
            raise _blame_memory(path, error) from error
        if isinstance(error, REFUSED):
            raise EngineError(
                f"{path}: the database rejected a statement of joulemap ({reason}); nothing was changed: please "
                "report this with the command, and try it with `--calibration none` and without your own hardware files"
            ) from error
        raise DatabaseError(f"{path}: {reason}") from error


@contextlib.contextmanager
def using(connection: Connection, path: Path | str) -> Iterator[Connection]:
    """Yield an open connection, close it at the end, and report engine failures on one line."""
    with reporting_failures(path):
        try:
            yield connection
        finally:
            close(connection)


def begin_beside(connection: Connection, action: Callable[[Connection], Result]) -> Callable[[], Result]:
    """Start an action in a thread with its own connection. Return a function that waits for its result."""
    cursor = begin_cursor(connection)

    def run() -> Result:
        with contextlib.closing(cursor):
            return action(cursor)

    finish = begin(run)
    _BESIDE.setdefault(connection, []).append((cursor, finish))
    return finish


def close(connection: Connection) -> None:
    """Close a connection after its background tasks, because the engine cannot close while they run."""
    for cursor, finish in _BESIDE.pop(connection, []):
        with contextlib.suppress(Exception):  # no caller waits for its result
            cursor.interrupt()
        with contextlib.suppress(Exception):
            finish()
    connection.close()


@contextlib.contextmanager
def transaction(connection: Connection) -> Iterator[None]:
    """Commit all changes made in this context, or roll them back after any exception."""
    connection.execute("BEGIN TRANSACTION")
    try:
        yield
    except BaseException:
        with contextlib.suppress(duckdb.Error):
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


ALLOWED: Final = "allowed_paths"
"""Setting that lists the files to which a confined engine still has access."""

LOCKED: Final = ("lock_configuration", "true")


def allow_folder(folder: Path) -> Kind:
    """Return the access mode for statements that write files below a folder, given by its absolute path."""
    return Kind(is_reading=True, later=(("allowed_directories", f"[{quote_text(f'{folder}/')}]"), *CONFINED))


def limit(memory_bytes: float, *, output: Path | None = None) -> Kind:
    """Return the access mode for a query with a memory limit, no temporary disk space, and locked settings.

    `output` is the only file that the engine may access.
    """
    memory = (("temp_directory", ""), ("memory_limit", f"{int(memory_bytes)}B"))
    if output is None:
        return Kind(is_reading=True, config=(*CONFINED, *memory, LOCKED))
    allowed = (ALLOWED, f"[{quote_text(os.path.relpath(output))}]")
    return Kind(is_reading=True, config=memory, later=(allowed, *CONFINED, LOCKED))


def configure(connection: Connection, kind: Kind) -> None:
    """Apply the settings of an access mode to an open database; settings that forbid others come last."""
    for name, value in sorted(kind.config, key=lambda item: (item == LOCKED, item in CONFINED)):
        connection.execute(f"SET {name} = {value if name == ALLOWED else quote_text(value)}")
