"""A checkpoint that a kill cannot tear: what the engine writes over is kept until the new checkpoint stands.

At a checkpoint the engine writes new data into free blocks, but metadata over blocks that the last checkpoint still
needs. Killed in the middle of one, it leaves a file that no longer opens. So the head of the file and its metadata
blocks are written beside it first:

    runs.duckdb  ──► runs.duckdb.journal ──► CHECKPOINT ──► journal removed
                     (whole, or not there)

Who opens a database finds the journal that a killed process left, and puts back what it holds unless the new checkpoint
stands already.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import duckdb

from joulemap.background import uninterrupted
from joulemap.draft import drafting
from joulemap.errors import LockedDatabaseError
from joulemap.record import frozen
from joulemap.store.header import BLOCK, HEAD, Head

SUFFIX: Final = ".journal"
TITLE: Final = b"joulemap journal of a checkpoint, 1\n"
_COUNT: Final = struct.Struct("<Q")
_DIGEST: Final = 32


@frozen
class Journal:
    """What a database file was before a checkpoint, where the checkpoint writes over it."""

    head: Head
    blocks: dict[int, bytes]
    """Offset in the file -> a block."""

    def write(self, file: Path) -> None:
        """Write it to a file and wait until it is stored; raises OSError."""
        parts = [TITLE, self.head.pages, _COUNT.pack(len(self.blocks))]
        for offset, block in self.blocks.items():
            parts += [_COUNT.pack(offset), _COUNT.pack(len(block)), block]
        digest = hashlib.blake2b(digest_size=_DIGEST)
        with file.open("wb", buffering=0) as stream:
            for part in parts:
                digest.update(part)
                stream.write(part)
            stream.write(digest.digest())
            os.fsync(stream.fileno())


def read_journal(file: Path) -> Journal | None:
    """Return the journal in a file; None for what is none or is not whole. Raises OSError."""
    content = file.read_bytes()
    body, digest = content[:-_DIGEST], content[-_DIGEST:]
    if not body.startswith(TITLE) or hashlib.blake2b(body, digest_size=_DIGEST).digest() != digest:
        return None
    place = len(TITLE)
    head, place = Head(body[place : place + HEAD]), place + HEAD
    (count,), place = _COUNT.unpack_from(body, place), place + _COUNT.size
    blocks = {}
    for _ in range(count):
        offset, size = struct.unpack_from("<QQ", body, place)
        place += 2 * _COUNT.size
        blocks[offset] = body[place : place + size]
        place += size
    return Journal(head, blocks)


def journal_of(path: Path) -> Path:
    """Return where the journal of a database stands."""
    return path.with_name(path.name + SUFFIX)


def checkpoint(connection: duckdb.DuckDBPyConnection, path: Path, descriptor: int) -> None:
    """Move what is committed from the log into the database file, so that a kill leaves the one or the other.

    `descriptor` is open on the file: to open and close another would give away the engine's lock on it.
    Raises OSError or duckdb.Error; the log holds everything then.
    """
    rows = connection.execute("SELECT DISTINCT block_id FROM pragma_metadata_info()").fetchall()
    offsets = sorted(HEAD + BLOCK * int(block) for (block,) in rows)
    journal = Journal(
        Head(os.pread(descriptor, HEAD, 0)), {offset: os.pread(descriptor, BLOCK, offset) for offset in offsets}
    )
    with uninterrupted:
        with drafting(path.parent) as folder:
            draft = folder / "journal"
            journal.write(draft)
            draft.replace(journal_of(path))
        _store_names(path.parent)
        connection.execute("CHECKPOINT")
        journal_of(path).unlink()


def settle(path: Path) -> None:
    """Put back what a checkpoint tore that was killed; LockedDatabaseError while another process is at one.

    Raises OSError where the file cannot be written.
    """
    file = journal_of(path)
    if not file.exists():
        return
    with locking(path) as descriptor, contextlib.suppress(FileNotFoundError):  # its process has finished meanwhile
        journal = read_journal(file)
        if journal is not None and is_torn(journal, Head(os.pread(descriptor, HEAD, 0))):
            for offset, block in journal.blocks.items():
                os.pwrite(descriptor, block, offset)
            os.pwrite(descriptor, journal.head.pages, 0)
            os.fsync(descriptor)
        file.unlink()


@contextlib.contextmanager
def locking(path: Path) -> Iterator[int]:
    """Give out a descriptor of a database file that no engine has open; LockedDatabaseError where one has.

    This process must not have it open either: the lock of its engine would go with the descriptor.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise LockedDatabaseError(f"{path} is locked by another process") from error
        yield descriptor
    finally:
        os.close(descriptor)


def is_torn(journal: Journal, now: Head) -> bool:
    """Return whether a file was at the checkpoint of a journal, and the checkpoint did not come to stand.

    Not so for another file, or one that was put back to an earlier state: the journal has nothing to tell of those.
    """
    was = journal.head
    is_same = bool(was.identity) and now.identity == was.identity
    return is_same and now.checkpoint == was.checkpoint and now.newest == was.newest


def _store_names(folder: Path) -> None:
    """Wait until the names in a folder are stored."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
