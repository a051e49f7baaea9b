"""The last resort against a query that the engine does not stop: the process ends, which a database survives."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from threading import Event, Thread
from typing import TYPE_CHECKING, Final

from joulemap.errors import ExitCode

if TYPE_CHECKING:
    from joulemap.domain.settings import Bounds

GRACE_S: Final = 1.0
"""How long the engine may take to stop by itself."""


@contextlib.contextmanager
def ending_late(bounds: Bounds) -> Iterator[None]:
    """End the process, with the reason, where what happens inside takes longer than its time and does not stop."""
    over = Event()

    def watch() -> None:
        if not over.wait(bounds.timeout_s + GRACE_S):
            from joulemap.cli.voice import tell
            from joulemap.store.bound import tell_time

            tell(f"joulemap: {tell_time(bounds)}")
            os._exit(ExitCode.SQL)

    Thread(target=watch, daemon=True).start()
    try:
        yield
    finally:
        over.set()
