"""Lakes as databases: the reader that queries use for a lake's folder."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from joulemap.plan import Source
    from joulemap.store import Connection, Kind


class LakeFolder:
    """Reader that opens a lake's folder as a database."""

    def reading(self, source: Source, kind: Kind) -> AbstractContextManager[Connection]:
        """Return a read-only connection to the shards of a lake; report stale and damaged shards that are omitted."""
        from joulemap.plan.catalogue import find_catalogue
        from joulemap.wing.explore.lake.database import reading_lake

        return reading_lake(source.path, find_catalogue(), kind, source.patience.tell)

    def describe_absent(self, connection: Connection, sql: str) -> str:
        """Return a note on views that a statement reads and that are empty in a lake; empty if there are none."""
        from joulemap.wing.explore.lake.database import describe_absent

        return describe_absent(connection, sql)


FOLDER: Final = LakeFolder()
