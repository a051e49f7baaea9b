"""Reading of a results database, whose intervals are those of the current formulas and error scales."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from joulemap.plan.version import interval_version
from joulemap.store import connection as store
from joulemap.store.connection import READING, Connection
from joulemap.store.sharing import Kind
from joulemap.store.version import has_other_intervals
from joulemap.system.errors import OlderDatabaseError

if TYPE_CHECKING:
    from joulemap.plan.source import Source


@contextlib.contextmanager
def reading(source: Source, kind: Kind = READING) -> Iterator[Connection]:
    """Yield a read-only connection to an existing database.

    If the intervals of its runs are of other formulas or error scales, a writer renews them first. DatabaseError if the
    database cannot be written then: no interval is served that another version computed.
    """
    with contextlib.ExitStack() as stack:
        connection = stack.enter_context(store.reading(source.path, source.patience, kind))
        if has_other_intervals(connection, interval_version()):
            from joulemap.plan.catalogue import writing

            stack.close()
            with writing(source):
                pass
            connection = stack.enter_context(store.reading(source.path, source.patience, kind))
        yield connection


@contextlib.contextmanager
def reading_if_there(source: Source) -> Iterator[Connection | None]:
    """Yield a read-only connection; None if there is no database yet or a writer must migrate it first."""
    with contextlib.ExitStack() as stack:
        connection = None
        if store.check_path(source.path):
            with contextlib.suppress(OlderDatabaseError):
                connection = stack.enter_context(reading(source))
        yield connection
