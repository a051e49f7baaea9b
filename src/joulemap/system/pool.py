"""Pools of worker processes that end with their parent, whether it ends by itself, by Ctrl-C or by a kill."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import Final

from joulemap.system.handle import IS_POSIX

MOST_ON_WINDOWS: Final = 61
"""Maximum processes of a pool on Windows. Source: documentation of `concurrent.futures.ProcessPoolExecutor`."""


def open_pool(jobs: int) -> ProcessPoolExecutor:
    """Return a pool of freshly started processes; submit its tasks `shielded`.

    A fork would share this process's open files.
    """
    import multiprocessing

    if IS_POSIX:
        from multiprocessing import resource_tracker

        # it would print the segments that it removes after an interrupt, as intended
        sys.warnoptions.append(silence := "ignore:resource_tracker")
        try:
            resource_tracker.ensure_running()
        finally:
            sys.warnoptions.remove(silence)
    else:
        jobs = min(jobs, MOST_ON_WINDOWS)
    return ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn"), initializer=_begin_process)


@contextlib.contextmanager
def shielded() -> Iterator[None]:
    """Block Ctrl-C for processes that are started in the block, until they ignore it themselves."""
    import signal

    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin_process() -> None:
    """Ignore Ctrl-C in a worker process, and exit when its parent does, so that no worker outlives its command."""
    import multiprocessing
    import signal
    from threading import Thread

    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()

    def follow() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    Thread(target=follow, daemon=True).start()
