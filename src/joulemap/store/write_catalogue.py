"""The catalogue to rows: a new hardware version for every new description, never a change of an old one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from joulemap.domain.catalogue import Catalogue, ModelEntry, ShippedWorkload
from joulemap.domain.hardware import Hardware
from joulemap.domain.reference import ActionKey
from joulemap.store.connection import Connection
from joulemap.store.insert import insert_columns, next_id


def write_catalogue(
    connection: Connection,
    catalogue: Catalogue,
    models: Mapping[str, ModelEntry],
    shipped: Mapping[str, ShippedWorkload],
    package_version: str,
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
    entries = list(models.values())
    traced = [shipped.get(entry.name) for entry in entries]
    connection.execute("DELETE FROM model_entry")
    insert_columns(
        connection,
        "model_entry",
        {
            "model": [entry.name for entry in entries],
            "family": [entry.family for entry in entries],
            "task": [entry.task for entry in entries],
            "input_shape": ["x".join(map(str, entry.input_shape)) for entry in entries],
            "input_layout": [entry.input_layout for entry in entries],
            "parameter_count": pa.array([entry.parameter_count for entry in entries], pa.int64()),
            "traced_parameter_count": pa.array([one.parameter_count if one else None for one in traced], pa.int64()),
            "mac_count": pa.array([one.mac_count if one else None for one in traced], pa.int64()),
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
    following = next_id(connection, "action", "action_id")
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
