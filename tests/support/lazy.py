"""Answers that are computed when a test first uses them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

Key = TypeVar("Key")
Made = TypeVar("Made")


class Lazy(dict[Key, Made]):
    """Mapping whose values `make` computes from the key at the first access."""

    def __init__(self, make: Callable[[Key], Made]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, key: Key) -> Made:
        self[key] = self._make(key)
        return self[key]
