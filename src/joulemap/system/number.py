"""Parse numbers from files and users: ASCII digits, a point and an exponent, without Python's extensions."""

from __future__ import annotations

import math
import re
from typing import Final

_REAL: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
_WHOLE: Final = re.compile(r"[+-]?\d+", re.ASCII)
_ODD: Final = re.compile(r"\d_|(?![0-9])\d")
"""Pattern of digits that Python accepts but files must not contain: with separators, or of other scripts."""

MOST_DIGITS: Final = 40
"""Maximum digits of a whole number; no count is longer."""


def read_real(text: str) -> float:
    """Parse a finite number, blanks stripped; ValueError for `nan`, `1e400`, `1_0` and other texts."""
    if not _REAL.fullmatch(text.strip()) or not math.isfinite(number := float(text)):
        raise ValueError(f"{text[:60]!r} is not a finite number")
    return number


def read_whole(text: str) -> int:
    """Parse a whole number, blanks stripped; ValueError for any other text."""
    if not _WHOLE.fullmatch(text.strip()) or len(text) > MOST_DIGITS:
        raise ValueError(f"{text[:60]!r} is not a whole number")
    return int(text)


def check_digits(text: str) -> None:
    """Raise ValueError for non-ASCII digits, or digits separated by `_`, in a number with a unit."""
    if _ODD.search(text):
        raise ValueError(f"{text[:60]!r} is not a number: write digits 0 to 9 without _ between them")
