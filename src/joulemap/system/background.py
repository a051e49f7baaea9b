"""Do two things at once: the engine works without the interpreter's lock, so importing can go on meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock, Thread
from typing import Final, TypeVar

Result = TypeVar("Result")

uninterrupted: Final = Lock()
"""Held for the moment in which the process had better not end."""

ends: Final[list[Callable[[str, int], object]]] = []
"""What ends this process with a line on stderr and a code, where it is a command of ours; empty in other programs."""


def begin(action: Callable[[], Result]) -> Callable[[], Result]:
    """Start an action in another thread; return a function that waits for it and returns or raises what it does."""
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
