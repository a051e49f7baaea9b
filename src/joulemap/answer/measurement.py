"""What somebody measured: listed, imported, found for a hardware."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from joulemap.catalog.measurement import load_measurements, read_measurements
from joulemap.catalog.sheet import load_models
from joulemap.errors import UnknownNameError
from joulemap.plan.catalogue import ensure_catalogue, known_hardware, opening_catalogue, template
from joulemap.plan.selection import name_configuration
from joulemap.plan.source import reading
from joulemap.store.connection import open_for_writing, transaction, using
from joulemap.store.library import find_query
from joulemap.store.query import find_projected, run_query
from joulemap.store.read import has_measurement_on, read_measurements as read_stored

if TYPE_CHECKING:
    from joulemap.domain.hardware import Hardware
    from joulemap.domain.measurement import Measurement
    from joulemap.domain.table import Table


def list_measurements(path: Path, hardware: str, model: str) -> Table[tuple[Any, ...]]:
    """Return what was measured, as `Workspace.measurements` documents it."""
    which = {"hardware": name_measured(path, hardware), "model": model}
    with opening_catalogue(path) as connection:
        return find_projected(connection, run_query(connection, find_query("measurement.list"), which))


def import_measurements(path: Path, file: Path) -> tuple[int, int]:
    """Store a file's measurements; return (new, stored already)."""
    rows = read_measurements(file, known_hardware(), load_models())
    from joulemap.store.write_measurement import write_measurements

    with using(open_for_writing(path, template(path)), path) as connection, transaction(connection):
        ensure_catalogue(connection)
        fresh = write_measurements(connection, rows)
    return fresh, len(rows) - fresh


def find_measurements(path: Path) -> tuple[Measurement, ...]:
    """Return what ships and what the database holds, each once."""
    rows = dict.fromkeys(load_measurements())
    if path.exists():
        with reading(path) as connection:
            rows |= dict.fromkeys(read_stored(connection))
    return tuple(rows)


def name_measured(path: Path, hardware: str) -> str:
    """Return a hardware as measurements are stored by it: of the catalogue, or an id that `measure` stored some under.

    Empty for none; raises UnknownNameError for a name that is neither.
    """
    try:
        return name_configuration(hardware) if hardware else ""
    except UnknownNameError:
        if path.exists():
            with reading(path) as connection:
                if has_measurement_on(connection, hardware):
                    return hardware
        raise


def find_described(path: Path, hardware: str) -> Hardware | None:
    """Return the description that the newest run on a hardware used, without its calibration; None where none did."""
    from joulemap.store.read_hardware import find_described as find_digest, read_hardware

    with reading(path) as connection:
        digest = find_digest(connection, hardware)
        return None if digest is None else read_hardware(connection, [digest])[digest]
