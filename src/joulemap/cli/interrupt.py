"""Ctrl-C ends a command within a second, whatever it is doing.

An exception raised by the signal's handler could stand anywhere: in the middle of importing it leaves locks behind that
another thread then waits for without end, in a call-back of the interpreter it is dropped, and while the engine works
it is not raised at all. So the signal wakes a thread. The command may stop by itself, where it looks (`heed`); if it
does not, the thread ends the process, which a database survives as it survives a kill.
"""

from __future__ import annotations

import os
import signal
import sys
from threading import Event, Lock, Thread
from typing import Final, NoReturn

from joulemap.system.background import ends, uninterrupted
from joulemap.system.errors import ExitCode, Interrupted

GRACE_S: Final = 0.4
"""How long a command has to come to a place where it looks."""

FINISH_S: Final = 20.0
"""How long it may then take to store what is evaluated; a second Ctrl-C ends that too."""

TEXT: Final = "joulemap: interrupted; nothing in the database is half written"
SHOW_CURSOR: Final = "\r\x1b[2K\x1b[?25h"
"""What undoes a progress bar."""

_ending = Lock()
_asked = Event()
_heeded = Event()


def open_standard_descriptors() -> None:
    """Open those of stdin, stdout and stderr that are closed: the next file would get the number, and be printed to."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)


def watch() -> None:
    """Let Ctrl-C end this process from now on."""
    woken, signalled = os.pipe()
    os.set_blocking(signalled, False)
    signal.signal(signal.SIGINT, lambda _number, _frame: None)
    signal.set_wakeup_fd(signalled, warn_on_full_buffer=False)
    Thread(target=_wait, args=(woken,), daemon=True).start()
    ends.append(end)


def is_asked() -> bool:
    """Return whether Ctrl-C has been pressed."""
    return _asked.is_set()


def heed() -> None:
    """Raise Interrupted if Ctrl-C has been pressed: called where stopping loses nothing."""
    if _asked.is_set() and not _heeded.is_set():
        _heeded.set()
        raise Interrupted


def end(text: str = TEXT, code: int = ExitCode.INTERRUPTED) -> NoReturn:
    """Say that the command was interrupted, or what else, and end the process, once it is not in a checkpoint."""
    _ending.acquire()
    uninterrupted.acquire(timeout=FINISH_S)
    drafts = sys.modules.get("joulemap.system.draft")
    if drafts is not None:  # it is not imported for this, because who presses Ctrl-C early waits for what is imported
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
    """Wait for a Ctrl-C; other signals that somebody handles wake too."""
    while os.read(woken, 1) != bytes([signal.SIGINT]):
        pass


def _end_later() -> None:
    Event().wait(FINISH_S)
    end()
