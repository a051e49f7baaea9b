"""Registry of open databases in this process, and a queue of processes for each database.

The engine gives a process one instance of a database, with one configuration and no isolation between its writers.
Therefore readers of one kind share a database, anybody else has it alone, and requests are served in order. Each
process that uses it joins a queue of processes, in which consecutive readers share:

    ~/.cache/joulemap/queue-3f0c…    one locked byte for each process that uses the database or waits for it

A ticket is the moment of arrival. The byte at that offset is locked, shared for a reader. A writer's turn comes when no
byte before its own is locked, a reader's turn when no writer has locked one. Locks end with their process, and the last
process to leave removes the file. The engine's own lock keeps processes apart. A process without a ticket, for example
without a cache folder, waits for that lock alone.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from pathlib import Path
from threading import Condition
from typing import Final

import attrs

from joulemap.system.cache import cache_folder
from joulemap.system.handle import (
    UNFOLLOWED,
    close_and_remove,
    open_descriptor,
    read_at,
    try_lock_bytes,
    unlock_bytes,
    write_at,
)
from joulemap.system.record import define, frozen


@attrs.frozen
class Turn:
    """Place of a process in the queue of a database."""

    descriptor: int
    file: Path
    ticket: int
    is_reading: bool
    """True for a reader, which shares its lock with other readers."""

    @property
    def has_come(self) -> bool:
        """True if no earlier process in the queue blocks access, or if that cannot be determined."""
        with contextlib.suppress(OSError):
            if not try_lock_bytes(self.descriptor, 0, self.ticket, is_shared=self.is_reading):
                return False
            unlock_bytes(self.descriptor, 0, self.ticket)
            write_at(self.descriptor, b"%-20d" % os.getpid(), 0)
        return True

    @property
    def is_wanted(self) -> bool:
        """True if a later process waits in the queue."""
        with contextlib.suppress(OSError):
            if not try_lock_bytes(self.descriptor, self.ticket + 1):
                return True
            unlock_bytes(self.descriptor, self.ticket + 1)
        return False

    @property
    def holder(self) -> str:
        """Text that names the process whose turn it was last: `process 123`, or `another process`."""
        with contextlib.suppress(OSError, ValueError):
            return f"process {int(read_at(self.descriptor, 20, 0))}"
        return "another process"

    def leave(self) -> None:
        """Leave the queue, and remove its file if nobody else is in it."""
        with contextlib.suppress(OSError):
            unlock_bytes(self.descriptor, self.ticket, 1)
            if try_lock_bytes(self.descriptor):
                close_and_remove(self.descriptor, self.file)
                return
        os.close(self.descriptor)


def queue_up(path: str, *, is_reading: bool) -> Turn | None:
    """Join the queue of the database at a real path; return None if no queue can be made."""
    name = hashlib.blake2b(os.fsencode(path), digest_size=8).hexdigest()
    with contextlib.suppress(OSError, RuntimeError):
        file = cache_folder() / f"queue-{name}"
        file.parent.mkdir(parents=True, exist_ok=True)
        while True:
            descriptor = open_descriptor(file, os.O_RDWR | os.O_CREAT | UNFOLLOWED)
            ticket = time.monotonic_ns()
            with contextlib.suppress(FileNotFoundError):
                is_in = try_lock_bytes(descriptor, ticket, 1, is_shared=is_reading)
                if is_in and os.path.samestat(os.fstat(descriptor), file.stat()):
                    return Turn(descriptor, file, ticket, is_reading)
            os.close(descriptor)  # the last process to leave is removing the file
    return None


@frozen
class Kind:
    """Access mode of a database: reading or writing, with engine settings."""

    is_reading: bool
    config: tuple[tuple[str, str], ...] = ()
    later: tuple[tuple[str, str], ...] = ()
    """(setting, SQL value) pairs that are applied in this order after opening."""


@define
class _Use:
    holders: list[Kind] = attrs.field(factory=list)
    queue: list[object] = attrs.field(factory=list)
    turn: Turn | None = None

    def admits(self, ticket: object, kind: Kind, *, is_again: bool) -> bool:
        """Return whether a ticket is next in this process, and the current holders admit its access mode.

        A holder who asks again passes the queue, because those in it wait for its release.
        """
        return (is_again or self.queue[0] is ticket) and (
            not self.holders or (kind.is_reading and all(one == kind for one in self.holders))
        )


_uses: Final[dict[str, _Use]] = {}
_changed: Final = Condition()


def take(path: str, kind: Kind, limit_s: float, *, is_again: bool = False) -> bool:
    """Wait until this process may use a database with an access mode; return False after `limit_s` seconds.

    `is_again` states that the caller holds the database already.
    """
    ticket = object()
    with _changed:
        use = _uses.setdefault(path, _Use())
        use.queue.append(ticket)
        try:
            is_in = _changed.wait_for(lambda: use.admits(ticket, kind, is_again=is_again), limit_s)
            if is_in:
                if not use.holders:
                    use.turn = queue_up(path, is_reading=kind.is_reading)
                use.holders.append(kind)
            return is_in
        finally:
            use.queue.remove(ticket)
            _changed.notify_all()


def find_earlier(path: str) -> str:
    """Return text that names the earlier process that blocks a database which this process took; empty if none does."""
    turn = _uses[path].turn
    return "" if turn is None or turn.has_come else turn.holder


def is_wanted(path: str) -> bool:
    """Return whether another process waits for a database that this process took."""
    turn = _uses[path].turn
    return turn is not None and turn.is_wanted


def is_awaited(path: str) -> bool:
    """Return whether another thread or process waits for a database that this process took."""
    return bool(_uses[path].queue) or is_wanted(path)


def give_back(path: str, kind: Kind) -> None:
    """Release a database that `take` acquired, so that the next user may have it."""
    with _changed:
        use = _uses[path]
        use.holders.remove(kind)
        if not use.holders and use.turn is not None:
            use.turn.leave()
            use.turn = None
        if not use.holders and not use.queue:
            del _uses[path]
        _changed.notify_all()
