"""Predictions scored against measurements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import attrs

from joulemap.answer.measurement import find_described, list_measurements, name_measured
from joulemap.catalog.sheet import load_models
from joulemap.domain.catalogue import find_entry, find_model_name
from joulemap.domain.name import name_precision
from joulemap.domain.settings import Settings
from joulemap.errors import ModelError, UnknownNameError
from joulemap.plan.calibration import use_calibration
from joulemap.plan.catalogue import known_hardware, opening_catalogue
from joulemap.plan.hold import ensure_runs
from joulemap.plan.run import plan_runs
from joulemap.plan.source import reading
from joulemap.store.library import find_query
from joulemap.store.query import find_projected, run_query

if TYPE_CHECKING:
    from joulemap.domain.calibration import Calibration
    from joulemap.domain.hardware import Hardware
    from joulemap.domain.settings import ScoreDivision
    from joulemap.domain.table import Table
    from joulemap.plan.source import Source


def score_predictions(
    source: Source,
    hardware: str,
    model: str,
    *,
    precision: str,
    by: ScoreDivision,
    calibration: str | Calibration,
) -> Table[tuple[Any, ...]]:
    """Return how far predictions are from measurements, as `Workspace.validate` documents it."""
    named, model = name_measured(source, hardware), find_model_name(model, load_models())
    precision = name_precision(precision)
    which = {"hardware": named, "model": model, "precision": precision}
    if by == "operator":
        with opening_catalogue(source) as connection:
            measured = run_query(connection, find_query("measurement.profile"), which)
    else:
        measured = list_measurements(source, named, model)
    used = _ensure_runs(source, measured, (named, model, precision), calibration)
    name = "validate.operator" if by == "operator" else "validate.score"
    given = which if by == "operator" else {**which, "by": by, "calibrations": list(used)}
    with reading(source) as connection:
        return find_projected(connection, run_query(connection, find_query(name), given))


def _ensure_runs(
    source: Source, measured: Table[tuple[Any, ...]], chosen: Sequence[str], calibration: str | Calibration
) -> tuple[str, ...]:
    """Evaluate every measured configuration that is not stored; return the labels of the calibrations that apply.

    What cannot be traced is told and left out. `measured` names configurations; `chosen` is what they were chosen by:
    hardware, model and precision, empty texts for all. UnknownNameError where there are none.
    """
    rows = [row for row in measured.records() if chosen[-1] in ("", row["precision"])]
    if not rows:
        measured_on = {row["hardware"] for row in list_measurements(source, "", "").records()}
        what = " and ".join(text for text in chosen if text)
        raise UnknownNameError("measurement of", what, measured_on, "see `joulemap measurements list`")
    groups: dict[tuple[str, Any, Any, int], list[str]] = {}
    for row in rows:
        groups.setdefault((row["hardware"], row["precision"], row["runtime"], row["batch"]), []).append(row["model"])
    use = use_calibration(calibration)
    ids = {name.partition("@")[0] for name, _, _, _ in groups}
    use.check(ids)
    for (name, precision, runtime, batch), models in groups.items():
        target = _find_target(source, name)
        if target is None:
            continue
        source.talk(f"{name}, {precision}, {runtime}, batch {batch}: {len(models)} measurements")
        settings = Settings(
            hardware=target,
            precision=precision,
            runtime=runtime,
            batch=batch,
            calibration=use.named_for(name.partition("@")[0]),
        )
        _ensure_models(source, tuple(dict.fromkeys(models)), settings)
    return tuple(sorted(entry.label for entry in map(use.find, ids) if entry is not None))


def _find_target(source: Source, name: str) -> str | Hardware | None:
    """Return what to evaluate on: the name, or the description of a file or machine that runs were predicted for."""
    try:
        find_entry(known_hardware(), name.partition("@")[0])
        return name
    except UnknownNameError:
        described = find_described(source, name)
        if described is None:
            source.talk(f"{name} is not in the catalogue and no run describes it: left out")
        return described


def _ensure_models(source: Source, models: tuple[str, ...], settings: Settings) -> None:
    quiet = attrs.evolve(source, progress=None)
    try:
        ensure_runs(quiet, plan_runs(models, settings))
    except (ModelError, UnknownNameError) as error:
        if len(models) == 1:
            source.talk(f"left out: {error}")
            return
        for one in models:
            _ensure_models(source, (one,), settings)
