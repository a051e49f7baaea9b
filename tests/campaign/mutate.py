"""Changes to texts and bytes that a careless program does not expect."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, Final

NUMBERS: Final = (
    "0", "-0", "-1", "1e308", "1e309", "-1e309", "5e-324", "nan", "inf", "-inf", "1_000", "0x10", "1,5", "٣",
    "9" * 19, "9" * 400, "9" * 5_000, str(2**31), str(2**63), str(2**64), "1.0000000000000002", "",
)  # fmt: skip

WORDS: Final = (
    "", " ", "\t", "\n", "\r\n", "\0", "é", "日本語", "🜁", "\u202e", "\ufeff", "\x1b[31mred", "\x1b]0;title\x07",
    "\x7f",
    "\u0085", "'", '"', "`", "\\", "/", "//", "..", "../..", ".", "~", "*", "?", "%", "%s", "{}", "{0}", "$HOME",
    "${x}",
    "-", "--", "=", "=1+1", "@SUM(1)", "+1", "null", "None", "true", "NaN", "[]", "[[", "{", "a" * 300, "x" * 131_073,
    "[" * 2_000, "{" * 1_000, "(" * 1_000, "a.b" * 200, "l4", "resnet18", "fp32", "run", "name", "id", "0", "md:x",
    "sqlite:x", ":memory:", "http://127.0.0.1:9/x", "file:///dev/null", "con", "a/b", "a\\b", "1e5", ",", ",,", ";",
)  # fmt: skip

BYTES: Final = (b"\xff", b"\xfe\xff", b"\xc3\x28", b"\x80", b"\0", b"\xed\xa0\x80", b"PK\x03\x04", b"\x1f\x8b", b"PAR1")


def draw_word(random: Random) -> str:
    """Return a word or number that few expect."""
    return random.choice(NUMBERS if random.random() < 0.4 else WORDS)


def mutate_text(random: Random, text: str) -> bytes:
    """Return a text with one to three changes, not always as UTF-8."""
    for _ in range(random.randint(1, 3)):
        text = random.choice(_TEXT)(random, text)
    content = text.encode("utf-8", errors="surrogatepass")
    return mutate_bytes(random, content) if random.random() < 0.1 else content


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
    """Return a value of JSON that few expect."""
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
    found: list[tuple[Any, Any]] = []
    waiting = [document]
    while waiting:
        holder = waiting.pop()
        keys: Sequence[Any] = (
            list(holder) if isinstance(holder, dict) else range(len(holder)) if isinstance(holder, list) else ()
        )
        for key in keys:
            found.append((holder, key))
            waiting.append(holder[key])
    return found


def _split(random: Random, text: str) -> tuple[str, str, str]:
    """Return a text as what comes before a word, the word, and what comes after."""
    if not text:
        return "", "", ""
    at = random.randrange(len(text))
    start, end = at, at
    while start and (text[start - 1].isalnum() or text[start - 1] in "_.-"):
        start -= 1
    while end < len(text) and (text[end].isalnum() or text[end] in "_.-"):
        end += 1
    return text[:start], text[start:end], text[end:]


def _replace_word(random: Random, text: str) -> str:
    before, _, after = _split(random, text)
    return before + draw_word(random) + after


def _double_word(random: Random, text: str) -> str:
    before, word, after = _split(random, text)
    return before + word * random.choice((0, 2, 40)) + after


def _insert(random: Random, text: str) -> str:
    at = random.randrange(len(text) + 1)
    return text[:at] + draw_word(random) + text[at:]


def _cut(random: Random, text: str) -> str:
    return text[: random.randrange(len(text) + 1)]


def _drop_line(random: Random, text: str) -> str:
    lines = text.splitlines(keepends=True)
    if lines:
        del lines[random.randrange(len(lines))]
    return "".join(lines)


def _double_line(random: Random, text: str) -> str:
    lines = text.splitlines(keepends=True)
    if lines:
        at = random.randrange(len(lines))
        lines.insert(random.randrange(len(lines) + 1), lines[at])
    return "".join(lines)


def _swap_lines(random: Random, text: str) -> str:
    lines = text.splitlines(keepends=True)
    random.shuffle(lines)
    return "".join(lines)


_TEXT: Final[tuple[Callable[[Random, str], str], ...]] = (
    _replace_word, _replace_word, _replace_word, _double_word, _insert, _insert, _cut, _drop_line, _double_line,
    _swap_lines,
)  # fmt: skip
