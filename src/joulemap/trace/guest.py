"""User code inside this process: its output goes to stderr, and the process is restored afterwards.

Streams, hooks and defaults belong to the process, so that one guest is hosted at a time. Some effects cannot be undone:
an exit by `os._exit`, patches inside other modules, and native code of threads left running.
"""

from __future__ import annotations

import contextlib
import ctypes
import io
import os
import random
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any, Final, NoReturn, TextIO, cast

import torch
from torch.nn.modules import module

from joulemap.system.errors import Interrupted, JoulemapError, ModelError

STDOUT: Final = 1
STDERR: Final = 2

LONGEST: Final = 300
"""Maximum characters of a user's error message that are shown."""

_ALONE: Final = threading.RLock()

_NOT_USERS: Final = (Path(__file__).parents[1], Path(os.__file__).parent)
"""Folders whose files are not user code: this package, the standard library and installed packages."""


_INSTALLED: Final = {"site-packages", "dist-packages"}


@contextlib.contextmanager
def hosting(model: str) -> Iterator[None]:
    """Run user code in this context. Its errors become a ModelError of one line, except Ctrl-C and JoulemapError.

    All output goes to stderr, also that of other processes and native code. Afterwards the working directory,
    environment, signal handlers, streams, built-in functions and torch's defaults are restored. Inside, torch has its
    own defaults.
    """
    with _ALONE, contextlib.ExitStack() as stack:
        for keep in (_keep_interrupt, _keep_folder, _keep_signals, _keep_interpreter, _keep_streams, _keep_torch):
            stack.enter_context(keep())
        stack.enter_context(refusing(lambda error: f"{model}: {first_line(error)}{describe_place(error)}"))
        yield


@contextlib.contextmanager
def refusing(describe: Callable[[BaseException], str]) -> Iterator[None]:
    """Convert errors in a `with` block to a ModelError with the text of `describe`, except Ctrl-C and JoulemapError."""
    try:
        yield
    except (JoulemapError, Interrupted):
        raise
    except BaseException as error:
        raise ModelError(describe(error)) from error


def first_line(error: BaseException) -> str:
    """Return an error's type and the first line of its text, up to `LONGEST` characters."""
    try:
        lines = str(error).strip().splitlines()
    except Exception:  # the text of an error is user code too
        lines = []
    return f"{type(error).__name__}: {lines[0][:LONGEST]}" if lines else type(error).__name__


def describe_place(error: BaseException) -> str:
    """Return text about the last line of user code in an error's traceback, to append to the error message."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"; {Path(error.filename).name}" + (f", line {error.lineno}" if error.lineno else "")
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        path = Path(frame.filename)
        is_installed = not _INSTALLED.isdisjoint(path.parts)
        if path.suffix == ".py" and not is_installed and not any(map(path.is_relative_to, _NOT_USERS)):
            return f"; {path.name}, line {frame.lineno}"
    return ""


@contextlib.contextmanager
def _keep_interrupt() -> Iterator[None]:
    """Distinguish Ctrl-C from a `KeyboardInterrupt` that user code raises, in a program without its own handler."""
    is_ours = _is_main_thread() and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_ours:
        signal.signal(signal.SIGINT, _interrupt)
    try:
        yield
    except Interrupted:
        if is_ours:
            raise KeyboardInterrupt from None
        raise
    finally:
        if is_ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def _interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
    raise Interrupted


@contextlib.contextmanager
def _keep_folder() -> Iterator[None]:
    try:
        folder = os.getcwd()
    except OSError:  # the folder was removed
        folder = ""
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            os.chdir(folder)


@contextlib.contextmanager
def _keep_signals() -> Iterator[None]:
    """Restore signal handlers and the wakeup descriptor on exit, and stop an alarm started inside. Only the main thread
    can change these, so other threads do nothing.
    """
    if not _is_main_thread():
        yield
        return
    handlers = {number: signal.getsignal(number) for number in signal.valid_signals()}
    has_timer = hasattr(signal, "setitimer")  # not on Windows
    has_alarm = has_timer and any(signal.getitimer(signal.ITIMER_REAL))
    wakes = signal.set_wakeup_fd(-1)
    signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
    try:
        yield
    finally:
        if has_timer and not has_alarm:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
        for number, handler in handlers.items():
            if handler is not None and signal.getsignal(number) != handler:
                signal.signal(number, handler)


def _is_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


@contextlib.contextmanager
def _keep_interpreter() -> Iterator[None]:
    """Restore the environment, module search path, built-in functions and random state on exit."""
    builtins = vars(sys.modules["builtins"])
    functions, environment, variables = dict(builtins), os.environ, dict(os.environ)
    path, entries, arguments = sys.path, list(sys.path), list(sys.argv)
    limit, excepthook, state = sys.getrecursionlimit(), sys.excepthook, random.getstate()
    numpy = sys.modules.get("numpy")
    numpy_state = numpy.random.get_state() if numpy else None
    try:
        with warnings.catch_warnings():
            yield
    finally:
        builtins.update({name: value for name, value in functions.items() if builtins.get(name) is not value})
        os.environ = environment  # noqa: B003
        environment.update({name: value for name, value in variables.items() if environment.get(name) != value})
        for name in set(environment) - set(variables):
            del environment[name]
        sys.path = path
        sys.path[:], sys.argv[:] = entries, arguments
        sys.setrecursionlimit(limit)
        sys.excepthook = excepthook
        random.setstate(state)
        if numpy:
            numpy.random.set_state(numpy_state)


class _UnclosableStream:
    """Stream that user code cannot close."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def close(self) -> None:
        """Leave the stream open."""

    def detach(self) -> NoReturn:
        """Refuse to detach the buffer."""
        raise io.UnsupportedOperation("detach")


class _SplitStream:
    """Stream that sends the output of user threads that outlive their `hosting` context to another stream."""

    def __init__(self, stream: TextIO, aside: TextIO) -> None:
        self._stream, self._aside = stream, aside
        self._guests: set[threading.Thread] = set()

    def part_from(self, threads: set[threading.Thread]) -> None:
        """Redirect the output of these threads too, and stop tracking threads that have ended."""
        self._guests = {thread for thread in self._guests | threads if thread.is_alive()}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._aside if threading.current_thread() in self._guests else self._stream, name)


@contextlib.contextmanager
def _keep_streams() -> Iterator[None]:
    """Send all output to stderr: of Python, of other processes, and of libraries that bypass Python's streams."""
    stdout, stderr = sys.stdout, sys.stderr
    talk = cast("TextIO", _UnclosableStream(open(os.devnull, "w") if stderr is None else stderr))  # noqa: SIM115
    _flush(stdout, stderr)
    with _watch_threads() as started:
        try:
            with _keep_descriptors():
                sys.stdout = sys.stderr = talk
                yield
        finally:
            sys.stdout, sys.stderr = _revive(stdout, STDOUT), _revive(stderr, STDERR)
            if sys.stdout is not None and any(thread.is_alive() for thread in started):
                parted = sys.stdout if isinstance(sys.stdout, _SplitStream) else _SplitStream(sys.stdout, talk)
                parted.part_from(started)
                sys.stdout = cast("TextIO", parted)


def _flush(*streams: TextIO | None) -> None:
    """Flush the buffers of Python's streams and of the C library."""
    for stream in streams:
        with contextlib.suppress(OSError, ValueError, AttributeError):
            if stream is not None:
                stream.flush()
    with contextlib.suppress(OSError, TypeError, AttributeError):
        ctypes.CDLL(None).fflush(None)


@contextlib.contextmanager
def _watch_threads() -> Iterator[set[threading.Thread]]:
    """Yield the set of threads that this thread or its child threads start in the context; the set grows meanwhile."""
    started: set[threading.Thread] = set()
    usual, host = threading.Thread.start, threading.current_thread()

    def start(self: threading.Thread) -> None:
        if threading.current_thread() is host or threading.current_thread() in started:
            started.add(self)
        usual(self)

    threading.Thread.start = start  # type: ignore[method-assign]
    try:
        yield started
    finally:
        threading.Thread.start = usual  # type: ignore[method-assign]


@contextlib.contextmanager
def _keep_descriptors() -> Iterator[None]:
    """Point the descriptor of stdout to that of stderr; reopen both if they are closed inside."""
    open_ones = [
        number for number, stream in ((STDOUT, sys.__stdout__), (STDERR, sys.__stderr__)) if stream is not None
    ]
    kept: dict[int, int] = {}
    for number in open_ones:
        with contextlib.suppress(OSError):
            kept[number] = os.dup(number)
    if STDOUT in kept:
        aside = os.dup(kept[STDERR]) if STDERR in kept else os.open(os.devnull, os.O_WRONLY)
        os.dup2(aside, STDOUT)
        os.close(aside)
    try:
        yield
    finally:
        _flush(sys.stderr)
        for number, copy in kept.items():
            os.dup2(copy, number)
            os.close(copy)


def _revive(stream: TextIO, number: int) -> TextIO:
    """Return a stream, or a new one on its descriptor if user code has closed it."""
    try:
        is_closed = stream is not None and stream.closed
    except ValueError:  # the buffer was detached
        is_closed = True
    return open(number, "w", encoding="utf-8", errors="replace", closefd=False) if is_closed else stream


@contextlib.contextmanager
def _keep_torch() -> Iterator[None]:
    """Use single precision as torch's default and no default device in this context, and restore the program's settings
    afterwards.
    """
    dtype, device = torch.get_default_dtype(), default_device()
    is_deterministic = torch.are_deterministic_algorithms_enabled()
    warns_only = torch.is_deterministic_algorithms_warn_only_enabled()
    has_gradient = torch.is_grad_enabled()
    hooks = [(known, dict(known)) for name, known in vars(module).items() if _is_hooks(name, known)]
    if dtype != torch.float32:  # the setting applies to other threads too
        torch.set_default_dtype(torch.float32)
    if device.type != "cpu":
        torch.set_default_device(None)
    is_default = default_device() != device  # otherwise an enclosing `with` has set it
    try:
        with torch.random.fork_rng(devices=()):
            yield
    finally:
        torch.set_default_dtype(dtype)
        if is_default or default_device() != device:
            torch.set_default_device(device if is_default else None)
        torch.set_grad_enabled(has_gradient)
        if torch.are_deterministic_algorithms_enabled() != is_deterministic:
            torch.use_deterministic_algorithms(is_deterministic, warn_only=warns_only)
        for known, before in hooks:
            known.clear()
            known.update(before)


def default_device() -> torch.device:
    """Return the default device; PyTorch 2.9 raises AttributeError after it was set to None."""
    try:
        return torch.get_default_device()
    except AttributeError:
        return torch.device("cpu")


def _is_hooks(name: str, value: object) -> bool:
    return name.startswith("_global_") and isinstance(value, dict)
