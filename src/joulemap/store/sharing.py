"""Track who has which database open, in this process and in the queue of processes.

The engine gives a process one instance of a database, with one configuration and no isolation between its writers.
Therefore readers of one kind share it, everybody else has it alone, and requests are served in order. Each process that
has it joins the queue of processes, in which consecutive readers share:

    ~/.cache/joulemap/queue-3f0c…    one byte of it is locked for each process that is at the database, or waits

A ticket is the moment of arrival. Its byte is locked at that offset, shared for a reader. A writer's turn comes when no
byte before its own is locked, a reader's turn when no writer has locked one. Locks end with their process, and the last
to leave removes the file. The engine's own lock keeps processes apart: a process without a ticket, for example for lack
of a cache folder, waits for that lock alone.
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
    """Place in the queue of a database."""

    descriptor: int
    file: Path
    ticket: int
    is_reading: bool
    """True for a reader, whose lock is shared."""

    @property
    def has_come(self) -> bool:
        """True if no earlier process blocks access, or if that cannot be determined."""
        with contextlib.suppress(OSError):
            if not try_lock_bytes(self.descriptor, 0, self.ticket, is_shared=self.is_reading):
                return False
            unlock_bytes(self.descriptor, 0, self.ticket)
            write_at(self.descriptor, b"%-20d" % os.getpid(), 0)
        return True

    @property
    def is_wanted(self) -> bool:
        """True if a later process waits."""
        with contextlib.suppress(OSError):
            if not try_lock_bytes(self.descriptor, self.ticket + 1):
                return True
            unlock_bytes(self.descriptor, self.ticket + 1)
        return False

    @property
    def holder(self) -> str:
        """Holder of the last turn, in words."""
        with contextlib.suppress(OSError, ValueError):
            return f"process {int(read_at(self.descriptor, 20, 0))}"
        return "another process"

    def leave(self) -> None:
        """Give up the turn."""
        with contextlib.suppress(OSError):
            unlock_bytes(self.descriptor, self.ticket, 1)
            if try_lock_bytes(self.descriptor):
                close_and_remove(self.descriptor, self.file)
                return
        os.close(self.descriptor)


def queue_up(place: str, *, is_reading: bool) -> Turn | None:
    """Join the queue of the database at a real path; None if there cannot be a queue."""
    name = hashlib.blake2b(os.fsencode(place), digest_size=8).hexdigest()
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
    """Kind of access to a database."""

    is_reading: bool
    config: tuple[tuple[str, str], ...] = ()
    later: tuple[tuple[str, str], ...] = ()
    """Settings, as SQL writes them, applied in this order after opening."""


@define
class _Use:
    holders: list[Kind] = attrs.field(factory=list)
    queue: list[object] = attrs.field(factory=list)
    turn: Turn | None = None

    def admits(self, ticket: object, kind: Kind) -> bool:
        """Return whether a ticket is the next, and may join the current holders."""
        return self.queue[0] is ticket and (
            not self.holders or (kind.is_reading and all(one == kind for one in self.holders))
        )


_uses: Final[dict[str, _Use]] = {}
_changed: Final = Condition()


def take(path: str, kind: Kind, limit_s: float) -> bool:
    """Wait until a database is free for one more user of a kind; return False after `limit_s` seconds."""
    ticket = object()
    with _changed:
        use = _uses.setdefault(path, _Use())
        use.queue.append(ticket)
        try:
            is_in = _changed.wait_for(lambda: use.admits(ticket, kind), limit_s)
            if is_in:
                if not use.holders:
                    use.turn = queue_up(path, is_reading=kind.is_reading)
                use.holders.append(kind)
            return is_in
        finally:
            use.queue.remove(ticket)
            _changed.notify_all()


def find_earlier(path: str) -> str:
    """Return the earlier process that blocks access to a locked database; empty if there is none."""
    turn = _uses[path].turn
    return "" if turn is None or turn.has_come else turn.holder


def is_wanted(path: str) -> bool:
    """Return whether another process waits for a locked database."""
    turn = _uses[path].turn
    return turn is not None and turn.is_wanted


def give_back(path: str, kind: Kind) -> None:
    """Release the database to the next user."""
    with _changed:
        use = _uses[path]
        use.holders.remove(kind)
        if not use.holders and use.turn is not None:
            use.turn.leave()
            use.turn = None
        if not use.holders and not use.queue:
            del _uses[path]
        _changed.notify_all()
