"""Measurements to rows."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from joulemap.domain.measurement import Measurement
from joulemap.store.connection import Connection
from joulemap.store.insert import insert_columns, next_id


def write_measurements(connection: Connection, measurements: Sequence[Measurement]) -> int:
    """Store those measurements that are not stored yet, and return how many those are."""
    fields = [field.name for field in attrs.fields(Measurement)]
    stored = set(connection.execute(f"SELECT {', '.join(fields)} FROM measurement").fetchall())
    fresh = [row for row in dict.fromkeys(map(attrs.astuple, measurements)) if row not in stored]
    if not fresh:
        return 0
    first = next_id(connection, "measurement", "measurement_id")
    columns = {name: [row[index] for row in fresh] for index, name in enumerate(fields)}
    insert_columns(connection, "measurement", {"measurement_id": list(range(first, first + len(fresh))), **columns})
    return len(fresh)
