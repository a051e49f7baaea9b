"""Verification answer: measurements from files of other tools, the predictions, and causes of differences."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from joulemap.answer.base import Answer
from joulemap.ask.calibrate import calibrate as fit
from joulemap.ask.fact import Facts, Quantity
from joulemap.ask.finding import Finding
from joulemap.ask.measurement import find_measurements, store_measurements
from joulemap.domain.computed import make_table
from joulemap.domain.hardware_ref import HardwareRef
from joulemap.domain.scope import SCOPE
from joulemap.domain.settings import check_name
from joulemap.domain.table import Table
from joulemap.physics.record.runtime import RUNTIME_NAMES
from joulemap.plan.source import Source
from joulemap.show.layout import lay
from joulemap.show.plain import list_facts
from joulemap.show.present.cell import show
from joulemap.show.present.document import Document, Section, Text, show_under
from joulemap.show.present.template import Template
from joulemap.system.errors import JoulemapError, Reason, UsageError
from joulemap.system.record import frozen
from joulemap.wing.llm.serve import ServingRow
from joulemap.wing.verify import show as words
from joulemap.wing.verify.answer.cause import Cause, find_causes
from joulemap.wing.verify.answer.file import Reading, check_options, read_file
from joulemap.wing.verify.answer.forecast import Case, Forecast, forecast, measured_of
from joulemap.wing.verify.answer.limit import drop_impossible
from joulemap.wing.verify.answer.served import calibrate_served
from joulemap.wing.verify.ask import UNIT, find_facts
from joulemap.wing.verify.generated.row import CauseRow, VerifiedRow

if TYPE_CHECKING:
    from joulemap.domain.measurement import Measurement
    from joulemap.physics.record.calibration import Calibration

COLUMNS: Final = (
    "configuration case_index! | *quantity | *measured | *predicted (80 %) predicted | measured / predicted ratio | "
    "*verdict is_inside | calibrated calibrated?"
)
VERDICTS: Final = {True: "inside", False: "OUTSIDE", None: ""}
CAUSE_COLUMNS: Final = (
    "*supposed change change | setting standing | *quantity | measured | *predicted (80 %) predicted | "
    "*verdict is_inside | configurations explained inside_count"
)
EXPLAINED: Final = Template("{inside_count} of {judged_count}")
STANDINGS: Final = {
    "stated": "stated by the file",
    "assumed": "assumed",
    "open": "not stated",
}
"""Standing of a cause -> displayed name."""

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

    def document(self, *, limit: int = 12) -> Document:
        """Return the document with at most `limit` rows; the csv export has all rows."""
        first, count = self.rows[0], self.rows.rows[-1].case_index
        starts = {row.case_index: row.quantity for row in reversed(self.rows.rows)}
        cells: dict[str, Any] = {
            **CELLS,
            "case_index": lambda row: _name_case(row) if count > 1 and starts[row.case_index] == row.quantity else "",
            "ratio": lambda row: show(row.ratio, "ratio"),
            "calibrated": lambda row: words.show_measured(_quantify(row, row.calibrated)) if row.calibrated else "",
        }
        rows = lay(self.rows, COLUMNS, limit=limit, **cells)
        causes = lay(self.causes, CAUSE_COLUMNS, **CELLS)
        facts = self.facts
        answer, reasons, sure = words.describe_answer(facts), words.list_reasons(facts), words.describe_doubt(facts)
        notes, steps = words.list_conditions(facts), words.list_steps(facts, self.files, self.options)
        return Document(
            title=(words.ONE if count == 1 else words.SEVERAL)(first, case_index=count, formats=list(self.formats)),
            answer=answer,
            sections=(show_under("", rows, *map(Text, words.list_remarks(facts))),),
            is_decision=True,
            insights=tuple(reasons),
            sure=sure,
            details=(Section("Possible causes", causes),),
            notes=tuple(notes),
            steps=tuple(steps),
            data={
                "answer": answer,
                "insights": reasons,
                "how_sure": sure,
                **self.data(),
                "notes": notes,
                "next_steps": steps,
                **list_facts(facts),
            },
            table=self.rows,
        )

    @property
    def judged(self) -> tuple[VerifiedRow, ...]:
        """Measurements whose prediction has an interval."""
        return tuple(row for row in self.rows if row.is_inside is not None)

    @property
    def outside(self) -> tuple[VerifiedRow, ...]:
        """Measurements outside the interval of their prediction."""
        return tuple(row for row in self.judged if not row.is_inside)


def _name_case(row: VerifiedRow) -> str:
    return f"{row.model} {row.hardware} {row.configuration}"


def _quantify(row: VerifiedRow | CauseRow, value: float, high: float | None = None) -> Quantity:
    """Return a value of a row with its unit, and with its interval if the upper end `high` is given."""
    return Quantity(value, UNIT[row.quantity], math.log(high / value) if high else None)


def _show_measured(row: VerifiedRow | CauseRow) -> str:
    if row.measured is None:
        return ""
    measured = _quantify(row, row.measured)
    if row.predicted is None:
        return words.show_measured(measured)
    return words.show_both(measured, _quantify(row, row.predicted, row.high))[0]


def _show_predicted(row: VerifiedRow | CauseRow) -> str:
    if row.predicted is None:
        return ""
    measured = None if row.measured is None else _quantify(row, row.measured)
    return words.show_both(measured, _quantify(row, row.predicted, row.high))[1]


CELLS: Final[Mapping[str, Any]] = {
    "quantity": lambda row: words.NOUN[row.quantity],
    "measured": _show_measured,
    "predicted": _show_predicted,
    "is_inside": lambda row: VERDICTS[row.is_inside],
    "standing": lambda row: STANDINGS[row.standing],
    "inside_count": EXPLAINED,
}
"""Column -> function that formats its cell, in tables of measurements and of causes."""


def verify(
    source: Source,
    files: str | Path | Sequence[str | Path],
    *,
    model: str = "",
    hardware: str = "",
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
    of the weights for a served model. `passes` is the number of passes in a meter's window, `replicas` the servers that
    share the requests, `prompt` and `output` the tokens per request. `keep` stores the rows as measurements.
    `calibrate` fits the hardware, or a serving engine on it, to these and all stored measurements, and writes the
    result to the user's folder. Raises CatalogueError for a file that cannot be read, UsageError or UnknownNameError
    for a value that is missing or unknown.
    """
    counts = {"batch": batch, "devices": devices, "replicas": replicas, "passes": passes}
    counts |= {"prompt": prompt, "output": output}
    for name, count in counts.items():
        if count is not None and count < 1:
            raise UsageError(f"--{name} is {count}, expected a whole number from 1")
    if runtime:
        check_name("runtime", runtime, RUNTIME_NAMES)
    stated = {"model": model, "hardware": hardware, "precision": precision, "runtime": runtime, "engine": engine}
    paths = [files] if isinstance(files, str | Path) else files
    readings = [one for path in paths for one in read_file(Path(path), {**stated, **counts})]
    if not readings:
        raise UsageError("verify needs a file")
    check_options(readings, {**stated, **counts})
    readings = drop_impossible(source, readings)
    measured = [one.row for one in readings]
    singles = [row for row in measured if not isinstance(row, ServingRow)]
    if calibrate and 0 < len(singles) < len(measured):
        raise UsageError("--calibrate fits single runs or served models: name the files of one kind")
    forecasts = forecast(source, [Case(row=row) for row in measured], calibration)
    places = [
        index
        for index, (one, predicted) in enumerate(zip(readings, forecasts, strict=True))
        if predicted.holds(measured_of(one.row)) is False
    ]
    others = {one.row: one.other_hardware for one in readings}
    outside = [(readings[index].row, forecasts[index], readings[index].assumed) for index in places]
    causes = find_causes(source, outside, calibration, others)
    findings: list[Finding] = []
    if keep:
        fresh, known = store_measurements(source, measured)
        findings.append(Finding(kind="imported", values={"fresh": fresh, "known": known}))
    served = [row for row in measured if isinstance(row, ServingRow)]
    after: list[Forecast] = []
    if calibrate and served:
        after, fitted = calibrate_served(source, served, calibration)
        findings += fitted
    elif outside or calibrate:
        after, fitted = _calibrate(source, singles, len(measured), write=calibrate)
        findings += fitted
    options = {**stated, **counts, "calibration": calibration if calibration != "auto" else ""}
    return _answer(readings, forecasts, after, causes, places, findings, [str(path) for path in paths], options)


def _answer(
    readings: Sequence[Reading],
    forecasts: Sequence[Forecast],
    after: Sequence[Forecast],
    causes: Sequence[Cause],
    places: Sequence[int],
    findings: Sequence[Finding],
    files: Sequence[str],
    options: Mapping[str, Any],
) -> VerifyAnswer:
    """Return the answer for these readings; `places` has the indices of those outside, to which causes refer."""
    rows, reasons = _list_rows(readings, forecasts, after)
    facts = find_facts(
        rows,
        reasons,
        {0: findings, **{case: one.findings for case, one in enumerate(readings, 1)}},
        causes,
        [index + 1 for index in places],
        {case: one.other_hardware for case, one in enumerate(readings, 1)},
    )
    return VerifyAnswer(
        rows=make_table("verify", VerifiedRow, rows),
        causes=make_table("verify cause", CauseRow, [one.row for one in causes]),
        files=tuple(files),
        options=options,
        formats={one.form.name: one.form.url for one in readings},
        facts=facts,
    )


def _list_rows(
    readings: Sequence[Reading], forecasts: Sequence[Forecast], after: Sequence[Forecast]
) -> tuple[list[VerifiedRow], dict[int, Reason]]:
    """Return a row per measured quantity, and the reason of each row without a score, by its number from 1."""
    rows: list[VerifiedRow] = []
    reasons: dict[int, Reason] = {}
    for index, (one, predicted) in enumerate(zip(readings, forecasts, strict=True)):
        for name, value in {**measured_of(one.row), **dict.fromkeys(one.unscored)}.items():
            figure, moved = predicted.figures.get(name), after[index].figures.get(name) if after else None
            reason = one.unscored.get(name)
            if reason is None and figure is None:
                reason = predicted.refusal or words.make_reason("scope", {"quantity": words.NOUN[name]})
            rows.append(
                VerifiedRow(
                    file=str(one.file),
                    format=one.form.name,
                    case_index=index + 1,
                    model=one.row.model,
                    hardware=one.row.hardware,
                    configuration=_name_configuration(one.row),
                    quantity=name,
                    measured=value,
                    predicted=figure.value if figure else None,
                    low=figure.low if figure else None,
                    high=figure.high if figure else None,
                    ratio=value / figure.value if figure and value is not None else None,
                    is_inside=figure.holds(value) if figure and value is not None else None,
                    calibrated=moved.value if moved else None,
                    reason=reason.text if reason is not None else "",
                )
            )
            if reason is not None:
                reasons[len(rows)] = reason
    return rows, reasons


def _name_configuration(row: Measurement | ServingRow) -> str:
    if not isinstance(row, ServingRow):
        return words.SINGLE_RUN(row)
    return words.SERVED_RUN(
        row,
        devices=row.device_count if (row.device_count or 1) > 1 else None,
        weights=row.weight_precision or words.WIDE,
        cache=row.cache_precision or None,
        scope=SCOPE[row.scope].label,
        prompt=round(row.prompt_tokens or 0),
        output=round(row.output_tokens or 0),
        batch=f"{row.batch:.0f}" if row.batch >= 100.0 else f"{row.batch:.3g}",
        requests=words.REQUEST if row.batch == 1.0 else words.REQUESTS,
    )


def _calibrate(
    source: Source, singles: Sequence[Measurement], count: int, *, write: bool
) -> tuple[list[Forecast], list[Finding]]:
    """Return predictions after a calibration to the measurements, and findings on it; empty if none was fitted.

    Without `write`, nothing is fitted unless all `count` measurements are single runs of one chip.
    """
    names = list(dict.fromkeys(HardwareRef.read(row.hardware).label for row in singles))
    if write and len(names) > 1:
        raise UsageError(f"--calibrate fits one chip at a time, found {', '.join(names)}")
    if len(names) != 1 or len(singles) < count:
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
