"""Open a database, and say in one line why it cannot be opened."""

from __future__ import annotations

import contextlib
import errno
import os
import random
import re
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, TypeVar
from weakref import WeakKeyDictionary

import duckdb

from joulemap.domain.settings import WAIT_S
from joulemap.store import sharing
from joulemap.store.engine import IN_MEMORY, connect, renew_identity
from joulemap.store.journal import checkpoint, journal_of, log_of, settle
from joulemap.store.literal import quote_text
from joulemap.store.migration import SCHEMA_VERSION, check_applied, migrate, read_applied
from joulemap.store.sharing import Kind, find_earlier, give_back, take
from joulemap.store.surface import begin_cursor, bring_surface
from joulemap.system.background import begin
from joulemap.system.draft import drafting, publish, sweep
from joulemap.system.errors import DatabaseError, EngineError, LockedDatabaseError, OlderDatabaseError, UsageError
from joulemap.system.record import frozen

Connection = duckdb.DuckDBPyConnection

Result = TypeVar("Result")

_BESIDE: Final[WeakKeyDictionary[Connection, list[tuple[Connection, Callable[[], Any]]]]] = WeakKeyDictionary()
"""connection -> what was begun beside it: its connection, and what waits for it."""

TURN_S: Final = 0.004
"""How often to look whether those are done who came earlier."""

POLL_S: Final = 0.02
"""How often to look whether another process has let go, at first; who has waited longer looks more often."""

TELL_AFTER_S: Final = 1.0
"""From when on who waits is told why."""

WRITING: Final = Kind(is_reading=False, config=(("wal_autocheckpoint", "1TB"),))
"""The engine checkpoints when it is told to, never by itself: see `journal`."""

CONFINED: Final = (
    ("python_enable_replacements", "false"),
    ("enable_external_access", "false"),
    ("autoinstall_known_extensions", "false"),
    ("autoload_known_extensions", "false"),
)
"""No files, network, extensions or variables of this program for statements that read.

Those of joulemap too: a database may be a stranger's, with views of its own under the names that they read.
"""

READING: Final = Kind(is_reading=True, config=CONFINED)

LOGGER: Final = "joulemap"
"""The one logger, for programs that use joulemap as a library."""


def log(message: str) -> None:
    """Tell the logger what takes time; nothing is printed unless the program gave it, or the root, a handler."""
    import logging

    logger = logging.getLogger(LOGGER)
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())
    logger.info(message)


@frozen(kw_only=True)
class Patience:
    """How long to wait for others who hold a database, and who is told of it."""

    limit_s: float = WAIT_S
    tell: Callable[[str], None] = log


PATIENT: Final = Patience()


def _refuse(path: Path, error: duckdb.Error) -> DatabaseError | EngineError:
    text = str(error)
    if is_internal(error):
        return _blame_engine(path, error)
    if "Could not set lock" in text or "already open in" in text:
        found = re.search(r"PID (\d+)", text)
        holder = f"process {found.group(1)}" if found else "another process"
        return LockedDatabaseError(f"{path} is locked by {holder}")
    if "not a valid DuckDB database file" in text:
        return DatabaseError(f"{path} is not a DuckDB database; choose another --db")
    if "WAL" in text and ("does not match database file" in text or "older version of this database" in text):
        return DatabaseError(
            f"{log_of(path)} is of another database than {path}: put the right database back, or move the .wal away"
        )
    reason = text.removeprefix("IO Error: ").splitlines()[0]
    return DatabaseError(f"cannot open {path}: {reason}; `joulemap db recover` gets back what can be read")


def is_wanted(path: Path) -> bool:
    """Return whether another process waits for a database that is open here."""
    return sharing.is_wanted(os.path.realpath(path))


def _connect(path: Path, place: str, kind: Kind, patience: Patience, deadline: float) -> Connection:
    """Open a database once no other process is in the way; LockedDatabaseError says who still is.

    At the deadline it is tried whoever came earlier: nobody is kept out by a queue that does not move.
    """
    began = time.monotonic()
    tell_at = began + TELL_AFTER_S
    while True:
        earlier, is_last = find_earlier(place), time.monotonic() >= deadline
        try:
            if earlier and not is_last:
                raise LockedDatabaseError(f"{path} is locked by {earlier}")
            settle(path)
            connection = connect(os.path.abspath(path), is_reading=kind.is_reading, config=kind.config)
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
                tell_at = deadline
            time.sleep(TURN_S if earlier else POLL_S * (1 + random.random()) / (1 + time.monotonic() - began))


def _describe(path: Path, error: duckdb.Error | DatabaseError | OSError) -> DatabaseError | EngineError:
    if isinstance(error, duckdb.Error):
        return _refuse(path, error)
    return error if isinstance(error, DatabaseError) else DatabaseError(f"cannot open {path}: {error.strerror}")


def _give_up(reason: str, patience: Patience) -> LockedDatabaseError:
    return LockedDatabaseError(
        f"{reason} (waited {patience.limit_s:g} s); wait longer by --wait SECONDS, or use another --db"
    )


def place_database(path: str | Path) -> Path:
    """Return where a database is; UsageError for what names a service or cannot be the name of a file."""
    text = os.fspath(path)
    if re.match(r"[A-Za-z][\w+.-]*:|:", text) and not os.path.lexists(text):
        raise UsageError(
            f"--db {text!r} is not a file: results are kept in one; for a file of that name, write ./{text}"
        )
    return Path(text)


def check_place(path: Path) -> bool:
    """Return whether there is a file at a path; DatabaseError where a database cannot be."""
    try:
        found = path.stat()
    except FileNotFoundError:
        left = next((file for file in (log_of(path), journal_of(path)) if file.exists()), None)
        if left is not None and not path.exists():  # another process may have made it meanwhile
            raise DatabaseError(
                f"there is no database at {path}, but {left.name} is left of one: put the database back, or move "
                f"{left.name} away to begin anew"
            ) from None
        return left is not None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise DatabaseError(f"cannot use {str(path)[:80]!r} as a database: {reason}") from error
    if stat.S_ISDIR(found.st_mode):
        raise DatabaseError(
            f"{path} is a folder: only `joulemap sql` and `joulemap query` ask lakes; choose another --db"
        )
    if not stat.S_ISREG(found.st_mode):
        raise DatabaseError(f"{path} is not a file; choose another --db")
    return True


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


def missing(path: Path) -> DatabaseError:
    """Return what is said where there is no database."""
    return DatabaseError(f"there is no database at {path}; `joulemap compare MODEL` makes one, or name one with --db")


@contextlib.contextmanager
def reading(path: Path, patience: Patience = PATIENT, kind: Kind = READING) -> Iterator[Connection]:
    """Give out a read-only connection to an existing database.

    Raises DatabaseError if it is missing, not ours, too new or too old, or if the engine fails on it meanwhile.
    """
    if not check_place(path):
        raise missing(path)
    sweep(path.parent)
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
    """Give out the only connection to a database, made or migrated as needed; DatabaseError says why it cannot be.

    A new one is a copy of `template`, or empty without one. What is committed is in the database file afterwards.
    """
    if not check_place(path):
        _create(path, template)
    sweep(path.parent)
    with _opening(path, WRITING, patience) as connection:
        connection.execute("PRAGMA disable_checkpoint_on_shutdown")
        check_version(connection, path)
        with _checkpointing(connection, path):
            migrate(connection)
            yield connection


@contextlib.contextmanager
def _opening(path: Path, kind: Kind, patience: Patience) -> Iterator[Connection]:
    """Give out a connection, close it whatever happens, and tell an engine's failure in one line."""
    deadline = time.monotonic() + patience.limit_s
    place = os.path.realpath(path)
    if not take(place, kind, patience.limit_s):
        raise _give_up(f"{path} is in use by another thread", patience)
    with contextlib.ExitStack() as stack:
        stack.callback(give_back, place, kind)
        stack.enter_context(telling(path))
        connection = _connect(path, place, kind, patience, deadline)
        stack.callback(close, connection)
        yield connection


@contextlib.contextmanager
def _checkpointing(connection: Connection, path: Path) -> Iterator[None]:
    """Move what is committed meanwhile into the database file; where that fails, the log goes on holding it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        yield
    finally:
        with contextlib.suppress(OSError, duckdb.Error):
            if log_of(path).exists():
                checkpoint(connection, path, descriptor)
        close(connection)
        os.close(descriptor)


def _create(path: Path, template: Path | None) -> None:
    """Make a new database complete, then give it its name, so that a half-made one is never seen."""
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
            publish(draft, path)
    except OSError as error:
        raise DatabaseError(f"cannot create {path}: {error.strerror or error}") from error
    except duckdb.Error as error:
        raise _refuse(path, error) from error


def _copy(template: Path, draft: Path) -> bool:
    """Return whether a copy of a template is a database of its own."""
    import shutil

    shutil.copyfile(template, draft)
    return renew_identity(draft)


def make_empty(path: Path) -> None:
    """Make a database without rows; raises duckdb.Error."""
    with contextlib.closing(connect(path)) as connection:
        migrate(connection)
        connection.execute("CHECKPOINT")


def open_in_memory(*, has_comments: bool = False) -> Connection:
    """Return an empty joulemap database that lives as long as the connection."""
    connection = connect(IN_MEMORY)
    migrate(connection, has_comments=has_comments)
    return connection


def is_full(error: duckdb.Error) -> bool:
    """Return whether the engine failed for want of room on the disk."""
    return any(reason in str(error) for reason in (os.strerror(errno.ENOSPC), os.strerror(errno.EFBIG)))


def as_file_error(error: duckdb.IOException) -> OSError | duckdb.IOException:
    """Return what writing a file beside the database failed with, or the engine's error if reading the database did."""
    first = str(error).splitlines()[0]
    return error if "Corrupt database file" in first else OSError(first)


def is_internal(error: duckdb.Error) -> bool:
    """Return whether the engine failed by a fault of its own, or goes on failing after one."""
    return isinstance(error, duckdb.InternalError) or (
        isinstance(error, duckdb.FatalException) and "INTERNAL Error" in str(error)
    )


REFUSED: Final = (duckdb.DataError, duckdb.IntegrityError, duckdb.NotSupportedError)
"""Errors of data that joulemap itself wrote or asked for: a value that does not convert, a row that breaks a rule."""


def _blame_engine(path: Path | str, error: duckdb.Error) -> EngineError:
    return EngineError(
        f"duckdb {duckdb.__version__} failed inside, on a question and not for it: {str(error).splitlines()[0]}; "
        f"`joulemap db check --db {path}` tells whether the file is damaged; if it is not, please report this"
    )


@contextlib.contextmanager
def telling(path: Path | str) -> Iterator[None]:
    """Tell an engine's failure in one line."""
    try:
        yield
    except duckdb.Error as error:
        if is_internal(error):
            raise _blame_engine(path, error) from error
        reason = str(error).splitlines()[0]
        if isinstance(error, duckdb.OutOfMemoryException) and not is_full(error):
            raise EngineError(
                f"{path}: the database engine ran out of memory ({reason.removeprefix('Out of Memory Error: ')}); "
                "ask about fewer models, hardware or batches at a time"
            ) from error
        if isinstance(error, REFUSED):
            raise EngineError(
                f"{path}: the database refused what joulemap asked of it ({reason}); nothing was changed: please "
                "report this with the command, and try it with `--calibration none` and without own hardware files"
            ) from error
        raise DatabaseError(f"{path}: {reason}") from error


@contextlib.contextmanager
def using(connection: Connection, path: Path | str) -> Iterator[Connection]:
    """Give out an open connection, close it whatever happens, and tell an engine's failure in one line."""
    with telling(path):
        try:
            yield connection
        finally:
            close(connection)


def begin_beside(connection: Connection, action: Callable[[Connection], Result]) -> Callable[[], Result]:
    """Begin an action, in another thread, on a connection beside this one; return a function that waits for it."""
    cursor = begin_cursor(connection)

    def run() -> Result:
        with contextlib.closing(cursor):
            return action(cursor)

    finish = begin(run)
    _BESIDE.setdefault(connection, []).append((cursor, finish))
    return finish


def close(connection: Connection) -> None:
    """Close a connection; what was begun beside it ends first, for the engine does not close what is at work."""
    for cursor, finish in _BESIDE.pop(connection, []):
        with contextlib.suppress(Exception):  # nobody waited for it, or was told
            cursor.interrupt()
        with contextlib.suppress(Exception):
            finish()
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


ALLOWED: Final = "allowed_paths"
"""Setting: files that a confined engine may reach all the same, as a list of texts."""

LOCKED: Final = ("lock_configuration", "true")


def allow_folder(folder: Path) -> Kind:
    """Return how a database is open to statements that write files below a folder, named from the root."""
    return Kind(is_reading=True, later=(("allowed_directories", f"[{quote_text(f'{folder}/')}]"), *CONFINED))


def limit(memory_bytes: float, *, output: Path | None = None) -> Kind:
    """Return how a database is open to a query that may use so much memory, no disk in its place, and no setting.

    With an `output`, that is the one file that the engine may reach.
    """
    memory = (("temp_directory", ""), ("memory_limit", f"{int(memory_bytes)}B"))
    if output is None:
        return Kind(is_reading=True, config=(*CONFINED, *memory, LOCKED))
    allowed = (ALLOWED, f"[{quote_text(os.path.relpath(output))}]")
    return Kind(is_reading=True, config=memory, later=(allowed, *CONFINED, LOCKED))


def configure(connection: Connection, kind: Kind) -> None:
    """Give a database that is open the settings of a kind, those last that forbid others."""
    for name, value in sorted(kind.config, key=lambda item: (item == LOCKED, item in CONFINED)):
        connection.execute(f"SET {name} = {value if name == ALLOWED else quote_text(value)}")
