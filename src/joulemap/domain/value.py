"""Values of a constant as users write them: one, several, or a range.

31pJ   x1.5   1TB/s,2TB/s   0.5GHz:2GHz:16 (count, evenly spaced)   16:1024:*2 (factor between values)
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Final

from joulemap.physics.record.constant import Constant, check_value
from joulemap.system.number import check_digits, find_bare, parse_si, read_real, read_whole
from joulemap.system.units import format_si

MOST_VALUES: Final = 1_000_000
"""Maximum values per range."""

WAYS: Final = "write A,B,C, LOW:HIGH:COUNT (0.5GHz:2GHz:16) or LOW:HIGH:*FACTOR (16:1024:*2)"

_FACTOR: Final = re.compile(r"[x*](.+)|(.+)x", re.IGNORECASE)

_PREFIXED: Final = ("J", "W", "Hz", "B", "B/s", "s", "ops/s")
"""Units displayed with an SI prefix."""

_SLACK: Final = 1.0 + 1e-9
"""Factor by which the last step of a range may exceed its end, because steps are rounded."""


def read_value(written: str | float, constant: Constant) -> float:
    """Parse a value in the unit of a constant; ValueError names that unit."""
    if not isinstance(written, str):
        return float(written)
    text = written.strip()
    check_digits(text)
    factor = _FACTOR.fullmatch(text)
    if factor is not None:
        return constant.value * _read_factor(factor[1] or factor[2], constant)
    if constant.per:
        text = text.removesuffix(f"/{constant.per}")
    example = show_constant(constant.value, constant.unit).replace(" ", "")
    try:
        if constant.unit == "1":
            return read_real(text)
        if find_bare(text):
            raise ValueError(f"{text!r} has no unit")
        return parse_si(text, constant.unit)
    except ValueError as error:
        is_plain = constant.unit == "1"
        fault = f"{text!r} is not a number" if is_plain else str(error)
        what = "a number without a unit" if is_plain else f"in {constant.unit}"
        raise ValueError(f"{fault}; {constant.name} is {what}: write {example}, or a factor, x1.5") from error


def _read_factor(text: str, constant: Constant) -> float:
    try:
        return read_real(text)
    except ValueError as error:
        raise ValueError(f"{error}; write {constant.name}=x1.5") from None


def is_several(written: str | float) -> bool:
    """Return True if a text states more than one value: a list or a range."""
    return isinstance(written, str) and ("," in written or ":" in written)


ROUNDING: Final = 1e-9
"""Relative error of a factor as it is printed, within which its product with a count is whole."""


def read_values(written: str | float, constant: Constant) -> tuple[float, ...]:
    """Parse a list or range of values in the unit of a constant; each value occurs once.

    Values of a range are rounded if the constant is a count. Raises ValueError for an empty range or an invalid value.
    """
    values: dict[float, None] = {}
    for part in written.split(",") if isinstance(written, str) else (written,):
        if isinstance(part, str) and not part.strip():
            raise ValueError(f"{written!r} has an empty value between commas; {WAYS}")
        for value in _read_part(part, constant):
            if not math.isfinite(value):
                raise ValueError(f"{str(part).strip()!r} is too large")
            if constant.is_whole and (":" in str(part) or math.isclose(value, round(value), rel_tol=ROUNDING)):
                value = float(round(value))
            check_value(constant, value)
            values[value] = None
    return tuple(values)


def _read_part(part: str | float, constant: Constant) -> Iterator[float]:
    if not isinstance(part, str) or ":" not in part:
        yield read_value(part, constant)
        return
    ends = part.split(":")
    if len(ends) != 3 or not all(end.strip() for end in ends):
        raise ValueError(f"{part.strip()!r} is not a range; {WAYS}")
    low, high = read_value(ends[0], constant), read_value(ends[1], constant)
    step = ends[2].strip()
    if low > high:
        low_text, high_text = (show_constant(end, constant.unit) for end in (low, high))
        raise ValueError(f"{part.strip()!r} is empty: {low_text} is above {high_text}")
    if step.startswith(("*", "x")):
        yield from _multiply(part, low, high, step[1:])
        return
    count = read_whole(step)
    if not 1 <= count <= MOST_VALUES or (count == 1 and low < high):
        least = 2 if low < high else 1
        raise ValueError(f"{part.strip()!r}: a range has {least} to {MOST_VALUES:,} values, found {count:,}")
    yield from (low + (high - low) * index / max(count - 1, 1) for index in range(count))


def _multiply(part: str, low: float, high: float, step: str) -> Iterator[float]:
    factor = read_real(step)
    if not factor > 1.0 or not low > 0.0:
        what = f"steps by {factor:g}: a factor is above 1" if low > 0.0 else "begins at 0, which no factor leaves"
        raise ValueError(f"{part.strip()!r} {what}")
    count = math.floor(math.log(high / low * _SLACK) / math.log(factor)) + 1
    if count > MOST_VALUES:
        raise ValueError(f"{part.strip()!r} has {count:,} values, more than {MOST_VALUES:,}")
    yield from (low * factor**index for index in range(count))


def show_constant(value: float, unit: str, digits: int = 6) -> str:
    """Format a value of a constant with its unit. `digits` applies to units without an SI prefix, such as counts."""
    if unit in _PREFIXED:
        return format_si(value, unit)
    number = f"{float(f'{value:.{digits}g}'):g}"
    return number if unit == "1" else f"{number} {unit}"
