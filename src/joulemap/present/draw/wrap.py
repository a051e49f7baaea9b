"""Wrap texts to lines of a terminal; a number stays with its unit."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable
from typing import Final
from unicodedata import combining, east_asian_width

UNIT: Final = re.compile(
    r"(?<=\d) (?=(?:%|[yzafpnµmkMGTPE]?(?:J|Js|s|W|B|b|bit|Hz|g|kg|m|V|A|USD|ops|Tops)(?:/\S+)?)(?!\w))"
)
"""Pattern of the space between a number and its unit, which a table makes non-breaking."""

HARD_SPACE: Final = "\N{NO-BREAK SPACE}"

COLOUR: Final = re.compile(r"\x1b\[[0-9;]*m")
"""Pattern of a colour escape sequence, which takes no room; only drawings have any."""


def wrap(text: str, width: int | None, indent: str = "") -> str:
    """Wrap a text to lines of at most `width`, except for longer words; a number stays with its unit."""
    if width is None:
        return text
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
    return sum((east_asian_width(one) in "WF") + 1 for one in text if not combining(one))
