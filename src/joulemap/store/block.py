"""Every block of a database file that is in use, against the checksum that the engine stored with it.

The engine compares them when it reads a block, and no query reads every block: those of indexes are read where a row is
looked up or added. The layout of a file stands in `header`. A block of metadata has 64 parts; each starts with the
place of the next, the block in the low 56 bits and the part in the others. The free list is in such parts: how many
blocks are free, then which. What a free block holds is of no matter, and after a crash it may be half written.

Source: `src/storage/metadata/metadata_manager.cpp` of DuckDB 1.5.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import BinaryIO, Final

from joulemap.store.header import FACTOR, HEAD, MAGIC, PAGE, SEED

VERSION: Final = 68
WORD_BYTES: Final = 8
METADATA_PARTS: Final = 64
PLACE_BITS: Final = 56
NOWHERE: Final = 2**64 - 1


def find_damaged_blocks(stream: BinaryIO) -> list[int]:
    """Return the numbers of the blocks in use whose checksum is wrong, or that the file ends before.

    A file of another storage version is left to the engine.
    """
    free_list, block_count, block_bytes = _read_newest(stream)
    damaged = {number for number in range(block_count) if not _is_whole(stream.read(block_bytes), block_bytes)}
    return sorted(damaged - _read_free(stream, free_list, block_bytes, damaged)) if damaged else []


def accept_blocks(stream: BinaryIO, numbers: Iterable[int]) -> None:
    """Give blocks the checksum of what they hold, so that the engine reads them as they are."""
    block_bytes = _read_newest(stream)[-1]
    for number in numbers:
        stream.seek(HEAD + number * block_bytes)
        block = stream.read(block_bytes)
        if len(block) == block_bytes:
            stream.seek(HEAD + number * block_bytes)
            stream.write(_checksum(block).to_bytes(WORD_BYTES, "little"))


def _read_newest(stream: BinaryIO) -> tuple[int, int, int]:
    """Return of the newest checkpoint its free list, how many blocks there are, and bytes of a block.

    All are 0 for a file of another storage version.
    """
    stream.seek(0)
    header = stream.read(HEAD)
    if len(header) < HEAD or header[8:12] != MAGIC or struct.unpack_from("<Q", header, 12)[0] != VERSION:
        return 0, 0, 0
    _, _, *told = max(struct.unpack_from("<5Q", header, page * PAGE + WORD_BYTES) for page in (1, 2))
    return told[0], told[1], told[2]


def _is_whole(block: bytes, block_bytes: int) -> bool:
    return len(block) == block_bytes and _checksum(block) == int.from_bytes(block[:WORD_BYTES], "little")


def _checksum(block: bytes) -> int:
    import numpy as np

    words = np.frombuffer(block, dtype="<u8")
    return int(np.bitwise_xor.reduce(words[1:] * np.uint64(FACTOR))) ^ SEED


def _read_free(stream: BinaryIO, place: int, block_bytes: int, damaged: set[int]) -> set[int]:
    """Return the numbers of the free blocks, as far as the list can be read."""
    part_bytes = (block_bytes - WORD_BYTES) // METADATA_PARTS // WORD_BYTES * WORD_BYTES
    words: list[int] = []
    while place != NOWHERE and not (words and len(words) > words[0]):
        block, part = place & (1 << PLACE_BITS) - 1, place >> PLACE_BITS
        if block in damaged:
            break
        stream.seek(HEAD + block * block_bytes + WORD_BYTES + part * part_bytes)
        place, *more = struct.unpack(f"<{part_bytes // WORD_BYTES}Q", stream.read(part_bytes))
        words += more
    return set(words[1 : words[0] + 1]) if words else set()
