"""Fields of a protocol buffer, encoded.

Source: https://protobuf.dev/programming-guides/encoding/
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

VARINT: Final = 0
DELIMITED: Final = 2

MASK: Final = (1 << 64) - 1
"""Negative numbers are written as their two's complement of 64 bits."""


SMALL: Final = [bytes([number]) for number in range(0x80)]


def varint(number: int) -> bytes:
    """Return a whole number of at most 64 bits, seven bits a byte, the low ones first."""
    if 0 <= number <= 0x7F:
        return SMALL[number]
    rest, found = number & MASK, bytearray()
    while rest > 0x7F:
        found.append(rest & 0x7F | 0x80)
        rest >>= 7
    found.append(rest)
    return bytes(found)


def number_field(field: int, value: int) -> bytes:
    """Return a field that holds a whole number; nothing for 0, which a reader takes a missing one for."""
    return varint(field << 3 | VARINT) + varint(value) if value else b""


def bytes_field(field: int, content: bytes) -> bytes:
    """Return a field that holds a text, a message or packed numbers."""
    return varint(field << 3 | DELIMITED) + varint(len(content)) + content


def packed_field(field: int, values: Iterable[int]) -> bytes:
    """Return a repeated field of whole numbers."""
    return bytes_field(field, b"".join(map(varint, values)))
