"""A results database: where it is, who is told what takes time, and how it is opened."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import attrs

from joulemap.background import begin
from joulemap.errors import OlderDatabaseError
from joulemap.store.connection import Connection, open_for_reading, open_for_writing, using

Talk = Callable[[str], None]
Progress = Callable[[int, int], None]
"""Told (runs done, runs to do)."""


def silent(_message: str) -> None:
    """Tell nobody."""


@attrs.frozen(kw_only=True)
class Source:
    """A results database, made when first written."""

    path: Path
    talk: Talk = silent
    progress: Progress | None = None
    """Not called where everything is stored."""

    def anchor(self) -> Source:
        """Return it with its path from the root, which code that changes the working directory does not move."""
        with contextlib.suppress(OSError):  # the working directory is gone
            return attrs.evolve(self, path=self.path.absolute())
        return self


def open_if_there(path: Path) -> Connection | None:
    """Return a read-only connection, or None where there is no database yet or a writer must migrate it first."""
    if path.exists():
        with contextlib.suppress(OlderDatabaseError):
            return open_for_reading(path)
    return None


@contextlib.contextmanager
def writing(path: Path) -> Iterator[Connection]:
    """Give out a connection that writes; what evaluating needs is imported while the engine opens the file."""
    from joulemap.plan.catalogue import template

    opened = begin(lambda: open_for_writing(path, template(path)))
    with using(opened(), path) as connection:
        yield connection


@contextlib.contextmanager
def reading(path: Path) -> Iterator[Connection]:
    """Give out a read-only connection to a database that must be there."""
    with using(open_for_reading(path), path) as connection:
        yield connection
