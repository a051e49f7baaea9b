"""The engine, as every database of joulemap is opened with it, and the head of a database file.

A head says who the file is, and which checkpoint it has reached:

    page 0           checksum, "DUCK", version of the storage, ..., identity of the file
    pages 1 and 2    checksum, number of the checkpoint, metadata, free list, number of blocks, bytes of a block;
                     they take turns
    blocks           checksum, data

with little-endian words of 8 bytes and pages of 4,096. The checksum of the words w that follow it is

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
"""Bytes of a block of the files that are made here: a quarter of what the engine would take.

Each column of each table takes one at least, and most have few rows: a new database is a third as large, so that it is
made, copied and kept through a checkpoint in less time. Scans of 6,840 runs take as long as with larger ones."""

MAGIC: Final = b"DUCK"
IDENTITY: Final = slice(124, 140)
"""Where the first page has the file's own identity, which its write-ahead log repeats."""

_WORDS: Final = struct.Struct(f"<{PAGE // 8 - 1}Q")
SEED: Final = 5381
FACTOR: Final = 0xBF58476D1CE4E5B9
_MASK: Final = 2**64 - 1


@frozen
class Head:
    """The first three pages of a database file."""

    pages: bytes

    @property
    def identity(self) -> bytes:
        """What tells the file from every other; empty for what is no database of this layout."""
        first = self.pages[:PAGE]
        return first[IDENTITY] if first[8:12] == MAGIC and is_whole(first) else b""

    @property
    def is_whole(self) -> bool:
        """Whether it tells who the file is and which checkpoint it has reached."""
        return bool(self.identity) and self.checkpoint >= 0

    @property
    def checkpoint(self) -> int:
        """Number of the newest checkpoint; -1 where neither page that tells is whole."""
        told = [self.pages[start : start + PAGE] for start in (PAGE, 2 * PAGE)]
        return max((int.from_bytes(page[8:16], "little") for page in told if is_whole(page)), default=-1)

    @property
    def block_bytes(self) -> int:
        """Bytes of a block; the first starts after the head."""
        return int.from_bytes(self.newest[40:48], "little")

    @property
    def newest(self) -> bytes:
        """The page that names the newest checkpoint."""
        told = [self.pages[start : start + PAGE] for start in (PAGE, 2 * PAGE)]
        return next(page for page in told if int.from_bytes(page[8:16], "little") == self.checkpoint)


def is_whole(page: bytes) -> bool:
    """Return whether a page is as it was written."""
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
    """Give a copy of a database an identity of its own; return False, changing nothing, for another layout.

    Without one, the engine would apply the write-ahead log that is left of one copy to another.
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
"""Files are of the engine's own newest layout: only there do file and log have an identity.

Up to so many runs that are asked about are looked up in what is known of each group of rows, which is then left out
where it has none of them: above the threshold only what lies before the first or after the last. No statement brings
extensions, and with them a network, whatever the views of a database ask for.
"""

SMALL_BYTES: Final = 32 << 20
"""A file below this has tables of one row group each, which threads cannot share: a second one only costs."""


def connect(
    place: str | Path, *, is_reading: bool = False, config: Iterable[tuple[str, str]] = ()
) -> duckdb.DuckDBPyConnection:
    """Return a connection to a file or to memory, of one thread where there is little; raises duckdb.Error."""
    settings: dict[str, str | bool | int | float | list[str]] = {**dict(SETTINGS), **dict(config)}
    if not _is_large(place):
        settings["threads"] = 1
    return duckdb.connect(os.fspath(place), read_only=is_reading, config=settings)


def _is_large(place: str | Path) -> bool:
    """Return whether a file is there that threads can share; memory is none."""
    try:
        return os.stat(place).st_size >= SMALL_BYTES
    except (OSError, ValueError):
        return False
