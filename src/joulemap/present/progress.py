"""Show a progress bar on stderr; its library is imported only when there is something to draw."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from joulemap.present.text import make_visible
from joulemap.system.record import define

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


@define
class Bar:
    """Progress bar that appears with the first update and disappears when closed."""

    noun: str
    """Noun of the counted items; empty if the total is unknown."""
    _drawn: tuple[Progress, TaskID] | None = None

    def say(self, text: str) -> None:
        """Show the current activity next to the bar."""
        bar, task = self._draw()
        bar.update(task, description=make_visible(text, keep=""))

    def move(self, done: int, total: int) -> None:
        """Show `done` of `total` items."""
        bar, task = self._draw()
        bar.update(task, completed=done, total=total)

    def close(self) -> None:
        """Remove the bar."""
        if self._drawn is not None:
            self._drawn[0].stop()

    def _draw(self) -> tuple[Progress, TaskID]:
        if self._drawn is None:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

            count = (MofNCompleteColumn(), TextColumn(self.noun), TimeRemainingColumn()) if self.noun else ()
            bar = Progress(
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                *count,
                console=Console(stderr=True),
                transient=True,
            )
            bar.start()
            self._drawn = bar, bar.add_task("", total=None)
        return self._drawn


@contextlib.contextmanager
def watching(noun: str = "runs") -> Iterator[tuple[Callable[[str], None], Callable[[int, int], None] | None]]:
    """Yield two functions: one shows a text, the other shows progress as (done, total) in a bar that counts `noun`.

    Without a terminal, the first does nothing and the second is None. The bar disappears at the end.
    """
    if sys.stderr is None or not sys.stderr.isatty():
        yield lambda _text: None, None
        return
    bar = Bar(noun)
    try:
        yield bar.say, bar.move
    finally:
        bar.close()
