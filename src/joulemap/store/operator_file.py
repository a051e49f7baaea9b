"""Device times of operators: to the file that ships, and from it into a database."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import attrs

from joulemap.domain.measurement import OperatorMeasurement
from joulemap.store.connection import Connection, open_in_memory
from joulemap.store.insert import insert_columns

TIME_DIGITS: Final = 4
"""Of a time in microseconds: a profiler tells three."""


def write_operator_file(path: Path, rows: Sequence[OperatorMeasurement]) -> None:
    """Write the rows that ship as a Parquet file."""
    connection = open_in_memory()
    columns = {field.name: [getattr(row, field.name) for row in rows] for field in attrs.fields(OperatorMeasurement)}
    columns["device_time_us"] = [round(row.device_time_us, TIME_DIGITS) for row in rows]
    connection.execute(
        "CREATE TABLE shipped (model VARCHAR, precision VARCHAR, batch INTEGER, operation VARCHAR, shapes VARCHAR, "
        "operator_count INTEGER, kernels VARCHAR, call_count INTEGER, device_time_us DOUBLE, is_overlapping BOOLEAN, "
        "pass_count INTEGER)"
    )
    insert_columns(connection, "shipped", columns)
    connection.execute(
        "COPY (FROM shipped ORDER BY model, precision, batch, operation, shapes, kernels) "
        "TO $path (FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 19)",
        {"path": str(path)},
    )
    connection.close()


def read_operator_file(
    connection: Connection,
    path: Path,
    *,
    hardware: str,
    runtime: str,
    source: str,
    conditions: str,
    find_seen: Callable[[str], str],
) -> None:
    """Add the rows of a file that ships to a database; `find_seen` tells of a model which coefficients saw it."""
    found = connection.execute("SELECT DISTINCT model FROM read_parquet($path)", {"path": str(path)}).fetchall()
    models = [str(model) for (model,) in found]
    connection.execute(
        "INSERT INTO operator_measurement SELECT $hardware, p.model, p.precision, p.batch, $runtime, p.operation, "
        "p.shapes, p.operator_count, p.kernels, p.call_count, p.device_time_us / 1e6, p.is_overlapping, $source, "
        "concat($conditions, CASE WHEN p.pass_count > 1 THEN "
        "concat('; every operator is listed ', p.pass_count, ' times: times and calls are those of one') ELSE '' END), "
        "s.seen FROM read_parquet($path) AS p "
        "JOIN (SELECT unnest($models) AS model, unnest($seen) AS seen) AS s ON s.model = p.model",
        {
            "hardware": hardware,
            "runtime": runtime,
            "source": source,
            "conditions": conditions,
            "path": str(path),
            "models": models,
            "seen": [find_seen(model) for model in models],
        },
    )


def clear_operator_measurements(connection: Connection) -> None:
    """Remove the rows of an older catalogue."""
    connection.execute("DELETE FROM operator_measurement")
