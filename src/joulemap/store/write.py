"""Records and columns to rows, through Arrow. Callers hold the transaction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import attrs
import numpy as np
import pyarrow as pa

from joulemap.columns.run import BOTTLENECKS, RunColumns
from joulemap.domain.catalogue import Catalogue, ModelEntry
from joulemap.domain.hardware import Hardware
from joulemap.domain.reference import ActionKey
from joulemap.domain.workload import Workload
from joulemap.store.connection import Connection


def _now() -> datetime:
    return datetime.now(UTC).replace(tzinfo=None)


def insert_columns(connection: Connection, table: str, columns: Mapping[str, Any]) -> None:
    """Insert columns (numpy arrays or lists of equal length) into a table by name."""
    arrow = pa.table(dict(columns))
    connection.register("_incoming", arrow)
    names = ", ".join(columns)
    connection.execute(f"INSERT INTO {table} ({names}) SELECT {names} FROM _incoming")
    connection.unregister("_incoming")


def _insert_records(
    connection: Connection, table: str, records: Sequence[Any], fields: Iterable[str], **constants: Any
) -> None:
    if not records:
        return
    columns: dict[str, Any] = {name: [value] * len(records) for name, value in constants.items()}
    for field in fields:
        columns[field] = [getattr(record, field) for record in records]
    insert_columns(connection, table, columns)


def _next_id(connection: Connection, table: str, column: str) -> int:
    (number,) = connection.execute(f"SELECT coalesce(max({column}), 0) + 1 FROM {table}").fetchall()[0]
    return int(number)


def write_catalogue(
    connection: Connection, catalogue: Catalogue, models: Iterable[ModelEntry], package_version: str
) -> None:
    """Store every hardware version that is new, and make this catalogue the current one."""
    known = {digest for (digest,) in connection.execute("SELECT hardware_digest FROM hardware_version").fetchall()}
    for hardware in catalogue.hardware.values():
        if hardware.digest not in known:
            _write_hardware(connection, hardware, package_version)
    connection.execute("DELETE FROM catalogue_entry")
    insert_columns(
        connection,
        "catalogue_entry",
        {
            "catalogue_digest": [catalogue.digest] * len(catalogue.hardware),
            "hardware_index": list(range(len(catalogue.hardware))),
            "hardware": list(catalogue.hardware),
            "hardware_digest": [hardware.digest for hardware in catalogue.hardware.values()],
        },
    )
    entries = list(models)
    connection.execute("DELETE FROM model_entry")
    insert_columns(
        connection,
        "model_entry",
        {
            "model": [entry.name for entry in entries],
            "family": [entry.family for entry in entries],
            "task": [entry.task for entry in entries],
            "input_shape": ["x".join(map(str, entry.input_shape)) for entry in entries],
            "parameter_count": pa.array([entry.parameter_count for entry in entries], pa.int64()),
            "published_mac_count": pa.array([entry.published_mac_count for entry in entries], pa.int64()),
            "is_traceable": [entry.is_traceable for entry in entries],
            "reason": [entry.reason for entry in entries],
        },
    )


def _write_hardware(connection: Connection, hardware: Hardware, package_version: str) -> None:
    digest = hardware.digest
    connection.execute(
        "INSERT INTO hardware_version VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            digest,
            hardware.id,
            hardware.name,
            hardware.vendor,
            hardware.architecture,
            list(hardware.deployment),
            hardware.microarchitecture,
            hardware.unit_name,
            hardware.memory_type,
            hardware.projection,
            package_version,
        ],
    )
    facts = list(hardware.quantities())
    insert_columns(
        connection,
        "hardware_fact",
        {
            "hardware_digest": [digest] * len(facts),
            "fact_index": list(range(len(facts))),
            "quantity": [name for name, _ in facts],
            "value": [quantity.value for _, quantity in facts],
            "unit": [quantity.unit for _, quantity in facts],
            "basis": [quantity.basis for _, quantity in facts],
            "source": [quantity.source for _, quantity in facts],
            "note": [quantity.note for _, quantity in facts],
        },
    )
    peaks = list(hardware.peaks.items())
    insert_columns(
        connection,
        "hardware_precision",
        {
            "hardware_digest": [digest] * len(peaks),
            "precision_index": list(range(len(peaks))),
            "precision": [precision for precision, _ in peaks],
            "peak_ops_per_s": [peak.rate.value for _, peak in peaks],
            "units_count": [peak.unit_count for _, peak in peaks],
            "clock_hz": [peak.clock_hz for _, peak in peaks],
        },
    )
    actions = hardware.reference.actions
    ids = _action_ids(connection, hardware)
    insert_columns(
        connection,
        "energy_per_action",
        {
            "hardware_digest": [digest] * len(actions),
            "action_id": [ids[action.key] for action in actions],
            "energy_per_action_fj": [action.energy_per_action_fj for action in actions],
            "low_fj": pa.array([action.low_fj for action in actions], pa.float64()),
            "high_fj": pa.array([action.high_fj for action in actions], pa.float64()),
            "basis": [action.basis for action in actions],
            "source": [action.source for action in actions],
            "count_formula": [action.count_formula for action in actions],
        },
    )


def _action_ids(connection: Connection, hardware: Hardware) -> dict[ActionKey, int]:
    """Return the id of each action of a hardware, adding to the vocabulary what is new."""
    fields = ("category", "component", "action", "part", "per")
    known = {
        tuple(row[1:]): int(row[0])
        for row in connection.execute(
            "SELECT action_id, category, component, action, part, per FROM action WHERE architecture = ?",
            [hardware.architecture],
        ).fetchall()
    }
    following = _next_id(connection, "action", "action_id")
    fresh = []
    for action in hardware.reference:
        row = tuple(getattr(action, field) for field in fields)
        if row not in known:
            known[row] = following
            fresh.append(action)
            following += 1
    if fresh:
        columns: dict[str, Any] = {field: [getattr(action, field) for action in fresh] for field in fields}
        columns["action_id"] = [known[tuple(getattr(action, field) for field in fields)] for action in fresh]
        columns["architecture"] = [hardware.architecture] * len(fresh)
        insert_columns(connection, "action", columns)
    return {action.key: known[tuple(getattr(action, field) for field in fields)] for action in hardware.reference}


def read_action_ids(connection: Connection, hardware: Hardware) -> np.ndarray[Any, np.dtype[np.uint16]]:
    """Return the stored action id of each row of the hardware's reference table."""
    ids = _action_ids(connection, hardware)
    return np.array([ids[action.key] for action in hardware.reference], dtype=np.uint16)


def _shape_text(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape))


def write_workload(connection: Connection, workload: Workload) -> int:
    """Store a workload and return its id; one of the same key is kept and its id returned."""
    key = workload.key.digest
    existing = connection.execute("SELECT workload_id FROM workload WHERE workload_key = ?", [key]).fetchall()
    if existing:
        return int(existing[0][0])
    workload_id = _next_id(connection, "workload", "workload_id")
    connection.execute(
        "INSERT INTO workload VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            workload_id,
            key,
            workload.model,
            workload.key.source,
            workload.key.input_spec,
            workload.batch,
            workload.parameter_count,
            workload.weight_bytes,
            workload.key.torch_version,
            workload.key.torchvision_version,
            workload.key.tracer_version,
            list(workload.notes),
            _now(),
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
    _insert_records(connection, "workload_subgraph", _indexed(workload.subgraphs, "subgraph_index"),
                    ("subgraph_index", "name", "pattern"), workload_id=workload_id)  # fmt: skip
    insert_columns(
        connection,
        "workload_tensor",
        {
            "workload_id": [workload_id] * len(workload.tensors),
            "tensor_index": list(range(len(workload.tensors))),
            "shape": [_shape_text(tensor.shape) for tensor in workload.tensors],
            "producer_index": pa.array([tensor.producer_index for tensor in workload.tensors], pa.int32()),
            "buffer_index": pa.array([tensor.buffer_index for tensor in workload.tensors], pa.int32()),
            **{
                field: [getattr(tensor, field) for tensor in workload.tensors]
                for field in ("dtype", "byte_count", "role", "name", "is_output")
            },
        },
    )
    _insert_records(
        connection,
        "workload_access",
        workload.accesses,
        (
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
    _insert_records(
        connection,
        "workload_edge",
        workload.edges,
        ("producer_index", "consumer_index", "tensor_index"),
        workload_id=workload_id,
    )
    _insert_records(
        connection,
        "workload_buffer",
        _indexed(workload.buffers, "buffer_index"),
        ("buffer_index", "birth_index", "death_index", "byte_count", "item_bytes", "is_hidden"),
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


@attrs.frozen(kw_only=True)
class RunIdentity:
    """What a run is stored under."""

    run_key: str
    workload_id: int
    hardware_digest: str
    power_mode: str
    precision: str
    batch: int
    runtime: str
    model_version: int
    package_version: str


@attrs.define
class RunWriter:
    """Collects evaluated runs and writes them together, table by table, each run's rows contiguous."""

    connection: Connection
    _rows: dict[str, list[dict[str, Any]]] = attrs.field(factory=dict)
    _next: int | None = None
    _action_ids: dict[str, Any] = attrs.field(factory=dict)

    def add_refusal(self, identity: RunIdentity, reason: str) -> int:
        """Queue a configuration that the hardware cannot run; return its run id."""
        return self._add_run(identity, refusal=reason)

    def add(self, identity: RunIdentity, run: RunColumns) -> int:
        """Queue an evaluated run; return its run id."""
        run_id = self._add_run(
            identity,
            units_total_count=run.units_total_count,
            peak_ops_per_s=run.peak_ops_per_s,
            memory_bandwidth_bytes_per_s=run.memory_bandwidth_bytes_per_s,
            weight_bytes=run.weight_bytes,
            activation_bytes=run.activation_bytes,
            clock_fraction=run.clock_fraction,
        )
        digest = identity.hardware_digest
        if digest not in self._action_ids:
            self._action_ids[digest] = read_action_ids(self.connection, run.hardware)
        subgraphs, operators, ledger = run.subgraphs, run.operators, run.ledger
        self._append("run_subgraph", run_id, len(subgraphs.subgraph_index), {
            field.name: getattr(subgraphs, field.name) for field in attrs.fields(type(subgraphs))
        } | {"bottleneck": np.array(BOTTLENECKS)[subgraphs.bottleneck]})  # fmt: skip
        self._append("run_operator", run_id, len(operators.operator_index), {
            field.name: getattr(operators, field.name) for field in attrs.fields(type(operators))
        })  # fmt: skip
        subgraph_of = np.zeros(
            int(operators.operator_index.max()) + 1 if len(operators.operator_index) else 1, np.int64
        )
        subgraph_of[operators.operator_index] = operators.subgraph_index
        self._append("ledger_line", run_id, len(ledger.energy_fj), {
            "subgraph_index": subgraph_of[ledger.operator_index],
            "operator_index": ledger.operator_index,
            "action_id": self._action_ids[digest][ledger.action_index],
            "action_count": ledger.action_count,
            "energy_fj": ledger.energy_fj,
        })  # fmt: skip
        return run_id

    def flush(self) -> None:
        """Insert everything queued."""
        for table, blocks in self._rows.items():
            names = list(dict.fromkeys(name for block in blocks for name in block))
            if table == "run":
                columns: dict[str, Any] = {name: pa.array([block.get(name) for block in blocks]) for name in names}
            else:
                columns = {name: np.concatenate([block[name] for block in blocks]) for name in names}
            insert_columns(self.connection, table, columns)
        self._rows.clear()

    def _append(self, table: str, run_id: int, count: int, columns: dict[str, Any]) -> None:
        block = {"run_id": np.full(count, run_id, dtype=np.int32), **columns}
        self._rows.setdefault(table, []).append(block)

    def _add_run(self, identity: RunIdentity, **facts: Any) -> int:
        if self._next is None:
            self._next = _next_id(self.connection, "run", "run_id")
        run_id = self._next
        self._next += 1
        row = {"run_id": run_id, **attrs.asdict(identity), "calibration": "none", "refusal": None, **facts}
        row["created_at"] = _now()
        self._rows.setdefault("run", []).append(row)
        return run_id
