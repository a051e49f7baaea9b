"""The end of what does not end by itself: a limit on a forward pass's operators, and one on the time of a trace."""

from __future__ import annotations

import contextlib
import ctypes
import os
import threading
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Final

from joulemap.system.background import ends
from joulemap.system.errors import ExitCode, ModelError, UsageError

OPERATORS: Final = "JOULEMAP_TRACE_OPERATORS"
SECONDS: Final = "JOULEMAP_TRACE_SECONDS"
"""Environment variables that hold other limits."""

MOST_OPERATORS: Final = 1_000_000
MOST_SECONDS: Final = 180
MOST_ASKED: Final = 2_000
"""Times that one place in a model may ask data for a yes or no and be told no."""

GRACE_S: Final = 5.0
"""How long the end of time may take to arrive."""

_is_limited: ContextVar[bool] = ContextVar("_is_limited", default=False)

_STEPS: Final = 1000
"""More than an interpreter takes between two looks at what others raised in a thread."""


_LOOP: Final = "it may loop without end, as where data that a trace does not have ends it"


class OutOfTimeError(BaseException):
    """Building a model, or its forward pass, takes too long; a bare `except Exception` does not catch it."""

    def __str__(self) -> str:
        return f"it took more than {second_limit():,} s: {_LOOP}; set {SECONDS} for more"


class OutOfOperatorsError(BaseException):
    """The forward pass runs too many operators."""

    def __str__(self) -> str:
        return f"more than {operator_limit():,} operators ran: {_LOOP}; set {OPERATORS} for more"


class OutOfAnswersError(BaseException):
    """A loop asks data again and again whether it goes on."""

    def __str__(self) -> str:
        return (
            f"data is asked {MOST_ASKED:,} times at one place whether to go on, as by a solver that adapts its steps "
            "or a loop that waits until it converges, and no data of a trace ends it: give it a fixed number of steps "
            "(torchdiffeq: method='rk4', options={'step_size': ...}), or trace one step"
        )


def operator_limit() -> int:
    """Return how many operators a forward pass may run."""
    return _whole(OPERATORS, MOST_OPERATORS)


def second_limit() -> int:
    """Return how long building a model and its forward pass may take, in seconds."""
    return _whole(SECONDS, MOST_SECONDS)


def _whole(variable: str, usual: int) -> int:
    text = os.environ.get(variable, "")
    if not text:
        return usual
    if not text.isdecimal() or len(text) > 10 or not 1 <= int(text) <= 10**9:
        raise UsageError(f"{variable} is {text[:40]!r}, expected a whole number from 1 to 1000000000")
    return int(text)


def describe_limit(error: BaseException) -> str:
    """Return what ran out and what to do; empty for another error."""
    return str(error) if isinstance(error, OutOfTimeError | OutOfOperatorsError | OutOfAnswersError) else ""


@contextlib.contextmanager
def limited_time(model: str) -> Iterator[None]:
    """Raise OutOfTimeError in this thread, wherever its Python stands, once the seconds are over; again if it goes on.

    What has no step of Python left, as a sleep, ends with the process where that is a command of ours. Inside of
    another limit there is none.
    """
    if _is_limited.get():
        yield
        return
    seconds, thread = second_limit(), threading.get_ident()
    lock, over = threading.Lock(), threading.Event()
    raised = 0

    def watch() -> None:
        nonlocal raised
        wait = float(seconds)
        while not over.wait(wait):
            with lock:
                if raised and ends:
                    ends[0](f"joulemap: {model}: {OutOfTimeError()}", ExitCode.MODEL)
                if not over.is_set():
                    raised += 1
                    _raise_in(thread)
            wait = GRACE_S

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    token = _is_limited.set(True)
    try:
        yield
    finally:
        _is_limited.reset(token)
        with lock:
            over.set()
        if raised:
            _let_arrive()
        watcher.join()


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
