"""Open the engine with joulemap's settings, and read the head of a database file.

A head holds the identity of the file, and the checkpoint that it has reached:

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
"""Position in the first page of the file's identity, which its write-ahead log repeats."""

_WORDS: Final = struct.Struct(f"<{PAGE // 8 - 1}Q")
SEED: Final = 5381
FACTOR: Final = 0xBF58476D1CE4E5B9
_MASK: Final = 2**64 - 1


@frozen
class Head:
    """First three pages of a database file."""

    pages: bytes

    @property
    def identity(self) -> bytes:
        """Identity that distinguishes the file from every other; empty for another layout."""
        first = self.pages[:PAGE]
        return first[IDENTITY] if first[8:12] == MAGIC and is_whole(first) else b""

    @property
    def is_whole(self) -> bool:
        """True if both the identity and the newest checkpoint are readable."""
        return bool(self.identity) and self.checkpoint >= 0

    @property
    def checkpoint(self) -> int:
        """Number of the newest checkpoint; -1 if neither of its pages is whole."""
        pages = [self.pages[start : start + PAGE] for start in (PAGE, 2 * PAGE)]
        return max((int.from_bytes(page[8:16], "little") for page in pages if is_whole(page)), default=-1)

    @property
    def block_bytes(self) -> int:
        """Bytes of a block; the first starts after the head."""
        return int.from_bytes(self.newest[40:48], "little")

    @property
    def newest(self) -> bytes:
        """Page that names the newest checkpoint."""
        pages = [self.pages[start : start + PAGE] for start in (PAGE, 2 * PAGE)]
        return next(page for page in pages if int.from_bytes(page[8:16], "little") == self.checkpoint)


def is_whole(page: bytes) -> bool:
    """Return whether a page matches its checksum."""
    return len(page) == PAGE and int.from_bytes(page[:8], "little") == _checksum(page[8:])


def _checksum(words: bytes) -> int:
    total = SEED
    for word in _WORDS.unpack(words):
        total ^= word * FACTOR & _MASK
    return total


def renew(page: bytes) -> bytes:
    """Return the first page with a new identity."""
    first = bytearray(page)
    first[IDENTITY] = secrets.token_bytes(IDENTITY.stop - IDENTITY.start)
    first[:8] = _checksum(bytes(first[8:])).to_bytes(8, "little")
    return bytes(first)


def renew_identity(path: Path) -> bool:
    """Give a copy of a database a new identity; return False, changing nothing, for another layout.

    Without one, the engine would apply a write-ahead log left by one copy to another.
    """
    with path.open("r+b") as file:
        first = file.read(PAGE)
        if not Head(first).identity:
            return False
        file.seek(0)
        file.write(renew(first))
        os.fsync(file.fileno())
    return True


IN_MEMORY: Final = ":memory:"

SETTINGS: Final = (
    ("storage_compatibility_version", "latest"),
    ("default_block_size", str(BLOCK)),
    ("dynamic_or_filter_threshold", "1000"),
    ("autoinstall_known_extensions", "false"),
    ("autoload_known_extensions", "false"),
)
"""Settings of every database.

Files use the engine's newest layout, because only there do file and log have an identity. The filter threshold is the
number of requested runs up to which row groups without any of them are skipped; above it, the engine skips only groups
before the first or after the last. No statement may load extensions, which would need a network, even if a view of the
database requires one.
"""

SMALL_BYTES: Final = 32 << 20
"""File size below which tables have one row group, so that a second thread gains nothing."""


def connect(
    place: str | Path, *, is_reading: bool = False, config: Iterable[tuple[str, str]] = ()
) -> duckdb.DuckDBPyConnection:
    """Return a connection to a file or to memory, with one thread for small data; raises duckdb.Error."""
    settings: dict[str, str | bool | int | float | list[str]] = {**dict(SETTINGS), **dict(config)}
    if not _is_large(place):
        settings["threads"] = 1
    return duckdb.connect(os.fspath(place), read_only=is_reading, config=settings)


def _is_large(place: str | Path) -> bool:
    """Return whether a file exists and is large enough for several threads; memory is not."""
    try:
        return os.stat(place).st_size >= SMALL_BYTES
    except (OSError, ValueError):
        return False
