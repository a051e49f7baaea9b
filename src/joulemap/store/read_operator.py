"""What of a stored trace decides which eager kernels run it."""

from __future__ import annotations

from joulemap.domain.measurement import Shape, TracedOperator
from joulemap.store.connection import Connection


def read_operators(connection: Connection, workload_id: int) -> tuple[TracedOperator, ...]:
    """Return the operators of a stored workload in execution order."""
    rows = connection.execute(
        "SELECT o.operator_index, s.operation, s.shapes, o.kind, o.aten, o.output_shape, s.copied_shape, "
        "o.gemm_groups, o.gemm_m, o.gemm_n, o.gemm_k, a.input_elements, a.weight_shapes "
        "FROM workload_operator AS o "
        "JOIN operator_signatures AS s ON s.workload_id = o.workload_id AND s.operator_index = o.operator_index "
        "LEFT JOIN (SELECT a.operator_index, "
        "list(a.byte_count // greatest(a.item_bytes, 1) ORDER BY a.access_index) "
        "FILTER (WHERE a.role = 'input') AS input_elements, "
        "list(t.shape ORDER BY a.access_index) FILTER (WHERE a.role = 'weight') AS weight_shapes "
        "FROM workload_access AS a JOIN workload_tensor AS t USING (workload_id, tensor_index) "
        "WHERE a.workload_id = $workload_id GROUP BY a.operator_index) AS a ON a.operator_index = o.operator_index "
        "WHERE o.workload_id = $workload_id ORDER BY o.operator_index",
        {"workload_id": workload_id},
    ).fetchall()
    return tuple(
        TracedOperator(
            operator_index=index,
            operation=operation,
            shapes=shapes,
            kind=kind,
            aten=aten,
            output_shape=_shape(output),
            copied_shape=_shape(copied),
            input_elements=tuple(elements or ()),
            weight_shapes=tuple(map(_shape, weights or ())),
            gemm=(groups, rows_, columns, depth),
        )
        for (
            index, operation, shapes, kind, aten, output, copied, groups, rows_, columns, depth, elements, weights
        ) in rows
    )  # fmt: skip


def _shape(text: str) -> Shape:
    return tuple(int(size) for size in text.split("x") if size)
