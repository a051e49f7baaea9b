"""Unexpected changes to bytes and JSON documents."""

from __future__ import annotations

import json
from collections.abc import Sequence
from random import Random
from typing import Any, Final

from fuzz import draw_word

BYTES: Final = (b"\xff", b"\xfe\xff", b"\xc3\x28", b"\x80", b"\0", b"\xed\xa0\x80", b"PK\x03\x04", b"\x1f\x8b", b"PAR1")


def mutate_bytes(random: Random, content: bytes) -> bytes:
    """Return bytes with one to three changes."""
    changed = bytearray(content)
    for _ in range(random.randint(1, 3)):
        at = random.randrange(len(changed) + 1)
        way = random.randrange(5)
        if way == 0:
            changed[at:at] = random.choice(BYTES)
        elif way == 1 and at < len(changed):
            changed[at] ^= 1 << random.randrange(8)
        elif way == 2:
            del changed[at:]
        elif way == 3:
            del changed[at : at + random.randint(1, 64)]
        else:
            changed[at : at + random.randint(0, 64)] = random.randbytes(random.randint(0, 64))
    return bytes(changed)


def mutate_json(random: Random, document: Any) -> Any:
    """Return a copy of a document with one value or key changed."""
    copy = json.loads(json.dumps(document))
    places = list(_walk(copy))
    if not places:
        return draw_value(random)
    holder, key = random.choice(places)
    way = random.randrange(4)
    if way == 0:
        del holder[key]
    elif way == 1 and isinstance(holder, dict):
        holder[draw_word(random)] = holder.pop(key)
    else:
        holder[key] = draw_value(random)
    return copy


def draw_value(random: Random) -> Any:
    """Return an unexpected JSON value."""
    values: tuple[Any, ...] = (
        None, True, False, 0, -1, 2**63, 10**400, 1.5, 1e308, "", [], {}, [[]], {"": None}, [1, "a", None],
        draw_word(random), [draw_word(random)] * 3, {draw_word(random): draw_word(random)},
    )  # fmt: skip
    value = random.choice(values)
    return _nest(value, random.randint(1, 400)) if random.random() < 0.05 else value


def _nest(value: Any, depth: int) -> Any:
    for _ in range(depth):
        value = [value]
    return value


def _walk(document: Any) -> list[tuple[Any, Any]]:
    holders: list[tuple[Any, Any]] = []
    waiting = [document]
    while waiting:
        holder = waiting.pop()
        keys: Sequence[Any] = (
            list(holder) if isinstance(holder, dict) else range(len(holder)) if isinstance(holder, list) else ()
        )
        for key in keys:
            holders.append((holder, key))
            waiting.append(holder[key])
    return holders
