"""Protect checkpoints against kills: a journal keeps what the engine overwrites until the checkpoint is complete.

At a checkpoint the engine writes new data into free blocks, but overwrites metadata blocks that the last checkpoint
still needs. A kill in between leaves a file that no longer opens. Therefore the head of the file and its metadata
blocks are first written next to it:

    runs.duckdb  ──► runs.duckdb.journal ──► new identity ──► CHECKPOINT ──► journal removed
                     (whole, or not there)

The file has a new identity after each checkpoint. Its log names the identity and thereby the only state that it
continues: the engine applies it to no copy that has diverged since.

The next process that opens the database finds the journal of a killed one, and restores its content unless the new
checkpoint is complete. A file of that name that is not a journal of this database may be a user's, and stays.
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
"""Offset of the blocks."""

_LOG: Final = b"\x64\x00\x62\x65"
"""First bytes of a log: the record of its version."""

_MARK: Final = b"\x66\x00\x10"
"""Bytes before the identity in the first record of a log: the field number and the byte count."""

_RECORD: Final = 128
"""Bytes at the start of a log that contain its first record."""


@frozen
class Journal:
    """State of a database file before a checkpoint, as far as the checkpoint overwrites it."""

    head: Head
    renewed: bytes
    """First page of the file from this checkpoint on."""

    def write(self, file: Path, blocks: dict[int, bytes]) -> None:
        """Write the journal and blocks of the file, by offset, and wait until they are stored; raises OSError."""
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
        """Return whether a file was at this checkpoint, and the next one is incomplete.

        False for another file, or for one restored to an earlier state, which this journal does not describe.
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
        """Return whether the checkpoint of this journal is complete in a file."""
        return now.pages[:PAGE] == self.renewed and now.checkpoint > self.head.checkpoint


def journal_of(path: Path) -> Path:
    """Return the path of a database's journal."""
    return path.with_name(path.name + SUFFIX)


def log_of(path: Path) -> Path:
    """Return the path of the log, in which the engine keeps committed rows that are not yet in the database file."""
    return path.with_name(f"{path.name}.wal")


def open_beside(path: Path) -> int | None:
    """Return a descriptor of a database file besides the engine's; None on Windows, where the engine shares no file."""
    return open_descriptor(path, os.O_RDWR) if IS_POSIX else None


def checkpoint(connection: duckdb.DuckDBPyConnection, path: Path, descriptor: int | None) -> None:
    """Move committed rows from the log into the database file; a kill leaves either state intact.

    `descriptor` is open on the file: opening and closing another would release the engine's lock on it. Without one, as
    on Windows, only Ctrl-C leaves either state intact. Raises OSError or duckdb.Error; the log then holds everything.
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
        journal_of(path).unlink()


def settle(path: Path) -> None:
    """Restore blocks damaged by a killed checkpoint; LockedDatabaseError while another process checkpoints.

    Raises DatabaseError for a file in the journal's place that is not of this database, and for one in the log's place
    that is not a log, because the engine would empty it. Raises OSError if the database cannot be written.
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
    """Restore a journal's blocks to an open database file, unless the checkpoint is complete.

    A log that the checkpoint moved into the file is removed. Raises DatabaseError if the file is not a journal of this
    database, or is needed and damaged; FileNotFoundError if there is none; and OSError.
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
    """Yield a journal, read up to its blocks, and the stream at its start.

    Raises DatabaseError for a file that is not a journal, FileNotFoundError if there is none.
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
    """Raise DatabaseError for a file in the log's place that is not a log."""
    if os.path.lexists(log):
        with contextlib.suppress(FileNotFoundError), _open_regular(log, "log") as stream:
            if not _LOG.startswith(stream.read(len(_LOG))):  # a kill may have truncated the first record
                raise _foreign(log, "log")


def _open_regular(file: Path, what: str) -> BinaryIO:
    """Open a regular file for reading; DatabaseError for a pipe, device, link or folder."""
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
    """Yield (offset, block of `size` bytes) of a journal after checking its digest; DatabaseError if it differs.

    `most_bytes` is the size of the database: no block lies beyond its end.
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
    """Remove a log that continues from the state with this identity and has been moved into the file."""
    encoded = b"".join(bytes([byte]) if byte < 128 else bytes([byte, 1]) for byte in identity)  # in LEB128
    with contextlib.suppress(FileNotFoundError), log.open("rb") as stream:
        if _MARK + encoded in stream.read(_RECORD):
            log.unlink()


@contextlib.contextmanager
def locking(path: Path) -> Iterator[int]:
    """Yield a descriptor of a database file that no engine has open; LockedDatabaseError if one has.

    This process must not have it open either: its engine's lock would be released with the descriptor.
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
