"""The results database as plans open it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from joulemap.background import begin
from joulemap.errors import OlderDatabaseError
from joulemap.store.connection import Connection, open_for_reading, open_for_writing, using


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
