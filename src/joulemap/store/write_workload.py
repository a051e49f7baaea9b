"""A workload to rows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from joulemap.store.clock import utc_now
from joulemap.store.connection import Connection
from joulemap.store.insert import insert_columns, insert_records, next_id

if TYPE_CHECKING:
    from joulemap.domain.workload import Workload


def _shape_text(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape))


def read_shape(input_spec: str, batch: int) -> str:
    """Return the shapes of one sample of the inputs, e.g. `3x224x224`; empty where the model brings its own inputs."""
    shapes = re.findall(r"(?:^| |=)(\d+(?:x\d+)*):", input_spec)
    return " ".join(_sample(shape, batch) for shape in shapes)


def _traced_shape(workload: Workload) -> str:
    inputs = (tensor.shape for tensor in workload.tensors if tensor.role == "input")
    return " ".join(_sample(_shape_text(shape), workload.batch) for shape in inputs)


def _sample(shape: str, batch: int) -> str:
    """Return a shape without the batch, if it starts with it."""
    first, separator, rest = shape.partition("x")
    return rest if separator and first == str(batch) else shape


def write_workload(connection: Connection, workload: Workload) -> int:
    """Store a workload and return its id; one of the same key is kept and its id returned."""
    key = workload.key.digest
    existing = connection.execute("SELECT workload_id FROM workload WHERE workload_key = ?", [key]).fetchall()
    if existing:
        return int(existing[0][0])
    workload_id = next_id(connection, "workload", "workload_id")
    connection.execute(
        "INSERT INTO workload VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            workload_id,
            key,
            workload.model,
            workload.key.source,
            workload.key.input_spec,
            read_shape(workload.key.input_spec, workload.batch) or _traced_shape(workload),
            workload.batch,
            workload.parameter_count,
            workload.weight_bytes,
            workload.key.torch_version,
            workload.key.torchvision_version,
            workload.key.tracer_version,
            list(workload.notes),
            utc_now(),
        ],
    )
    subgraph_of = {
        operator: index for index, subgraph in enumerate(workload.subgraphs) for operator in subgraph.operator_indices
    }
    count = len(workload.operators)
    plain = (
        "name", "module_path", "operation", "kind", "aten", "dtype", "mac_count", "elementwise_count",
        "special_count", "output_element_count", "gemm_m", "gemm_n", "gemm_k", "gemm_groups", "tap_count",
        "is_foldable", "scalars",
    )  # fmt: skip
    operators: dict[str, Any] = {
        field: [getattr(operator, field) for operator in workload.operators] for field in plain
    }
    operators |= {
        "workload_id": [workload_id] * count,
        "operator_index": list(range(count)),
        "subgraph_index": [subgraph_of[index] for index in range(count)],
        "output_shape": [_shape_text(operator.output_shape) for operator in workload.operators],
    }
    insert_columns(connection, "workload_operator", operators)
    insert_records(connection, "workload_subgraph", _indexed(workload.subgraphs, "subgraph_index"),
                    ("subgraph_index", "name", "pattern"), workload_id=workload_id)  # fmt: skip
    insert_columns(
        connection,
        "workload_tensor",
        {
            "workload_id": [workload_id] * len(workload.tensors),
            "tensor_index": list(range(len(workload.tensors))),
            "shape": [_shape_text(tensor.shape) for tensor in workload.tensors],
            "producer_index": [tensor.producer_index for tensor in workload.tensors],
            "buffer_index": [tensor.buffer_index for tensor in workload.tensors],
            **{
                field: [getattr(tensor, field) for tensor in workload.tensors]
                for field in ("dtype", "byte_count", "role", "name", "is_output")
            },
        },
    )
    insert_records(
        connection,
        "workload_access",
        _indexed(workload.accesses, "access_index"),
        (
            "access_index",
            "operator_index",
            "tensor_index",
            "role",
            "byte_count",
            "fused_byte_count",
            "item_bytes",
            "is_boundary",
        ),
        workload_id=workload_id,
    )
    insert_records(
        connection,
        "workload_edge",
        _indexed(workload.edges, "edge_index"),
        ("edge_index", "producer_index", "consumer_index", "tensor_index"),
        workload_id=workload_id,
    )
    insert_records(
        connection,
        "workload_buffer",
        _indexed(workload.buffers, "buffer_index"),
        ("buffer_index", "birth_index", "death_index", "release_index", "byte_count", "item_bytes", "is_hidden"),
        workload_id=workload_id,
    )
    return workload_id


class _Indexed:
    """A record with its position under a name of its own."""

    def __init__(self, record: Any, name: str, index: int) -> None:
        self._record = record
        setattr(self, name, index)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._record, name)


def _indexed(records: Sequence[Any], name: str) -> list[_Indexed]:
    return [_Indexed(record, name, index) for index, record in enumerate(records)]
