"""Answers that are made when a test asks for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

Key = TypeVar("Key")
Made = TypeVar("Made")


class Lazy(dict[Key, Made]):
    """What `make` gives for each key that is asked for, made once."""

    def __init__(self, make: Callable[[Key], Made]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, key: Key) -> Made:
        self[key] = self._make(key)
        return self[key]
