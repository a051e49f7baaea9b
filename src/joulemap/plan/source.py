"""Results database: its path, its progress callbacks, and how it is opened."""

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
"""Callback with (done, to do) of runs, or of the steps of a longer question."""


@frozen(kw_only=True)
class Source:
    """Results database, created at the first write."""

    path: Path
    talk: Talk = log
    progress: Progress | None = None
    """Progress callback; not called if all runs are stored. If it raises, evaluation stops after complete runs."""
    patience: Patience = PATIENT

    def anchor(self) -> Source:
        """Return the source with an absolute path, which a change of the working directory does not affect."""
        with contextlib.suppress(OSError):  # the working directory may no longer exist
            return attrs.evolve(self, path=self.path.absolute())
        return self


@contextlib.contextmanager
def reading(source: Source, kind: Kind = READING) -> Iterator[Connection]:
    """Yield a read-only connection to an existing database."""
    with store.reading(source.path, source.patience, kind) as connection:
        yield connection


@contextlib.contextmanager
def reading_if_there(source: Source) -> Iterator[Connection | None]:
    """Yield a read-only connection; None if there is no database yet or a writer must migrate it first."""
    with contextlib.ExitStack() as stack:
        connection = None
        if store.check_place(source.path):
            with contextlib.suppress(OlderDatabaseError):
                connection = stack.enter_context(reading(source))
        yield connection
