"""A results database: where it is, who is told what takes time, and how it is opened."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import attrs

from joulemap.store import connection as store
from joulemap.store.connection import PATIENT, READING, Connection, Patience, log
from joulemap.store.sharing import Kind
from joulemap.system.errors import OlderDatabaseError
from joulemap.system.record import frozen

Talk = Callable[[str], None]
Progress = Callable[[int, int], None]
"""Told (runs done, runs to do)."""


@frozen(kw_only=True)
class Source:
    """A results database, made when first written."""

    path: Path
    talk: Talk = log
    progress: Progress | None = None
    """Not called where everything is stored. What it raises ends the evaluation: whole runs are stored until then."""
    patience: Patience = PATIENT

    def anchor(self) -> Source:
        """Return it with its path from the root, which code that changes the working directory does not move."""
        with contextlib.suppress(OSError):  # the working directory is gone
            return attrs.evolve(self, path=self.path.absolute())
        return self


@contextlib.contextmanager
def reading(source: Source, kind: Kind = READING) -> Iterator[Connection]:
    """Give out a read-only connection to a database that must be there."""
    with store.reading(source.path, source.patience, kind) as connection:
        yield connection


@contextlib.contextmanager
def reading_if_there(source: Source) -> Iterator[Connection | None]:
    """Give out a read-only connection; None where there is no database yet or a writer must migrate it first."""
    with contextlib.ExitStack() as stack:
        connection = None
        if store.check_place(source.path):
            with contextlib.suppress(OlderDatabaseError):
                connection = stack.enter_context(reading(source))
        yield connection
