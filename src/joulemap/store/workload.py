"""Storage of workloads as rows, and reads of them as records or as columns for the formulas."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

import attrs

from joulemap.domain.sound import check_workload
from joulemap.store.connection import Connection
from joulemap.store.digest import WORKLOAD, Digester
from joulemap.store.insert import insert_records, next_id, utc_now
from joulemap.store.literal import execute

if TYPE_CHECKING:
    from joulemap.domain.measurement import TracedOperator
    from joulemap.physics.record.workload import Workload
    from joulemap.physics.workload import WorkloadColumns

SHIPPED: Final = "shipped:"
"""Prefix of a shipped workload's key, which distinguishes it from a workload traced on this machine."""

Part = TypeVar("Part", bound=attrs.AttrsInstance)


def find_workloads(connection: Connection, workload_keys: Iterable[str]) -> dict[str, int]:
    """Return workload_key -> workload_id of the stored workloads with these keys."""
    rows = execute(
        connection,
        "SELECT workload_key, workload_id FROM internal.workload WHERE list_contains(?, workload_key)",
        [list(workload_keys)],
    ).fetchall()
    return {str(key): int(workload_id) for key, workload_id in rows}


def count_operators(connection: Connection, workload_ids: Collection[int]) -> dict[int, int]:
    """Return id -> number of operators of stored workloads that have any."""
    rows = execute(
        connection,
        "SELECT workload_id, count(*) FROM internal.workload_operator "
        "WHERE workload_id IN (SELECT unnest(?)) GROUP BY workload_id",
        [list(workload_ids)],
    ).fetchall()
    return {int(workload_id): int(count) for workload_id, count in rows}


def read_work(connection: Connection, workload_id: int) -> str:
    """Return the kind of work of a stored workload, by which prediction errors are grouped."""
    (work,) = connection.execute(
        "SELECT work_of(model, work) FROM internal.workload WHERE workload_id = ?", [workload_id]
    ).fetchall()[0]
    return str(work)


def _shape_text(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape))


def read_shape(input_spec: str, batch: int) -> str:
    """Return the input shapes of one sample as text, e.g. `3x224x224`; empty for a model with its own inputs."""
    shapes = re.findall(r"(?:^| |=)(\d+(?:x\d+)*):", input_spec)
    return " ".join(_sample(shape, batch) for shape in shapes)


def _traced_shape(workload: Workload) -> str:
    inputs = (tensor.shape for tensor in workload.tensors if tensor.role == "input")
    return " ".join(_sample(_shape_text(shape), workload.batch) for shape in inputs)


def _sample(shape: str, batch: int) -> str:
    """Return a shape without its leading size, if that is the batch size."""
    first, separator, rest = shape.partition("x")
    return rest if separator and first == str(batch) else shape


def write_workloads(connection: Connection, several: Sequence[tuple[Workload, Mapping[str, str]]]) -> list[int]:
    """Store workloads whose keys are not stored yet, and return their ids.

    Each workload comes with the values of dimensions that wings declare. Storing many at once takes little longer than
    one, because a statement lists their common names once. Raises ModelError for a workload that breaks a rule of the
    database.
    """
    works = [workload for workload, _ in several]
    for workload in works:
        check_workload(workload)
    first = next_id(connection, "workload", "workload_id")
    ids = list(range(first, first + len(works)))
    insert_records(
        connection,
        "workload",
        works,
        workload_id=ids,
        workload_key=[one.key.digest for one in works],
        **{name: [getattr(one.key, name) for one in works] for name in attrs.fields_dict(type(works[0].key))},
        input_shape=[read_shape(one.key.input_spec, one.batch) or _traced_shape(one) for one in works],
        created_at=utc_now(),
        content_digest="",
        dimensions=[dict(sorted(dimensions.items())) for _, dimensions in several],
    )
    owners = [
        {operator: index for index, subgraph in enumerate(one.subgraphs) for operator in subgraph.operator_indices}
        for one in works
    ]
    columns: dict[str, dict[str, list[Any]]] = {
        "operator": {
            "subgraph_index": [owner[index] for owner in owners for index in range(len(owner))],
            "output_shape": [_shape_text(operator.output_shape) for one in works for operator in one.operators],
        },
        "tensor": {"shape": [_shape_text(tensor.shape) for one in works for tensor in one.tensors]},
        "subgraph": {},
        "access": {},
        "edge": {},
        "buffer": {},
        "finding": {},
    }
    for part, given in columns.items():
        records: list[Sequence[object]] = [
            getattr(one, "accesses" if part == "access" else f"{part}s") for one in works
        ]
        given["workload_id"] = [number for number, some in zip(ids, records, strict=True) for _ in some]
        given[f"{part}_index"] = [index for some in records for index in range(len(some))]
        insert_records(connection, f"workload_{part}", [one for some in records for one in some], **given)
    Digester(connection).seal(WORKLOAD, ids)
    return ids


def read_workload(connection: Connection, workload_id: int) -> Workload:
    """Return a stored workload as a record."""
    from joulemap.physics.record.workload import (
        Access,
        Buffer,
        Edge,
        Finding,
        Operator,
        Subgraph,
        Tensor,
        Workload,
        WorkloadKey,
    )

    (whole,) = _read_records(connection, "workload", workload_id)
    operators = _read_records(connection, "workload_operator", workload_id, "operator_index")
    subgraphs = _read_records(connection, "workload_subgraph", workload_id, "subgraph_index")
    members: dict[int, list[int]] = {}
    for index, row in enumerate(operators):
        members.setdefault(row["subgraph_index"], []).append(index)
    return Workload(
        **{
            field.name: whole[field.name]
            for field in attrs.fields(Workload)
            if field.name in whole and field.name != "notes"
        },
        key=_make(WorkloadKey, whole),
        notes=tuple(whole["notes"]),
        operators=tuple(_make(Operator, row, output_shape=_sizes(row["output_shape"])) for row in operators),
        tensors=tuple(
            _make(Tensor, row, shape=_sizes(row["shape"]))
            for row in _read_records(connection, "workload_tensor", workload_id, "tensor_index")
        ),
        accesses=_read_parts(connection, Access, workload_id),
        edges=_read_parts(connection, Edge, workload_id),
        buffers=_read_parts(connection, Buffer, workload_id),
        findings=_read_parts(connection, Finding, workload_id),
        subgraphs=tuple(
            _make(Subgraph, row, operator_indices=tuple(members.get(index, ()))) for index, row in enumerate(subgraphs)
        ),
    )


def read_notes(connection: Connection, workload_id: int) -> tuple[str, ...]:
    """Return the notes of a stored workload on assumptions of its trace."""
    row = execute(connection, "SELECT notes FROM internal.workload WHERE workload_id = ?", [workload_id]).fetchone()
    return () if row is None else tuple(row[0])


def _read_parts(connection: Connection, record: type[Part], workload_id: int) -> tuple[Part, ...]:
    part = record.__name__.lower()
    rows = _read_records(connection, f"workload_{part}", workload_id, f"{part}_index")
    return tuple(_make(record, row) for row in rows)


def _read_records(connection: Connection, table: str, workload_id: int, order: str = "") -> list[dict[str, Any]]:
    """Return the rows of a workload in a table, each as column -> value."""
    cursor = execute(
        connection, f"FROM internal.{table} WHERE workload_id = ?{f' ORDER BY {order}' if order else ''}", [workload_id]
    )
    names = [name for name, *_ in cursor.description or ()]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def _make(record: type[Part], row: Mapping[str, Any], **given: Any) -> Part:
    """Return a record whose fields come from `given`, or else from the columns of the same names."""
    names = [field.name for field in attrs.fields(record) if field.name not in given]
    return record(**{name: row[name] for name in names}, **given)


def find_work(connection: Connection, workload_id: int) -> tuple[str, float]:
    """Return (kind of work or operator, rows of its GEMMs) of a stored workload.

    The rows are the most frequent GEMM size M of its linear layers (tokens, for a language model); 0 without linear
    layers.
    """
    statement = """
        SELECT work_of(any_value(w.model), any_value(w.work)), coalesce(mode(o.gemm_m), 0)
        FROM internal.workload AS w
        LEFT JOIN internal.workload_operator AS o ON o.workload_id = w.workload_id AND o.operation = 'linear'
        WHERE w.workload_id = ?
    """
    work, rows = execute(connection, statement, [workload_id]).fetchall()[0]
    return str(work), float(rows)


def read_columns(connection: Connection, workload_id: int) -> WorkloadColumns:
    """Return a stored workload as arrays, one per column."""
    return read_all_columns(connection, [workload_id])[workload_id]


def read_all_columns(connection: Connection, workload_ids: Collection[int]) -> dict[int, WorkloadColumns]:
    """Return id -> stored workload as arrays, one per column. A table is read once for all workloads."""
    import numpy as np

    from joulemap.physics.record.kind import KINDS, ROLES
    from joulemap.physics.workload import OPERATOR_COUNTS, WorkloadColumns

    ids = sorted(set(workload_ids))
    own = f"workload_id IN ({', '.join(map(str, ids))})"

    def fetch(part: str, *columns: str, joined: str = "") -> list[dict[str, Any]]:
        """Return the columns of a part of each workload, in the order of `ids`."""
        fetched = connection.execute(
            f"SELECT workload_id, {', '.join(columns)} "
            f"FROM internal.workload_{part}{joined} WHERE {own} ORDER BY workload_id, {part}_index"
        ).fetchnumpy()
        owner = fetched.pop("workload_id")
        ends = zip(np.searchsorted(owner, ids, "left"), np.searchsorted(owner, ids, "right"), strict=True)
        return [{name: _plain(column[start:end]) for name, column in fetched.items()} for start, end in ends]

    totals = connection.execute(
        f"SELECT workload_id, batch, inner_batch, weight_bytes FROM internal.workload WHERE {own} ORDER BY workload_id"
    ).fetchall()
    operators = fetch(
        "operator",
        f"CAST(list_position({list(KINDS)}, kind) - 1 AS BIGINT) AS kind",
        "coalesce(try_cast(string_split(output_shape, 'x')[-1] AS DOUBLE), 1e0) AS row_length",
        "operation",
        "variant",
        "aten",
        "is_foldable",
        "scalars",
        "output_shape",
        "CAST(if(output_shape = '', 0, len(string_split(output_shape, 'x'))) AS BIGINT) AS rank",
        "CAST(subgraph_index AS BIGINT) AS subgraph_index",
        *(f"CAST({name} AS DOUBLE) AS {name}" for name in OPERATOR_COUNTS),
    )
    subgraphs = fetch("subgraph", "CAST(step_count AS DOUBLE) AS step_count")
    accesses = fetch(
        "access",
        "CAST(operator_index AS BIGINT) AS access_operator",
        "CAST(tensor_index AS BIGINT) AS access_tensor",
        "CAST(coalesce(buffer_index, -1) AS BIGINT) AS access_buffer",
        "CAST(coalesce(tensor_bytes, 0) AS DOUBLE) AS access_tensor_bytes",
        "coalesce(is_matrix, FALSE) AS access_is_matrix",
        f"CAST(list_position({list(ROLES)}, role) - 1 AS BIGINT) AS access_role",
        "CAST(byte_count AS DOUBLE) AS access_bytes",
        "CAST(fused_byte_count AS DOUBLE) AS access_fused_bytes",
        "CAST(item_bytes AS DOUBLE) AS access_item_bytes",
        "is_boundary AS access_is_boundary",
        joined=" LEFT JOIN (SELECT workload_id, tensor_index, buffer_index, byte_count AS tensor_bytes, "
        f"contains(shape, 'x') AS is_matrix FROM internal.workload_tensor WHERE {own}) AS t "
        "USING (workload_id, tensor_index)",
    )
    buffers = fetch(
        "buffer",
        *(f"CAST({name}_index AS BIGINT) AS buffer_{name}" for name in ("birth", "death", "release")),
        "CAST(byte_count AS DOUBLE) AS buffer_bytes",
        "CAST(item_bytes AS DOUBLE) AS buffer_item_bytes",
        "is_hidden AS buffer_is_hidden",
    )
    windows: dict[tuple[str, str], tuple[int, int]] = {}
    workloads: dict[int, WorkloadColumns] = {}
    for total, operator, subgraph, access, buffer in zip(totals, operators, subgraphs, accesses, buffers, strict=True):
        workload_id, batch, inner_batch, weight_bytes = total
        workloads[workload_id] = WorkloadColumns(
            batch=int(batch),
            inner_batch=int(inner_batch),
            weight_bytes=int(weight_bytes),
            kernel_step_count=subgraph["step_count"][operator["subgraph_index"]],
            **_convert_operators(operator, windows),
            **access,
            **buffer,
        )
    return workloads


def _plain(column: Any) -> Any:
    """Return a part of a column without the mask for NULL, if no value of the part is NULL."""
    import numpy as np

    return column.data if isinstance(column, np.ma.MaskedArray) and not np.any(column.mask) else column


def _convert_operators(columns: dict[str, Any], windows: dict[tuple[str, str], tuple[int, int]]) -> dict[str, Any]:
    """Return the columns of operators as formulas read them; `windows` caches (kernel, stride) by (scalars, shape)."""
    import numpy as np

    from joulemap.physics.record.compiler import is_single_output, read_window
    from joulemap.physics.workload import number_calls

    calls, scalars, shapes = (columns.pop(name).tolist() for name in ("aten", "scalars", "output_shape"))
    for key in set(zip(scalars, shapes, strict=True)) - windows.keys():
        windows[key] = read_window(key[0], is_single=is_single_output(_sizes(key[1])))
    sizes = np.array([windows[key] for key in zip(scalars, shapes, strict=True)], dtype=np.int64).reshape(-1, 2)
    texts = {name: columns[name].astype(np.str_) for name in ("operation", "variant")}
    return {**columns, **texts, "call_index": number_calls(calls), "kernel": sizes[:, 0], "stride": sizes[:, 1]}


def read_operators(connection: Connection, workload_id: int) -> tuple[TracedOperator, ...]:
    """Return the data that determine a stored workload's eager kernels, one record per operator in execution order."""
    from joulemap.domain.measurement import TracedOperator

    rows = execute(
        connection,
        """
        SELECT
            o.operator_index,
            s.operation,
            s.shapes,
            o.kind,
            o.aten,
            o.output_shape,
            s.copied_shape,
            a.input_elements,
            a.weight_shapes,
            (o.gemm_groups, o.gemm_m, o.gemm_n, o.gemm_k)
        FROM internal.workload_operator AS o
        JOIN operator_signatures AS s ON s.workload_id = o.workload_id AND s.operator_index = o.operator_index
        LEFT JOIN (
            SELECT
                a.operator_index,
                list(a.byte_count // greatest(a.item_bytes, 1) ORDER BY a.access_index)
                    FILTER (WHERE a.role = 'input') AS input_elements,
                list(t.shape ORDER BY a.access_index) FILTER (WHERE a.role = 'weight') AS weight_shapes
            FROM internal.workload_access AS a
            JOIN internal.workload_tensor AS t USING (workload_id, tensor_index)
            WHERE a.workload_id = $workload_id
            GROUP BY a.operator_index
        ) AS a ON a.operator_index = o.operator_index
        WHERE o.workload_id = $workload_id
        ORDER BY o.operator_index
        """,
        {"workload_id": workload_id},
    ).fetchall()
    return tuple(
        TracedOperator(
            operator_index=index,
            operation=operation,
            shapes=shapes,
            kind=kind,
            aten=aten,
            output_shape=_sizes(output),
            copied_shape=_sizes(copied),
            input_elements=tuple(elements or ()),
            weight_shapes=tuple(map(_sizes, weights or ())),
            gemm=gemm,
        )
        for index, operation, shapes, kind, aten, output, copied, elements, weights, gemm in rows
    )


def _sizes(text: str) -> tuple[int, ...]:
    return tuple(int(size) for size in text.split("x") if size)
