"""Run an action in a background thread, so that imports overlap with the database engine, which releases the GIL."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock, Thread
from typing import Final, TypeVar

Result = TypeVar("Result")

uninterrupted: Final = Lock()
"""Lock that must be held to exit the process; hold it where an exit would do damage."""

ends: Final[list[Callable[[str, int], object]]] = []
"""Functions that end this process with a line on stderr and an exit code; empty unless joulemap runs as a command."""


def begin(action: Callable[[], Result]) -> Callable[[], Result]:
    """Start an action in another thread; return a function that waits for it and returns its result or raises its
    error.
    """
    results: list[Result] = []
    failures: list[BaseException] = []

    def run() -> None:
        try:
            results.append(action())
        except BaseException as error:
            failures.append(error)

    thread = Thread(target=run, daemon=True)
    thread.start()

    def finish() -> Result:
        thread.join()
        if failures:
            raise failures[0]
        return results[0]

    return finish
