"""Calibrations to rows: a new one for every digest, never a change of an old one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from joulemap.domain.calibration import Calibration, CalibrationEntry
from joulemap.domain.hardware import Hardware
from joulemap.store.connection import Connection
from joulemap.store.digest import CALIBRATION, Digester
from joulemap.store.row import insert_columns, insert_records

STATIC_MEANING: Final = "power drawn while running, whatever is computed"


def find_calibrations(connection: Connection) -> dict[str, tuple[str, str]]:
    """Return digest -> (hardware that it was fitted to, version of the formulas) of the stored calibrations."""
    rows = connection.execute(
        "SELECT calibration_digest, hardware_digest, formula_version FROM internal.calibration"
    ).fetchall()
    return {str(digest): (str(hardware), str(version)) for digest, hardware, version in rows}


def ensure_calibrations(connection: Connection, used: Iterable[tuple[CalibrationEntry, Calibration, Hardware]]) -> None:
    """Store those calibrations that are not stored; each stands beside a hardware under it, as it is without it."""
    stored = set(find_calibrations(connection))
    for entry, calibration, hardware in used:
        if calibration.digest not in stored:
            _write(connection, entry, calibration, hardware)
            stored.add(calibration.digest)


def _write(connection: Connection, entry: CalibrationEntry, calibration: Calibration, hardware: Hardware) -> None:
    insert_records(
        connection,
        "calibration",
        [calibration],
        calibration_digest=calibration.digest,
        place=entry.place,
        measurement_count=calibration.row_count,
        hardware_generation=calibration.generation,
        latency_credibility_fraction=calibration.latency_credibility,
        energy_credibility_fraction=calibration.energy_credibility,
        content_digest="",
    )
    noted = hardware.coefficients
    changed = [
        ("time", name, one.default, one.value, one.unit, one.data_weight, one.is_determined, noted[name].note)
        for name, one in calibration.coefficients.items()
    ]
    changed += [
        ("energy", one.name, 1.0, one.factor, "1", one.data_weight, one.is_determined, one.meaning)
        for one in calibration.energy_scales
    ]
    static = calibration.static_power
    if static is not None:
        weighed = (static.data_weight, static.is_determined)
        changed.append(("static", "static_power", static.default, static.value, static.unit, *weighed, STATIC_MEANING))
    if changed:
        names = (
            "part", "name", "default_value", "value", "unit", "data_weight_fraction", "is_determined", "meaning",
        )  # fmt: skip
        insert_columns(
            connection,
            "calibration_coefficient",
            {
                "calibration_digest": [calibration.digest] * len(changed),
                "coefficient_index": range(len(changed)),
                **dict(zip(names, zip(*changed, strict=True), strict=True)),
            },
        )
    errors = calibration.errors
    insert_records(
        connection,
        "calibration_error",
        errors,
        calibration_digest=calibration.digest,
        error_index=range(len(errors)),
        measurement_count=[error.row_count for error in errors],
        **{
            name: [getattr(error, name) or None for error in errors]
            for name in ("runtime", "precision", "batch", "family")
        },
    )
    Digester(connection).seal(CALIBRATION, [calibration.digest])
