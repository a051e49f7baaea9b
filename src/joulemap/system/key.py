"""Check keys of records in files: each occurs once, and all are known."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import Any


def keep_once(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Build a JSON object, as `object_pairs_hook`; ValueError for a duplicate key."""
    items = list(pairs)
    by_key = dict(items)
    if len(by_key) < len(items):
        names = [name for name, _ in items]
        raise ValueError(f"the key {max(names, key=names.count)[:40]!r} occurs twice")
    return by_key


def describe_unknown(key: str, known: Sequence[str]) -> str:
    """Return the error text for an unknown key, with the nearest known key or all of them."""
    near = difflib.get_close_matches(key, known, n=1)
    return f"unknown key {key}" + (f", did you mean {near[0]}?" if near else f"; known: {', '.join(known)}")
