"""The end of a forward pass that does not end by itself: a limit on its operators, and one on its time."""

from __future__ import annotations

import contextlib
import ctypes
import os
import threading
from collections.abc import Iterator
from typing import Final

from joulemap.errors import ModelError, UsageError

OPERATORS: Final = "JOULEMAP_TRACE_OPERATORS"
SECONDS: Final = "JOULEMAP_TRACE_SECONDS"
"""Environment variables that hold other limits."""

MOST_OPERATORS: Final = 1_000_000
MOST_SECONDS: Final = 300

_STEPS: Final = 1000
"""More than an interpreter takes between two looks at what others raised in a thread."""


class OutOfTimeError(BaseException):
    """The forward pass takes too long; a bare `except Exception` does not catch it."""


class OutOfOperatorsError(BaseException):
    """The forward pass runs too many operators."""


def operator_limit() -> int:
    """Return how many operators a forward pass may run."""
    return _whole(OPERATORS, MOST_OPERATORS)


def second_limit() -> int:
    """Return how long a forward pass may take, in seconds."""
    return _whole(SECONDS, MOST_SECONDS)


def _whole(variable: str, usual: int) -> int:
    text = os.environ.get(variable, "")
    if not text:
        return usual
    if not text.isdecimal() or not 1 <= int(text) <= 10**9:
        raise UsageError(f"{variable} is {text[:40]!r}, expected a whole number from 1 to 1000000000")
    return int(text)


def describe_limit(error: BaseException) -> str:
    """Return what ran out and how to allow more; empty for another error."""
    if isinstance(error, OutOfOperatorsError):
        return (
            f"more than {operator_limit():,} operators ran: it may loop without end, as where data that a trace does "
            f"not have ends it; set {OPERATORS} for more"
        )
    if isinstance(error, OutOfTimeError):
        return (
            f"it took more than {second_limit():,} s: it may loop without end, as where data that a trace does not "
            f"have ends it; set {SECONDS} for more"
        )
    return ""


@contextlib.contextmanager
def limited_time() -> Iterator[None]:
    """Raise OutOfTimeError in this thread, wherever its Python stands, once the seconds are over."""
    seconds, thread = second_limit(), threading.get_ident()
    lock = threading.Lock()
    is_over = False
    is_raised = False

    def interrupt() -> None:
        nonlocal is_raised
        with lock:
            if not is_over:
                is_raised = True
                _raise_in(thread)

    timer = threading.Timer(seconds, interrupt)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        with lock:
            is_over = True
        if is_raised:
            _let_arrive()
        timer.cancel()
        timer.join()


def _raise_in(thread: int) -> None:
    """Have a thread raise an OutOfTimeError at its next step."""
    if ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(OutOfTimeError)) == 0:
        raise ModelError("the thread that traces has ended")


def _let_arrive() -> None:
    """Take what was raised in this thread and has not arrived, so that it arrives nowhere else.

    To withdraw it instead would leave the interpreter looking for it at every step from then on.
    """
    with contextlib.suppress(OutOfTimeError):
        for _ in range(_STEPS):
            pass
