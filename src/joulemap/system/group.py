"""Group rows by a key, in the order of the rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

Row = TypeVar("Row")
Key = TypeVar("Key")


def group(rows: Iterable[Row], key: Callable[[Row], Key]) -> dict[Key, list[Row]]:
    """Return key -> rows that have it."""
    by_key: dict[Key, list[Row]] = {}
    for row in rows:
        by_key.setdefault(key(row), []).append(row)
    return by_key


def first_of_each(rows: Iterable[Row], key: Callable[[Row], Key]) -> dict[Key, Row]:
    """Return key -> first row that has it."""
    return {name: own[0] for name, own in group(rows, key).items()}
