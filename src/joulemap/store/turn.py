"""Turns of processes at a database: who comes first is served first, and readers in a row share.

    ~/.cache/joulemap/queue-3f0c…    one byte of it is locked for each process that is at the database, or waits

A ticket is the moment of arrival. Its byte is locked at that place, shared by who reads, so that its turn has come when
nothing before it is locked: nothing at all for a writer, by no writer for a reader. Locks end with their process, and
the last to leave removes the file. The engine's own lock keeps processes apart: a process without a ticket, where there
is no cache folder say, waits for that alone.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import time
from pathlib import Path

import attrs

from joulemap.system.resource import cache_folder


@attrs.frozen
class Turn:
    """A place in the queue of a database."""

    descriptor: int
    file: Path
    ticket: int
    kind: int
    """The lock of who reads or writes."""

    @property
    def has_come(self) -> bool:
        """Whether nobody who came earlier is in the way, or nobody can tell."""
        with contextlib.suppress(OSError):
            if not _lock(self.descriptor, self.kind, self.ticket, 0):
                return False
            fcntl.lockf(self.descriptor, fcntl.LOCK_UN, self.ticket, 0)
            os.pwrite(self.descriptor, b"%-20d" % os.getpid(), 0)
        return True

    @property
    def is_wanted(self) -> bool:
        """Whether somebody came later and waits."""
        with contextlib.suppress(OSError):
            if not _lock(self.descriptor, fcntl.LOCK_EX, 0, self.ticket + 1):
                return True
            fcntl.lockf(self.descriptor, fcntl.LOCK_UN, 0, self.ticket + 1)
        return False

    @property
    def holder(self) -> str:
        """Who had the last turn, in words."""
        with contextlib.suppress(OSError, ValueError):
            return f"process {int(os.pread(self.descriptor, 20, 0))}"
        return "another process"

    def leave(self) -> None:
        """Let the next one have its turn."""
        with contextlib.suppress(OSError):
            if _lock(self.descriptor, fcntl.LOCK_EX, 0, 0):
                self.file.unlink()
        os.close(self.descriptor)


def queue_up(place: str, *, is_reading: bool) -> Turn | None:
    """Return a place in the queue of the database at a real path; None where there cannot be one."""
    name = hashlib.blake2b(os.fsencode(place), digest_size=8).hexdigest()
    kind = fcntl.LOCK_SH if is_reading else fcntl.LOCK_EX
    with contextlib.suppress(OSError, RuntimeError):
        file = cache_folder() / f"queue-{name}"
        file.parent.mkdir(parents=True, exist_ok=True)
        while True:
            descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            ticket = time.monotonic_ns()
            with contextlib.suppress(FileNotFoundError):
                if _lock(descriptor, kind, 1, ticket) and os.path.samestat(os.fstat(descriptor), file.stat()):
                    return Turn(descriptor, file, ticket, kind)
            os.close(descriptor)  # the last one to leave was about to remove it
    return None


def _lock(descriptor: int, kind: int, length: int, start: int) -> bool:
    """Return whether some bytes of a file could be locked; 0 of them are all."""
    try:
        fcntl.lockf(descriptor, kind | fcntl.LOCK_NB, length, start)
    except (BlockingIOError, PermissionError):
        return False
    return True
