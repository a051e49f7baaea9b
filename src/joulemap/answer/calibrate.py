"""All that was measured on a hardware, fitted: the calibration as a file, and how well it does."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

import attrs

from joulemap.answer.answer import Answer, close_sections
from joulemap.answer.hardware import StoredCalibration
from joulemap.answer.measurement import find_described, find_measurements
from joulemap.catalog.calibration import (
    calibration_text,
    own_folder,
    parse_calibration,
    write_calibration,
)
from joulemap.catalog.digest import is_hardware_path
from joulemap.catalog.sheet import load_models
from joulemap.catalog.spread import load_spreads
from joulemap.domain.catalogue import DEFAULT_MODE, find_entry
from joulemap.domain.configuration import Configuration
from joulemap.domain.measurement import Measurement
from joulemap.domain.precision import PRECISION_BYTES
from joulemap.domain.settings import Settings, check_name
from joulemap.domain.table import Table
from joulemap.errors import ModelError, NoMeasurementError, UnknownNameError, UsageError
from joulemap.model.version import formula_version
from joulemap.plan.calibration import GIVEN, CalibrationChoice
from joulemap.plan.catalogue import check_names, known_hardware, opening_alone
from joulemap.plan.selection import read_names
from joulemap.plan.source import Source
from joulemap.plan.workload import Model, ensure_workload, find_model, find_workload_id, stored_key, trace
from joulemap.present.cell import show_count, show_quantity
from joulemap.present.document import Document, Grid, Section, grid
from joulemap.store.connection import open_for_reading, open_in_memory, using
from joulemap.store.query import fetch
from joulemap.store.read import read_columns

if TYPE_CHECKING:
    from joulemap.calibrate.observation import Observation
    from joulemap.domain.calibration import Calibration
    from joulemap.domain.hardware import Hardware
    from joulemap.model.workload import WorkloadColumns

SHOWN_MODELS: Final = 5

PARTS: Final = ("operator", "block")
"""Families of what is less than a model. A fit to models is not made on them."""


@attrs.frozen
class CalibrationErrorRow:
    """How far predictions are from the measurements of one group, by how they were fitted."""

    query: ClassVar[str] = "calibration.error"

    quantity: str
    runtime: str | None
    precision: str | None
    batch: int | None
    family: str | None
    measurement_count: int
    uncalibrated_mean_fraction: float | None
    uncalibrated_median_fraction: float | None
    fitted_mean_fraction: float | None
    fitted_median_fraction: float | None
    cross_validated_mean_fraction: float | None
    cross_validated_median_fraction: float | None
    cross_validated_worst_fraction: float | None
    rank_correlation: float | None


@attrs.frozen
class FittedNumber:
    """A coefficient or energy scale that a calibration changed."""

    query: ClassVar[str] = "calibration.coefficient"

    part: str
    """`time`, `energy` or `static`."""
    name: str
    default_value: float
    value: float
    unit: str
    ratio: float
    meaning: str
    coefficient_index: int


@attrs.frozen(kw_only=True)
class CalibrateAnswer(Answer):
    """A calibration that was fitted, and how well it does."""

    calibration: Calibration
    place: str
    """The file that it was written to; empty for a trial."""
    summaries: Table[StoredCalibration]
    """One row."""
    errors: Table[CalibrationErrorRow]
    """One row per quantity and group of measurements."""
    coefficients: Table[FittedNumber]
    """One row per coefficient and energy scale that it changed."""
    warnings: tuple[str, ...]
    """Measurements that contradict each other."""
    left_out: tuple[str, ...]
    """Measurements that were not fitted, and why."""

    @property
    def summary(self) -> StoredCalibration:
        """The calibration as answers name it."""
        return self.summaries[0]

    def data(self) -> dict[str, Any]:
        """Return what programs get."""
        data = super().data()
        return {
            **data.pop("summaries")[0],
            "written_to": self.place or None,
            **data,
            "warnings": self.warnings,
            "left_out": self.left_out,
        }

    def document(self) -> Document:
        """Return it for people and programs; csv holds the errors."""
        one = self.calibration
        counts = f"{one.latency_count} with latency, {one.energy_count} with energy"
        sections = (
            Section("Errors", self._errors(is_family=False)),
            Section("By family", self._errors(is_family=True)),
            Section(
                "Coefficients",
                grid(
                    self.coefficients,
                    (
                        ("part", "part"),
                        ("name", "name"),
                        ("before", lambda row: _amount(row.default_value, row.unit)),
                        ("after", lambda row: _amount(row.value, row.unit)),
                        ("ratio", "ratio"),
                        ("meaning", "meaning"),
                    ),
                    keep=("name", "after", "ratio"),
                ),
            ),
        )
        return Document(
            title=f"calibration {one.label} of {one.hardware}, fitted to "
            f"{show_count(one.row_count, 'measurement')} ({counts}) of "
            f"{show_count(len(one.families), 'family', 'families')}",
            sections=close_sections(sections, self._notes()),
            data=self.data(),
            table=self.errors,
            tables=self.tables,
        )

    def _errors(self, *, is_family: bool) -> Grid:
        rows = tuple(row for row in self.errors if (row.family is not None) is is_family)
        places = (
            (("family", "family"),)
            if is_family
            else (
                ("runtime", lambda row: row.runtime or "all"),
                ("precision", lambda row: row.precision or "all"),
                ("batch", lambda row: str(row.batch or "all")),
            )
        )
        return grid(
            attrs.evolve(self.errors, rows=rows),
            (
                ("quantity", "quantity"),
                *places,
                ("rows", "measurement_count"),
                ("class defaults: mean", "uncalibrated_mean_fraction"),
                ("median", "uncalibrated_median_fraction"),
                ("fitted: mean", "fitted_mean_fraction"),
                ("median", "fitted_median_fraction"),
                ("family left out: mean", "cross_validated_mean_fraction"),
                ("median", "cross_validated_median_fraction"),
                ("worst", "cross_validated_worst_fraction"),
                ("rank", lambda row: "" if row.rank_correlation is None else f"{row.rank_correlation:.3f}"),
            ),
            keep=("family", "runtime", "precision", "batch", "rows", "fitted: mean", "family left out: mean"),
        )

    def _notes(self) -> list[str]:
        notes = []
        if len(self.calibration.families) == 1:
            notes.append("one family: nothing can be left out, so nothing says how it does on other models")
        notes += self.warnings
        notes += [f"left out: {line}" for line in self.left_out]
        if self.place:
            notes.append(f"written to {self.place}; `--calibration none` answers without it")
        else:
            notes.append("a trial: nothing was written")
        return notes


def _amount(value: float, unit: str) -> str:
    return f"{value:.4g}" if unit == "1" else show_quantity(value, unit)


def fit_hardware(
    source: Source,
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
        check_name("precision", precision, PRECISION_BYTES)
    path = source.path
    target = find_target(path, hardware)
    measured = [
        row
        for row in find_measurements(path)
        if row.hardware.partition("@")[0] == target.id
        and (not precisions or row.precision in precisions)
        and (not models or row.model in models)
    ]
    observations, left_out = observe(source, target, _of_models(measured))
    if not observations:
        raise NoMeasurementError(_nothing(target, precisions, models, left_out))
    from joulemap.calibrate.calibration import Freedom, calibrate as fit

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
        tell=source.talk,
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
        described = find_described(path, name) if path.exists() else None
        if described is None:
            raise
        return described


def observe(
    source: Source, hardware: Hardware, measured: Sequence[Measurement]
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
    workloads = find_workloads(source, {(row.model, row.batch) for row, _ in usable})
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


def find_workloads(source: Source, wanted: Collection[tuple[str, int]]) -> dict[tuple[str, int], WorkloadColumns | str]:
    """Return the workload of each model and batch, or why there is none: stored, as it ships, or traced."""
    found: dict[tuple[str, int], WorkloadColumns | str] = {}
    models: dict[tuple[str, int], Model] = {}
    for name, batch in sorted(wanted):
        try:
            models[name, batch] = find_model(name, Settings(), batch)
        except (ModelError, UnknownNameError, UsageError) as error:
            found[name, batch] = str(error)
    source.talk(f"reading {len(models)} workloads …")
    path = source.path
    with using(open_for_reading(path) if path.exists() else open_in_memory(), path) as connection:
        for place, model in models.items():
            key = stored_key(connection, model)
            if key is not None:
                found[place] = read_columns(connection, find_workload_id(connection, key))
    with using(open_in_memory(), "the shipped workloads") as scratch:
        for place, model in models.items():
            if place not in found and model.shipped is not None:
                key = ensure_workload(scratch, model, None)
                found[place] = read_columns(scratch, find_workload_id(scratch, key))
    for place, model in models.items():
        if place not in found:
            from joulemap.model.workload import columns_of

            try:
                found[place] = columns_of(trace(model.request, source.talk))
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
    more = f" and {len(distinct) - SHOWN_MODELS} more" if len(distinct) > SHOWN_MODELS else ""
    return f"{show_count(len(names), 'row')} of {', '.join(distinct[:SHOWN_MODELS])}{more}"


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
    with opening_alone(hardware, (calibration.entry(place or GIVEN), calibration, hardware)) as connection:
        return CalibrateAnswer(
            calibration=calibration,
            place=place,
            summaries=fetch(connection, StoredCalibration),
            errors=fetch(connection, CalibrationErrorRow, calibration=calibration.label),
            coefficients=fetch(connection, FittedNumber, calibration=calibration.label),
            warnings=tuple(warnings),
            left_out=tuple(left_out),
        )
