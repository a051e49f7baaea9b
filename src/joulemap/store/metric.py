"""Metrics as rows of their table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from joulemap.domain.metric import METRICS, Metric
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


Row = tuple[int, str, str, str, str, str, bool, str]


def metric_rows(metrics: Sequence[Metric] = METRICS) -> list[Row]:
    """Return metrics, those of the program where no others are named, in the order of the columns."""
    return [
        (index, one.name, one.label, one.unit, one.column, one.per, one.is_higher_better, one.missing)
        for index, one in enumerate(metrics)
    ]


def find_metric_sql(metrics: Sequence[Metric]) -> str:
    """Return the statement that makes the macro `find_metric` of these metrics."""
    names = ", ".join(one.name for one in metrics)
    rows = " ".join(f"WHEN '{row[1]}' THEN {{{_fields(row)}}}" for row in metric_rows(metrics))
    unknown = f"error('unknown metric ' || metric_name || ', expected one of {names}')"
    return f"CREATE OR REPLACE MACRO find_metric(metric_name) AS CASE metric_name {rows} ELSE {unknown} END"


def _fields(row: Row) -> str:
    values = (f"'{value}'" if isinstance(value, str) else str(value) for value in row)
    return ", ".join(f"{name}: {value}" for name, value in zip(METRIC_COLUMNS, values, strict=True))


def has_metrics(connection: Connection) -> bool:
    """Whether the metrics of the database are those of the program."""
    rows = connection.execute(f"SELECT {', '.join(METRIC_COLUMNS)} FROM metric ORDER BY metric_index").fetchall()
    return rows == metric_rows()
