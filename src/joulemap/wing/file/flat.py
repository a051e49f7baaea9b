"""FlatBuffers tables read in place: every position is checked, and only requested values are copied.

    table ─ signed offset ─► vtable: size, size of the table, position of each field (0: omitted)

Source of the format: FlatBuffers internals, flatbuffers.dev/internals.
"""

from __future__ import annotations

import struct
from mmap import mmap
from typing import Any, Final

import attrs

MOST_READ: Final = 40_000_000
"""Maximum bytes of the vectors that are read of a file: tables may share vectors, so copies could exceed any memory."""


class BrokenTableError(Exception):
    """Error for bytes that are not a valid table."""


@attrs.define
class FlatBuffer:
    """Bytes of a file, of which a bounded part is read."""

    data: mmap
    left: int = MOST_READ
    """Number of bytes that may still be read."""

    def number(self, place: int, code: str) -> Any:
        """Return a number at a position, given its code in `struct`."""
        size = struct.calcsize(f"<{code}")
        if not 0 <= place <= len(self.data) - size:
            raise BrokenTableError("it ends within a table")
        return struct.unpack_from(f"<{code}", self.data, place)[0]

    def spend(self, count: int) -> None:
        """Count bytes read against the limit."""
        self.left -= count
        if self.left < 0:
            raise BrokenTableError(f"it has more than {MOST_READ:,} bytes without its weights")

    def take(self, place: int, count: int) -> bytes:
        """Return bytes at a position."""
        if not 0 <= place <= len(self.data) - count:
            raise BrokenTableError(f"{count:,} bytes end behind the file")
        self.spend(count)
        return self.data[place : place + count]


@attrs.frozen
class FlatTable:
    """Table of a buffer."""

    data: FlatBuffer
    position: int

    @classmethod
    def find_root(cls, data: mmap) -> FlatTable:
        """Return the table that a file begins with."""
        buffer = FlatBuffer(data)
        return cls(buffer, buffer.number(0, "I"))

    def find(self, field: int) -> int:
        """Return the position of a field; 0 for one that is omitted."""
        vtable = self.position - self.data.number(self.position, "i")
        size = self.data.number(vtable, "H")
        place = 4 + 2 * field
        offset = self.data.number(vtable + place, "H") if place < size else 0
        return self.position + offset if offset else 0

    def number(self, field: int, code: str, default: Any = 0) -> Any:
        """Return a number, given its code in `struct`."""
        place = self.find(field)
        return self.data.number(place, code) if place else default

    def text(self, field: int) -> str:
        """Return a text; empty for one that is omitted."""
        return self.data.take(*self.span(field)).decode("utf-8", "replace")

    def span(self, field: int, size: int = 1) -> tuple[int, int]:
        """Return the position and length of a vector with items of `size` bytes; (0, 0) for one that is omitted."""
        place = self.find(field)
        if not place:
            return 0, 0
        start = place + self.data.number(place, "I")
        count = self.data.number(start, "I")
        if start + 4 + count * size > len(self.data.data):
            raise BrokenTableError(f"a vector of {count:,} items ends behind the file")
        return start + 4, count

    def numbers(self, field: int, code: str) -> tuple[Any, ...]:
        """Return a vector of numbers."""
        size = struct.calcsize(f"<{code}")
        place, count = self.span(field, size)
        return struct.unpack(f"<{count}{code}", self.data.take(place, count * size))

    def table(self, field: int) -> FlatTable | None:
        """Return an inner table; None for one that is omitted."""
        place = self.find(field)
        return FlatTable(self.data, place + self.data.number(place, "I")) if place else None

    def tables(self, field: int) -> list[FlatTable]:
        """Return a vector of inner tables."""
        place, count = self.span(field, 4)
        self.data.spend(4 * count)
        starts = range(place, place + 4 * count, 4)
        return [FlatTable(self.data, start + self.data.number(start, "I")) for start in starts]
