"""Score predictions against measurements."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, get_args

import attrs

from joulemap.ask.finding import Finding
from joulemap.ask.measurement import (
    count_models,
    find_described,
    name_measured,
    name_models,
    opening_rows,
    update_measurements,
)
from joulemap.catalog.public import load_public_tables
from joulemap.domain.architecture import CLASS_HARDWARE
from joulemap.domain.catalogue import find_entry
from joulemap.domain.hardware_ref import HardwareRef
from joulemap.domain.measurement import PowerState
from joulemap.domain.operator.name import is_operator
from joulemap.domain.printer import find_printer
from joulemap.domain.settings import ScoreDivision, Settings, check_name
from joulemap.domain.table import Table
from joulemap.generated.measurement import ListedMeasurement, ServedMeasurement
from joulemap.generated.validate import EnergyEvidence, OperatorScore, PredictionScore, ServingRefusal
from joulemap.physics.record.calibration import Calibration
from joulemap.physics.record.configuration import BOARD, BOUNDARY_NAMES, SYSTEM, BoundaryName, Precision, name_precision
from joulemap.physics.record.hardware import Hardware
from joulemap.plan.calibration import use_calibration
from joulemap.plan.catalogue import known_hardware, opening_catalogue
from joulemap.plan.estimate import SizedOperator, ensure_estimates
from joulemap.plan.reader import reading
from joulemap.plan.run import Plan, plan_runs
from joulemap.plan.source import Source
from joulemap.plan.stored_runs import ensure_all
from joulemap.store.connection import Connection
from joulemap.store.library import find_query
from joulemap.store.query import fetch, find_projected, run_query
from joulemap.system.errors import (
    OTHER,
    CatalogueError,
    ModelError,
    NoMeasurementError,
    UnknownNameError,
    UnsupportedError,
    UntrustedError,
    UsageError,
)
from joulemap.system.wing import find_parts

STORED: Final = (
    "SELECT source, hardware, model, CAST(batch AS DOUBLE) FROM measurements "
    "UNION SELECT source, hardware, model, batch FROM serving_measurements"
)
"""SQL query for source, hardware, model and batch of every stored measurement, the fields of `PublicTable.keys`."""

SHOWN_REASONS: Final = 5
"""Maximum reasons listed for measurements of served models without a prediction, most frequent first."""


def validate(
    database: Source,
    hardware: str = "",
    model: str = "",
    *,
    precision: Precision | Literal[""] = "",
    by: ScoreDivision = "runtime",
    source: str = "",
    calibration: str | Calibration = "auto",
    trust: bool = False,
) -> Table[PredictionScore]:
    """Score predictions against measurements, with one row for each value of `by`.

    `by` is runtime, family, kind of operator, model, batch, precision, engine, hardware, or split: how new the
    measurements are to the fitted coefficients. Source and quantity divide the rows of all hardware together, and all
    gives one row per quantity. `model` may be a kind of operator, such as `gemm`, or a part of the names of served
    models; `source` is a part of the sources of measurements. Measured configurations that are not stored are evaluated
    first; the table's notes count measurements of served models that cannot be predicted. `calibration` is as for
    `compare`. Each measurement at fp32 is predicted at its matmul precision. Model files named in rows
    run only with `trust`; without it the notes name them. Raises NoMeasurementError if nothing matches.
    """
    check_name("division", by, get_args(ScoreDivision))
    which = {**_name_measured(database, hardware, model, precision), "source": source}
    with evaluating_measured(database, which, calibration, trust=trust) as (connection, used, notes):
        scores = fetch(connection, PredictionScore, **which, by=by, calibrations=used)
        return attrs.evolve(find_projected(connection, scores), notes=find_printer().describe_findings(notes))


@contextlib.contextmanager
def evaluating_measured(
    database: Source, which: Mapping[str, str], calibration: str | Calibration, *, trust: bool
) -> Iterator[tuple[Connection, list[str], list[Finding]]]:
    """Predict the selected measurements that have no stored prediction; yield a connection, calibrations and findings
    on those that have none.

    `which` maps `hardware`, `model`, `precision` and `source` to filters; an empty string selects all. Raises
    NoMeasurementError if no measurement is selected.
    """
    update_measurements(database)
    selected = {name: which[name] for name in ("hardware", "model", "source")}
    with opening_rows(database) as connection:
        measured = fetch(connection, ListedMeasurement, **selected)
        listed = fetch(connection, ServedMeasurement, **selected)
    served = {
        row.serving_measurement_id: row.hardware for row in listed if which["precision"] in ("", row.weight_precision)
    }
    named, notes = _ensure_runs(database, measured, which, calibration, trust=trust, beside=served.values())
    used = sorted({*named, *_ensure_served(database, served, calibration)})
    with reading(database) as connection:
        refused = fetch(connection, ServingRefusal, **selected)
        yield connection, used, [*notes, *_find_refused(refused.rows, len(served))]


def _ensure_served(database: Source, served: Collection[int], calibration: str | Calibration) -> set[str]:
    """Predict measurements of served models that have no stored prediction; return labels of calibrations."""
    used = use_calibration(calibration)
    return {label for ensure in find_parts("scores") for label in ensure(database, served, used)}


def serving_refusals(database: Source, hardware: str = "", model: str = "", source: str = "") -> Table[ServingRefusal]:
    """Return the measurements of served models that `validate` could not predict, with reasons."""
    which = {**_name_measured(database, hardware, model, ""), "source": source}
    del which["precision"]
    with reading(database) as connection:
        return find_projected(connection, fetch(connection, ServingRefusal, **which))


def _find_refused(refused: Sequence[ServingRefusal], count: int) -> Iterator[Finding]:
    """Find why measurements of served models have no prediction; `count` is the number of all."""
    if not refused:
        return
    reasons, first = Counter[str](), dict[str, str]()
    for row in refused:
        alike = row.refusal if row.refusal_code == OTHER else row.refusal_code
        reasons[first.setdefault(alike, row.refusal)] += row.measurement_count
    shown = tuple(f"{number:,}: {reason}" for reason, number in reasons.most_common(SHOWN_REASONS))
    more = max(0, len(reasons) - SHOWN_REASONS)
    yield Finding(kind="unserved", values={"count": count, "reasons": "; ".join(shown), "more": more})


def validate_operators(
    source: Source,
    hardware: str = "",
    model: str = "",
    *,
    precision: Precision | Literal[""] = "",
    calibration: str | Calibration = "auto",
    trust: bool = False,
) -> Table[OperatorScore]:
    """Score predicted device times inside models against measured ones, by kind of operator.

    Missing runs are evaluated as in `validate`; raises like `validate`.
    """
    which = _name_measured(source, hardware, model, precision)
    with opening_catalogue(source) as connection:
        measured = run_query(connection, find_query("measurement.profile"), which)
    _, notes = _ensure_runs(source, measured, which, calibration, trust=trust, has_ledger=True)
    with reading(source) as connection:
        scores = find_projected(connection, fetch(connection, OperatorScore, **which))
        return attrs.evolve(scores, notes=find_printer().describe_findings(notes))


def _name_measured(source: Source, hardware: str, model: str, precision: str) -> dict[str, str]:
    """Return the filters of a query, with names as measurements store them; an empty string selects all."""
    return {
        "hardware": name_measured(source, hardware),
        "model": name_models(model),
        "precision": name_precision(precision),
    }


def _ensure_runs(
    source: Source,
    measured: Table[Any],
    which: Mapping[str, str],
    calibration: str | Calibration,
    *,
    trust: bool,
    beside: Collection[str] = (),
    has_ledger: bool = False,
) -> tuple[tuple[str, ...], list[Finding]]:
    """Evaluate every measured configuration that is not stored; return calibrations and findings.

    Each calibration is a text `HARDWARE LABEL`. Findings are measurements that are not scored, because their code did
    not run, or because they cannot be read, found or traced. `measured` names configurations; `which` contains the
    filters that selected them. `beside` names hardware of measurements that are predicted elsewhere. Raises
    NoMeasurementError if there are no measurements.
    """
    rows = [
        row
        for row in measured.records()
        if which["precision"] in ("", row["precision"]) and not PowerState.read(row["model"])
    ]
    if not rows and not beside:
        what = " and ".join(text for text in which.values() if text)
        tables = load_public_tables().values()
        wanted = which.get("source", "").lower()
        has_table = any(wanted and wanted in table.source.lower() for table in tables)
        raise NoMeasurementError(
            f"no measurement of {what}: see `joulemap measurements list`"
            + (" and `joulemap measurements tables`" if has_table or which.get("model") else "")
        )
    groups: dict[tuple[str, Any, Any, Any, int, BoundaryName], list[str]] = {}
    operators: dict[tuple[str, Any, Any, Any], list[SizedOperator]] = {}
    for row in rows:
        configuration = row["hardware"], row["precision"], row["matmul_precision"], row["runtime"]
        if is_operator(row["model"]):
            operators.setdefault(configuration, []).append((row["model"], row["batch"]))
        else:
            own = row.get("boundary") or BOARD
            for boundary in (own, SYSTEM) if row.get("wall_power_w") is not None else (own,):
                groups.setdefault((*configuration, row["batch"], boundary), []).append(row["model"])
    use = use_calibration(calibration)
    use.check({HardwareRef.read(name).label for name in (*(row["hardware"] for row in rows), *beside)})
    used: set[str] = set()
    unfit: dict[str, str] = {}

    def find_settings(
        name: str, precision: Any, setting: Any, runtime: Any, batch: int = 1, boundary: BoundaryName = BOARD
    ) -> Settings | None:
        plain = HardwareRef.read(name).label
        try:
            target = _find_target(source, name)
            chip = find_entry(known_hardware([plain]), plain) if isinstance(target, str) else target
            use.check_own(chip)
        except (UnsupportedError, CatalogueError) as error:
            unfit[name] = str(error)
            return None
        applied = use.find(chip)
        if applied is not None:
            used.add(f"{chip.id} {applied.label}")
        named = use.named_for(plain)
        return Settings(
            hardware=target,
            precision=precision,
            matmul_precision=setting,
            runtime=runtime,
            batch=batch,
            boundary=boundary,
            calibration=named,
            is_named=False,
            trust=trust,
        )

    for (name, precision, setting, runtime), places in operators.items():
        settings = find_settings(name, precision, setting, runtime)
        if settings is not None:
            source.talk(f"{name}, {precision}, {runtime}: {len(places)} measurements of operators")
            ensure_estimates(source, places, settings)
    plans: list[Plan] = []
    lost: dict[str, list[str]] = {}
    for (name, precision, setting, runtime, batch, boundary), models in groups.items():
        settings = find_settings(name, precision, setting, runtime, batch, boundary)
        if settings is not None:
            source.talk(f"{name}, {precision}, {runtime}, batch {batch}: {len(models)} measurements")
            plans += _plan_models(tuple(dict.fromkeys(models)), settings, lost)
        else:
            lost.setdefault(unfit[name], []).extend(models)
    failed: dict[str, ModelError] = {}
    for boundary in BOUNDARY_NAMES:
        some = [plan for plan in plans if plan.settings.boundary == boundary]
        failed |= ensure_all(attrs.evolve(source, progress=None), some, has_ledger=has_ledger)
    names = [row["model"] for row in rows]
    untrusted = [name for name in names if isinstance(failed.get(name), UntrustedError)]
    found = [Finding(kind="untrusted", values=count_models(untrusted, ""))] if untrusted else []
    for name, error in failed.items():
        if not isinstance(error, UntrustedError):
            lost.setdefault(str(error), []).extend(one for one in names if one == name)
    found += [Finding(kind="unscored", values=count_models(models, reason)) for reason, models in lost.items()]
    return tuple(sorted(used)), found


def _find_target(source: Source, name: str) -> str | Hardware:
    """Return the hardware to evaluate on: the name if it is known, otherwise a stored description.

    Raises UnsupportedError if there is neither.
    """
    try:
        find_entry(known_hardware([name]), HardwareRef.read(name).label)
        return name
    except UnknownNameError:
        if described := find_described(source, name):
            return described
        raise UnsupportedError(f"{name} is not in the catalogue and no run describes it") from None


def _plan_models(models: tuple[str, ...], settings: Settings, lost: dict[str, list[str]]) -> tuple[Plan, ...]:
    """Return plans for the models that can be planned; add the others to `lost`, grouped by reason."""
    try:
        return (plan_runs(models, settings),)
    except (ModelError, UnknownNameError, UsageError, UnsupportedError) as error:
        if len(models) == 1:
            lost.setdefault(str(error), []).append(models[0])
            return ()
    return tuple(plan for one in models for plan in _plan_models((one,), settings, lost))


def energy_evidence(
    database: Source,
    hardware: str = "",
    *,
    source: str = "",
    calibration: str | Calibration = "auto",
    trust: bool = False,
) -> Table[EnergyEvidence]:
    """Return the number of measured energies and powers, their sources and the errors of their predictions.

    One row covers one hardware at one boundary. Without `hardware` and `source`, each class without measurements also
    has a row. Measured configurations that are not stored are evaluated first. The notes name built-in tables with
    energies that the database does not hold. Raises NoMeasurementError if nothing matches.
    """
    which = {"hardware": name_measured(database, hardware), "model": "", "precision": "", "source": source}
    classes = [] if hardware or source else list(CLASS_HARDWARE)
    with evaluating_measured(database, which, calibration, trust=trust) as (connection, _, notes):
        rows = fetch(connection, EnergyEvidence, hardware=which["hardware"], source=source, classes=classes)
        stored = set(connection.execute(STORED).fetchall())
        absent = [one.address for one in load_public_tables().values() if one.has_energy and not one.keys() <= stored]
        found = [Finding(kind="fitted_to")]
        found += [Finding(kind="absent", values={"tables": tuple(absent)})] if absent and classes else []
        return attrs.evolve(find_projected(connection, rows), notes=find_printer().describe_findings([*notes, *found]))
