"""Show the progress of long work on stderr; its library is imported only when there is something to draw."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from threading import RLock, Timer
from typing import TYPE_CHECKING, Final

import attrs

from joulemap.show.present.text import make_visible
from joulemap.system.record import define

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID

DELAY_S: Final = 1.0
"""Seconds of work before the bar appears, so that short work shows none."""

BESIDE: Final = 52
"""Columns for the bar and the counts beside the activity, which never takes a second line."""

ENDING: Final = "working out the answer"
"""Activity when all that was counted is done."""


@define
class Bar:
    """Line that says what a command is doing, how much of it is done, and how long the rest may take.

    It appears after `DELAY_S` of work and disappears when closed. Without an end that is known, it shows the time since
    the beginning.
    """

    console: Console | None = None
    """Console to draw on; None for stderr."""
    _text: str = ""
    _done: int = 0
    _total: int | None = None
    _timer: Timer | None = None
    _drawn: tuple[Progress, TaskID] | None = None
    _lock: RLock = attrs.field(factory=RLock, init=False)

    @property
    def is_open(self) -> bool:
        """True between `open` and `close`."""
        return self._timer is not None

    def open(self, text: str) -> None:
        """Begin with an activity; the line appears later."""
        with self._lock:
            self.close()
            self._text, self._done, self._total = text, 0, None
            self._timer = Timer(DELAY_S, self._draw)
            self._timer.daemon = True
            self._timer.start()

    def say(self, text: str) -> None:
        """Show the current activity."""
        with self._lock:
            self._text = text
            self._update()

    def move(self, done: int, total: int) -> None:
        """Show `done` of `total`; once all is done, the activity is the answer."""
        with self._lock:
            self._done, self._total = done, total
            if done >= total:
                self._text, self._done, self._total = ENDING, 0, None
            self._update()

    def close(self) -> None:
        """Remove the line."""
        with self._lock:
            timer, self._timer = self._timer, None
            drawn, self._drawn = self._drawn, None
            if timer is not None:
                timer.cancel()
            if drawn is not None:
                drawn[0].stop()

    def _update(self) -> None:
        if self._drawn is not None:
            bar, task = self._drawn
            text = make_visible(self._text, keep="")
            bar.update(task, description=text, completed=self._done, total=self._total)
            if self._total is None:  # an update without a total keeps the former one
                bar._tasks[task].total = None

    def _draw(self) -> None:
        """Draw the line for the first time, in the thread of the timer."""
        from rich.console import Console
        from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn
        from rich.table import Column
        from rich.text import Text

        class Left(ProgressColumn):
            """Count, and the estimated time that is left; without a count, the time since the beginning."""

            def render(self, task: Task) -> Text:
                return Text(describe_left(task.completed, task.total, task.time_remaining, task.elapsed or 0.0))

        with self._lock:
            if self._timer is None or self._drawn is not None:
                return
            console = self.console or Console(stderr=True)
            column = Column(no_wrap=True, overflow="ellipsis", max_width=max(console.width - BESIDE, 1))
            bar = Progress(
                TextColumn("{task.description}", markup=False, table_column=column),
                BarColumn(bar_width=20),
                Left(),
                console=console,
                transient=True,
            )
            self._drawn = bar, bar.add_task("", total=None)
            self._update()
            bar.start()


def describe_left(done: float, total: float | None, left_s: float | None, elapsed_s: float) -> str:
    """Return how much is done and how long the rest may take; without a total, how long the work has taken."""
    if total is None:
        return f"{elapsed_s:.0f} s"
    estimate = "" if left_s is None else f", about {left_s:.0f} s left"
    return f"{done:,.0f} of {total:,.0f}{estimate}"


@contextlib.contextmanager
def watching() -> Iterator[Callable[[str], None]]:
    """Yield a function that shows an activity on stderr until the end of the block; without a terminal, nothing."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield lambda _text: None
        return
    bar = Bar()
    bar.open("writing")
    try:
        yield bar.say
    finally:
        bar.close()
