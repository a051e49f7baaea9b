"""Report the evidence behind predicted energies: measured joules by class, hardware and boundary."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs

from joulemap.answer.measurement import name_measured
from joulemap.answer.validate import evaluate_measured
from joulemap.catalog.public import load_public_tables
from joulemap.domain.architecture import CLASS_HARDWARE
from joulemap.domain.table import Table
from joulemap.plan.source import Source, reading
from joulemap.present.template import Template
from joulemap.row.validate import EnergyEvidence
from joulemap.store.query import fetch, find_projected

if TYPE_CHECKING:
    from joulemap.domain.calibration import Calibration

MEASURED: Final = Template("measured energies: {classes:and}")
CLASS: Final = Template("{count:#} of {architecture}")
NONE: Final = Template("none of {classes:and}")
POWER: Final = Template("{count:n power} without a time")
ABSENT: Final = Template("not in this database: {tables:and}: `joulemap measurements import NAME` adds their energies")

STORED: Final = (
    "SELECT source, hardware, model, CAST(batch AS DOUBLE) FROM measurements "
    "UNION SELECT source, hardware, model, batch FROM serving_measurements"
)
"""Keys of all stored measurements, as `PublicTable.keys` has them."""


def energy_evidence(
    database: Source,
    hardware: str = "",
    *,
    source: str = "",
    calibration: str | Calibration = "auto",
    trust: bool = False,
) -> Table[EnergyEvidence]:
    """Return the number of measured energies and powers, their sources and the errors of their predictions.

    One row is a hardware at one boundary; classes without measurements have a row each, unless `hardware` or `source`
    selects some. Measured configurations that are not stored are evaluated first. The notes name built-in tables with
    energies that the database does not hold. Raises NoMeasurementError if nothing matches.
    """
    which = {"hardware": name_measured(database, hardware), "model": "", "precision": "", "source": source}
    _, notes = evaluate_measured(database, which, calibration, trust=trust)
    classes = [] if hardware or source else list(CLASS_HARDWARE)
    with reading(database) as connection:
        found = fetch(connection, EnergyEvidence, hardware=which["hardware"], source=source, classes=classes)
        stored = set(connection.execute(STORED).fetchall())
        absent = [one.address for one in load_public_tables().values() if one.has_energy and not one.keys() <= stored]
        notes = (*notes, *([ABSENT(tables=absent)] if absent and classes else []))
        return attrs.evolve(find_projected(connection, found), notes=notes)


def describe_evidence(rows: Table[EnergyEvidence]) -> str:
    """Return the number of measured energies of each class, and the classes without any."""
    counts = {row.architecture: row.class_energy_count for row in rows}
    known = [CLASS(architecture=name, count=count) for name, count in counts.items() if count]
    unknown = [name for name, count in counts.items() if not count]
    powers = sum(row.measurement_count for row in rows if row.quantity == "power")
    parts = [MEASURED(classes=known) if known else ""]
    parts += [NONE(classes=unknown)] if unknown else []
    parts += [POWER(count=powers)] if powers else []
    return "; ".join(filter(None, parts))
