"""What is asked of a folder of shards in place of a database file."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from joulemap.plan.source import reading as reading_database
from joulemap.store.connection import READING
from joulemap.store.sharing import Kind

if TYPE_CHECKING:
    from joulemap.plan.source import Source
    from joulemap.store.connection import Connection


@contextlib.contextmanager
def reading(source: Source, kind: Kind = READING) -> Iterator[Connection]:
    """Give out a read-only connection to a database that must be there, or to a lake where its path is a folder.

    What of a lake is stale or damaged is left out, and said.
    """
    with contextlib.ExitStack() as stack:
        if source.path.is_dir():
            from joulemap.plan.catalogue import find_catalogue
            from joulemap.store.lake import reading_lake

            opened = reading_lake(source.path, find_catalogue(), kind, source.patience.tell)
        else:
            opened = reading_database(source, kind)
        yield stack.enter_context(opened)
