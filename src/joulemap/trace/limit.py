"""Limits for traces that would not end: maximum operators of a forward pass, and maximum time."""

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
"""Environment variables that override the limits."""

MOST_OPERATORS: Final = 1_000_000
MOST_SECONDS: Final = 180
MOST_ASKED: Final = 2_000
"""Maximum times that a data-dependent condition at one place in a model may evaluate to False in a pass."""

GRACE_S: Final = 5.0
"""Seconds between attempts to stop a trace that exceeded its time limit."""

_is_limited: ContextVar[bool] = ContextVar("_is_limited", default=False)

_STEPS: Final = 1000
"""Interpreter steps after which an exception from another thread is certain to be seen."""


_LOOP: Final = "it may loop without end, as where data that a trace does not have ends it"


class OutOfTimeError(BaseException):
    """Time limit exceeded while building a model or running its forward pass. User code with `except Exception` does
    not catch it.
    """

    def __str__(self) -> str:
        return f"it took more than {second_limit():,} s: {_LOOP}; set {SECONDS} for more"


class OutOfOperatorsError(BaseException):
    """Limit of operators exceeded by a forward pass."""

    def __str__(self) -> str:
        return f"more than {operator_limit():,} operators ran: {_LOOP}; set {OPERATORS} for more"


class OutOfAnswersError(BaseException):
    """Limit exceeded by a loop with a data-dependent condition."""

    def __str__(self) -> str:
        return (
            f"a condition at one place read data {MOST_ASKED:,} times, as in a solver with adaptive steps or a loop "
            "until convergence, and a trace has no data that ends it: use a fixed number of steps "
            "(torchdiffeq: method='rk4', options={'step_size': ...}), or trace one step"
        )


def operator_limit() -> int:
    """Return the maximum operators of a forward pass."""
    return _whole(OPERATORS, MOST_OPERATORS)


def second_limit() -> int:
    """Return the maximum seconds for building a model and its forward pass."""
    return _whole(SECONDS, MOST_SECONDS)


def _whole(variable: str, usual: int) -> int:
    text = os.environ.get(variable, "")
    if not text:
        return usual
    if not text.isdecimal() or len(text) > 10 or not 1 <= int(text) <= 10**9:
        raise UsageError(f"{variable} is {text[:40]!r}, expected a whole number from 1 to 1000000000")
    return int(text)


def describe_limit(error: BaseException) -> str:
    """Return which limit an error reports, and the remedy; empty if the error reports none."""
    return str(error) if isinstance(error, OutOfTimeError | OutOfOperatorsError | OutOfAnswersError) else ""


@contextlib.contextmanager
def limited_time(model: str) -> Iterator[None]:
    """Raise OutOfTimeError in this thread when the time limit is reached, and again if the code continues.

    A thread that executes no Python, as in a sleep, cannot be interrupted; a command of joulemap then ends the process.
    A nested limit has no effect.
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
    """Make a thread raise OutOfTimeError at its next bytecode instruction."""
    if ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(OutOfTimeError)) == 0:
        raise ModelError("the thread that traces has ended")


def _let_arrive() -> None:
    """Catch an exception raised for this thread that is still pending, so that it does not appear in later code.

    Withdrawing the exception instead would slow down every later step of the interpreter.
    """
    with contextlib.suppress(OutOfTimeError):
        for _ in range(_STEPS):
            pass
