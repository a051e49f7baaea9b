"""The last resort against a query that the engine does not stop: the process ends, which a database survives."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from threading import Event, Thread
from typing import TYPE_CHECKING, Final, NoReturn, TypeVar

from joulemap.draft import discard
from joulemap.errors import ExitCode

if TYPE_CHECKING:
    from joulemap.domain.settings import Bounds

GRACE_S: Final = 1.0
"""How long the engine may take to stop by itself."""


One = TypeVar("One")


@contextlib.contextmanager
def ending_late(bounds: Bounds, sign: Callable[[], object] | None = None) -> Iterator[None]:
    """End the process, with the reason, where what happens inside takes longer than its time and does not stop.

    Its time begins anew whenever `sign` of life has changed at its end.
    """
    over = Event()

    def watch() -> None:
        seen = sign and sign()
        while not over.wait(bounds.timeout_s + GRACE_S):
            last, seen = seen, sign and sign()
            if seen == last:
                _end(bounds)

    Thread(target=watch, daemon=True).start()
    try:
        yield
    finally:
        over.set()


def each_in_time(items: Iterator[One], bounds: Bounds) -> Iterator[One]:
    """Yield what comes, as long as each comes in time; what is done with it takes the time that it likes."""
    while True:
        with ending_late(bounds):
            item = next(items, None)
        if item is None:
            return
        yield item


def _end(bounds: Bounds) -> NoReturn:
    from joulemap.cli.voice import tell
    from joulemap.store.bound import tell_time

    discard()
    tell(f"joulemap: {tell_time(bounds)}")
    os._exit(ExitCode.SQL)
