"""End of a command within a second of Ctrl-C.

An exception raised by a signal handler is unsafe: during an import it leaves locks for which another thread then waits
forever, in a callback of the interpreter it is dropped, and while the engine works it is not raised at all. Instead,
the signal wakes a thread. The command stops by itself at the next call of `raise_if_interrupted`. If there is none in
time, the thread ends the process; the database survives that as it survives a kill.
"""

from __future__ import annotations

import os
import signal
import sys
from threading import Event, Lock, Thread
from typing import Final, NoReturn

from joulemap.system.background import ends, uninterrupted
from joulemap.system.errors import ExitCode, Interrupted
from joulemap.system.handle import IS_POSIX

GRACE_S: Final = 0.4
"""Seconds after Ctrl-C until the process is ended, unless the command stops by itself before."""

FINISH_S: Final = 20.0
"""Further seconds in which finished results may be stored; a second Ctrl-C ends the process at once."""

TEXT: Final = "joulemap: interrupted; nothing in the database is half written"
SHOW_CURSOR: Final = "\r\x1b[2K\x1b[?25h"
"""Escape sequence that removes a progress bar."""

_ending = Lock()
_asked = Event()
_heeded = Event()


def open_standard_descriptors() -> None:
    """Reopen closed standard streams; otherwise the next opened file would receive their output."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)


def watch() -> None:
    """Install the handling of Ctrl-C, which ends this process."""
    woken, signalled = os.pipe()
    if IS_POSIX:  # Windows has no such pipes, and its handler runs in a thread that may wait
        os.set_blocking(signalled, False)
    signal.signal(signal.SIGINT, lambda _number, _frame: None)
    signal.set_wakeup_fd(signalled, warn_on_full_buffer=False)
    Thread(target=_wait, args=(woken,), daemon=True).start()
    ends.append(end)


def is_asked() -> bool:
    """Return True if Ctrl-C was pressed."""
    return _asked.is_set()


def raise_if_interrupted() -> None:
    """Raise Interrupted if Ctrl-C was pressed; called at points where no work is lost."""
    if _asked.is_set() and not _heeded.is_set():
        _heeded.set()
        raise Interrupted


def end(text: str = TEXT, code: int = ExitCode.INTERRUPTED) -> NoReturn:
    """Print a message and end the process, after a running checkpoint of the database."""
    _ending.acquire()
    uninterrupted.acquire(timeout=FINISH_S)
    drafts = sys.modules.get("joulemap.system.draft")
    if drafts is not None:  # not imported here, since an early Ctrl-C would wait for the import
        drafts.discard()
    undo = SHOW_CURSOR if sys.stderr is not None and sys.stderr.isatty() else ""
    try:
        os.write(2, f"{undo}{text}\n".encode())
    finally:
        os._exit(code)


def _wait(woken: int) -> None:
    _wait_for_one(woken)
    _asked.set()
    if _heeded.wait(GRACE_S):
        Thread(target=_end_later, daemon=True).start()
        _wait_for_one(woken)
    end()


def _wait_for_one(woken: int) -> None:
    """Wait for Ctrl-C; other handled signals wake this thread too."""
    while os.read(woken, 1) != bytes([signal.SIGINT]):
        pass


def _end_later() -> None:
    Event().wait(FINISH_S)
    end()
