"""Damage to a file as by disks, cables and killed processes, reproducible by seed."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from pathlib import Path

PAGE_BYTES = 4096
HEADER_BYTES = 3 * PAGE_BYTES
BLOCK_BYTES = 65_536


def flip_bit(content: bytearray, rng: random.Random) -> str:
    """Change one bit."""
    place, bit = rng.randrange(len(content)), rng.randrange(8)
    content[place] ^= 1 << bit
    return f"bit {bit} of byte {place} flipped"


def replace_byte(content: bytearray, rng: random.Random) -> str:
    """Change one byte to another value."""
    place = rng.randrange(len(content))
    content[place] = (content[place] + rng.randrange(1, 256)) % 256
    return f"byte {place} replaced"


def clear_page(content: bytearray, rng: random.Random) -> str:
    """Fill a page with zeros, as by a lost write."""
    start = rng.randrange(len(content) // PAGE_BYTES) * PAGE_BYTES
    content[start : start + PAGE_BYTES] = bytes(PAGE_BYTES)
    return f"page at {start} cleared"


def scramble_page(content: bytearray, rng: random.Random) -> str:
    """Fill a page with random bytes."""
    start = rng.randrange(len(content) // PAGE_BYTES) * PAGE_BYTES
    content[start : start + PAGE_BYTES] = rng.randbytes(PAGE_BYTES)
    return f"page at {start} scrambled"


def move_page(content: bytearray, rng: random.Random) -> str:
    """Overwrite one page with another."""
    source, target = (start * PAGE_BYTES for start in rng.sample(range(len(content) // PAGE_BYTES), 2))
    content[target : target + PAGE_BYTES] = content[source : source + PAGE_BYTES]
    return f"page at {source} written over that at {target}"


def move_block(content: bytearray, rng: random.Random) -> str:
    """Overwrite one block with another, including its checksum."""
    count = (len(content) - HEADER_BYTES) // BLOCK_BYTES
    source, target = rng.sample(range(count), 2)
    start, other = (HEADER_BYTES + number * BLOCK_BYTES for number in (target, source))
    content[start : start + BLOCK_BYTES] = content[other : other + BLOCK_BYTES]
    return f"block {source} written over block {target}"


def swap_words(content: bytearray, rng: random.Random) -> str:
    """Exchange two words of one page, which does not change the engine's checksum of the block."""
    start = HEADER_BYTES + rng.randrange((len(content) - HEADER_BYTES) // PAGE_BYTES) * PAGE_BYTES
    first, second = (start + 8 * word for word in rng.sample(range(1, PAGE_BYTES // 8), 2))
    content[first : first + 8], content[second : second + 8] = content[second : second + 8], content[first : first + 8]
    return f"words at {first} and {second} exchanged"


def cut_end(content: bytearray, rng: random.Random) -> str:
    """Cut the end of the file off."""
    del content[rng.randrange(len(content)) :]
    return f"cut to {len(content)} bytes"


KINDS: Mapping[str, Callable[[bytearray, random.Random], str]] = {
    one.__name__: one
    for one in (flip_bit, replace_byte, clear_page, scramble_page, move_page, move_block, swap_words, cut_end)
}


def damage(path: Path, rng: random.Random, kind: str | None = None) -> str:
    """Damage a DuckDB file in place by a kind of `KINDS`, random by default; return a text on the damage."""
    content = bytearray(path.read_bytes())
    done = KINDS[kind or rng.choice(list(KINDS))](content, rng)
    path.write_bytes(content)
    return done
