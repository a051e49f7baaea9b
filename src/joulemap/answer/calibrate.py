"""Fit a calibration to all measurements of a chip, and report its errors."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import attrs

from joulemap.answer.base import Answer
from joulemap.answer.measurement import find_described, find_measurements, observe, select_models
from joulemap.ask.setting import find_few
from joulemap.catalog.calibration import calibration_text, own_folder, parse_calibration, write_calibration
from joulemap.catalog.digest import is_hardware_path
from joulemap.catalog.sheet import load_models
from joulemap.catalog.spread import load_spreads, scale_unattributed
from joulemap.domain.catalogue import find_model_name
from joulemap.domain.hardware_ref import HardwareRef
from joulemap.domain.settings import check_name
from joulemap.domain.table import Table
from joulemap.generated.calibration import CalibrationErrorRow, FittedNumber, StoredCalibration
from joulemap.physics.record.calibration import DETERMINED, is_pace
from joulemap.physics.record.configuration import PRECISION_BYTES, name_precision
from joulemap.plan.anchor import anchor_hardware
from joulemap.plan.calibration import GIVEN, use_calibration
from joulemap.plan.catalogue import check_names, known_hardware, opening_alone
from joulemap.plan.selection import read_names
from joulemap.plan.source import Source
from joulemap.plan.version import formula_version
from joulemap.show.caveat import describe_values
from joulemap.show.page import add_marks
from joulemap.show.present.cell import show_quantity
from joulemap.show.present.document import Document, Grid, Section
from joulemap.show.present.template import Template
from joulemap.store.query import fetch
from joulemap.system.errors import CatalogueError, NoMeasurementError, UnknownNameError, UsageError
from joulemap.system.file import check_output
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.domain.measurement import Measurement
    from joulemap.physics.record.calibration import Calibration, FittedValue
    from joulemap.physics.record.hardware import Hardware


TITLE: Final = Template(
    "calibration {label} of {hardware}, fitted to {row_count:n measurement} ({latency_count} of latency, "
    "{energy_count} of energy) of {families:n family|families}"
)
FITTED: Final = Template(
    "median {quantity} error {fitted_median_fraction:%} fitted, {uncalibrated_median_fraction:%} with class defaults"
    "[, {cross_validated_median_fraction:%} with the family held out]"
)
ERRORS: Final = "Errors"
ERROR_COLUMNS: Final = "quantity | *runtime | *precision | *batch size batch | *measurements measurement_count"
BY_FAMILY: Final = "By model family"
FAMILY_COLUMNS: Final = "quantity | *family | *measurements measurement_count"
SHARES: Final = (
    "class defaults mean uncalibrated_mean_fraction | class defaults median uncalibrated_median_fraction | "
    "*fitted mean fitted_mean_fraction | fitted median fitted_median_fraction | "
    "*held-out mean cross_validated_mean_fraction | held-out median cross_validated_median_fraction | "
    "held-out worst cross_validated_worst_fraction | rank correlation rank_correlation"
)
ALL: Final = "all"
COEFFICIENTS: Final = "Coefficients"
COEFFICIENT_COLUMNS: Final = (
    "part | *name | class default default_value | *fitted value | *ratio | weight of the data data_weight_fraction | "
    "meaning"
)

PARTED: Final = "one family: a tenth of its models is held out at a time, so errors on other families are unknown"
WHOLE: Final = "one family and too few models to hold any out, so errors on other models are unknown"
UNDETERMINED: Final = Template(
    "the data do not determine {count} of {moved:n changed number} (weight of the data below {least:set %}); their "
    "basis is unchanged"
)
OLD_PACES: Final = Template(
    "dropped {paces:n factor} on the passes of serving engines, fitted with other formulas: fit them again to the "
    "measurements that they came from"
)
UNREAD: Final = Template("factors of the earlier calibration are dropped: {reason}")
LEFT_OUT: Final = Template("left out: {line}")
WRITES: Final = Template("fitting a calibration that will be written to {path} …")
WRITTEN: Final = Template("written to {written_to}; `--calibration none` disables it")
DRY: Final = "a dry run: nothing was written"


@frozen(kw_only=True)
class CalibrateAnswer(Answer):
    """Fitted calibration, and its errors."""

    calibration: Calibration
    written_to: str
    """Path of the file with the calibration; empty for a dry run."""
    summaries: Table[StoredCalibration]
    """Summary of the calibration; one row."""
    errors: Table[CalibrationErrorRow]
    """Errors, one row per quantity and group of measurements."""
    coefficients: Table[FittedNumber]
    """Coefficients and energy scales that the fit changed, one row each."""
    warnings: tuple[str, ...]
    """Warnings, such as on measurements that contradict each other."""
    left_out: tuple[str, ...]
    """Measurements that were not fitted, with reasons."""

    @property
    def summary(self) -> StoredCalibration:
        """Summary of the fitted calibration."""
        return self.summaries[0]

    def data(self) -> dict[str, Any]:
        """Return the data for machine formats."""
        data = super().data()
        return {
            **data.pop("summaries")[0],
            "written_to": self.written_to or None,
            **data,
            "warnings": self.warnings,
            "left_out": self.left_out,
        }

    def document(self) -> Document:
        """Return the document; csv contains the errors."""
        one = self.calibration
        totals = [row for row in self.errors if not (row.runtime or row.precision or row.batch or row.family)]
        errors = Section(ERRORS, self._draw_errors(ERROR_COLUMNS, is_family=False))
        details = (
            Section(BY_FAMILY, self._draw_errors(FAMILY_COLUMNS, is_family=True)),
            Section(
                COEFFICIENTS,
                self._lay(
                    self.coefficients,
                    COEFFICIENT_COLUMNS,
                    default_value=lambda row: _show_amount(row.default_value, row.unit),
                    value=lambda row: _show_amount(row.value, row.unit),
                ),
            ),
        )
        return Document(
            title=TITLE(one, families=len(one.families)),
            answer="; ".join(FITTED(row) for row in totals),
            sections=(errors,),
            details=details,
            notes=add_marks(tuple(self._list_notes()), (errors, *details)),
            data=self.data(),
            table=self.errors,
            tables=self.tables,
        )

    def _draw_errors(self, columns: str, *, is_family: bool) -> Grid:
        rows = tuple(row for row in self.errors if (row.family is not None) is is_family)
        return self._lay(
            self.errors.with_rows(rows),
            f"{columns} | {SHARES}",
            runtime=lambda row: row.runtime or ALL,
            precision=lambda row: row.precision or ALL,
            batch=lambda row: str(row.batch or ALL),
            rank_correlation=lambda row: "" if row.rank_correlation is None else f"{row.rank_correlation:.3f}",
        )

    def _list_notes(self) -> Iterator[str]:
        if len(self.calibration.families) == 1:
            is_parted = any(row.cross_validated_mean_fraction is not None for row in self.errors)
            yield PARTED if is_parted else WHOLE
        yield from (describe_values(one.kind, one.values) for one in find_few(self.summary))
        if count := self.summary.moved_count - self.summary.determined_count:
            yield UNDETERMINED(count=count, moved=self.summary.moved_count, least=DETERMINED)
        yield from self.warnings
        yield from (LEFT_OUT(line=line) for line in self.left_out)
        yield WRITTEN(self) if self.written_to else DRY


def _show_amount(value: float, unit: str) -> str:
    return f"{value:.4g}" if unit == "1" else show_quantity(value, unit)


def calibrate(
    source: Source,
    hardware: str | Hardware,
    *,
    precisions: Collection[str] = (),
    models: Collection[str] = (),
    operators: bool = False,
    output: str | Path | None = None,
    is_dry: bool = False,
    start: str | Calibration = "none",
    trust: bool = False,
    force: bool = False,
    beside: Sequence[Measurement] = (),
) -> CalibrateAnswer:
    """Fit the coefficients of a chip to its measurements.

    `precisions` and `models` restrict the measurements; empty means all. `operators` adds single operators and blocks
    to whole models; without it they count only if no whole model was measured. `beside` holds additional measurements
    that are not stored. The calibration is written to `output`, or to the user's own folder, where `auto` finds it;
    `is_dry` writes nothing. `start` selects the initial values: `none` for the class defaults, or any `calibration` of
    `compare`. Model files that measurements name run only with `trust`. An existing file that is not a calibration is
    replaced only with `force`. Raises NoMeasurementError if no measurement matches, UnknownNameError, UsageError, or
    CatalogueError for an invalid file.
    """
    use = use_calibration(start)
    precisions = [name_precision(precision) for precision in precisions]
    for precision in precisions:
        check_name("precision", precision, PRECISION_BYTES)
    models = [find_model_name(model, load_models()) for model in models]
    target = find_target(source, hardware)
    path = Path(output) if output is not None else own_folder() / f"{target.id}.toml"
    inputs = (source.path, *([Path(hardware)] if isinstance(hardware, str) and is_hardware_path(hardware) else ()))
    if not is_dry and os.path.isdir(path.parent):
        check_output(path, inputs, force=force)
    measured = [
        row
        for row in dict.fromkeys((*find_measurements(source), *beside))
        if HardwareRef.read(row.hardware).label == target.id
        and (not precisions or row.precision in precisions)
        and (not models or row.model in models)
    ]
    kept, dropped = _keep_paces(target)
    observations, left_out = observe(source, target, measured if operators else select_models(measured), trust=trust)
    if not observations:
        raise NoMeasurementError(_explain_nothing(target, precisions, models, left_out))
    if not is_dry:
        source.talk(WRITES(path=path))
    from joulemap.calibrate.calibration import Freedom, calibrate as fit

    anchored = anchor_hardware(target)
    spreads = load_spreads(target.architecture).within(anchored)
    entry = use.find(target)
    if entry is not None and entry.hardware != target.id:
        entry = None
    outcome = fit(
        anchored,
        observations,
        Freedom(
            coefficients={one.name: one.spread for one in spreads.coefficients},
            scales=tuple(
                (one.scale, one.spread) for one in (*spreads.energy_scales, *scale_unattributed(anchored.reference))
            ),
        ),
        formula_version=formula_version(target.architecture),
        start=use.read(entry) if entry else None,
        report=source.talk,
    )
    whole = attrs.evolve(outcome.calibration, coefficients={**outcome.calibration.coefficients, **kept})
    calibration = parse_calibration(calibration_text(whole), path.stem)
    if not is_dry:
        write_calibration(calibration, path, inputs, force=force)
    return _answer(target, calibration, "" if is_dry else str(path), (*outcome.warnings, *dropped), left_out)


def _keep_paces(hardware: Hardware) -> tuple[dict[str, FittedValue], tuple[str, ...]]:
    """Return the pass-time factors of serving engines that a fit to single runs keeps, and a warning on dropped ones.

    They come from the chip's current calibration. Factors that were fitted with other formulas are dropped, and so is a
    file that cannot be read, because a new fit replaces it.
    """
    use = use_calibration("own")
    entry = use.find(hardware)
    if entry is None:
        return {}, ()
    try:
        one = use.read(entry)
    except CatalogueError as error:
        return {}, (UNREAD(reason=error),)
    paces = {name: value for name, value in one.coefficients.items() if is_pace(name)}
    if one.hardware != hardware.id or not paces:
        return {}, ()
    if one.formula_version != formula_version(hardware.architecture):
        return {}, (OLD_PACES(paces=len(paces)),)
    return paces, ()


def find_target(source: Source, hardware: str | Hardware) -> Hardware:
    """Return the hardware with this name, file or record, or the hardware that `measure` stored under this name.

    Raises UnknownNameError, UsageError or CatalogueError.
    """
    from joulemap.catalog.load import find_hardware

    name = hardware if isinstance(hardware, str) else ""
    if (ref := HardwareRef.read(name)).mode:
        raise UsageError(f"a calibration covers all power modes of a chip: name {ref.label}")
    if not isinstance(hardware, str) or is_hardware_path(name):
        names, own, _ = read_names([hardware], known_hardware())
        if len(names) != 1:
            raise UsageError(f"{name} holds {len(names)} chips, expected one; name its file")
        check_names(own.items(), known_hardware())
        if own:
            return next(iter(own.values()))
        return find_hardware(names[0])
    try:
        return find_hardware(name)
    except UnknownNameError:
        described = find_described(source, name)
        if described is None:
            raise
        return described


def _explain_nothing(
    hardware: Hardware, precisions: Collection[str], models: Collection[str], left_out: Sequence[str]
) -> str:
    what = f" of {', '.join(sorted(models))}" if models else ""
    at = f" at {', '.join(precisions)}" if precisions else ""
    reasons = f" ({'; '.join(left_out)})" if left_out else ""
    return (
        f"no measurement{what}{at} on {hardware.id} can be fitted{reasons}: run `joulemap measure MODEL` there, or "
        "`joulemap measurements import FILE`, then calibrate"
    )


def _answer(
    hardware: Hardware, calibration: Calibration, path: str, warnings: Sequence[str], left_out: Sequence[str]
) -> CalibrateAnswer:
    """Return the answer on a calibration, with rows from a temporary database."""
    with opening_alone(hardware, (calibration.entry(path or GIVEN), calibration, hardware)) as connection:
        return CalibrateAnswer(
            calibration=calibration,
            written_to=path,
            summaries=fetch(connection, StoredCalibration),
            errors=fetch(connection, CalibrationErrorRow, calibration=calibration.label),
            coefficients=fetch(connection, FittedNumber, calibration=calibration.label),
            warnings=tuple(warnings),
            left_out=tuple(left_out),
        )
