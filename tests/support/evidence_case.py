"""Bases that need evidence, and evidence that is refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

FITTED: Final = ("measured", "scaled")


REFUSED: Final[Mapping[str, tuple[dict[str, object], str]]] = {
    "one of three": ({"sources": 1}, "boards and models missing beside sources"),
    "two of three": ({"sources": 1, "models": 4}, "boards missing beside sources and models"),
    "none of a kind": ({"sources": 1, "boards": 0, "models": 4}, "boards is 0, expected a whole number from 1"),
    "half a model": ({"sources": 1, "boards": 1, "models": 0.5}, "models is 0.5, expected a whole number from 1"),
    "a word": ({"sources": "one", "boards": 1, "models": 1}, "sources is 'one', expected a whole number from 1"),
    "a truth": ({"sources": True, "boards": 1, "models": 1}, "sources is True, expected a whole number from 1"),
}
