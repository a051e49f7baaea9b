"""Numbers as files and people write them: digits of ASCII, a point, an exponent, and nothing that only Python reads."""

from __future__ import annotations

import math
import re
from typing import Final

_REAL: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
_WHOLE: Final = re.compile(r"[+-]?\d+", re.ASCII)
_ODD: Final = re.compile(r"\d_|(?![0-9])\d")
"""A digit that separates, or is of another script: Python takes both for numbers."""

MOST_DIGITS: Final = 40
"""Of a whole number: no count is longer."""


def read_real(text: str) -> float:
    """Return a finite number, blanks around it left out; ValueError for `nan`, `1e400`, `1_0` and other texts."""
    if not _REAL.fullmatch(text.strip()) or not math.isfinite(number := float(text)):
        raise ValueError(f"{text[:60]!r} is not a finite number")
    return number


def read_whole(text: str) -> int:
    """Return a whole number, blanks around it left out; ValueError for any other text."""
    if not _WHOLE.fullmatch(text.strip()) or len(text) > MOST_DIGITS:
        raise ValueError(f"{text[:60]!r} is not a whole number")
    return int(text)


def check_digits(text: str) -> None:
    """Raise ValueError for digits that are not of ASCII, or are separated by `_`, in a number with its unit."""
    if _ODD.search(text):
        raise ValueError(f"{text[:60]!r} is not a number: write digits 0 to 9 without _ between them")
