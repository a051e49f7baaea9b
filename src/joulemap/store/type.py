"""Types of the engine that Python lacks, or whose values it changes: they are fetched as the engine's own texts."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import date, datetime
from typing import Any, Final

ABSENT: Final = frozenset({"TIMESTAMP WITH TIME ZONE", "TIME WITH TIME ZONE", "INTERVAL", "TIMESTAMP_NS", "TIME_NS"})
"""Types that need a library, or lose months, nanoseconds or a zone."""

CLIPPED: Final = frozenset({"DATE", "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS"})
"""Types whose infinity becomes the last or first day that Python knows."""

ENDS: Final = frozenset({date.min, date.max, datetime.min, datetime.max})

_PARTS: Final = re.compile(
    r"""(?P<quoted>"(?:[^"]|"")*"|'(?:[^']|'')*')|(?P<type>TIMESTAMP WITH TIME ZONE|TIME WITH TIME ZONE|\w+)"""
)


def replace_types(kind: str, types: Iterable[str]) -> str:
    """Return a type with VARCHAR for each of some types, at any depth; "" where it has none of them."""
    replaced = frozenset(types)
    text = _PARTS.sub(lambda found: "VARCHAR" if found["type"] in replaced else found[0], kind)
    return "" if text == kind else text


def has_endless(values: Iterable[Any]) -> bool:
    """Return whether there is a date or time that stands for infinity, or is the last that Python knows."""
    for value in values:
        if isinstance(value, date):
            if value in ENDS:
                return True
        elif isinstance(value, list | tuple):
            if has_endless(value):
                return True
        elif isinstance(value, dict) and has_endless(value.values()):
            return True
    return False
