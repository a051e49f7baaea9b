"""Protection of checkpoints against kills: a journal keeps what the engine overwrites until the checkpoint is complete.

At a checkpoint the engine writes new data into free blocks, but overwrites metadata blocks that the last checkpoint
still needs. A kill within such a write leaves a file that cannot be opened. Without this module, DuckDB 2.0.1 lost

    17 of 92    databases whose process was killed within a write into the database file, after a part of the block
    0 of 111    at another call: before or after such a write, or at the log
    3 of 1,834  whose process committed and checkpointed all the time and was killed at a random moment

with "Corrupt database file: computed checksum ... does not match ... in block". No commit was lost or partial in
a file that could be opened. Therefore the head of the file and its metadata blocks are first written next to it:

    runs.duckdb  ──► runs.duckdb.journal ──► new identity ──► CHECKPOINT ──► journal removed
                     (complete or absent)

The file gets a new identity at each checkpoint. Its log names the identity and thus the only state that it continues,
so the engine does not apply it to a copy that has changed since. DuckDB 2.0.1 alone did apply it to a copy with as many
checkpoints, without an error, and changed rows that the log's statements never meant.

The next process that opens the database finds the journal of a killed process. It restores the journal's content unless
the new checkpoint is complete. A file of that name that is not a journal of this database may be a user's, and is kept.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

import duckdb

from joulemap.store.engine import HEAD, PAGE, Head, renew
from joulemap.system.background import uninterrupted
from joulemap.system.draft import drafting, publish
from joulemap.system.errors import DatabaseError, LockedDatabaseError
from joulemap.system.handle import (
    IS_POSIX,
    UNBLOCKED,
    UNFOLLOWED,
    is_in_use,
    open_descriptor,
    read_at,
    sync_folder,
    try_lock_bytes,
    write_at,
)
from joulemap.system.record import frozen

SUFFIX: Final = ".journal"
TITLE: Final = b"joulemap journal of a checkpoint, 2\n"
_COUNT: Final = struct.Struct("<Q")
_DIGEST: Final = 32
_START: Final = len(TITLE) + HEAD + PAGE + _COUNT.size
"""Offset of the first block in a journal, in bytes."""

_LOG: Final = b"\x64\x00\x62\x65"
"""First bytes of an engine's log, which encode its version."""

_MARK: Final = b"\x66\x00\x10"
"""Bytes before the identity in a log's first record: field number and byte count."""

_RECORD: Final = 128
"""Bytes read from a log that contain its first record."""


@frozen
class Journal:
    """Copy of the parts of a database file that a checkpoint overwrites, to restore them."""

    head: Head
    renewed: bytes
    """First page of the file with the new identity that this checkpoint gives it."""

    def write(self, file: Path, blocks: dict[int, bytes]) -> None:
        """Write the journal with blocks of the file (offset -> content) to disk and sync it. Raise OSError if that
        fails.
        """
        parts = [TITLE, self.head.pages, self.renewed, _COUNT.pack(len(blocks))]
        for offset, block in blocks.items():
            parts += [_COUNT.pack(offset), block]
        digest = hashlib.blake2b(digest_size=_DIGEST)
        with file.open("wb") as stream:  # buffered: a raw write may be partial on an almost full disk
            for part in parts:
                digest.update(part)
                stream.write(part)
            stream.write(digest.digest())
            stream.flush()
            os.fsync(stream.fileno())

    def is_torn(self, now: Head) -> bool:
        """Return whether a file is still at the state before this journal's checkpoint, so that its blocks may be
        damaged.

        The result is False for another file, or for one restored to an earlier state.
        """
        old, new = self.head.pages[:PAGE], self.renewed
        is_same = all(byte in pair for byte, pair in zip(now.pages, zip(old, new, strict=True), strict=False))
        return (
            len(now.pages) == HEAD
            and is_same
            and now.checkpoint == self.head.checkpoint
            and now.newest == self.head.newest
        )

    def is_over(self, now: Head) -> bool:
        """Return whether a file contains the completed checkpoint of this journal."""
        return now.pages[:PAGE] == self.renewed and now.checkpoint > self.head.checkpoint


def journal_of(path: Path) -> Path:
    """Return the path that the journal of a database has."""
    return path.with_name(path.name + SUFFIX)


def log_of(path: Path) -> Path:
    """Return the path of a database's write-ahead log, which has committed rows that are not yet in the file."""
    return path.with_name(f"{path.name}.wal")


def open_beside(path: Path) -> int | None:
    """Return a second descriptor of an open database file; None on Windows, where files cannot be shared."""
    return open_descriptor(path, os.O_RDWR) if IS_POSIX else None


def checkpoint(connection: duckdb.DuckDBPyConnection, path: Path, descriptor: int | None) -> None:
    """Move committed rows from the log into the database file; if the process is killed, the old or new state is
    intact.

    `descriptor` is open on the file, because closing another one would release the engine's lock on it. If it is None,
    as on Windows, only Ctrl-C is safe. Raises OSError or duckdb.Error; the log then still contains all rows.
    """
    head = Head(b"" if descriptor is None else read_at(descriptor, HEAD, 0))
    if descriptor is None or not head.is_whole:
        with uninterrupted:  # no descriptor, or another layout, whose metadata blocks are unknown
            connection.execute("CHECKPOINT")
        return
    size = head.block_bytes
    rows = connection.execute("SELECT DISTINCT block_id FROM pragma_metadata_info()").fetchall()
    offsets = sorted(HEAD + size * int(block) for (block,) in rows)
    read = {offset: read_at(descriptor, size, offset) for offset in offsets}
    journal = Journal(head, renew(head.pages[:PAGE]))
    with uninterrupted:
        with drafting(path.parent) as folder:
            draft = folder / "journal"
            journal.write(draft, {offset: block for offset, block in read.items() if len(block) == size})
            if not publish(draft, journal_of(path)):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(journal_of(path)))
        sync_folder(path.parent)
        write_at(descriptor, journal.renewed, 0)
        connection.execute("CHECKPOINT")
        if Head(read_at(descriptor, HEAD, 0)).checkpoint == head.checkpoint:
            # The log has no whole transaction: the engine moved nothing, and kept a log that names the old identity.
            write_at(descriptor, head.pages[:PAGE], 0)
        journal_of(path).unlink()


def restore(path: Path) -> None:
    """Restore blocks damaged by a killed checkpoint. Raise LockedDatabaseError while another process has the database
    open.

    Raises DatabaseError if the journal's path has a file that is no journal of this database. It is also raised if the
    log's path has a file that is no log, because the engine would empty it. Raises OSError if the database cannot be
    written.
    """
    _check_log(log_of(path))
    file = journal_of(path)
    if not os.path.lexists(file):
        return
    with contextlib.suppress(FileNotFoundError):  # its process finished meanwhile
        with _opening(file):
            pass  # refuse a foreign file before locking anything
        with locking(path) as descriptor:
            put_back(file, path, descriptor)
            file.unlink()


def put_back(file: Path, path: Path, descriptor: int) -> None:
    """Write a journal's blocks back to an open database file, unless the journal's checkpoint is complete.

    After a complete checkpoint, the log whose rows it moved is removed. Raises DatabaseError if the file is no journal
    of this database, or is needed and damaged; FileNotFoundError if it is missing; OSError if writing fails.
    """
    with _opening(file) as (stream, journal):
        now = Head(read_at(descriptor, HEAD, 0))
        if journal.is_over(now):
            _remove_log(log_of(path), journal.head.identity)
        elif journal.is_torn(now):
            for offset, block in _read_blocks(stream, file, journal.head.block_bytes, os.fstat(descriptor).st_size):
                write_at(descriptor, block, offset)
            write_at(descriptor, journal.head.pages, 0)
            os.fsync(descriptor)
        else:
            raise DatabaseError(
                f"{file} belongs to another database than {_owner(file)}, or to another state of it: put the right "
                "database back, or move the .journal away"
            )


@contextlib.contextmanager
def _opening(file: Path) -> Iterator[tuple[BinaryIO, Journal]]:
    """Yield (stream at the start of a journal, its content up to the blocks).

    Raises DatabaseError for a file that is not a journal, FileNotFoundError if it is missing.
    """
    with _open_regular(file, "journal") as stream:
        start = stream.read(_START)
        if not start.startswith(TITLE):
            raise _foreign(file, "journal")
        head, renewed = Head(start[len(TITLE) :][:HEAD]), start[len(TITLE) + HEAD :][:PAGE]
        if len(start) < _START or not head.is_whole or not Head(renewed).identity:
            raise _damaged(file)
        stream.seek(0)
        yield stream, Journal(head, renewed)


def _check_log(log: Path) -> None:
    """Raise DatabaseError if the file at the log's path is not a log."""
    if os.path.lexists(log):
        with contextlib.suppress(FileNotFoundError), _open_regular(log, "log") as stream:
            if not _LOG.startswith(stream.read(len(_LOG))):  # a kill may have truncated the first record
                raise _foreign(log, "log")


def _open_regular(file: Path, what: str) -> BinaryIO:
    """Open a regular file for reading. Raise DatabaseError for a pipe, device, link or folder."""
    try:
        descriptor = open_descriptor(file, UNFOLLOWED | UNBLOCKED)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise _foreign(file, what) from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise _foreign(file, what)
    return open(descriptor, "rb")


def _read_blocks(stream: BinaryIO, file: Path, size: int, most_bytes: int) -> Iterator[tuple[int, bytes]]:
    """Yield (offset, content) of a journal's blocks of `size` bytes. Raise DatabaseError if its digest does not match.

    `most_bytes` is the size of the database, which the blocks cannot exceed.
    """
    start = stream.read(_START)
    (count,) = _COUNT.unpack(start[-_COUNT.size :])
    entry = _COUNT.size + size
    if count * size > most_bytes or os.fstat(stream.fileno()).st_size != _START + count * entry + _DIGEST:
        raise _damaged(file)
    digest = hashlib.blake2b(start, digest_size=_DIGEST)
    for _ in range(count):
        digest.update(stream.read(entry))
    if stream.read() != digest.digest():
        raise _damaged(file)
    stream.seek(_START)
    for _ in range(count):
        (offset,) = _COUNT.unpack(stream.read(_COUNT.size))
        yield offset, stream.read(size)


def _damaged(file: Path) -> DatabaseError:
    return DatabaseError(
        f"{file} is damaged, and {_owner(file)} needs this journal of unfinished writes: `joulemap db recover` "
        "recovers what can be read"
    )


def _foreign(file: Path, what: str) -> DatabaseError:
    return DatabaseError(
        f"{file} has the name of the {what} of {_owner(file)} but is not one: move it away, or use another --db"
    )


def _owner(file: Path) -> str:
    return file.name.removesuffix(file.suffix)


def _remove_log(log: Path, identity: bytes) -> None:
    """Remove a log if it continues the state with this identity; the file already contains its rows."""
    encoded = b"".join(bytes([byte]) if byte < 128 else bytes([byte, 1]) for byte in identity)  # in LEB128
    with contextlib.suppress(FileNotFoundError), log.open("rb") as stream:
        if _MARK + encoded in stream.read(_RECORD):
            log.unlink()


@contextlib.contextmanager
def locking(path: Path) -> Iterator[int]:
    """Yield a locked descriptor of a database file. Raise LockedDatabaseError if another process has it open.

    This process must not have it open either, because closing the descriptor would release its engine's lock.
    """
    if is_in_use(path):
        raise LockedDatabaseError(f"{path} is locked by another process")
    descriptor = open_descriptor(path, os.O_RDWR)
    try:
        is_ours = False
        with contextlib.suppress(OSError):
            is_ours = try_lock_bytes(descriptor)
        if not is_ours:
            raise LockedDatabaseError(f"{path} is locked by another process")
        yield descriptor
    finally:
        os.close(descriptor)
