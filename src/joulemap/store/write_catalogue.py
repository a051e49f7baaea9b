"""The catalogue to rows: a new hardware version for every new description, never a change of an old one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from joulemap.domain.catalogue import Catalogue, ModelEntry, ShippedWorkload
from joulemap.domain.hardware import Hardware
from joulemap.domain.reference import EnergyAction
from joulemap.store.connection import Connection
from joulemap.store.insert import insert_columns, next_id
from joulemap.store.metric import METRIC_COLUMNS, metric_rows


def write_catalogue(
    connection: Connection,
    catalogue: Catalogue,
    models: Mapping[str, ModelEntry],
    shipped: Mapping[str, ShippedWorkload],
    package_version: str,
) -> None:
    """Store every hardware version that is new, and make this catalogue the current one."""
    known = {digest for (digest,) in connection.execute("SELECT hardware_digest FROM hardware_version").fetchall()}
    write_hardware(connection, [one for one in catalogue.hardware.values() if one.digest not in known], package_version)
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
    write_metrics(connection)
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
            "parameter_count": [entry.parameter_count for entry in entries],
            "traced_parameter_count": [one.parameter_count if one else None for one in traced],
            "mac_count": [one.mac_count if one else None for one in traced],
            "published_mac_count": [entry.published_mac_count for entry in entries],
            "is_traceable": [entry.is_traceable for entry in entries],
            "reason": [entry.reason for entry in entries],
        },
    )


def write_metrics(connection: Connection) -> None:
    """Make the metrics of the program those of the database, for SQL to take names, units and columns from."""
    connection.execute("DELETE FROM metric")
    insert_columns(
        connection,
        "metric",
        {name: [row[index] for row in metric_rows()] for index, name in enumerate(METRIC_COLUMNS)},
    )


def write_hardware(connection: Connection, fresh: Sequence[Hardware], package_version: str) -> None:
    """Write hardware versions that are not stored, all of them into one table after the other."""
    if not fresh:
        return
    insert_columns(
        connection,
        "hardware_version",
        {
            "hardware_digest": [one.digest for one in fresh],
            "hardware": [one.id for one in fresh],
            **{field: [list(getattr(one, field)) for one in fresh] for field in ("deployment", "aliases", "doubts")},
            "package_version": [package_version] * len(fresh),
            **{
                field: [getattr(one, field) for one in fresh]
                for field in (
                    "name",
                    "vendor",
                    "architecture",
                    "microarchitecture",
                    "unit_name",
                    "memory_type",
                    "projection",
                    "power_mode",
                )
            },
        },
    )
    facts = [(one.digest, index, *fact) for one in fresh for index, fact in enumerate(one.quantities())]
    insert_columns(
        connection,
        "hardware_fact",
        {
            "hardware_digest": [digest for digest, *_ in facts],
            "fact_index": [index for _, index, *_ in facts],
            "quantity": [name for _, _, name, _ in facts],
            **{
                field: [getattr(quantity, field) for _, _, _, quantity in facts]
                for field in ("value", "unit", "basis", "source", "note")
            },
        },
    )
    peaks = [(one.digest, index, *peak) for one in fresh for index, peak in enumerate(one.peaks.items())]
    insert_columns(
        connection,
        "hardware_precision",
        {
            "hardware_digest": [digest for digest, *_ in peaks],
            "precision_index": [index for _, index, *_ in peaks],
            "precision": [precision for _, _, precision, _ in peaks],
            "peak_ops_per_s": [peak.rate.value for _, _, _, peak in peaks],
            "units_count": [peak.unit_count for _, _, _, peak in peaks],
            **{
                field: [getattr(peak, field) for _, _, _, peak in peaks]
                for field in ("clock_hz", "operations_per_clock", "engine", "explanation")
            },
        },
    )
    levels = [(one.digest, index, level) for one in fresh for index, level in enumerate(one.memory_levels)]
    if levels:
        insert_columns(
            connection,
            "hardware_level",
            {
                "hardware_digest": [digest for digest, _, _ in levels],
                "level_index": [index for _, index, _ in levels],
                "level": [level.name for _, _, level in levels],
                "kind": [level.kind for _, _, level in levels],
                "per": [level.per for _, _, level in levels],
            },
        )
    modes = [(one.digest, index, mode.name) for one in fresh for index, mode in enumerate(one.power_modes)]
    if modes:
        names = ("hardware_digest", "mode_index", "power_mode")
        columns: dict[str, Any] = {name: [row[index] for row in modes] for index, name in enumerate(names)}
        insert_columns(connection, "hardware_power_mode", columns)
    ids = _action_ids(connection, fresh)
    actions = [(one, action) for one in fresh for action in one.reference]
    positions = [index for one in fresh for index in range(len(one.reference))]
    insert_columns(
        connection,
        "energy_per_action",
        {
            "hardware_digest": [one.digest for one, _ in actions],
            "action_index": positions,
            "action_id": [ids[(one.architecture, *_identity(action))] for one, action in actions],
            "low_fj": [action.low_fj for _, action in actions],
            "high_fj": [action.high_fj for _, action in actions],
            **{
                field: [getattr(action, field) for _, action in actions]
                for field in ("energy_per_action_fj", "basis", "source", "count_formula")
            },
        },
    )


ACTION_FIELDS: Final = ("category", "common_category", "component", "action", "part", "per")
"""What tells two actions of one architecture apart."""


def _identity(action: EnergyAction) -> tuple[str, ...]:
    return tuple(getattr(action, field) for field in ACTION_FIELDS)


def read_vocabulary(connection: Connection) -> dict[tuple[str, ...], int]:
    """Return (architecture, *identity) -> id of every stored action."""
    rows = connection.execute(f"SELECT action_id, architecture, {', '.join(ACTION_FIELDS)} FROM action").fetchall()
    return {tuple(row[1:]): int(row[0]) for row in rows}


def _action_ids(connection: Connection, hardware: Sequence[Hardware]) -> dict[tuple[str, ...], int]:
    """Return (architecture, *identity) -> id for every action, adding to the vocabulary what is new."""
    ids = read_vocabulary(connection)
    following = next_id(connection, "action", "action_id")
    fresh = []
    for one in hardware:
        for action in one.reference:
            row = (one.architecture, *_identity(action))
            if row not in ids:
                ids[row] = following
                fresh.append(row)
                following += 1
    if fresh:
        names = ("architecture", *ACTION_FIELDS)
        columns: dict[str, Any] = {name: [row[index] for row in fresh] for index, name in enumerate(names)}
        insert_columns(connection, "action", {"action_id": [ids[row] for row in fresh], **columns})
    return ids


def find_action_ids(vocabulary: Mapping[tuple[str, ...], int], hardware: Hardware) -> NDArray[np.uint16]:
    """Return the stored action id of each row of the hardware's reference table."""
    ids = [vocabulary[(hardware.architecture, *_identity(action))] for action in hardware.reference]
    return np.array(ids, dtype=np.uint16)
