"""Threads of a forward pass: their operators are recorded where they start, as if the pass waited for their end.

    Thread(target=f).start()          f runs in its thread; the pass continues when f has ended or waits
    ThreadPoolExecutor().submit(f)    f runs at once

A thread may wait, for example for a queue, while the pass continues. ModelError is raised if it then runs operators,
because they have no place in the order of the trace.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Final
from unittest.mock import patch

from torch.utils._python_dispatch import TorchDispatchMode

from joulemap.system.errors import ModelError
from joulemap.trace.record import Recorder

PATIENCE_S: Final = 0.5
"""Seconds without an operator after which a thread is assumed to wait."""

_LOOK_S: Final = 0.02

ASTRAY: Final = (
    "a thread runs operators beside the forward pass, as one that takes its work from a queue: run its parts one after "
    "the other, or by a concurrent.futures.ThreadPoolExecutor"
)


class _Strand(TorchDispatchMode):
    """Mode that passes a thread's operators to the recorder while the pass waits for the thread."""

    supports_higher_order_operators = True

    def __init__(self, threads: _Threads) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._threads = threads

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if self._threads.turn == threading.get_ident():
            return self._threads.recorder.__torch_dispatch__(func, types, args, kwargs)
        self._threads.went_astray = True
        return func(*args, **(kwargs or {}))


class _Threads:
    """Threads of one forward pass; one of them runs at a time."""

    def __init__(self, recorder: Recorder, modes: Callable[[], contextlib.AbstractContextManager[Any]]) -> None:
        self.recorder = recorder
        self.turn = threading.get_ident()
        self.went_astray = False
        self._modes = modes

    def start(self, thread: threading.Thread, usual: Callable[[threading.Thread], None]) -> None:
        """Start a thread, wait until it ends or waits, and raise the error that ended it."""
        if self.turn != threading.get_ident():
            usual(thread)
            return
        mine, run = self.turn, thread.run
        raised: list[BaseException] = []

        def follow() -> None:
            self.turn = threading.get_ident()
            try:
                with self._modes(), _Strand(self):
                    run()
            except BaseException as error:
                raised.append(error)

        thread.run = follow  # type: ignore[method-assign]
        usual(thread)
        try:
            self._wait(thread)
        finally:
            self.turn = mine
        if raised:
            raise raised[0]

    def _wait(self, thread: threading.Thread) -> None:
        idle_s, seen = 0.0, -1
        while thread.is_alive() and idle_s < PATIENCE_S:
            thread.join(_LOOK_S)
            idle_s = idle_s + _LOOK_S if seen == len(self.recorder.calls) else 0.0
            seen = len(self.recorder.calls)

    def submit(self, usual: Callable[..., Future[Any]], pool: Any, function: Any, *args: Any, **named: Any) -> Any:
        """Return the future of a pool call. The call runs immediately if the thread whose turn it is submits it."""
        if self.turn != threading.get_ident():
            return usual(pool, function, *args, **named)
        future: Future[Any] = Future()
        try:
            future.set_result(function(*args, **named))
        except Exception as error:
            future.set_exception(error)
        return future


@contextlib.contextmanager
def following_threads(
    recorder: Recorder, modes: Callable[[], contextlib.AbstractContextManager[Any]], model: str
) -> Iterator[None]:
    """Record the operators of threads started in this context, each thread under the pass's `modes`.

    Raises ModelError at the end, even after an error, if a thread ran operators in parallel to the pass.
    """
    threads = _Threads(recorder, modes)
    start, submit = threading.Thread.start, ThreadPoolExecutor.submit
    with (
        patch.object(threading.Thread, "start", lambda thread: threads.start(thread, start)),
        patch.object(ThreadPoolExecutor, "submit", lambda *args, **named: threads.submit(submit, *args, **named)),
    ):
        try:
            yield
        finally:
            if threads.went_astray:
                raise ModelError(f"{model}: {ASTRAY}")
