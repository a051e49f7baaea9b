"""Text for terminals: control characters and characters that change reading direction are shown as escape codes, and
lines wrap where a number stays with its unit.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import Final

from joulemap.system.errors import cut_middle

STEERING: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Unicode categories that are escaped: control, format, surrogate, line separator and paragraph separator."""

_SUSPECT: Final = r"[^\n -~\xa0-\xac\xae-\u05ff]"
"""Pattern of characters that may belong to `STEERING`; all others are safe without a look-up."""

MOST_WORD: Final = 300
"""Maximum characters of a word in a message; names and paths that anybody means are shorter."""

_LONG_WORD: Final = re.compile(rf"\S{{{MOST_WORD + 1},}}")

FIRST_LOST_BYTE: Final = 0xDC80
"""Code point by which Python represents the undecodable byte 0x80 of a file name; 0x81 and higher follow in order."""


UNIT: Final = re.compile(
    r"(?<=\d) (?=(?:%|[yzafpnµmkMGTPE]?(?:J·s|J|s|W|B|b|bit|Hz|g|kg|m|V|A|USD|ops|Tops)(?:/\S+)?)(?!\w))"
)
"""Pattern of the space between a number and its unit, which a table makes non-breaking."""

HARD_SPACE: Final = "\N{NO-BREAK SPACE}"

END: Final = "\x1b[0m"
"""Escape sequence that ends a colour or a style."""

COLOUR: Final = re.compile(r"\x1b\[[0-9;]*m")
"""Pattern of a colour escape sequence, which takes no room; only drawings have any."""


def make_visible(text: str, keep: str = "\n") -> str:
    """Replace every control character by its escape code, except the characters in `keep`."""
    if text.isprintable():
        return text
    return re.sub(_SUSPECT, lambda match: match[0] if match[0] in keep else _name(match[0]), text)


def make_all_visible(texts: Iterable[str]) -> tuple[str, ...]:
    """Apply `make_visible` to each text."""
    return tuple(map(make_visible, texts))


def escape_json(text: str) -> str:
    """Replace control characters in JSON text by JSON escapes."""
    return text if text.isascii() and "\x7f" not in text else re.sub(_SUSPECT, lambda match: _escape(match[0]), text)


def one_line(text: str, most: int) -> str:
    """Return a text as one line with visible control characters, where long words and a long text lack their middle."""
    line = make_visible(re.sub(r"[ \t\n]+", " ", text.strip(" \t\n")))
    return cut_middle(_LONG_WORD.sub(lambda match: cut_middle(match[0], MOST_WORD), line), most)


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


def wrap(text: str, width: int | None, indent: str = "") -> str:
    """Wrap a text to lines of at most `width`, except for longer words; a number stays with its unit."""
    if width is None:
        return text
    import textwrap

    return "\n".join(
        textwrap.fill(
            UNIT.sub(HARD_SPACE, line),
            max(width, 1),
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=False,
        ).replace(HARD_SPACE, " ")
        for line in text.splitlines()
    )


COMMAND_PART: Final = re.compile(r"""\#.*|(?:--?\w[\w-]*\ (?!-))?(?:[^\s'"]|'[^']*'|"[^"]*")+""", re.VERBOSE)
"""Pattern of a word of a command, quoted text included; an option and its value are one, and so is a comment."""


def wrap_command(text: str, width: int | None) -> str:
    """Break a command at spaces into lines of at most `width` that a POSIX shell joins again, each ended by a
    backslash. A longer word stays whole, and so does a command with unmatched quotes.
    """
    parts = COMMAND_PART.findall(text)
    if width is None or len(text) <= width or " ".join(parts).split() != text.split():
        return text
    lines = [parts.pop(0)]
    while parts:
        part = parts.pop(0)
        if len(lines[-1]) + 1 + len(part) <= width - (2 if parts else 0):
            lines[-1] += f" {part}"
        else:
            lines.append(f"  {part}")
    return " \\\n".join(lines)


def count_numbers(text: str) -> int:
    """Return the numbers of a text; the digits of names are none."""
    return sum(word.lstrip("(")[:1].isdigit() for word in text.replace("\N{EN DASH}", " ").split())


def longest_word(texts: Iterable[str]) -> int:
    """Return the characters of the longest word, where a number and its unit are one word."""
    return max((len(word) for text in texts for word in re.split(r"[ \t\n]+", UNIT.sub(HARD_SPACE, text))), default=0)


def longest_line(texts: Iterable[str]) -> int:
    """Return the characters of the longest line."""
    return max((len(line) for text in texts for line in text.splitlines()), default=0)


def count_cells(text: str) -> int:
    """Return the number of terminal columns of a line: two for a wide character, none for a combining character."""
    text = COLOUR.sub("", text)
    if text.isascii():
        return len(text)
    return sum((unicodedata.east_asian_width(one) in "WF") + 1 for one in text if not unicodedata.combining(one))
