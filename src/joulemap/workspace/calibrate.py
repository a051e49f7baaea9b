"""All that was measured on a hardware, fitted; the calibration as a file, and as rows of an answer."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from joulemap.catalog.calibration import (
    calibration_text,
    own_folder,
    parse_calibration,
    write_calibration,
)
from joulemap.catalog.digest import is_hardware_path
from joulemap.catalog.measurement import load_measurements
from joulemap.catalog.sheet import load_models
from joulemap.catalog.spread import load_spreads
from joulemap.domain.answer.calibration import RunCalibration
from joulemap.domain.catalogue import DEFAULT_MODE, Catalogue, find_entry
from joulemap.domain.configuration import Configuration
from joulemap.domain.measurement import Measurement
from joulemap.errors import ModelError, NoMeasurementError, UnknownNameError, UsageError
from joulemap.model.version import formula_version
from joulemap.plan.calibration import GIVEN, CalibrationChoice
from joulemap.plan.catalogue import check_names, known_hardware
from joulemap.plan.plan import check_precision
from joulemap.plan.question import Question, ask, ensure_workload, find_workload_id, read_names, stored_key, trace
from joulemap.query.answer import CalibrateAnswer
from joulemap.store.connection import open_for_reading, open_in_memory, using
from joulemap.store.library import find_query
from joulemap.store.query import run_query
from joulemap.store.read import read_columns, read_measurements
from joulemap.workspace.validation import find_stored

if TYPE_CHECKING:
    from joulemap.calibrate.observation import Observation
    from joulemap.domain.calibration import Calibration
    from joulemap.domain.hardware import Hardware
    from joulemap.model.workload import WorkloadColumns

Talk = Callable[[str], None]

SHOWN_MODELS: Final = 5

PARTS: Final = ("operator", "block")
"""Families of what is less than a model. A fit to models is not made on them."""


def calibrate(
    path: Path,
    talk: Talk,
    hardware: str | Hardware,
    *,
    precisions: Collection[str],
    models: Collection[str],
    output: Path | None,
    is_dry: bool,
    start: CalibrationChoice,
) -> CalibrateAnswer:
    """Return the calibration of a hardware, written to its file unless `is_dry`; see `Workspace.calibrate`."""
    for precision in precisions:
        check_precision(precision)
    target = find_target(path, hardware)
    measured = [
        row
        for row in find_measurements(path)
        if row.hardware.partition("@")[0] == target.id
        and (not precisions or row.precision in precisions)
        and (not models or row.model in models)
    ]
    observations, left_out = observe(path, talk, target, _of_models(measured))
    if not observations:
        raise NoMeasurementError(_nothing(target, precisions, models, left_out))
    from joulemap.calibrate.calibration import Freedom
    from joulemap.calibrate.calibration import calibrate as fit

    spreads = load_spreads(target.architecture)
    entry = start.find(target.id)
    outcome = fit(
        target,
        observations,
        Freedom(
            coefficients={one.name: one.spread for one in spreads.coefficients},
            scales=tuple((one.scale, one.spread) for one in spreads.energy_scales),
        ),
        formula_version=formula_version(target.architecture),
        start=start.load(entry, target.architecture) if entry else None,
        tell=talk,
    )
    place = output or own_folder() / f"{target.id}.toml"
    calibration = parse_calibration(calibration_text(outcome.calibration), place.stem)
    if not is_dry:
        write_calibration(calibration, place)
    return _answer(target, calibration, "" if is_dry else str(place), outcome.warnings, left_out)


def _of_models(measured: Sequence[Measurement]) -> list[Measurement]:
    """Return the measurements of whole models, or all where there is none: parts of models check a fit."""
    known = load_models()
    whole = [row for row in measured if row.model not in known or known[row.model].family not in PARTS]
    return whole or list(measured)


def find_target(path: Path, hardware: str | Hardware) -> Hardware:
    """Return the hardware of a name, file or record, or one that `measure` stored under its own description.

    Raises UnknownNameError, UsageError or CatalogueError.
    """
    from joulemap.catalog.load import load_catalogue

    name = hardware if isinstance(hardware, str) else ""
    if "@" in name:
        raise UsageError(f"a calibration is of a hardware at all its power modes: name {name.partition('@')[0]}")
    if not isinstance(hardware, str) or is_hardware_path(name):
        names, own = read_names([hardware])
        if len(names) != 1:
            raise UsageError(f"{name} holds {len(names)} hardware, expected one; name its file")
        for label, one in own.items():
            check_names(one, known_hardware(), label)
            return one
        return load_catalogue().find(names[0])
    try:
        return load_catalogue().hardware[find_entry(known_hardware(), name).id]
    except UnknownNameError:
        described = find_stored(path, name) if path.exists() else None
        if described is None:
            raise
        return described


def find_measurements(path: Path) -> tuple[Measurement, ...]:
    """Return what ships and what the database holds, each once."""
    rows = dict.fromkeys(load_measurements())
    if path.exists():
        with using(open_for_reading(path), path) as connection:
            rows |= dict.fromkeys(read_measurements(connection))
    return tuple(rows)


def observe(
    path: Path, talk: Talk, hardware: Hardware, measured: Sequence[Measurement]
) -> tuple[tuple[Observation, ...], tuple[str, ...]]:
    """Return what these measurements say about a hardware, beside their workloads, and what was left out and why.

    A workload that is not stored is traced, or taken as it ships, for the occasion.
    """
    from joulemap.calibrate.observation import Observation

    known = load_models()
    found: list[Observation] = []
    left_out: dict[str, list[str]] = {}
    usable: list[tuple[Measurement, str]] = []
    for row in measured:
        mode = row.hardware.partition("@")[2] or DEFAULT_MODE
        reason = _unusable(row, hardware, mode)
        if reason:
            left_out.setdefault(reason, []).append(row.model)
        else:
            usable.append((row, mode))
    workloads = find_workloads(path, talk, {(row.model, row.batch) for row, _ in usable})
    for row, mode in usable:
        columns = workloads[row.model, row.batch]
        if isinstance(columns, str):
            left_out.setdefault(columns, []).append(row.model)
            continue
        energy_j = row.energy_j
        if energy_j is None and row.power_w is not None and row.latency_s is not None:
            energy_j = row.power_w * row.latency_s
        found.append(
            Observation(
                columns=columns,
                configuration=Configuration(
                    hardware=hardware.id,
                    precision=row.precision,
                    batch=row.batch,
                    runtime=row.runtime,
                    power_mode=mode,
                ),
                model=row.model,
                family=known[row.model].family if row.model in known else "other",
                latency_s=row.latency_s,
                energy_j=energy_j,
            )
        )
    return tuple(found), tuple(f"{_list_models(names)}: {reason}" for reason, names in left_out.items())


def find_workloads(
    path: Path, talk: Talk, wanted: Collection[tuple[str, int]]
) -> dict[tuple[str, int], WorkloadColumns | str]:
    """Return the workload of each model and batch, or why there is none: stored, as it ships, or traced."""
    found: dict[tuple[str, int], WorkloadColumns | str] = {}
    questions: dict[tuple[str, int], Question] = {}
    for model, batch in sorted(wanted):
        try:
            questions[model, batch] = ask(model, batch=batch)
        except (ModelError, UnknownNameError, UsageError) as error:
            found[model, batch] = str(error)
    talk(f"reading {len(questions)} workloads …")
    with using(open_for_reading(path) if path.exists() else open_in_memory(), path) as connection:
        for place, question in questions.items():
            key = stored_key(connection, question)
            if key is not None:
                found[place] = read_columns(connection, find_workload_id(connection, key))
    with using(open_in_memory(), "the shipped workloads") as scratch:
        for place, question in questions.items():
            if place not in found and question.shipped is not None:
                key = ensure_workload(scratch, question, None)
                found[place] = read_columns(scratch, find_workload_id(scratch, key))
    for place, question in questions.items():
        if place not in found:
            from joulemap.model.workload import columns_of

            try:
                found[place] = columns_of(trace(question.request, talk))
            except ModelError as error:
                found[place] = str(error)
    return found


def _unusable(row: Measurement, hardware: Hardware, mode: str) -> str:
    """Return why a measurement cannot be fitted; empty where it can."""
    if row.latency_s is None and row.energy_j is None:
        return "neither latency nor energy was measured"
    if row.precision not in hardware.peaks:
        return f"{hardware.id} has no {row.precision}; it has {', '.join(hardware.peaks)}"
    if mode not in (DEFAULT_MODE, *(one.name for one in hardware.power_modes)):
        return f"{hardware.id} has no power mode {mode}"
    return ""


def _list_models(names: Sequence[str]) -> str:
    distinct = list(dict.fromkeys(names))
    rows = f"{len(names)} row{'' if len(names) == 1 else 's'} of "
    more = f" and {len(distinct) - SHOWN_MODELS} more" if len(distinct) > SHOWN_MODELS else ""
    return rows + ", ".join(distinct[:SHOWN_MODELS]) + more


def _nothing(hardware: Hardware, precisions: Collection[str], models: Collection[str], left_out: Sequence[str]) -> str:
    what = f" of {', '.join(sorted(models))}" if models else ""
    at = f" at {', '.join(precisions)}" if precisions else ""
    told = f" ({'; '.join(left_out)})" if left_out else ""
    return (
        f"nothing{what}{at} was measured on {hardware.id}{told}: `joulemap measure MODEL` there, or "
        "`joulemap measurements import FILE`, then calibrate"
    )


def _answer(
    hardware: Hardware, calibration: Calibration, place: str, warnings: Sequence[str], left_out: Sequence[str]
) -> CalibrateAnswer:
    """Return the rows of a calibration, from a database made for the occasion."""
    from joulemap.store.write_calibration import ensure_calibrations
    from joulemap.store.write_catalogue import write_catalogue

    with using(open_in_memory(), "the calibration") as connection:
        write_catalogue(connection, Catalogue({hardware.id: hardware}, hardware.digest), {}, {}, "")
        ensure_calibrations(connection, [(calibration.entry(place or GIVEN), calibration, hardware)])
        of_it = {"calibration": calibration.label}
        summary = run_query(connection, find_query("calibration.list"), {})
        error = run_query(connection, find_query("calibration.error"), of_it)
        coefficient = run_query(connection, find_query("calibration.coefficient"), of_it)
    return CalibrateAnswer(
        calibration=calibration,
        summary=RunCalibration(*summary.rows[0]),
        place=place,
        error=error,
        coefficient=coefficient,
        warnings=tuple(warnings),
        left_out=tuple(left_out),
        answers=(summary, error, coefficient),
    )
