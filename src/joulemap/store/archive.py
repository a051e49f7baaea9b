"""Export of stored runs to a folder of files (an archive), and import of such folders.

An archive is first read into a temporary database at the archive's schema version. New runs are then merged into
another database.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

import duckdb

from joulemap.physics.record.workload import WorkloadKey
from joulemap.store.connection import Connection, as_file_error, is_full, is_internal, transaction
from joulemap.store.digest import CALIBRATION, HARDWARE, RUN, WORKLOAD, Digester
from joulemap.store.engine import connect
from joulemap.store.literal import execute, quote_name, quote_text
from joulemap.store.manifest import KEYS
from joulemap.store.migration import migrate
from joulemap.store.run import mark_newest
from joulemap.store.shard import name_shard
from joulemap.store.total import add_up, drop_sums, mark_detailed, write_ledger_actions
from joulemap.store.workload import SHIPPED
from joulemap.system.errors import CatalogueError

ACTION: Final = "architecture, category, common_category, component, action, part, per"
"""Columns that identify an energy action."""

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
"""View -> column by which the rows of exported runs are selected."""

PARTS: Final = ("run_subgraph", "run_operator", "ledger_line")
"""Tables with the energy ledger of a run."""

SUMMED: Final = ("latency_fs", "interval_fs", "energy_fj", "mac_count")
"""Totals of a run that must equal the sums of its ledger."""

OPTIONS: Final[Mapping[str, str]] = {
    "parquet": "FORMAT parquet, COMPRESSION zstd",
    "json": "FORMAT json, ARRAY true",
    "csv": "FORMAT csv, HEADER true",
}

_CHOSEN: Final = """
CREATE TEMP TABLE chosen_run_id AS SELECT unnest($run_ids::INTEGER[]) AS run_id;
CREATE TEMP TABLE chosen_workload_id AS
    SELECT DISTINCT r.workload_id FROM internal.run AS r SEMI JOIN chosen_run_id USING (run_id);
CREATE TEMP TABLE chosen_calibration_digest AS
    SELECT DISTINCT r.calibration_digest FROM internal.run AS r SEMI JOIN chosen_run_id USING (run_id);
CREATE TEMP TABLE chosen_hardware_digest AS
    SELECT r.hardware_digest FROM internal.run AS r SEMI JOIN chosen_run_id USING (run_id)
    UNION
    SELECT c.hardware_digest
    FROM internal.calibration AS c
    SEMI JOIN chosen_calibration_digest USING (calibration_digest)
    UNION
    SELECT v.described_digest
    FROM internal.hardware_version AS v
    JOIN internal.run AS r ON r.hardware_digest = v.hardware_digest
    SEMI JOIN chosen_run_id AS c ON c.run_id = r.run_id
    WHERE v.described_digest <> '';
CREATE TEMP TABLE chosen_action_id AS
    SELECT DISTINCT e.action_id
    FROM internal.energy_per_action AS e
    SEMI JOIN chosen_hardware_digest USING (hardware_digest);
"""


def write_tables(connection: Connection, folder: Path, run_ids: Sequence[int]) -> dict[str, dict[str, str]]:
    """Write all stored data of these runs to shards, one per table, with rows in stored order.

    Returns file -> its columns, as name -> type.
    """
    _choose(connection, run_ids)
    files = {}
    for table, key in KEYS.items():
        columns = _columns(connection, f"internal.{table}")
        rows = f"FROM internal.{table} WHERE {key} IN (SELECT {key} FROM chosen_{key}) ORDER BY rowid"
        file = _copy(connection, folder / table, "parquet", f"SELECT {_list(columns)} {rows}")
        files[name_shard(file, table).name] = columns
    return files


def write_views(connection: Connection, folder: Path, run_ids: Sequence[int], form: str) -> dict[str, dict[str, str]]:
    """Write the rows of the stable views that belong to these runs as `json` or `csv`. Return file -> its columns.

    Non-finite numbers become null.
    """
    _choose(connection, run_ids)
    files = {}
    for view, key in VIEW_KEYS.items():
        columns = _columns(connection, view)
        shown = ", ".join(
            f"CASE WHEN isfinite({name}) THEN {name} END AS {name}" if kind == "DOUBLE" else name
            for name, kind in zip(map(quote_name, columns), columns.values(), strict=True)
        )
        chosen = connection.execute(f"SELECT {key} FROM chosen_{key} ORDER BY {key}").fetchall()
        literals = ", ".join(quote_text(value) if isinstance(value, str) else str(value) for (value,) in chosen)
        rows = f"{key} IN ({literals})" if literals else "FALSE"
        statement = f"SELECT {shown} FROM {view} WHERE {rows} ORDER BY ALL"
        files[_copy(connection, folder / f"{view}.{form}", form, statement).name] = columns
    return files


def _choose(connection: Connection, run_ids: Sequence[int]) -> None:
    first, rest = _CHOSEN.strip().split(";", 1)
    execute(connection, first, {"run_ids": list(run_ids)})
    connection.execute(rest)


def _columns(connection: Connection, table: str) -> dict[str, str]:
    rows = connection.execute(f"DESCRIBE {table}").fetchall()
    return {str(name): str(kind) for name, kind, *_ in rows}


def _list(columns: Iterable[str]) -> str:
    return ", ".join(map(quote_name, columns))


def _copy(connection: Connection, file: Path, form: str, statement: str) -> Path:
    """Write the rows of a statement to a file and return the file."""
    try:
        connection.execute(f"COPY ({statement}) TO {quote_text(str(file))} ({OPTIONS[form]})")
    except duckdb.IOException as error:
        raise as_file_error(error) from error
    return file


def read_tables(folder: Path, schema_version: int, files: Mapping[str, Path], path: Path) -> Connection:
    """Return a connection to a new database at `path` that contains an archive's tables, migrated to the current
    schema.

    `files` has the file of each table, at `schema_version`.

    Raises CatalogueError, naming the file, for columns that differ from the schema, or rows that violate its checks.
    """
    connection = connect(path)
    try:
        migrate(connection, schema_version, has_comments=False)
        tables = {str(name) for (name,) in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()}
        missing = sorted((tables & set(KEYS)) - set(files))
        surplus = sorted(set(files) - tables)
        if missing or surplus:
            what = f"lacks {', '.join(missing)}" if missing else f"has {', '.join(surplus)}, later than its schema"
            raise CatalogueError(f"{folder} is incomplete: it {what}")
        for table, file in files.items():
            try:
                _load(connection, table, file)
            except duckdb.Error as error:
                if is_full(error) or is_internal(error):
                    raise
                raise CatalogueError(f"{file} is damaged: {str(error).splitlines()[0]}") from error
        migrate(connection, has_comments=False)
        _check_names(connection, folder)
        try:
            add_up(connection)
        except duckdb.Error as error:
            if is_full(error) or is_internal(error):
                raise
            raise CatalogueError(
                f"{folder} is damaged: its runs do not add up: {str(error).splitlines()[0]}"
            ) from error
        mark_newest(connection)  # the archive may hold only some runs of a configuration
    except BaseException:
        connection.close()
        raise
    return connection


def _check_names(connection: Connection, folder: Path) -> None:
    """Raise CatalogueError if a workload's key does not match the name of its model.

    Without this check, an archive could assign its runs to another model.
    """
    fields = ("source", "input_spec", "torch_version", "torchvision_version", "tracer_version")
    rows = connection.execute(
        f"SELECT model, workload_key, {', '.join(fields)} FROM internal.workload ORDER BY workload_id"
    )
    for model, stored, *values in rows.fetchall():
        key = WorkloadKey(**dict(zip(fields, values, strict=True)))
        if stored.removeprefix(SHIPPED) != key.digest or not _is_of(model, key):
            raise CatalogueError(f"{folder} is damaged: a workload of {model!r} has the key of {key.source!r}")


def _is_of(model: str, key: WorkloadKey) -> bool:
    """Return whether the source in a workload key matches this model name."""
    kind, _, rest = key.source.partition(":")
    is_closed = not key.torch_version
    if kind == "module":
        return rest.startswith(model.rpartition("#")[2])
    if is_closed and kind != "operator":
        rest = rest.partition(":")[2]
    if is_closed:
        model = re.sub("[(,]", " ", model.removesuffix(")"))
    elif kind in ("file", "exported"):
        model, rest = os.path.normpath(model), rest.partition(":")[2]
    elif model.startswith(f"{kind}:"):  # a model of a library has its prefix
        rest = key.source
    return rest.startswith(model) and rest[len(model) : len(model) + 1] in ("", "(", "@", " ")


def _load(connection: Connection, table: str, file: Path) -> None:
    source = f"read_parquet({quote_text(str(file))})"
    columns = _columns(connection, f"FROM {source}")
    expected = _columns(connection, f"internal.{table}")
    if set(columns) != set(expected):
        raise CatalogueError(f"{file} has the columns {', '.join(columns)}; expected {', '.join(expected)}")
    names = _list(expected)
    connection.execute(f"INSERT INTO internal.{table} ({names}) SELECT {names} FROM {source}")


def merge_archive(connection: Connection, path: Path) -> tuple[int, int]:
    """Merge the new runs of the database at `path` into this one, with all data on which they depend.

    Returns (runs that are new or get a ledger, runs already stored). A run stored here as totals gets its ledger and
    keeps its id. Rows with a known key or digest are not stored again, and other rows get new ids. The merge is one
    transaction. Raises CatalogueError for a ledger that does not add up to the stored totals.
    """
    databases = {str(name) for (name,) in connection.execute("SELECT database_name FROM duckdb_databases()").fetchall()}
    archive = next(name for name in ("archive", "other_archive") if name not in databases)
    connection.execute(f"ATTACH {quote_text(str(path))} AS {archive} (READ_ONLY)")
    try:
        with transaction(connection):
            _number(connection, archive, "action", "action_id", ACTION)
            _number(connection, archive, "workload", "workload_id", "workload_key")
            _number(connection, archive, "run", "run_id", "run_key")
            for key, table in (("hardware_digest", "hardware_version"), ("calibration_digest", "calibration")):
                connection.execute(
                    f"CREATE TEMP TABLE fresh_{key} AS SELECT {key} FROM {archive}.internal.{table} "
                    f"WHERE {key} NOT IN (SELECT {key} FROM internal.{table})"
                )
            _find_detailed(connection, archive)
            for table, key in KEYS.items():
                _insert(connection, archive, table, key)
            ((first,),) = connection.execute("SELECT min(new) FROM new_run_id WHERE is_fresh").fetchall()
            if first is not None:
                add_up(connection, first)
            _enlarge_sets(connection)
            _add_ledgers(connection, archive)
            mark_newest(connection)
            counts = connection.execute(
                "SELECT count(*) FILTER (WHERE is_fresh OR new IN (FROM detailed_run_id)), count(*) FROM new_run_id"
            ).fetchall()
    finally:
        connection.execute(f"DETACH {archive}")
    ((fresh, total),) = counts
    return int(fresh), int(total) - int(fresh)


def _find_detailed(connection: Connection, archive: str) -> None:
    """Create a temporary table of runs that are stored here as totals and in an archive with ledgers.

    Raises CatalogueError if their totals differ.
    """
    connection.execute(
        "CREATE TEMP TABLE detailed_run_id AS SELECT h.run_id FROM internal.run AS h "
        f"JOIN {archive}.internal.run AS a USING (run_key) "
        "WHERE a.has_ledger AND NOT h.has_ledger AND h.refusal IS NULL ORDER BY h.run_id"
    )
    unlike = connection.execute(
        "SELECT r.run_key FROM detailed_run_id AS d JOIN internal.run AS r USING (run_id) "
        "JOIN internal.run_total AS h USING (run_id) "
        f"JOIN {archive}.internal.run AS o ON o.run_key = r.run_key "
        f"JOIN {archive}.internal.run_total AS a ON a.run_id = o.run_id "
        "WHERE o.hardware_digest <> r.hardware_digest "
        f"OR {' OR '.join(f'a.{name} <> h.{name}' for name in SUMMED)} ORDER BY r.run_id LIMIT 1"
    ).fetchall()
    if unlike:
        raise CatalogueError(f"the ledger of run {unlike[0][0]} does not add up to the totals that are stored of it")


def _add_ledgers(connection: Connection, archive: str) -> None:
    """Mark runs stored as totals as runs with a ledger after their ledger rows were inserted; totals do not change."""
    ids = [int(run_id) for (run_id,) in connection.execute("FROM detailed_run_id").fetchall()]
    if not ids:
        return
    drop_sums(connection, ids)
    for run_id in ids:
        write_ledger_actions(connection, run_id, run_id)
    mark_detailed(
        connection,
        dict(
            connection.execute(
                "SELECT h.run_id, a.separate_clock_fraction FROM internal.run AS h "
                f"SEMI JOIN detailed_run_id USING (run_id) JOIN {archive}.internal.run AS a USING (run_key) ORDER BY 1"
            ).fetchall()
        ),
    )


def _enlarge_sets(connection: Connection) -> None:
    """Update the digests of record sets for the rows that a merge added."""
    digester = Digester(connection)
    for seal in (RUN, WORKLOAD, HARDWARE, CALIBRATION):
        is_numbered = seal.key.endswith("_id")
        fresh = f"SELECT new FROM new_{seal.key} WHERE is_fresh" if is_numbered else f"FROM fresh_{seal.key}"
        rows = connection.execute(
            f"SELECT content_digest FROM internal.{seal.table} WHERE {seal.key} IN ({fresh})"
        ).fetchall()
        digester.change_set(seal, [digest for (digest,) in rows])


def _number(connection: Connection, archive: str, table: str, id_column: str, identity: str) -> None:
    """Create a temporary table of archive id -> id here: that of an equal row, or the next free id for a fresh row."""
    connection.execute(
        f"CREATE TEMP TABLE new_{id_column} AS "
        f"SELECT a.{id_column} AS old, h.{id_column} IS NULL AS is_fresh, coalesce(h.{id_column}, "
        f"(SELECT coalesce(max({id_column}), 0) FROM internal.{table}) + row_number() OVER ("
        f"PARTITION BY h.{id_column} IS NULL ORDER BY a.{id_column} "
        f"ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)) AS new "
        f"FROM {archive}.internal.{table} AS a LEFT JOIN internal.{table} AS h USING ({identity})"
    )


def _insert(connection: Connection, archive: str, table: str, key: str) -> None:
    """Insert an archive's rows that belong to fresh keys, in order, with the ids that they have in this database."""
    columns = _columns(connection, f"internal.{table}")
    source = f"{archive}.internal.{table} AS t"
    values = {name: f"t.{quote_name(name)}" for name in columns}
    for name in columns:
        if name in ("action_id", "workload_id", "run_id"):
            values[name] = f"{name}_map.new"
            source += f" JOIN new_{name} AS {name}_map ON {name}_map.old = t.{name}"
    rows = f"{key}_map.is_fresh" if key.endswith("_id") else f"t.{key} IN (SELECT {key} FROM fresh_{key})"
    if table in PARTS:
        rows += f" OR {key}_map.new IN (FROM detailed_run_id)"
    connection.execute(
        f"INSERT INTO internal.{table} ({_list(columns)}) SELECT {', '.join(values.values())} "
        f"FROM {source} WHERE {rows} ORDER BY t.rowid"
    )
