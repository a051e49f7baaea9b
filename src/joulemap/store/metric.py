"""Metrics as rows of their table."""

from __future__ import annotations

from typing import Final

from joulemap.domain.metric import METRICS
from joulemap.store.connection import Connection

METRIC_COLUMNS: Final = (
    "metric_index",
    "name",
    "label",
    "unit",
    "column_name",
    "per",
    "is_higher_better",
    "missing",
)


def metric_rows() -> list[tuple[int, str, str, str, str, str, bool, str]]:
    """Return the metrics of the program, in the order of the columns."""
    return [
        (index, one.name, one.label, one.unit, one.column, one.per, one.is_higher_better, one.missing)
        for index, one in enumerate(METRICS)
    ]


def has_metrics(connection: Connection) -> bool:
    """Whether the metrics of the database are those of the program."""
    rows = connection.execute(f"SELECT {', '.join(METRIC_COLUMNS)} FROM metric ORDER BY metric_index").fetchall()
    return rows == metric_rows()
