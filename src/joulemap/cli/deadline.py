"""The last resort against a query that the engine does not stop.

Where it takes too long the process ends, which a database survives. Memory is bounded by the operating system, because
the engine's own bound does not hold within one call of a function: it is refused what is beyond.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Final, NoReturn, TypeVar

from joulemap.system.draft import discard
from joulemap.system.errors import ExitCode, SqlError

if TYPE_CHECKING:
    from joulemap.domain.settings import Bounds

GRACE_S: Final = 1.0
"""How long the engine may take to stop by itself."""
SLACK_BYTES: Final = 512e6
"""What a command takes beside the bounds of a query: modules, buffers."""

SLACK_BYTES_PER_CORE: Final = 16e6
"""The same of each thread of the engine."""

One = TypeVar("One")


@contextlib.contextmanager
def capping(bounds: Bounds) -> Iterator[None]:
    """Let the process take no more memory inside than the bounds allow the engine, and again the rows.

    Raises SqlError where it is refused some. Systems without such a limit have the engine's own bound alone.
    """
    held = _held_bytes()
    if held is None:
        yield
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    slack = SLACK_BYTES + SLACK_BYTES_PER_CORE * (os.cpu_count() or 1)
    most = min((one for one in (soft, hard) if one >= 0), default=2**62)
    resource.setrlimit(resource.RLIMIT_DATA, (min(most, int(held + 2.0 * bounds.max_memory_bytes + slack)), hard))
    try:
        yield
    except MemoryError as error:
        from joulemap.store.bound import tell_memory

        raise SqlError(tell_memory(bounds)) from error
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def _held_bytes() -> int | None:
    """Return the memory that this process may write to, as Linux counts it against the limit; None elsewhere."""
    with contextlib.suppress(OSError):
        found = re.search(r"^VmData:\s*(\d+) kB", Path("/proc/self/status").read_text(), re.MULTILINE)
        return 1024 * int(found[1]) if found else None
    return None


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
