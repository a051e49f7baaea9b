"""Connections to the DuckDB engine with joulemap's settings, and the head of a database file.

A head contains the identity of the file, and its newest checkpoint:

    page 0           checksum, "DUCK", version of the storage, ..., identity of the file
    pages 1 and 2    checksum, number of the checkpoint, metadata, free list, number of blocks, bytes of a block;
                     they take turns
    blocks           checksum, data

Words are little-endian and have 8 bytes; pages have 4,096. The checksum of the words w that follow it is

    5381 xor (w1 x 0xbf58476d1ce4e5b9) xor (w2 x 0xbf58476d1ce4e5b9) ...        modulo 2^64

Source: `src/storage/single_file_block_manager.cpp` and `src/common/checksum.cpp` of DuckDB 1.5.
"""

from __future__ import annotations

import os
import secrets
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import duckdb

from joulemap.system.record import frozen

PAGE: Final = 4_096
HEAD: Final = 3 * PAGE
BLOCK: Final = 65_536
"""Bytes per block of new files: a quarter of the engine's default.

Each column of each table takes at least one block, and most tables have few rows. Small blocks make a new database a
third as large, and faster to create, copy and checkpoint. Scans of 6,840 runs are as fast as with larger blocks.
"""

MAGIC: Final = b"DUCK"
IDENTITY: Final = slice(124, 140)
"""Bytes of the first page with the file's identity, which the write-ahead log repeats."""

MAKER: Final = slice(52, 84)
"""Bytes of the first page with the version of the engine that created the file."""

_WORDS: Final = struct.Struct(f"<{PAGE // 8 - 1}Q")
SEED: Final = 5381
FACTOR: Final = 0xBF58476D1CE4E5B9
_MASK: Final = 2**64 - 1


@frozen
class Head:
    """First three pages of a database file, which identify its state."""

    pages: bytes

    @property
    def identity(self) -> bytes:
        """Random bytes that distinguish the file from every other; empty for an unknown layout."""
        first = self.pages[:PAGE]
        return first[IDENTITY] if first[8:12] == MAGIC and is_whole(first) else b""

    @property
    def is_whole(self) -> bool:
        """True if the page with the identity and a checkpoint page are intact."""
        return bool(self.identity) and self.checkpoint >= 0

    @property
    def checkpoint(self) -> int:
        """Number of the newest checkpoint; -1 if neither checkpoint page is intact."""
        pages = [self.pages[start : start + PAGE] for start in (PAGE, 2 * PAGE)]
        return max((int.from_bytes(page[8:16], "little") for page in pages if is_whole(page)), default=-1)

    @property
    def maker(self) -> str:
        """Version of the engine that created the file, such as `v1.5.6`; empty for an unknown layout."""
        return self.pages[MAKER].rstrip(b"\0").decode("ascii", "replace") if self.identity else ""

    @property
    def block_bytes(self) -> int:
        """Bytes per block; the first block follows the head."""
        return int.from_bytes(self.newest[40:48], "little")

    @property
    def newest(self) -> bytes:
        """Page of the newest checkpoint."""
        pages = [self.pages[start : start + PAGE] for start in (PAGE, 2 * PAGE)]
        return next(page for page in pages if int.from_bytes(page[8:16], "little") == self.checkpoint)


def read_head(path: Path) -> Head:
    """Return the head of a database file that this process does not have open, because closing the file again would
    release the engine's lock on it.
    """
    with path.open("rb") as file:
        return Head(file.read(HEAD))


def is_whole(page: bytes) -> bool:
    """Return whether a page matches its checksum."""
    return len(page) == PAGE and int.from_bytes(page[:8], "little") == _checksum(page[8:])


def _checksum(words: bytes) -> int:
    total = SEED
    for word in _WORDS.unpack(words):
        total ^= word * FACTOR & _MASK
    return total


def renew(page: bytes, identity: bytes = b"") -> bytes:
    """Return the first page of a file with a new identity, random unless its 16 bytes are given."""
    first = bytearray(page)
    first[IDENTITY] = identity or secrets.token_bytes(IDENTITY.stop - IDENTITY.start)
    first[:8] = _checksum(bytes(first[8:])).to_bytes(8, "little")
    return bytes(first)


def renew_identity(path: Path, identity: bytes = b"") -> bool:
    """Give a copy of a database a new identity, so that the engine applies no write-ahead log of another copy to it.

    The identity is random unless its 16 bytes are given. Returns False, without a change, for an unknown file layout.
    """
    with path.open("r+b") as file:
        first = file.read(PAGE)
        if not Head(first).identity:
            return False
        file.seek(0)
        file.write(renew(first, identity))
        os.fsync(file.fileno())
    return True


IN_MEMORY: Final = ":memory:"

STORAGE: Final = "v1.4.0"
"""Storage version of new files: the oldest in which file and log have an identity.

Every client from DuckDB 1.4 on opens them. Files are as large and as fast as in later versions.
"""

SETTINGS: Final = (
    ("storage_compatibility_version", STORAGE),
    ("default_block_size", str(BLOCK)),
    ("dynamic_or_filter_threshold", "1000"),
    ("autoinstall_known_extensions", "false"),
    ("autoload_known_extensions", "false"),
)
"""Engine settings of every database.

The filter threshold is the largest number of requested runs for which the engine skips each row group without any of
them. Above it, the engine skips only groups before the first or after the last run. No statement may load extensions,
which would need a network, even if a view of the database requires one.
"""

SMALL_BYTES: Final = 32 << 20
"""File size below which one thread is used: tables have one row group, so a second thread gains nothing."""


def connect(
    path: str | Path, *, is_reading: bool = False, config: Iterable[tuple[str, str]] = ()
) -> duckdb.DuckDBPyConnection:
    """Return a connection to a database file or to memory; small data get one thread. Raise duckdb.Error on failure."""
    settings: dict[str, str | bool | int | float | list[str]] = {**dict(SETTINGS), **dict(config)}
    if not _is_large(path):
        settings["threads"] = 1
    return duckdb.connect(os.fspath(path), read_only=is_reading, config=settings)


def _is_large(path: str | Path) -> bool:
    """Return whether a place is an existing file of at least `SMALL_BYTES`."""
    try:
        return os.stat(path).st_size >= SMALL_BYTES
    except (OSError, ValueError):
        return False
