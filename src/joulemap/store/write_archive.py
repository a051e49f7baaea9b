"""Stored runs to a folder of files, by the engine's own writers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import duckdb

from joulemap.store.archive import KEYS, Entry, digest_file
from joulemap.store.connection import Connection
from joulemap.store.write_parquet import quote_name, quote_text

VIEW_KEYS: Final[Mapping[str, str]] = {
    "runs": "run_id",
    "refused_runs": "run_id",
    "subgraph_results": "run_id",
    "operator_results": "run_id",
    "energy_ledger": "run_id",
    "operators": "workload_id",
    "uncounted": "workload_id",
    "assumptions": "workload_id",
    "hardware_facts": "hardware_digest",
    "energy_reference": "hardware_digest",
}
"""view -> the column that says which of its rows belong to chosen runs."""

OPTIONS: Final[Mapping[str, str]] = {
    "parquet": "FORMAT parquet, COMPRESSION zstd",
    "json": "FORMAT json, ARRAY true",
    "csv": "FORMAT csv, HEADER true",
}

_CHOSEN: Final = """
CREATE TEMP TABLE chosen_run_id AS SELECT unnest($run_ids::INTEGER[]) AS run_id;
CREATE TEMP TABLE chosen_workload_id AS
    SELECT DISTINCT r.workload_id FROM run AS r SEMI JOIN chosen_run_id USING (run_id);
CREATE TEMP TABLE chosen_calibration_digest AS
    SELECT DISTINCT r.calibration_digest FROM run AS r SEMI JOIN chosen_run_id USING (run_id);
CREATE TEMP TABLE chosen_hardware_digest AS
    SELECT r.hardware_digest FROM run AS r SEMI JOIN chosen_run_id USING (run_id)
    UNION
    SELECT c.hardware_digest FROM calibration AS c SEMI JOIN chosen_calibration_digest USING (calibration_digest);
CREATE TEMP TABLE chosen_action_id AS
    SELECT DISTINCT e.action_id FROM energy_per_action AS e SEMI JOIN chosen_hardware_digest USING (hardware_digest);
"""


def write_tables(connection: Connection, folder: Path, run_ids: Sequence[int]) -> dict[str, Entry]:
    """Write all that these runs consist of, a Parquet file for each table, rows in stored order."""
    _choose(connection, run_ids)
    return {
        table: _copy(
            connection,
            folder / f"{table}.parquet",
            "parquet",
            columns := _columns(connection, table),
            f"SELECT {_list(columns)} FROM {table} WHERE {key} IN (SELECT {key} FROM chosen_{key}) ORDER BY rowid",
        )
        for table, key in KEYS.items()
    }


def write_views(connection: Connection, folder: Path, run_ids: Sequence[int], form: str) -> dict[str, Entry]:
    """Write the rows of the promised views that belong to these runs, as `json` or `csv`.

    Numbers that are not finite become null.
    """
    _choose(connection, run_ids)
    entries = {}
    for view, key in VIEW_KEYS.items():
        columns = _columns(connection, view)
        shown = ", ".join(
            f"CASE WHEN isfinite({name}) THEN {name} END AS {name}" if kind == "DOUBLE" else name
            for name, kind in columns.items()
        )
        chosen = connection.execute(f"SELECT {key} FROM chosen_{key} ORDER BY {key}").fetchall()
        literals = ", ".join(quote_text(value) if isinstance(value, str) else str(value) for (value,) in chosen)
        rows = f"{key} IN ({literals})" if literals else "FALSE"
        statement = f"SELECT {shown} FROM {view} WHERE {rows} ORDER BY ALL"
        entries[view] = _copy(connection, folder / f"{view}.{form}", form, columns, statement)
    return entries


def _choose(connection: Connection, run_ids: Sequence[int]) -> None:
    first, rest = _CHOSEN.strip().split(";", 1)
    connection.execute(first, {"run_ids": list(run_ids)})
    connection.execute(rest)


def _columns(connection: Connection, table: str) -> dict[str, str]:
    rows = connection.execute(f"DESCRIBE {table}").fetchall()
    return {quote_name(str(name)): str(kind) for name, kind, *_ in rows}


def _list(columns: Mapping[str, str]) -> str:
    return ", ".join(columns)


def _copy(connection: Connection, file: Path, form: str, columns: Mapping[str, str], statement: str) -> Entry:
    try:
        ((count,),) = connection.execute(f"COPY ({statement}) TO {quote_text(str(file))} ({OPTIONS[form]})").fetchall()
    except duckdb.IOException as error:
        raise OSError(str(error).splitlines()[0]) from error
    return Entry(
        rows=int(count),
        columns={name.strip('"'): kind for name, kind in columns.items()},
        digest=digest_file(file),
    )
