"""Mixers with a state of one size: products around a recurrence over tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from joulemap.decoder.config import Recurrence
    from joulemap.decoder.layer import Pass


def scan(one: Pass, path: str, mixer: Recurrence, x: int) -> int:
    """Return what a recurrence makes of tokens."""
    raise NotImplementedError(path)
