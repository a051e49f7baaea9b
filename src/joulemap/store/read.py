"""Rows to columns, and look-ups by key."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import attrs

from joulemap.store.connection import Connection

if TYPE_CHECKING:
    from joulemap.domain.measurement import Measurement
    from joulemap.model.workload import WorkloadColumns


def find_workload(connection: Connection, workload_key: str) -> int | None:
    """Return the id of the workload with this key, or None."""
    rows = connection.execute("SELECT workload_id FROM workload WHERE workload_key = ?", [workload_key]).fetchall()
    return int(rows[0][0]) if rows else None


def find_workloads(connection: Connection, workload_keys: Iterable[str]) -> dict[str, int]:
    """Return workload_key -> workload_id for those of the keys that are stored."""
    rows = connection.execute(
        "SELECT workload_key, workload_id FROM workload WHERE list_contains(?, workload_key)", [list(workload_keys)]
    ).fetchall()
    return {str(key): int(workload_id) for key, workload_id in rows}


def find_runs(connection: Connection, run_keys: Iterable[str]) -> dict[str, int]:
    """Return run_key -> run_id for those of the keys that are stored."""
    rows = connection.execute(
        "SELECT run_key, run_id FROM run WHERE list_contains(?, run_key)", [list(run_keys)]
    ).fetchall()
    return {str(key): int(run_id) for key, run_id in rows}


def find_runs_of(connection: Connection, workload_id: int) -> dict[str, int]:
    """Return run_key -> run_id for every stored run of a workload."""
    rows = connection.execute("SELECT run_key, run_id FROM run WHERE workload_id = ?", [workload_id]).fetchall()
    return {str(key): int(run_id) for key, run_id in rows}


def find_all_runs(connection: Connection) -> list[int]:
    """Return the id of every stored run."""
    return [int(run_id) for (run_id,) in connection.execute("SELECT run_id FROM run ORDER BY run_id").fetchall()]


def find_outcomes(connection: Connection, run_ids: Iterable[int]) -> dict[int, tuple[int, str | None]]:
    """Return run_id -> (batch, why it could not be evaluated or None), for those of the runs that are stored."""
    statement = "SELECT run_id, batch, refusal FROM run SEMI JOIN (SELECT unnest(?) AS run_id) USING (run_id)"
    rows = connection.execute(statement, [list(run_ids)]).fetchall()
    return {int(run_id): (int(batch), refusal) for run_id, batch, refusal in rows}


def find_projected_hardware(connection: Connection) -> frozenset[str]:
    """Return the ids of stored hardware whose key numbers are projections or estimates."""
    rows = connection.execute("SELECT DISTINCT hardware FROM hardware_version WHERE projection <> ''").fetchall()
    return frozenset(str(hardware) for (hardware,) in rows)


def find_configurations(connection: Connection, run_ids: Iterable[int]) -> tuple[tuple[str, ...], ...]:
    """Return the models, the precisions and the runtimes of stored runs, each name once."""
    statement = (
        "SELECT w.model, r.precision, r.runtime FROM run AS r JOIN workload AS w USING (workload_id) "
        "WHERE list_contains($ids, r.run_id) ORDER BY list_position($ids, r.run_id)"
    )
    rows = connection.execute(statement, {"ids": list(run_ids)}).fetchall()
    return tuple(tuple(dict.fromkeys(column)) for column in zip(*rows, strict=True))


def find_parameter_count(connection: Connection, run_id: int) -> int:
    """Return how many parameters the model of a stored run has."""
    statement = "SELECT w.parameter_count FROM run AS r JOIN workload AS w USING (workload_id) WHERE r.run_id = ?"
    return int(connection.execute(statement, [run_id]).fetchall()[0][0])


def has_measurement_on(connection: Connection, hardware: str) -> bool:
    """Return whether something measured on this hardware, an id, is stored."""
    statement = "SELECT EXISTS (FROM measurement WHERE hardware = ?)"
    return connection.execute(statement, [hardware]).fetchall() == [(True,)]


def read_measurements(connection: Connection) -> tuple[Measurement, ...]:
    """Return every stored measurement."""
    from joulemap.domain.measurement import Measurement

    fields = [field.name for field in attrs.fields(Measurement)]
    rows = connection.execute(f"SELECT {', '.join(fields)} FROM measurement ORDER BY measurement_id").fetchall()
    return tuple(Measurement(**dict(zip(fields, row, strict=True))) for row in rows)


def read_columns(connection: Connection, workload_id: int) -> WorkloadColumns:
    """Return a stored workload as columns."""
    import numpy as np

    from joulemap.domain.kind import KINDS, ROLES
    from joulemap.model.workload import OPERATOR_COUNTS, WorkloadColumns, number_calls

    batch, weight_bytes = connection.execute(
        "SELECT batch, weight_bytes FROM workload WHERE workload_id = ?", [workload_id]
    ).fetchall()[0]
    kinds = ", ".join(f"'{kind}'" for kind in KINDS)
    roles = ", ".join(f"'{role}'" for role in ROLES)
    counts = ", ".join(OPERATOR_COUNTS)
    operators = connection.execute(
        f"SELECT list_position([{kinds}], kind) - 1 AS kind, operation, aten, is_foldable, subgraph_index, {counts}, "
        "coalesce(try_cast(string_split(output_shape, 'x')[-1] AS DOUBLE), 1e0) AS row_length "
        "FROM workload_operator WHERE workload_id = ? ORDER BY operator_index",
        [workload_id],
    ).fetchnumpy()
    accesses = connection.execute(
        f"SELECT operator_index, list_position([{roles}], role) - 1 AS role, byte_count, fused_byte_count, "
        "item_bytes, is_boundary FROM workload_access WHERE workload_id = ? "
        "ORDER BY access_index",
        [workload_id],
    ).fetchnumpy()
    buffers = connection.execute(
        "SELECT birth_index, death_index, release_index, byte_count, item_bytes, is_hidden FROM workload_buffer "
        "WHERE workload_id = ? ORDER BY buffer_index",
        [workload_id],
    ).fetchnumpy()
    return WorkloadColumns(
        batch=int(batch),
        weight_bytes=int(weight_bytes),
        kind=operators["kind"].astype(np.int64),
        row_length=operators["row_length"].astype(np.float64),
        operation=operators["operation"].astype(np.str_),
        call_index=number_calls(operators["aten"].tolist()),
        is_foldable=operators["is_foldable"].astype(bool),
        subgraph_index=operators["subgraph_index"].astype(np.int64),
        access_operator=accesses["operator_index"].astype(np.int64),
        access_role=accesses["role"].astype(np.int64),
        access_bytes=accesses["byte_count"].astype(np.float64),
        access_fused_bytes=accesses["fused_byte_count"].astype(np.float64),
        access_item_bytes=accesses["item_bytes"].astype(np.float64),
        access_is_boundary=accesses["is_boundary"].astype(bool),
        buffer_birth=buffers["birth_index"].astype(np.int64),
        buffer_death=buffers["death_index"].astype(np.int64),
        buffer_release=buffers["release_index"].astype(np.int64),
        buffer_bytes=buffers["byte_count"].astype(np.float64),
        buffer_item_bytes=buffers["item_bytes"].astype(np.float64),
        buffer_is_hidden=buffers["is_hidden"].astype(bool),
        **{name: operators[name].astype(np.float64) for name in OPERATOR_COUNTS},
    )
