"""Keys of records that others write: each once, and none that is unknown."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import Any


def keep_once(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON, as `object_pairs_hook`; ValueError where a key is there twice."""
    told = list(pairs)
    found = dict(told)
    if len(found) < len(told):
        names = [name for name, _ in told]
        raise ValueError(f"the key {max(names, key=names.count)[:40]!r} is there twice")
    return found


def describe_unknown(key: str, known: Sequence[str]) -> str:
    """Return the refusal of a key that is none of a record's, with the nearest of them, or all."""
    near = difflib.get_close_matches(key, known, n=1)
    return f"unknown key {key}" + (f", did you mean {near[0]}?" if near else f"; known: {', '.join(known)}")
