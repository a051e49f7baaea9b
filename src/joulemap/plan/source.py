"""Where runs are kept, and who is told what takes time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import attrs

Talk = Callable[[str], None]
Progress = Callable[[int, int], None]
"""Told (runs done, runs to do)."""


def silent(_message: str) -> None:
    """Tell nobody."""


@attrs.frozen(kw_only=True)
class Source:
    """A results database, made when first written."""

    path: Path
    talk: Talk = silent
    progress: Progress | None = None
    """Not called where everything is stored."""
