"""Text that a terminal does not obey: what steers it, or turns the order of reading, is shown by its code."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import Final

STEERING: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Unicode's categories of control, format, half a pair, and ends of line and paragraph."""

_SUSPECT: Final = r"[^\n -~\xa0-\xac\xae-\u05ff]"
"""A character that may be of these."""

FIRST_LOST_BYTE: Final = 0xDC80
"""How Python keeps a byte of a file's name that is no UTF-8: this, for the byte 0x80."""


def make_visible(text: str, keep: str = "\n") -> str:
    """Return a text with `\\x1b` in the place of the character, for every one that steers but those to keep."""
    if text.isprintable():
        return text
    return re.sub(_SUSPECT, lambda found: found[0] if found[0] in keep else _name(found[0]), text)


def make_all_visible(texts: Iterable[str]) -> tuple[str, ...]:
    """Return each text as `make_visible` does."""
    return tuple(map(make_visible, texts))


def escape_json(text: str) -> str:
    """Return JSON in which characters that steer are escaped as JSON does."""
    return text if text.isascii() and "\x7f" not in text else re.sub(_SUSPECT, lambda found: _escape(found[0]), text)


def one_line(text: str, most: int) -> str:
    """Return a text as one visible line, its middle left out where it is longer than `most`."""
    line = make_visible(re.sub(r"[ \t\n]+", " ", text.strip(" \t\n")))
    if len(line) <= most:
        return line
    return f"{line[: most * 2 // 3]} … {line[-(most // 3) :]}"


def _name(character: str) -> str:
    if unicodedata.category(character) not in STEERING:
        return character
    code = ord(character)
    if FIRST_LOST_BYTE <= code < FIRST_LOST_BYTE + 0x80:
        return f"\\x{code - FIRST_LOST_BYTE + 0x80:02x}"
    return character.encode("unicode_escape").decode("ascii")


def _escape(character: str) -> str:
    if unicodedata.category(character) not in STEERING:
        return character
    pair = character.encode("utf-16-be", errors="surrogatepass")
    return "".join(f"\\u{pair[index : index + 2].hex()}" for index in range(0, len(pair), 2))
