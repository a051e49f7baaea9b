"""List and import measurements, and pair them with workloads as observations."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from joulemap.ask.fact import Value
from joulemap.ask.finding import Finding
from joulemap.catalog.digest import catalogue_digest
from joulemap.catalog.measurement import MeasuredRow, list_kinds, load_measurements, read_measurements
from joulemap.catalog.public import find_public_table, load_public_tables
from joulemap.catalog.sheet import load_models
from joulemap.domain.catalogue import DEFAULT_MODE, OPERATOR, HardwareEntry, find_family, find_model_name
from joulemap.domain.computed import make_table
from joulemap.domain.day import check_day, find_date
from joulemap.domain.hardware_ref import HardwareRef
from joulemap.domain.measurement import Measurement
from joulemap.domain.operator.name import find_kind, is_operator
from joulemap.domain.printer import find_printer
from joulemap.domain.settings import Settings
from joulemap.domain.table import Table
from joulemap.generated.measurement import ListedMeasurement, ListedTable, ServedMeasurement
from joulemap.physics.record.configuration import Configuration
from joulemap.plan.catalogue import ensure_catalogue, known_hardware, opening_catalogue, writing
from joulemap.plan.model import Model
from joulemap.plan.model_name import is_name
from joulemap.plan.reader import reading_if_there
from joulemap.plan.selection import name_configuration
from joulemap.plan.source import Source
from joulemap.plan.workload import (
    ensure_known,
    ensure_workload,
    find_model,
    find_workload_id,
    stored_key,
    trace,
)
from joulemap.store.catalogue import has_catalogue
from joulemap.store.connection import Connection, open_in_memory, transaction, using
from joulemap.store.measurement import has_measurement_on, read_measurements as read_stored, write_measurements
from joulemap.store.query import fetch, find_projected
from joulemap.store.workload import read_columns
from joulemap.system.errors import CatalogueError, ModelError, UnknownNameError, UnsupportedError, UsageError

if TYPE_CHECKING:
    from joulemap.calibrate.observation import Observation
    from joulemap.physics.record.hardware import Hardware
    from joulemap.physics.record.product import MatmulPrecision
    from joulemap.physics.workload import WorkloadColumns

ModelBatch = tuple[str, int]
"""Model name and batch size."""

SHOWN_MODELS: Final = 5

PARTS: Final = (OPERATOR, "block")
"""Families of parts of a model. A fit to whole models does not use them."""


def measurement_tables(source: Source) -> Table[ListedTable]:  # noqa: ARG001
    """Return the published tables that `import_measurements` accepts by name; no database is read."""
    return make_table(
        "measurements tables",
        ListedTable,
        (
            ListedTable(
                name=one.address,
                content=one.title,
                measurement_count=one.count_rows(),
                source=one.source,
                licence=one.licence,
                doubt=one.doubt,
            )
            for one in load_public_tables().values()
        ),
    )


def measurements(source: Source, hardware: str = "", model: str = "") -> Table[ListedMeasurement]:
    """Return the measurements on a chip (id or alias) of a model or a kind of operator; "" selects all."""
    which = {"hardware": name_measured(source, hardware), "model": name_models(model), "source": ""}
    with opening_catalogue(source) as connection:
        return find_projected(connection, fetch(connection, ListedMeasurement, **which))


def update_measurements(source: Source) -> None:
    """Store the current catalogue with its measurements in a results database that has an older catalogue.

    The database then lists shipped and imported measurements together.
    """
    with reading_if_there(source) as connection:
        if connection is None or has_catalogue(connection, catalogue_digest()):
            return
    with writing(source) as connection, transaction(connection):
        ensure_catalogue(connection)


def served_measurements(
    source: Source, hardware: str = "", model: str = "", origin: str = ""
) -> Table[ServedMeasurement]:
    """Return measurements of served models on a chip whose model and source names contain the given texts."""
    which = {"hardware": name_measured(source, hardware), "model": model, "source": origin}
    with opening_rows(source) as connection:
        return find_projected(connection, fetch(connection, ServedMeasurement, **which))


@contextlib.contextmanager
def opening_rows(source: Source) -> Iterator[Connection]:
    """Yield a connection to the stored measurements: to the results database if it exists, else to the catalogue.

    The results database is used even if the catalogue is newer.
    """
    with contextlib.ExitStack() as stack:
        yield stack.enter_context(reading_if_there(source)) or stack.enter_context(opening_catalogue(source))


def import_measurements(
    source: Source, path: str | Path, *, note: Callable[[str], None] | None = None
) -> tuple[int, int]:
    """Store the measurements of a CSV or JSON file; return the numbers of new and of already stored measurements.

    Rows are single runs, or served language models with the columns of `served_measurements`. `public:NAME` selects a
    shipped public table. If lines are invalid, nothing is stored and CatalogueError names them. Raises UnknownNameError
    for an unknown public table.

    `note` receives a text on hardware and served models in a file that `validate` cannot predict. The file is read
    once, so that it may be a pipe.
    """
    table = find_public_table(str(path))
    rows = table.read_rows() if table else read_measurements(Path(path), known_hardware, load_models())
    counts = store_measurements(source, rows)
    if note is not None and table is None:
        for text in find_printer().describe_findings(_find_unpredicted(rows)):
            note(text)
    return counts


def find_doubt(path: str | Path) -> str:
    """Return why the rows of a public table are not scored; empty for any other table or file."""
    table = find_public_table(str(path))
    return table.doubt if table else ""


def _find_unpredicted(rows: Sequence[MeasuredRow]) -> Iterator[Finding]:
    """Find hardware and models in rows of wings that `validate` cannot predict."""
    of_wings = [row for row in rows if not isinstance(row, Measurement)]
    chips = dict.fromkeys(HardwareRef.read(row.hardware).label for row in of_wings)
    known = known_hardware(chips)
    models = dict.fromkeys(row.model for row in of_wings)
    if unknown := (*(one for one in chips if one not in known), *(one for one in models if not is_name(one))):
        yield Finding(kind="unpredicted", values={"names": unknown})


def store_measurements(source: Source, rows: Sequence[MeasuredRow]) -> tuple[int, int]:
    """Store measurements; return the numbers of new and of already stored measurements.

    Raises CatalogueError for a date that no calendar has or that has not come; then nothing is stored.
    """
    for row in rows:
        try:
            if stated := find_date(row):
                check_day("date", stated)
        except UsageError as error:
            raise CatalogueError(f"nothing imported: {row.model} on {row.hardware}: {error}") from error
    plain = [row for row in rows if isinstance(row, Measurement)]
    with writing(source) as connection, transaction(connection):
        ensure_catalogue(connection)
        fresh = write_measurements(connection, plain) if plain else 0
        for kind in list_kinds():
            if own := [row for row in rows if isinstance(row, kind.record)]:
                fresh += kind.write(connection, own)
    return fresh, len(rows) - fresh


def find_measurements(source: Source) -> tuple[Measurement, ...]:
    """Return the shipped measurements and those in the database, without duplicates."""
    rows = dict.fromkeys(load_measurements())
    with reading_if_there(source) as connection:
        if connection is not None:
            rows |= dict.fromkeys(read_stored(connection))
    return tuple(rows)


def name_measured(source: Source, hardware: str) -> str:
    """Return the name under which measurements of a chip are stored: the catalogue's id, or a name that `measure`
    stored.

    An empty name is returned as is. Raises UnknownNameError for an unknown name.
    """
    try:
        return name_configuration(hardware) if hardware else ""
    except UnknownNameError:
        with reading_if_there(source) as connection:
            if connection is not None and has_measurement_on(connection, hardware):
                return hardware
        raise


def name_models(model: str) -> str:
    """Return the query parameter for a model name or a kind of operator; empty selects all."""
    return find_model_name(model, load_models()) if is_operator(model) or not find_kind(model) else find_kind(model)


def find_described(source: Source, hardware: str) -> Hardware | None:
    """Return the description used by the newest run on a chip, without its calibration; None without runs."""
    from joulemap.store.hardware import find_described as find_digest, read_hardware

    with reading_if_there(source) as connection:
        digest = None if connection is None else find_digest(connection, hardware)
        return None if connection is None or digest is None else read_hardware(connection, [digest])[digest]


def select_models(measured: Sequence[Measurement]) -> list[Measurement]:
    """Return the measurements of whole models, or all measurements if there is no whole model to fit."""
    known = load_models()
    whole = [row for row in measured if find_family(row.model, known) not in PARTS]
    return whole or list(measured)


def observe(
    source: Source, hardware: Hardware, measured: Sequence[Measurement], *, trust: bool = False
) -> tuple[tuple[Observation, ...], tuple[Finding, ...]]:
    """Pair measurements of a chip with their workloads; return the observations, and the omitted measurements by
    reason.

    A workload is read from the database, taken from the shipped ones, or traced. Code that a measurement names runs
    only with `trust`.
    """
    from joulemap.calibrate.observation import Observation

    known = load_models()
    observations: list[Observation] = []
    left_out: dict[str, list[str]] = {}
    usable: list[tuple[Measurement, str]] = []
    for row in measured:
        mode = HardwareRef.read(row.hardware).mode or DEFAULT_MODE
        try:
            _check_usable(row, hardware, mode)
            usable.append((row, mode))
        except (UnsupportedError, UnknownNameError) as error:
            left_out.setdefault(str(error), []).append(row.model)
    workloads = find_workloads(source, {(row.model, row.batch) for row, _ in usable}, trust=trust)
    for row, mode in usable:
        columns = workloads[row.model, row.batch]
        if isinstance(columns, str):
            left_out.setdefault(columns, []).append(row.model)
            continue
        energy_j = row.energy_j
        if energy_j is None and row.power_w is not None and row.latency_s is not None:
            energy_j = row.power_w * row.latency_s
        observations.append(
            Observation(
                columns=columns,
                configuration=Configuration(
                    hardware=hardware.id, precision=row.precision, batch=row.batch, runtime=row.runtime, power_mode=mode
                ),
                matmul_precision=cast("MatmulPrecision", row.matmul_precision),
                model=row.model,
                family=find_family(row.model, known),
                latency_s=row.latency_s,
                energy_j=energy_j,
            )
        )
    return tuple(observations), tuple(
        Finding(kind="unfitted", values=count_models(names, reason)) for reason, names in left_out.items()
    )


def _read_stored(connection: Connection, models: Mapping[ModelBatch, Model]) -> dict[ModelBatch, WorkloadColumns | str]:
    """Return the workload of each model that the database holds; other models are omitted."""
    keys = {named: stored_key(connection, model) for named, model in models.items()}
    return {
        named: read_columns(connection, find_workload_id(connection, key))
        for named, key in keys.items()
        if key is not None
    }


def find_workloads(
    source: Source, wanted: Collection[ModelBatch], *, trust: bool = False
) -> dict[ModelBatch, WorkloadColumns | str]:
    """Return the workload of each model and batch size, or the reason why there is none.

    A workload is stored, shipped or traced; that of a single operator follows from its name. Code files run only with
    `trust`.
    """
    settings = Settings(is_named=False, trust=trust)
    workloads: dict[ModelBatch, WorkloadColumns | str] = {}
    models: dict[ModelBatch, Model] = {}
    for name, batch in sorted(wanted):
        try:
            models[name, batch] = find_model(name, settings, batch)
        except (ModelError, UnknownNameError, UsageError) as error:
            workloads[name, batch] = str(error)
    source.talk(f"reading {len(models)} workloads …")
    with reading_if_there(source) as connection:
        if connection is not None:
            workloads |= _read_stored(
                connection, {named: one for named, one in models.items() if not is_operator(named[0])}
            )
    with using(open_in_memory(has_surface=False), "the shipped workloads") as scratch:
        shipped = {named: one for named, one in models.items() if named not in workloads and one.shipped is not None}
        ensure_known(scratch, list(shipped.values()))
        for named, model in shipped.items():
            workloads[named] = read_columns(scratch, find_workload_id(scratch, ensure_workload(scratch, model, None)))
    for named, model in models.items():
        if named not in workloads:
            from joulemap.physics.workload import columns_of

            try:
                workloads[named] = columns_of(trace(model, source.talk))
            except (ModelError, UsageError) as error:
                workloads[named] = str(error)
    return workloads


def _check_usable(row: Measurement, hardware: Hardware, mode: str) -> None:
    """Raise UnsupportedError or UnknownNameError with the reason why a measurement cannot be fitted."""
    if row.latency_s is None and row.energy_j is None:
        raise UnsupportedError("only throughput, power or memory; a fit needs latency or energy")
    if row.precision not in hardware.peaks:
        raise UnsupportedError(f"{hardware.id} has no {row.precision}; it has {', '.join(hardware.peaks)}")
    HardwareEntry.of(hardware).find_mode(mode)


def count_models(names: Sequence[str], reason: str) -> dict[str, Value]:
    """Return the number of measurements, their distinct models and a reason; `names` has one model per measurement."""
    distinct = tuple(dict.fromkeys(names))
    more = max(0, len(distinct) - SHOWN_MODELS)
    return {"count": len(names), "models": distinct[:SHOWN_MODELS], "more": more, "reason": reason}
