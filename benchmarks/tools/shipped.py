"""Built-in workloads, written as files that predictions and databases read.

`bundle.workload` describes the packed form. Affine growth is checked: a third trace at `PROOF_BATCH` must agree in
every number of every table. A model that runs other operators at batch 1 is traced at 2, 3 and `PROOF_BATCH` too, with
v1 = 2 v2 - v3. If these disagree too, it is traced for any batch but 1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

import attrs
import numpy as np

from joulemap.bundle.pack import Column, Section, Texts, as_texts
from joulemap.bundle.workload import (
    ABOVE,
    DERIVED,
    FILE,
    GROWING,
    MADE,
    NAMES,
    NUMBERS,
    READ,
    ROW,
    SHAPES,
    STEPS,
    open_zoo,
)
from joulemap.domain.catalogue import ShippedWorkload
from joulemap.store.connection import Connection
from tools.packed import code_texts, write_pack

BLOCK_ROWS: Final = 60_000
"""Accesses of a block. A larger block makes a smaller file: half as many rows take 5 % more, and decode in 4 ms, not 8.
"""

PROOF_BATCH: Final = 5


SECOND_BATCH: Final = 3


def list_operators(connection: Connection) -> dict[str, set[str]]:
    """Return model -> operators in its workloads of a database, such as `aten.conv2d`."""
    rows = connection.execute(
        "SELECT w.model, list(DISTINCT regexp_extract(o.aten, '^[^.]*[.][^.]*')) FROM internal.workload AS w "
        "JOIN internal.workload_operator AS o USING (workload_id) GROUP BY w.model"
    ).fetchall()
    return {str(model): set(operators) for model, operators in rows}


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
    has_above = "c.model IN (SELECT model FROM chosen WHERE is_above) AS is_affine_above"
    models = _fetch(
        connection,
        "SELECT w.model, w.source, w.parameter_count, w.weight_bytes, w.work, w.torch_version, "
        "w.torchvision_version, d.version AS tracer_version, CAST(to_json(d.operators) AS VARCHAR) AS operators, "
        f"CAST(to_json(w.notes) AS VARCHAR) AS notes, c.is_affine, {has_above} "
        "FROM chosen AS c JOIN internal.workload AS w ON w.workload_id = c.one "
        "JOIN dependence AS d ON d.model = c.model WHERE NOT c.is_above "
        "ORDER BY w.model",
    )
    write_zoo(folder, models, {table: _fetch(connection, _shipped_rows(connection, table)) for table in GROWING})
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


def _fetch(connection: Connection, query: str) -> dict[str, Column]:
    """Return the columns of a query, to be packed."""
    columns = connection.execute(query).fetchnumpy()
    return {
        name: code_texts(column.tolist()) if column.dtype.kind == "O" else column for name, column in columns.items()
    }


def _sizes(shape: str) -> str:
    # TRY_CAST: the engine may evaluate this for rows that the surrounding CASE excludes, including empty texts
    return f"TRY_CAST(string_split(nullif({shape}, ''), 'x') AS BIGINT[])"


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


def write_zoo(folder: Path, models: Section, tables: Mapping[str, Section]) -> None:
    """Write built-in workloads to a folder.

    `models` are the columns of `Zoo.models`, with texts for lists. `tables` maps each table of `GROWING` to its stored
    columns and the column `model`, the stored name of the workload; rows of one name are adjacent, and every table has
    the names of the operators in the same order.
    """
    for table, made in MADE:
        shapes = as_texts(tables[table][SHAPES[table]])
        is_matrix = np.array(["x" in shape for shape in shapes.texts])[shapes.codes]
        tables = {**tables, table: {**tables[table], made: is_matrix}}
    names = list(dict.fromkeys(as_texts(tables["workload_operator"]["model"]).list()))
    counts = {table: _count_rows(as_texts(columns["model"]), names) for table, columns in tables.items()}
    block, filled, blocks = 0, 0, []
    for rows in counts["workload_access"]:
        if filled and filled + rows > BLOCK_ROWS:
            block, filled = block + 1, 0
        filled += rows
        blocks.append(block)
    sections: dict[str, Section] = {
        "workload": models,
        "index": {
            "model": code_texts(names),
            "block": np.array(blocks),
            **{table: np.array(each) for table, each in counts.items()},
        },
    }
    starts = dict.fromkeys(tables, 0)
    for number in range(block + 1):
        mine = [index for index, one in enumerate(blocks) if one == number]
        parts: dict[str, dict[str, Column]] = {NUMBERS: {}, NAMES: {}}
        for table, columns in tables.items():
            end = starts[table] + sum(counts[table][index] for index in mine)
            for name, column in columns.items():
                if name != "model":
                    parts[_find_part(table, name)][f"{table}.{name}"] = _cut(column, slice(starts[table], end))
            starts[table] = end
        sections |= {f"{number} {part}": columns for part, columns in parts.items()}
    write_pack(folder / FILE, sections)
    open_zoo.cache_clear()


def _count_rows(column: Texts, names: Sequence[str | None]) -> list[int]:
    """Return the rows of each stored workload; ValueError if they are not in the order of `names`."""
    listed = column.list()
    counts = Counter(listed)
    if listed != [name for name in names for _ in range(counts[name])]:
        raise ValueError("the rows of a table are not in the order of the operators")
    return [counts[name] for name in names]


def _find_part(table: str, column: str) -> str:
    read = column.removesuffix("_excess").removesuffix("_growth") in READ.get(table, ())
    return NUMBERS if read else NAMES


def _cut(column: Column, rows: slice) -> Column:
    """Return some rows of a column, without texts that they lack."""
    if not isinstance(column, Texts):
        return column[rows]
    return code_texts(column.take(rows).list())
