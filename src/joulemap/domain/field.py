"""Validators and converters for the fields of settings, which raise UsageError with the field and its value."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable
from numbers import Real
from operator import index
from typing import Any, Final, SupportsIndex

import attrs

from joulemap.system.errors import UsageError

MAX_TOKENS: Final = 10_000_000
"""Maximum tokens of a prompt or an output; also bounds device counts, with a wide margin."""

Check = Callable[[Any, "attrs.Attribute[Any]", Any], None]


def each_text(value: str | Iterable[str]) -> tuple[str, ...]:
    """Return one or several texts as a tuple, each once."""
    return (value,) if isinstance(value, str) else tuple(dict.fromkeys(value))


def each_count(value: int | Iterable[int] | None) -> tuple[int, ...]:
    """Return one or several numbers as a tuple, each once; empty for None. Integers of numpy become plain ones."""
    if value is None:
        return ()
    if not isinstance(value, Iterable):
        value = (value,)
    return tuple(
        dict.fromkeys(
            index(one) if isinstance(one, SupportsIndex) and not isinstance(one, int) else one for one in value
        )
    )


def as_path(value: str | os.PathLike[str] | None) -> str:
    """Return a path as text; empty for None."""
    return os.fspath(value or "")


def whole_to(most: int) -> Check:
    """Build a validator for a whole number, or several, from 1 to a maximum."""

    def check(_instance: object, attribute: attrs.Attribute[Any], counts: tuple[int, ...] | int) -> None:
        for count in counts if isinstance(counts, tuple) else (counts,):
            if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= most:
                raise UsageError(f"{attribute.name} is {count!r}, expected a whole number from 1 to {most}")

    return check


def within(low: float, high: float, *, is_open: bool) -> Check:
    """Build a validator for a number in a range; `is_open` excludes the lower end."""

    def check(_instance: object, attribute: attrs.Attribute[Any], value: float | None) -> None:
        """Raise UsageError for a number outside the range."""
        if value is None:
            return
        if not isinstance(value, Real) or isinstance(value, bool):
            raise UsageError(f"{attribute.name} is {value!r}, expected a number in SI units")
        if not (low < value if is_open else low <= value) or not value <= high:
            word = "above" if is_open else "at least"
            most = "" if high == math.inf else f" and at most {high:g}"
            raise UsageError(f"{attribute.name} is {value:g}, expected {word} {low:g}{most}")
        if math.isinf(value):
            raise UsageError(f"{attribute.name} is {value:g}, expected a finite number")

    return check


ABOVE_0: Final = within(0.0, math.inf, is_open=True)
"""Validator for a number above 0, or None."""

is_count: Final = whole_to(MAX_TOKENS)
"""Validator for a whole number from 1 to `MAX_TOKENS`, or several."""
