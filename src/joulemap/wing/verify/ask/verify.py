"""Measurements from files of other tools next to their predictions, and causes of differences."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import attrs

from joulemap.ask import (
    Answer,
    Caveat,
    Change,
    Facts,
    Finding,
    Quantity,
    Refusal,
    Score,
    Subject,
    Value,
    weigh_findings,
)
from joulemap.ask.calibrate import calibrate as fit
from joulemap.ask.measurement import find_measurements, store_measurements
from joulemap.domain import HardwareRef, Measurement, Table, check_name, make_table
from joulemap.physics import RUNTIME_NAMES, Calibration
from joulemap.plan import Source
from joulemap.system import JoulemapError, Reason, UsageError, frozen
from joulemap.wing.llm.serve import ServingRow
from joulemap.wing.verify.cause import Cause, find_causes
from joulemap.wing.verify.compared import UNIT, list_rows, quantify
from joulemap.wing.verify.file import Reading, check_options, read_file
from joulemap.wing.verify.forecast import Case, Forecast, forecast, measured_of
from joulemap.wing.verify.generated.row import CauseRow, VerifiedRow
from joulemap.wing.verify.limit import drop_impossible
from joulemap.wing.verify.served import calibrate_served

LIKELY: Final = ("assumed", "open", "stated")
"""Standings of causes that do not contradict a file."""

QUICK: Final = 12
"""Maximum measurements of a chip that are fitted unasked, to show what a calibration would change."""


@frozen(kw_only=True)
class VerifyAnswer(Answer):
    """Answer with measurements from files next to their predictions."""

    rows: Table[VerifiedRow]
    causes: Table[CauseRow]
    files: tuple[str, ...]
    options: Mapping[str, Any]
    """Options that the user stated, by name."""
    formats: Mapping[str, str]
    """Format of the files -> address of its documentation."""
    facts: Facts
    """Scores, what was not scored, causes and conditions of the measurements, from which all sentences are made."""

    about = ("formats",)

    @property
    def judged(self) -> tuple[VerifiedRow, ...]:
        """Measurements whose prediction has an interval."""
        return tuple(row for row in self.rows if row.is_inside is not None)

    @property
    def outside(self) -> tuple[VerifiedRow, ...]:
        """Measurements outside the interval of their prediction."""
        return tuple(row for row in self.judged if not row.is_inside)


def find_facts(
    readings: Sequence[Reading],
    rows: Sequence[VerifiedRow],
    reasons: Mapping[int, Reason],
    causes: Sequence[Cause],
    whole: Sequence[Finding],
) -> Facts:
    """Return the facts of measured rows; a run of the facts is a row, counted from 1.

    `reasons` tell why rows are not scored; `whole` has the findings on the whole answer.
    """
    known = dict(enumerate(rows, 1))
    scores = [*_score(known)]
    changes = [_change(one, known) for one in causes if one.row.standing in LIKELY]
    is_outside = any(one.is_inside is False for one in scores)
    # the chip that a file names is no cause if its prediction is as far off
    explains = any(one.row.cause == "hardware" and one.row.inside_count for one in causes)
    has_chip = is_outside and (explains or not any(one.other_hardware for one in readings))
    findings = [*whole]
    for case, reading in enumerate(readings, 1):
        keys = [key for key, row in known.items() if row.case_index == case]
        for one in reading.findings:
            is_chip = has_chip and one.kind == "overridden" and one.values["option"] == "hardware"
            chip = {"hardware": reading.other_hardware}
            placed = Finding(kind="other_chip", values={**one.values, **chip}, doubt=one.doubt) if is_chip else one
            findings += [attrs.evolve(placed, run_id=key) for key in keys] or [placed]
    is_explained = any(one.kind == "other_chip" for one in findings) or any(
        one.values["inside_count"] for one in changes
    )
    if is_outside and not is_explained:
        findings.append(_find_furthest(scores))
    caveats = [attrs.evolve(one, weight=one.move) for one in weigh_findings(findings, ()) if isinstance(one, Caveat)]
    return Facts(
        asked=tuple(dict.fromkeys(row.quantity for row in rows)),
        runs={
            key: Subject(hardware=row.hardware, settings=(row.model, row.configuration)) for key, row in known.items()
        },
        facts=(*scores, *_refuse(reasons), *changes, *sorted(caveats, key=lambda one: -one.weight)),
    )


def _score(known: Mapping[int, VerifiedRow]) -> Iterator[Score]:
    for key, row in known.items():
        measured, predicted = quantify(row)
        if measured is not None and predicted is not None:
            yield Score(
                runs=(key,), metric=row.quantity, predicted=predicted, measured=measured, is_inside=row.is_inside
            )


def _refuse(reasons: Mapping[int, Reason]) -> Iterator[Refusal]:
    """Yield the measurements that were not scored, one per reason."""
    alike: dict[tuple[object, ...], list[int]] = {}
    for key, reason in reasons.items():
        alike.setdefault((reason.code, reason.text, *reason.values.items()), []).append(key)
    for keys in alike.values():
        yield Refusal.of(reasons[keys[0]], tuple(keys))


def _change(cause: Cause, known: Mapping[int, VerifiedRow]) -> Change:
    """Return the prediction of a row before and after a supposed change of its configuration."""
    row, supposed = cause.row, cause.supposed
    key = next(key for key, one in known.items() if (one.case_index, one.quantity) == (cause.case, row.quantity))
    own: dict[str, Value] = {"cause": row.cause, "standing": row.standing, "is_inside": row.is_inside}
    counts: dict[str, Value] = {"inside_count": row.inside_count, "judged_count": row.judged_count}
    chip = {"hardware": supposed.hardware} if supposed.hardware else {}
    _, after = quantify(row)
    assert after is not None
    return Change(
        runs=(key, key),
        metric=row.quantity,
        before=Quantity(cause.before.value, UNIT[row.quantity], cause.before.half_width),
        after=after,
        cause=supposed.kind,
        values={**supposed.values, **chip, **own, **counts},
    )


def _find_furthest(scores: Sequence[Score]) -> Finding:
    """Return the measurement furthest from its prediction, among those outside their intervals."""
    outside = [one for one in scores if one.is_inside is False]
    furthest = max(outside, key=lambda one: abs(math.log(one.measured.value / one.predicted.value)))
    ratio = furthest.measured.value / furthest.predicted.value
    return Finding(kind="unexplained", run_id=furthest.run, values={"quantity": furthest.metric, "ratio": ratio})


def verify(
    source: Source,
    files: str | Path | Sequence[str | Path],
    *,
    model: str = "",
    hardware: str = "",
    host: str = "",
    precision: str = "",
    runtime: str = "",
    engine: str = "",
    batch: int | None = None,
    devices: int | None = None,
    replicas: int | None = None,
    passes: int | None = None,
    prompt: int | None = None,
    output: int | None = None,
    calibration: str | Calibration = "auto",
    keep: bool = False,
    calibrate: bool = False,
) -> VerifyAnswer:
    """Return measurements from files of other tools next to their predictions, and causes of differences.

    Formats are recognized by content. The other arguments supply or override values of the files. `precision` is that
    of the weights for a served model, and `host` the processor that holds a part of it. `passes` is the number of
    passes in a meter's window, `replicas` the servers that share the requests, `prompt` and `output` the tokens per
    request. `keep` stores the rows as measurements.
    `calibrate` fits the hardware, or a serving engine on it, to these and all stored measurements, and writes the
    result to the user's folder. Raises CatalogueError for a file that cannot be read, UsageError or UnknownNameError
    for a value that is missing or unknown.
    """
    counts = {
        "batch": batch, "devices": devices, "replicas": replicas, "passes": passes, "prompt": prompt, "output": output
    }  # fmt: skip
    for name, count in counts.items():
        if count is not None and count < 1:
            raise UsageError(f"--{name} is {count}, expected a whole number from 1")
    if runtime:
        check_name("runtime", runtime, RUNTIME_NAMES)
    names = {
        "model": model,
        "hardware": hardware,
        "host": host,
        "precision": precision,
        "runtime": runtime,
        "engine": engine,
    }
    stated = {**names, **counts}
    paths = [files] if isinstance(files, str | Path) else files
    readings = [one for path in paths for one in read_file(Path(path), stated)]
    if not readings:
        raise UsageError("verify needs a file")
    check_options(readings, stated)
    readings = [drop_impossible(source, one) for one in readings]
    measured = [one.row for one in readings]
    served = [row for row in measured if isinstance(row, ServingRow)]
    singles = [row for row in measured if not isinstance(row, ServingRow)]
    if calibrate and served and singles:
        raise UsageError("--calibrate fits single runs or served models: name the files of one kind")
    forecasts = forecast(source, [Case(row=row) for row in measured], calibration)
    pairs = enumerate(zip(readings, forecasts, strict=True), 1)
    outside = {case: both for case, both in pairs if both[1].holds(measured_of(both[0].row)) is False}
    causes = find_causes(source, outside, calibration)
    findings: list[Finding] = []
    if keep:
        fresh, known = store_measurements(source, measured)
        findings.append(Finding(kind="imported", values={"fresh": fresh, "known": known}))
    after: list[Forecast] = []
    if calibrate and served:
        after, fitted = calibrate_served(source, served, calibration)
        findings += fitted
    elif singles and not served and (outside or calibrate):
        after, fitted = _calibrate(source, singles, write=calibrate)
        findings += fitted
    rows, reasons = list_rows(readings, forecasts, after)
    return VerifyAnswer(
        rows=make_table("verify", VerifiedRow, rows),
        causes=make_table("verify cause", CauseRow, [one.row for one in causes]),
        files=tuple(map(str, paths)),
        options={**stated, "calibration": calibration if calibration != "auto" else ""},
        formats={one.form.name: one.form.url for one in readings},
        facts=find_facts(readings, rows, reasons, causes, findings),
    )


def _calibrate(source: Source, singles: Sequence[Measurement], *, write: bool) -> tuple[list[Forecast], list[Finding]]:
    """Return predictions after a calibration to the measurements, and findings on it; empty if none was fitted.

    Without `write`, nothing is fitted unless the measurements are few and of one chip.
    """
    names = list(dict.fromkeys(HardwareRef.read(row.hardware).label for row in singles))
    if write and len(names) > 1:
        raise UsageError(f"--calibrate fits one chip at a time, found {', '.join(names)}")
    if len(names) > 1:
        return [], []
    stored = {row for row in find_measurements(source) if HardwareRef.read(row.hardware).label == names[0]}
    total = len(stored.union(singles))
    if not write and total > QUICK:
        return [], [Finding(kind="can_calibrate", values={"count": total, "hardware": names[0]})]
    try:
        answer = fit(source, names[0], operators=True, is_dry=not write, beside=singles)
    except JoulemapError as error:
        if write:
            raise
        return [], [Finding(kind="not_calibrated", values={"reason": str(error)})]
    one = answer.calibration
    values = {
        "count": one.row_count,
        "share": one.latency_credibility,
        "written_to": answer.written_to if write else None,
    }
    told = [Finding(kind="fitted", values={"hardware": names[0], **values})]
    return forecast(source, [Case(row=row) for row in singles], one), told
