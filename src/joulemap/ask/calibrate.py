"""Fit a calibration to all measurements of a chip, and report its errors."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, Never

import attrs

from joulemap.ask.answer import Answer
from joulemap.ask.finding import Finding
from joulemap.ask.measurement import find_described, find_measurements, observe, select_models
from joulemap.catalog.calibration import calibration_text, own_folder, parse_calibration, write_calibration
from joulemap.catalog.digest import is_hardware_path
from joulemap.catalog.sheet import load_models
from joulemap.catalog.spread import load_spreads, scale_unattributed
from joulemap.domain.catalogue import find_model_name
from joulemap.domain.hardware_ref import HardwareRef
from joulemap.domain.measurement import Measurement, PowerState
from joulemap.domain.printer import find_printer
from joulemap.domain.settings import check_name
from joulemap.domain.table import Table
from joulemap.generated.calibration import CalibrationErrorRow, FittedNumber, StoredCalibration
from joulemap.physics.record.calibration import Calibration, FittedValue, is_pace
from joulemap.physics.record.configuration import PRECISION_BYTES, name_precision
from joulemap.physics.record.hardware import Hardware
from joulemap.plan.anchor import anchor_hardware, apply_calibration
from joulemap.plan.calibration import GIVEN, use_calibration
from joulemap.plan.catalogue import check_names, known_hardware, opening_alone
from joulemap.plan.selection import read_names
from joulemap.plan.source import Source
from joulemap.plan.version import formula_version
from joulemap.store.query import fetch
from joulemap.system.errors import CatalogueError, NoMeasurementError, UnknownNameError, UsageError
from joulemap.system.file import check_output
from joulemap.system.record import frozen


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
    beside: Sequence[Measurement] = (),
) -> CalibrateAnswer:
    """Fit the coefficients of a chip to its measurements.

    `precisions` and `models` restrict the measurements; empty means all. `operators` adds single operators and blocks
    to whole models; without it they count only if no whole model was measured. `beside` holds additional measurements
    that are not stored. The calibration is written to `output`, or to the user's own folder, where `auto` finds it;
    `is_dry` writes nothing. `start` selects the initial values: `none` for the class defaults, or any `calibration` of
    `compare`. Power states determine the parts of a board's power, other measurements the rest. Model files that
    measurements name run only with `trust`. An existing file that is not a calibration is never replaced. Raises
    NoMeasurementError if no measurement matches, UnknownNameError, UsageError, or CatalogueError for an invalid file.
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
        check_output(path, inputs)
    measured = [
        row
        for row in dict.fromkeys((*find_measurements(source), *beside))
        if HardwareRef.read(row.hardware).label == target.id
        and (not precisions or row.precision in precisions)
        and (not models or row.model in models)
    ]
    states = [(one, row.power_w) for row in measured if (one := PowerState.read(row.model)) and row.power_w]
    measured = [row for row in measured if PowerState.read(row.model) is None]
    kept, dropped = _keep_paces(target)
    chosen = measured if operators else select_models(measured)
    observations, omitted = observe(source, target, chosen, trust=trust)
    left_out = find_printer().describe_findings(omitted)
    if not observations and not states:
        _refuse(target, precisions, models, left_out)
    if not is_dry:
        source.talk(f"fitting a calibration that will be written to {path} …")
    from joulemap.calibrate.calibration import Freedom, calibrate as fit
    from joulemap.calibrate.part import fit_parts, join_parts, list_held

    anchored = anchor_hardware(target)
    version, parts = formula_version(target.architecture), None
    if states:
        text = calibration_text(fit_parts(anchored, states, version))
        parts = parse_calibration(text, path.stem)  # its digest tells the anchored board from others
        anchored = apply_calibration(anchored, parts)
    spreads = load_spreads(target.architecture).within(anchored)
    entry = use.find(target)
    if entry is not None and entry.hardware != target.id:
        entry = None
    whole, warnings = parts, tuple[str, ...]()
    if observations or whole is None:
        outcome = fit(
            anchored,
            observations,
            Freedom(
                coefficients={one.name: one.spread for one in spreads.coefficients},
                scales=tuple(
                    (one.scale, one.spread)
                    for one in (*spreads.energy_scales, *scale_unattributed(anchored.reference))
                    if parts is None or list_held(parts).isdisjoint(one.scale.actions)
                ),
            ),
            formula_version=version,
            start=use.read(entry) if entry else None,
            report=source.talk,
        )
        warnings = outcome.warnings
        whole = outcome.calibration if parts is None else join_parts(parts, outcome.calibration)
    whole = attrs.evolve(whole, coefficients={**whole.coefficients, **kept})
    calibration = parse_calibration(calibration_text(whole), path.stem)
    if not is_dry:
        write_calibration(calibration, path, inputs)
    return _answer(
        target,
        calibration,
        "" if is_dry else str(path),
        (*warnings, *find_printer().describe_findings(dropped)),
        left_out,
    )


def _keep_paces(hardware: Hardware) -> tuple[dict[str, FittedValue], list[Finding]]:
    """Return the pass-time factors of serving engines that a fit to single runs keeps, and a finding on dropped ones.

    They come from the chip's current calibration. Factors that were fitted with other formulas are dropped, and so is a
    file that cannot be read, because a new fit replaces it.
    """
    use = use_calibration("own")
    entry = use.find(hardware)
    if entry is None:
        return {}, []
    try:
        one = use.read(entry)
    except CatalogueError as error:
        return {}, [Finding(kind="unread", values={"reason": str(error)})]
    paces = {name: value for name, value in one.coefficients.items() if is_pace(name)}
    if one.hardware != hardware.id or not paces:
        return {}, []
    if one.formula_version != formula_version(hardware.architecture):
        return {}, [Finding(kind="old_paces", values={"paces": len(paces)})]
    return paces, []


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


def _refuse(hardware: Hardware, precisions: Collection[str], models: Collection[str], left_out: Sequence[str]) -> Never:
    what = f" of {', '.join(sorted(models))}" if models else ""
    at = f" at {', '.join(precisions)}" if precisions else ""
    reasons = f" ({'; '.join(left_out)})" if left_out else ""
    raise NoMeasurementError(
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
