"""Lakes as databases: what the core asks of a folder that a query is to read."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from joulemap.plan.source import Source
    from joulemap.store.connection import Connection
    from joulemap.store.sharing import Kind


class LakeFolder:
    """Reader of lakes."""

    def reading(self, source: Source, kind: Kind) -> AbstractContextManager[Connection]:
        """Return a read-only connection to the shards of a lake; says what is left out as stale or damaged."""
        from joulemap.plan.catalogue import find_catalogue
        from joulemap.wing.explore.lake.database import reading_lake

        return reading_lake(source.path, find_catalogue(), kind, source.patience.tell)

    def describe_absent(self, connection: Connection, sql: str) -> str:
        """Return what of a statement is empty because a lake does not hold it; empty for nothing."""
        from joulemap.wing.explore.lake.database import tell_absent

        return tell_absent(connection, sql)


FOLDER: Final = LakeFolder()
