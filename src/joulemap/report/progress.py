"""A progress bar on stderr for who watches; what draws it is imported when there is something to draw."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


@attrs.define
class Bar:
    """A bar that appears with the first news and is gone when closed; nothing where stderr is no terminal."""

    _drawn: Progress | None = None
    _task: TaskID | None = None
    _text: str = ""

    def say(self, text: str) -> None:
        """Show what is being done, beside the bar."""
        self._text = text
        if self._drawn is not None and self._task is not None:
            self._drawn.update(self._task, description=text)

    def move(self, done: int, total: int) -> None:
        """Show how much is done."""
        if self._drawn is None or self._task is None:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

            self._drawn = Progress(
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("runs"),
                TimeRemainingColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            self._task = self._drawn.add_task(self._text, total=total)
            self._drawn.start()
        self._drawn.update(self._task, completed=done, total=total)

    def close(self) -> None:
        """Remove the bar."""
        if self._drawn is not None:
            self._drawn.stop()


@contextlib.contextmanager
def watching() -> Iterator[tuple[Callable[[str], None], Callable[[int, int], None] | None]]:
    """Give out what to tell of the work: a text, and (done, total); the bar goes when the work ends or fails."""
    if not sys.stderr.isatty():
        yield _ignore, None
        return
    bar = Bar()
    try:
        yield bar.say, bar.move
    finally:
        bar.close()


def _ignore(_text: str) -> None:
    return None
