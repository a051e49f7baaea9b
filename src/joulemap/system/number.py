"""Parse numbers and quantities from files and users: ASCII digits, a point and an exponent, and an SI unit."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Final

from joulemap.system.units import PREFIXES

_REAL: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
_WHOLE: Final = re.compile(r"[+-]?\d+", re.ASCII)
_ODD: Final = re.compile(r"\d_|(?![0-9])\d")
"""Pattern of digits that Python accepts but files must not contain: with separators, or of other scripts."""

MOST_DIGITS: Final = 40
"""Maximum digits of a whole number; no count is longer."""

_POWERS: Final[Mapping[str, int]] = {
    **{prefix: power for power, prefix in PREFIXES.items()},
    "u": -6,
    "μ": -6,
    "K": 3,
}
"""Decimal prefix as written -> power of ten. The micro sign, the Greek letter and `u` mean the same."""

_BINARY: Final[Mapping[str, float]] = {
    "ki": 1024.0,
    **{f"{prefix}i": 1024.0**power for power, prefix in enumerate("KMGTPE", start=1)},
}
"""Binary prefix as written -> factor."""

_QUANTITY: Final = re.compile(
    r"(?P<number>[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))(?:[eE](?P<power>[-+]?[0-9]{1,4}))? *"
    r"(?P<unit>(?:[^\W\d_]|[°%$€£])[\w/²³^*·]*|/\w+)?"
)
"""One number and at most one unit, which has no blank inside."""


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


def parse_si(text: str, unit: str) -> float:
    """Parse `30W`, `16 GiB`, `30/s`, `$2/h` or `0.5` as a number in `unit`; ValueError names the expected form.

    The text is one ASCII number with a point, an optional blank, an optional SI or binary prefix and the unit. Commas,
    names as in `tdp=20W`, percentages and comments are refused, because several of their readings are possible.
    """
    written = text.strip()
    if unit.startswith("USD") and written.startswith("$"):
        amount, slash, per = written[1:].partition("/")
        written = f"{amount}USD{slash}{per}"
    match = _QUANTITY.fullmatch(written)
    if match is None:
        example = "1.5k/s" if unit == "1/s" else f"1.5{unit}" if unit.startswith("USD") else f"1.5k{unit}"
        raise ValueError(f"{text!r} is not a number with a unit such as {example}")
    own = match["unit"] or ""
    end = "/s" if unit == "1/s" else unit
    prefix = own.removesuffix(end) if own.endswith(end) else own
    if prefix not in _POWERS and prefix not in _BINARY:
        raise ValueError(f"{text!r} is in {own}, expected {unit}")
    power = int(match["power"] or 0) + _POWERS.get(prefix, 0)
    value = float(f"{match['number']}e{power}") * _BINARY.get(prefix, 1.0)  # decimal, so that 31pJ is 31e-12 exactly
    if not math.isfinite(value):
        raise ValueError(f"{text!r} is not a finite number")
    return value


def find_bare(text: str) -> str:
    """Return the number of a text that has no unit, such as `30` or `1.5k`; empty for any other text."""
    match = _QUANTITY.fullmatch(text.strip())
    if match is None or ((own := match["unit"] or "") not in _POWERS and own not in _BINARY):
        return ""
    return text.strip().removesuffix(own).strip()


MOST_QUANTITY: Final = 60
"""Maximum characters of a quantity; the time to parse one grows faster than its length."""


def parse_quantity(text: str, unit: str) -> float:
    """Parse a quantity that a user typed, as `parse_si` does; ValueError for one without a unit, and for one too
    long.
    """
    if len(text) > MOST_QUANTITY:
        raise ValueError(f"{text[:20]}… has {len(text):,} characters, expected a number such as 1.5{unit}")
    if unit != "1" and (bare := find_bare(text)):
        usual = {"s": "ms", "B": "MB", "1/s": "/s"}.get(unit, unit)
        raise ValueError(f"{text!r} has no unit: write {bare}{usual}")
    check_digits(text)
    return parse_si(text, unit)
