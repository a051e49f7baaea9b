"""Shipped workloads: written by `make zoo`, and read into a database on first use.

A shipped workload is a trace at batch 1 with the growth of each number over the batch. Costs are affine in the batch
for most models: with v1 and v2 traced at batches 1 and 2 and e = v2 - 2 v1,

    v(b) = v1 + (v2 - v1) (b - 1) = v1 b + e (b - 1)

e is 0 for a proportional number and -v1 for a constant one, so it compresses to almost nothing. Affine growth is
checked: a third trace at `PROOF_BATCH` must agree in every number of every table. A model that runs other operators at
batch 1, where a copy is a view, ships twice: at batch 1, and for larger batches by traces at 2, 3 and `PROOF_BATCH`
with v1 = 2 v2 - v3. If these disagree too, it is traced for any batch but 1.

Models repeat each other's blocks, so files are small if repeated blocks become repeated bytes. Therefore row numbers
are not stored, references to rows are differences from the previous row, and names omit their module path. Most columns
have no dictionary. Many models are compressed together, and models with the same modules are adjacent.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

import attrs

from joulemap.domain.catalogue import ShippedWorkload
from joulemap.physics.workload import OPERATOR_COUNTS
from joulemap.store.connection import Connection
from joulemap.store.digest import WORKLOAD, Digester
from joulemap.store.literal import execute, quote_text
from joulemap.store.row import next_id, utc_now
from joulemap.store.workload import read_shape
from joulemap.system.record import frozen

PROOF_BATCH: Final = 5
SECOND_BATCH: Final = 3

ABOVE: Final = " from batch 2"
"""Suffix of the stored name of a workload that applies to batches from 2 on."""

FIXED: Final = ("tap_count", "step_count", "run_count")
"""Operator counts that do not depend on the batch."""

GROWING: Final = {
    "workload_operator": tuple(name for name in OPERATOR_COUNTS if name not in FIXED),
    "workload_tensor": ("byte_count",),
    "workload_access": ("byte_count", "fused_byte_count"),
    "workload_buffer": ("byte_count",),
    "workload_edge": (),
    "workload_subgraph": (),
}
"""Table -> number columns that may depend on the batch."""

SHAPES: Final = {"workload_operator": "output_shape", "workload_tensor": "shape"}
"""Table -> column that contains a shape as text."""

ROW: Final = {
    "workload_operator": "operator_index",
    "workload_tensor": "tensor_index",
    "workload_access": "access_index",
    "workload_buffer": "buffer_index",
    "workload_edge": "edge_index",
    "workload_subgraph": "subgraph_index",
}
"""Table -> column with the row's number within its workload, from 0."""

STEPS: Final = {
    "workload_operator": ("subgraph_index",),
    "workload_tensor": ("producer_index", "buffer_index"),
    "workload_access": ("operator_index", "tensor_index"),
    "workload_buffer": ("birth_index", "death_index", "release_index"),
    "workload_edge": ("producer_index", "consumer_index", "tensor_index"),
    "workload_subgraph": (),
}
"""Table -> columns that refer to other rows, stored as differences from the previous value that is not NULL."""

DERIVED: Final = {("workload_access", "fused_byte_count"): "byte_count"}
"""(table, column that may be NULL in the file) -> column from which its value is then taken."""

DICTIONARY: Final = (
    "model", "kind", "dtype", "role", "scalars", "variant", "tap_count", "gemm_k", "gemm_k_excess", "gemm_groups",
    "gemm_groups_excess", "gemm_m_excess", "mac_count_excess", "elementwise_count_excess", "special_count_excess",
    "output_element_count_excess", "output_shape_growth", "shape_growth", "operator_index", "consumer_index",
    "item_bytes", "fused_byte_count", "fused_byte_count_excess", "step_count", "run_count",
)  # fmt: skip
"""Columns with few distinct values, which are read faster with dictionary encoding."""

ROW_GROUP: Final = 262_144
"""Rows per Parquet row group. Larger groups make smaller files; reading one model takes 27 ms, or 34 ms with a quarter
of the rows.
"""


@frozen
class Shipped:
    """Request for a shipped workload at a batch size, with the key that it gets in the database."""

    model: str
    batch: int
    workload_key: str
    input_spec: str = ""


def read_shipped(connection: Connection, folder: Path, wanted: Sequence[Shipped]) -> list[int]:
    """Copy shipped workloads into the database and return their ids. The caller holds the transaction.

    Reading many at once takes little longer than one, because data that were compressed together are read once.
    """
    first = next_id(connection, "workload", "workload_id")
    above = _find_above(connection, folder, wanted)
    stored = [one.model + ABOVE * (one.batch > 1 and one.model in above) for one in wanted]
    ids = list(range(first, first + len(wanted)))
    values = {
        "models": [one.model for one in wanted],
        "batches": [one.batch for one in wanted],
        "ids": ids,
        "keys": [one.workload_key for one in wanted],
        "specs": [one.input_spec for one in wanted],
        "shapes": [read_shape(one.input_spec, one.batch) for one in wanted],
    }
    execute(
        connection,
        "INSERT INTO internal.workload "
        "SELECT workload_id, workload_key, model, source, input_spec, input_shape, batch, 1, "
        "parameter_count, weight_bytes, work, torch_version, torchvision_version, tracer_version, notes, $now, '', "
        "MAP {} "
        "FROM read_parquet($path) JOIN (SELECT unnest($models) AS model, unnest($batches) AS batch, "
        "unnest($ids) AS workload_id, unnest($keys) AS workload_key, unnest($specs) AS input_spec, "
        "unnest($shapes) AS input_shape) USING (model) ORDER BY workload_id",
        {**values, "now": utc_now(), "path": str(folder / "workload.parquet")},
    )
    models = ", ".join(map(quote_text, dict.fromkeys(stored)))
    values["models"] = stored
    for table, growing in GROWING.items():
        described = connection.execute(f"FROM internal.{table} LIMIT 0").description or ()
        picked = [_restored(table, str(column[0]), growing) for column in described]
        execute(
            connection,
            f"INSERT INTO internal.{table} SELECT {', '.join(picked)} FROM "
            f"(FROM read_parquet($path, file_row_number = TRUE) WHERE model IN ({models})) JOIN "
            "(SELECT unnest($models) AS model, unnest($batches) AS batch, unnest($ids) AS workload_id) USING (model) "
            "WINDOW rows AS (PARTITION BY workload_id ORDER BY file_row_number "
            "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) ORDER BY workload_id, file_row_number",
            {**values, "path": str(folder / f"{table}.parquet")},
        )
    Digester(connection).seal(WORKLOAD, ids)
    return ids


def _find_above(connection: Connection, folder: Path, wanted: Sequence[Shipped]) -> set[str]:
    """Return the models whose workload for batches from 2 on is stored separately."""
    if all(one.batch == 1 for one in wanted):
        return set()
    rows = execute(
        connection,
        "SELECT model FROM read_parquet($path) WHERE is_affine_above",
        {"path": str(folder / "workload.parquet")},
    ).fetchall()
    return {str(model) for (model,) in rows}


def _restored(table: str, column: str, growing: tuple[str, ...]) -> str:
    """Return SQL that computes a database column at the requested batch from the stored columns."""
    if column == ROW[table]:
        return "row_number() OVER rows - 1"
    if column in STEPS[table]:
        return f"CASE WHEN {column} IS NOT NULL THEN sum({column}) OVER rows END"
    if (table, column) in DERIVED:
        return f"coalesce({_grown(column)}, {_grown(DERIVED[table, column])})"
    if column in growing:
        return _grown(column)
    if SHAPES.get(table) == column:
        return (
            f"CASE WHEN batch = 1 OR {column}_growth IS NULL THEN {column} ELSE array_to_string(list_transform("
            f"list_zip({_sizes(column)}, {_sizes(column + '_growth')}), "
            "lambda pair: pair[1] + pair[2] * (batch - 1)), 'x') END"
        )
    if (table, column) == ("workload_operator", "name"):
        return "concat(module_path, name)"
    return column


def _grown(column: str) -> str:
    return f"{column} * batch + {column}_excess * (batch - 1)"


def _sizes(shape: str) -> str:
    # TRY_CAST: the engine may evaluate this for rows that the surrounding CASE excludes, including empty texts
    return f"TRY_CAST(string_split(nullif({shape}, ''), 'x') AS BIGINT[])"


def list_operators(connection: Connection) -> dict[str, set[str]]:
    """Return model -> operators in its workloads of a database, such as `aten.conv2d`."""
    rows = connection.execute(
        "SELECT w.model, list(DISTINCT regexp_extract(o.aten, '^[^.]*[.][^.]*')) FROM internal.workload AS w "
        "JOIN internal.workload_operator AS o USING (workload_id) GROUP BY w.model"
    ).fetchall()
    return {str(model): set(operators) for model, operators in rows}


def read_operators(folder: Path) -> dict[str, frozenset[str]]:
    """Return model -> operators whose formulas its shipped workloads depend on."""
    import duckdb

    rows = duckdb.execute(
        "SELECT model, operators FROM read_parquet($path)", {"path": str(folder / "workload.parquet")}
    ).fetchall()
    return {str(model): frozenset(operators) for model, operators in rows}


def write_shipped(
    connection: Connection, folder: Path, asked: Mapping[str, Collection[str]], version: Callable[[Iterable[str]], str]
) -> tuple[ShippedWorkload, ...]:
    """Write the workloads of a database, with each model at its traced batches, to a folder of files. Return what was
    written.

    Models traced at batch 1 only, or whose third trace disagrees, are written without growth. A workload depends on the
    formulas of its operators and of those in `asked` (model -> operators); `version` returns its version from them.
    """
    operators = list_operators(connection)
    for model, more in asked.items():
        operators.setdefault(model, set()).update(more)
    connection.execute("CREATE OR REPLACE TEMP TABLE dependence (model VARCHAR, operators VARCHAR[], version VARCHAR)")
    dependences = [(model, sorted(own), version(own)) for model, own in sorted(operators.items())]
    connection.executemany("INSERT INTO dependence VALUES (?, ?, ?)", dependences)
    traced = {"one": 1, "two": 2, "three": SECOND_BATCH, "proof": PROOF_BATCH}
    ids = ", ".join(f"max(workload_id) FILTER (WHERE batch = {batch}) AS {name}" for name, batch in traced.items())
    connection.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE chosen AS
        WITH traced AS (SELECT model, {ids} FROM internal.workload GROUP BY model HAVING one IS NOT NULL)
        SELECT model, model AS stored, one, two, proof, {PROOF_BATCH - 1} AS steps, TRUE AS is_affine,
            FALSE AS is_above, '' AS kin
        FROM traced
        UNION ALL
        SELECT model, model || '{ABOVE}', two, three, proof, {PROOF_BATCH - 2}, TRUE, TRUE, ''
        FROM traced
        WHERE two IS NOT NULL AND three IS NOT NULL
        """
    )
    connection.execute(
        "UPDATE chosen SET kin = (SELECT string_agg(DISTINCT module_path, ' ' ORDER BY module_path) "
        "FROM internal.workload_operator WHERE workload_id = one)"
    )
    connection.execute("UPDATE chosen SET is_affine = FALSE WHERE two IS NULL OR proof IS NULL")
    for table in GROWING:
        connection.execute(
            "UPDATE chosen SET is_affine = FALSE "
            f"WHERE stored IN (SELECT stored FROM ({_disagreement(connection, table)}))"
        )
    connection.execute(
        "DELETE FROM chosen WHERE is_above AND (NOT is_affine "
        "OR model IN (SELECT model FROM chosen WHERE is_affine AND NOT is_above))"
    )
    folder.mkdir(parents=True, exist_ok=True)
    for table in GROWING:
        _copy(connection, _shipped_rows(connection, table), folder / f"{table}.parquet")
    has_above = "c.model IN (SELECT model FROM chosen WHERE is_above) AS is_affine_above"
    _copy(
        connection,
        "SELECT w.model, w.source, w.parameter_count, w.weight_bytes, w.work, w.torch_version, "
        f"w.torchvision_version, d.version AS tracer_version, d.operators, w.notes, {has_above} "
        "FROM chosen AS c JOIN internal.workload AS w ON w.workload_id = c.one "
        "JOIN dependence AS d ON d.model = c.model WHERE NOT c.is_above "
        "ORDER BY w.model",
        folder / "workload.parquet",
    )
    rows = connection.execute(
        "SELECT w.model, c.is_affine, w.parameter_count, "
        "CAST(coalesce(sum(o.mac_count) FILTER (WHERE NOT o.is_foldable), 0) AS BIGINT), "
        f"w.torch_version, w.torchvision_version, d.version, {has_above} "
        "FROM chosen AS c JOIN internal.workload AS w ON w.workload_id = c.one "
        "JOIN dependence AS d ON d.model = c.model "
        "JOIN internal.workload_operator AS o ON o.workload_id = c.one WHERE NOT c.is_above "
        "GROUP BY ALL ORDER BY w.model"
    ).fetchall()
    names = [field.name for field in attrs.fields(ShippedWorkload)]
    return tuple(ShippedWorkload(**dict(zip(names, row, strict=True))) for row in rows)


def _copy(connection: Connection, query: str, path: Path) -> None:
    import pyarrow.parquet

    rows = connection.sql(query).to_arrow_table()
    pyarrow.parquet.write_table(
        rows,
        path,
        row_group_size=ROW_GROUP,
        compression="brotli",
        compression_level=11,
        use_dictionary=[name for name in rows.column_names if name in DICTIONARY],
        write_statistics=["model"],
    )


def _fixed(connection: Connection, table: str) -> list[str]:
    """Return the columns of a table that must be equal at all batches."""
    varying = {"workload_id", SHAPES.get(table), *GROWING[table]}
    columns = [str(row[0]) for row in connection.execute(f"DESCRIBE internal.{table}").fetchall()]
    return [column for column in columns if column not in varying]


def _shipped_rows(connection: Connection, table: str) -> str:
    """Return SQL that converts a table's rows to the stored form; `_restored` is its inverse."""
    row = ROW[table]
    picked = []
    for column in _fixed(connection, table):
        if column in STEPS[table]:
            picked.append(f"a.{column} - coalesce(last_value(a.{column} IGNORE NULLS) OVER before, 0) AS {column}")
        elif (table, column) == ("workload_operator", "name"):
            rest = "substr(a.name, len(a.module_path) + 1)"
            wrong = "error(concat(a.name, ' does not start with its module path'))"
            picked.append(f"if(starts_with(a.name, a.module_path), {rest}, {wrong}) AS name")
        elif column != row:
            picked.append(f"a.{column}")
    for column in GROWING[table]:
        beside = DERIVED.get((table, column))
        same = f"a.{beside} = a.{column} AND (b.{beside} = b.{column} OR NOT c.is_affine)" if beside else "FALSE"
        one = f"CASE WHEN c.is_above THEN 2 * a.{column} - b.{column} ELSE a.{column} END"
        excess = (
            f"CASE WHEN c.is_above THEN 2 * b.{column} - 3 * a.{column} "
            f"WHEN c.is_affine THEN b.{column} - 2 * a.{column} ELSE 0 END"
        )
        picked += [
            f"CASE WHEN {same} THEN NULL ELSE {one} END AS {column}",
            f"CASE WHEN {same} THEN NULL ELSE {excess} END AS {column}_excess",
        ]
    if table in SHAPES:
        column = SHAPES[table]
        first, second = _sizes(f"a.{column}"), _sizes(f"b.{column}")
        pairs = f"list_zip({first}, {second})"
        picked += [
            f"CASE WHEN c.is_above AND a.{column} <> b.{column} THEN array_to_string(list_transform({pairs}, "
            f"lambda pair: 2 * pair[1] - pair[2]), 'x') ELSE a.{column} END AS {column}",
            f"CASE WHEN c.is_affine AND a.{column} <> b.{column} THEN array_to_string(list_transform("
            f"{pairs}, lambda pair: pair[2] - pair[1]), 'x') END AS {column}_growth",
        ]
    return (
        f"SELECT c.stored AS model, {', '.join(picked)} FROM chosen AS c "
        f"JOIN internal.{table} AS a ON a.workload_id = c.one LEFT JOIN internal.{table} AS b ON b.workload_id = c.two "
        f"AND b.{row} = a.{row} WINDOW before AS (PARTITION BY c.stored "
        f"ORDER BY a.{row} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) ORDER BY c.kin, c.stored, a.{row}"
    )


def _disagreement(connection: Connection, table: str) -> str:
    """Return SQL for the models whose numbers at three batches are not affine in this table."""

    def side(alias: str, which: str) -> str:
        joined = f"chosen AS c JOIN internal.{table} AS t ON t.workload_id = c.{which}"
        return f"(SELECT c.stored, c.steps, t.* FROM {joined}) AS {alias}"

    keys = f"stored, {ROW[table]}"
    other = [f"a.{column} IS DISTINCT FROM {x}.{column}" for column in _fixed(connection, table) for x in "bp"]
    other += [
        f"p.{column} IS DISTINCT FROM a.{column} + (b.{column} - a.{column}) * a.steps" for column in GROWING[table]
    ]
    if table in SHAPES:
        shapes = ", ".join(_sizes(f"{alias}.{SHAPES[table]}") for alias in "abp")
        other.append(
            f"len(list_filter(list_zip({shapes}), lambda size: size[3] IS DISTINCT FROM "
            "size[1] + (size[2] - size[1]) * a.steps)) > 0"
        )
    return (
        f"SELECT DISTINCT coalesce(a.stored, b.stored, p.stored) AS stored FROM {side('a', 'one')} "
        f"FULL JOIN {side('b', 'two')} USING ({keys}) FULL JOIN {side('p', 'proof')} USING ({keys}) "
        f"WHERE a.workload_id IS NULL OR b.workload_id IS NULL OR p.workload_id IS NULL OR {' OR '.join(other)}"
    )
