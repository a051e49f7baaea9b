"""Storage of measurements of models and operators, and the shipped operator file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final

import attrs

from joulemap.domain.measurement import Measurement
from joulemap.store.connection import Connection
from joulemap.store.digest import MEASUREMENT, Digester
from joulemap.store.insert import insert_records, next_id
from joulemap.store.literal import execute


def write_measurements(connection: Connection, measurements: Iterable[Measurement]) -> int:
    """Store measurements that are not stored yet; return their number."""
    stored = set(read_measurements(connection))
    fresh = [one for one in dict.fromkeys(measurements) if one not in stored]
    first = next_id(connection, "measurement", "measurement_id")
    numbers = range(first, first + len(fresh))
    insert_records(connection, "measurement", fresh, measurement_id=numbers, content_digest="")
    Digester(connection).seal(MEASUREMENT, numbers)
    return len(fresh)


DESCRIBED: Final = ("hardware", "matmul_precision", "scope", "boundary", "conditions", "seen")
"""Fields of a measurement that a later catalogue may correct while the source's numbers stay the same."""


def update_measurements(connection: Connection, shipped: Sequence[Measurement]) -> None:
    """Store the current catalogue's measurements. Remove stored ones that describe the same numbers differently.

    The caller holds the transaction.
    """
    now, figures = set(shipped), {_find_figures(one) for one in shipped}
    names = [field.name for field in attrs.fields(Measurement)]
    rows = connection.execute(f"SELECT measurement_id, {', '.join(names)} FROM internal.measurement").fetchall()
    stored = {number: Measurement(**dict(zip(names, row, strict=True))) for number, *row in rows}
    old = [number for number, one in stored.items() if one not in now and _find_figures(one) in figures]
    if old:
        removed = execute(
            connection,
            "DELETE FROM internal.measurement WHERE list_contains($numbers, measurement_id) RETURNING content_digest",
            {"numbers": old},
        ).fetchall()
        Digester(connection).change_set(MEASUREMENT, (), [digest for (digest,) in removed])
    write_measurements(connection, shipped)


def _find_figures(one: Measurement) -> tuple[object, ...]:
    """Return a measurement's board and all fields that a later catalogue cannot correct."""
    board = one.hardware.partition("@")[0]
    return (board, *attrs.astuple(one, filter=lambda field, _: field.name not in DESCRIBED))


def read_measurements(connection: Connection) -> tuple[Measurement, ...]:
    """Return every stored measurement."""
    names = [field.name for field in attrs.fields(Measurement)]
    rows = connection.execute(f"SELECT {', '.join(names)} FROM internal.measurement ORDER BY measurement_id").fetchall()
    return tuple(Measurement(**dict(zip(names, row, strict=True))) for row in rows)


def has_measurement_on(connection: Connection, hardware: str) -> bool:
    """Return whether a measurement, of serving or not, is stored for a hardware id."""
    statement = (
        "SELECT EXISTS (FROM internal.measurement WHERE hardware = $hardware) "
        "OR EXISTS (FROM internal.serving_measurement WHERE hardware = $hardware)"
    )
    return execute(connection, statement, {"hardware": hardware}).fetchall() == [(True,)]


def read_operator_file(
    connection: Connection,
    path: Path,
    *,
    hardware: str,
    runtime: str,
    matmul_precision: str,
    source: str,
    conditions: str,
    find_seen: Callable[[str], str],
) -> None:
    """Insert the rows of a shipped operator file into a database, with this hardware, runtime, setting and source.

    `find_seen` returns which coefficients were fitted to the rows of a model.
    """
    rows = execute(connection, "SELECT DISTINCT model FROM read_parquet($path)", {"path": str(path)}).fetchall()
    models = [str(model) for (model,) in rows]
    execute(
        connection,
        "INSERT INTO internal.operator_measurement "
        "SELECT $hardware, p.model, p.precision, CASE WHEN p.precision = 'fp32' THEN $matmul_precision "
        "ELSE 'default' END, p.batch, $runtime, p.operation, "
        "p.shapes, p.operator_count, p.kernels, p.call_count, p.device_time_us / 1e6, p.is_overlapping, $source, "
        "concat($conditions, CASE WHEN p.pass_count > 1 THEN "
        "concat('; every operator is listed ', p.pass_count, ' times: times and calls are those of one') ELSE '' END), "
        "s.seen FROM read_parquet($path) AS p "
        "JOIN (SELECT unnest($models) AS model, unnest($seen) AS seen) AS s ON s.model = p.model",
        {
            "hardware": hardware,
            "runtime": runtime,
            "matmul_precision": matmul_precision,
            "source": source,
            "conditions": conditions,
            "path": str(path),
            "models": models,
            "seen": [find_seen(model) for model in models],
        },
    )


def clear_operator_measurements(connection: Connection) -> None:
    """Remove all stored operator measurements, which come from an older catalogue."""
    connection.execute("DELETE FROM internal.operator_measurement")
