"""Verification answer: measurements from files of other tools, the predictions, and causes of differences."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from joulemap.answer.answer import Answer
from joulemap.answer.calibrate import calibrate as fit
from joulemap.answer.computed import make_table
from joulemap.answer.layout import lay
from joulemap.answer.measurement import find_measurements, store_measurements
from joulemap.ask.fact import Facts
from joulemap.domain.configuration import RUNTIMES
from joulemap.domain.hardware_ref import HardwareRef
from joulemap.domain.serving import ServingRow
from joulemap.domain.settings import check_name
from joulemap.domain.table import Table
from joulemap.plan.source import Source
from joulemap.present.cell import show, show_interval, show_span
from joulemap.present.document import Document, Section, Text, show_under
from joulemap.present.template import Template
from joulemap.show.plain import list_facts
from joulemap.system.errors import JoulemapError, UsageError
from joulemap.system.record import frozen
from joulemap.system.units import format_si
from joulemap.wing.verify import show as words
from joulemap.wing.verify.answer.cause import MOST, CauseRow, find_causes
from joulemap.wing.verify.answer.file import Reading, check_options, read_file
from joulemap.wing.verify.answer.forecast import Case, Forecast, forecast, measured_of
from joulemap.wing.verify.answer.limit import drop_impossible
from joulemap.wing.verify.answer.record import VerifiedRow
from joulemap.wing.verify.answer.served import calibrate_served
from joulemap.wing.verify.ask import LIKELY, find_facts
from joulemap.wing.verify.show import describe_answer, list_reasons

if TYPE_CHECKING:
    from joulemap.domain.calibration import Calibration
    from joulemap.domain.measurement import Measurement

COLUMNS: Final = (
    "configuration case_index! | *quantity | *measured | *predicted (80 %) predicted | measured / predicted ratio | "
    "*verdict is_inside | calibrated calibrated?"
)
QUANTITIES: Final[Mapping[str, str]] = {
    "time_to_first_token_s": "time to first token",
    "inter_token_latency_s": "time per output token",
    "total_tokens_per_s": "total token throughput",
    "output_tokens_per_s": "output token throughput",
    "throughput_per_s": "throughput",
}
"""Quantity -> displayed name, where it differs from the column's name without its unit."""

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


UNITS: Final = {"_per_s": "1/s", "_s": "s", "_j": "J", "_w": "W", "_bytes": "B"}
"""Suffix of a quantity's name -> its unit."""

QUICK: Final = 12
"""Maximum measurements of a chip that are fitted unasked, to show what a calibration would change."""


CLOSE_DIGITS: Final = 4
"""Significant digits of a measured value that is near an end of its interval, and of the interval."""

FAR: Final = 10.0
"""Ratio of measured and predicted value, in either direction, from which no cause is listed.

The measurement is then of something else. Source: assumed.
"""


@frozen(kw_only=True)
class VerifyAnswer(Answer):
    """Answer with measurements from files next to their predictions."""

    rows: Table[VerifiedRow]
    causes: Table[CauseRow]
    calibration: str
    """Sentence on the effect of a calibration, or on why none was fitted; empty if neither applies."""
    kept: str
    """Sentence on the number of stored measurements; empty if `keep` was not requested."""
    left_out: tuple[str, ...]
    """Sentences on runs that could not be read, with their number and the reason."""
    notes: tuple[str, ...]
    facts: tuple[str, ...] = ()
    """Facts of the files that a reader needs to judge the comparison."""
    decision: Facts
    """Scores, what was not scored and a cause, from which the first line is made."""
    other_chip: str = ""
    """Note that the file names another chip than the user; empty if it does not, or if that chip explains nothing."""

    def document(self, *, limit: int = 12) -> Document:
        """Return the document with at most `limit` rows; the csv export has all rows."""
        first, count = self.rows[0], self.rows.rows[-1].case_index
        starts = {row.case_index: row.quantity for row in reversed(self.rows.rows)}
        cells: dict[str, Any] = {
            **CELLS,
            "case_index": lambda row: _name_case(row) if count > 1 and starts[row.case_index] == row.quantity else "",
            "ratio": lambda row: show(row.ratio, "ratio"),
            "calibrated": lambda row: _show(row.calibrated, row.quantity),
        }
        rows = lay(self.rows, COLUMNS, limit=limit, **cells)
        causes = lay(self.causes, CAUSE_COLUMNS, **CELLS)
        answer, formats = describe_answer(self.decision), list(dict.fromkeys(row.format for row in self.rows))
        best = [row for row in self._list_likely()[:1] if row.is_inside or row.inside_count]
        if self.other_chip:  # the headline names the other chip
            best = [row for row in best if row.standing == "stated"]
        reasons = [*list_reasons(self.decision), *self._describe_far(), *map(_describe_effect, best)]
        reasons += [self.calibration, *self.facts]
        return Document(
            title=(words.ONE if count == 1 else words.SEVERAL)(first, case_index=count, formats=formats),
            answer=answer,
            sections=(
                show_under("Measured and predicted", rows, *map(Text, filter(None, (*self.left_out, self.kept)))),
            ),
            is_decision=True,
            insights=tuple(filter(None, reasons)),
            details=(Section("Possible causes", causes),),
            notes=self.notes,
            data={
                "answer": answer,
                **self.data(),
                "calibration": self.calibration,
                "kept": self.kept,
                "left_out": self.left_out,
                "notes": self.notes,
                "facts": self.facts,
                "decision": list_facts(self.decision),
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

    def _list_likely(self) -> list[CauseRow]:
        """Return the causes that do not contradict a file, best first."""
        return [row for row in self.causes if row.standing in LIKELY]

    def _describe_far(self) -> list[str]:
        """Return what to check if a measurement is far from its prediction and no cause explains it."""
        best = next(iter(self._list_likely()), None)
        if not self.outside or self.other_chip or (best is not None and best.inside_count):
            return []
        furthest = max(self.outside, key=_find_factor)
        parts = [words.UNEXPLAINED(furthest, quantity=_name(furthest.quantity))]
        if _find_factor(furthest) >= FAR:
            is_first = furthest.quantity == "time_to_first_token_s"
            parts.append(words.FAR_OFF(suspects=words.SUSPECTS_OF_FIRST_TOKEN if is_first else words.SUSPECTS))
        return ["; ".join(parts)]


def _find_factor(row: VerifiedRow) -> float:
    """Return the ratio of the larger to the smaller of the measured and the predicted value."""
    return math.exp(abs(math.log(row.ratio or 1.0)))


def _name(quantity: str) -> str:
    ending = next(end for end in UNITS if quantity.endswith(end))
    return QUANTITIES.get(quantity, quantity.removesuffix(ending).replace("_", " "))


def _name_case(row: VerifiedRow) -> str:
    return f"{row.model} {row.hardware} {row.configuration}"


def _show(value: float | None, quantity: str, high: float | None = None) -> str:
    """Return a value with its unit as text, with its interval if the upper end `high` is given."""
    unit = next(unit for end, unit in UNITS.items() if quantity.endswith(end))
    return show_interval(value, unit, math.log(high / value) if value and high else None)


def _is_close(row: VerifiedRow | CauseRow) -> bool:
    """Return whether a measured value and an end of its interval look equal at two digits, so that more are shown."""
    return row.measured is not None and f"{row.measured:.1e}" in {
        f"{end:.1e}" for end in (row.low, row.high) if end is not None
    }


def _show_measured(row: VerifiedRow | CauseRow) -> str:
    return _show_close(row.measured, row.quantity) if _is_close(row) else _show(row.measured, row.quantity)


def _show_predicted(row: VerifiedRow | CauseRow) -> str:
    shown = _show(row.predicted, row.quantity, row.high)
    if not _is_close(row) or row.low is None or row.high is None:
        return shown
    ends = show_span(*(_show_close(end, row.quantity) for end in (row.low, row.high)))
    return f"{_show(row.predicted, row.quantity)} ({ends})"


def _show_close(value: float | None, quantity: str) -> str:
    """Return a value with `CLOSE_DIGITS` digits as text, for a comparison that depends on them."""
    unit = next(unit for end, unit in UNITS.items() if quantity.endswith(end))
    if value is None or not unit.isalpha():
        return _show(value, quantity)
    return format_si(value, unit, CLOSE_DIGITS)


CELLS: Final[Mapping[str, Any]] = {
    "quantity": lambda row: _name(row.quantity),
    "measured": _show_measured,
    "predicted": _show_predicted,
    "is_inside": lambda row: VERDICTS[row.is_inside],
    "standing": lambda row: STANDINGS[row.standing],
    "inside_count": EXPLAINED,
}
"""Column -> function that formats its cell, in tables of measurements and of causes."""


def _describe_effect(row: CauseRow) -> str:
    return words.EFFECT(
        row,
        quantity=_name(row.quantity),
        predicted=_show_predicted(row),
        measured=_show_measured(row),
        verdict=VERDICTS[row.is_inside].lower() or "without an interval",
        judged=row.judged_count if row.judged_count > 1 else None,
    )


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
        check_name("runtime", runtime, RUNTIMES)
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
    found = forecast(source, [Case(row=row) for row in measured], calibration)
    outside = [
        (one.row, predicted, one.assumed)
        for one, predicted in zip(readings, found, strict=True)
        if predicted.holds(measured_of(one.row)) is False
    ]
    others = {one.row: one.other_hardware for one in readings}
    causes = find_causes(source, outside, calibration, others)
    # the chip that the file names is no cause if its prediction is as far off
    is_refuted = any(others.values()) and not any(row.cause == "hardware" and row.inside_count for row in causes)
    notes = [note for one in readings for note in one.notes]
    notes += [words.FORMAT(one.form) for one in readings]
    if len(outside) > MOST:
        notes.append(words.MOST_CAUSES(most=MOST, count=len(outside)))
    kept = ""
    if keep:
        fresh, known = store_measurements(source, measured)
        kept = words.STORED(fresh=fresh, known=known)
    served = [row for row in measured if isinstance(row, ServingRow)]
    after: list[Forecast] = []
    calibrated = ""
    if calibrate and served:
        after, calibrated = calibrate_served(source, served, calibration)
    elif outside or calibrate:
        after, calibrated = _calibrate(source, singles, len(measured), write=calibrate)
    other_chip = "" if is_refuted else next((one.other_chip for one in readings if one.other_chip), "")
    rows = _list_rows(readings, found, after)
    units = {row.quantity: next(unit for end, unit in UNITS.items() if row.quantity.endswith(end)) for row in rows}
    return VerifyAnswer(
        rows=make_table("verify", VerifiedRow, rows),
        decision=find_facts(rows, causes, units, other_chip),
        causes=make_table("verify cause", CauseRow, causes),
        calibration=calibrated,
        kept=kept,
        left_out=tuple(line for one in readings for line in one.left_out),
        notes=tuple(dict.fromkeys(notes)),
        facts=tuple(dict.fromkeys(fact for one in readings for fact in one.facts)),
        other_chip=other_chip,
    )


def _list_rows(
    readings: Sequence[Reading], forecasts: Sequence[Forecast], after: Sequence[Forecast]
) -> list[VerifiedRow]:
    rows = []
    for index, (one, found) in enumerate(zip(readings, forecasts, strict=True)):
        unstated = f"; {words.ONE_DEVICE}" if "device_count" in one.assumed else ""
        for name, value in {**measured_of(one.row), **dict.fromkeys(one.unscored)}.items():
            figure, moved = found.figures.get(name), after[index].figures.get(name) if after else None
            refusal = found.refusal or words.OUT_OF_SCOPE(quantity=_name(name))
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
                    reason=one.unscored.get(name) or ("" if figure else refusal + unstated),
                )
            )
    return rows


def _name_configuration(row: Measurement | ServingRow) -> str:
    if not isinstance(row, ServingRow):
        return words.SINGLE_RUN(row)
    return words.SERVED_RUN(
        row,
        devices=row.device_count if (row.device_count or 1) > 1 else None,
        weights=row.weight_precision or words.WIDE,
        cache=row.cache_precision or None,
        scope=row.scope.replace("_", " "),
        prompt=round(row.prompt_tokens or 0),
        output=round(row.output_tokens or 0),
        batch=f"{row.batch:.0f}" if row.batch >= 100.0 else f"{row.batch:.3g}",
        requests=words.REQUEST if row.batch == 1.0 else words.REQUESTS,
    )


def _calibrate(
    source: Source, singles: Sequence[Measurement], count: int, *, write: bool
) -> tuple[list[Forecast], str]:
    """Return predictions after a calibration to the measurements, and a sentence on it; empty if none was fitted.

    Without `write`, nothing is fitted unless all `count` measurements are single runs of one chip.
    """
    names = list(dict.fromkeys(HardwareRef.read(row.hardware).label for row in singles))
    if write and len(names) > 1:
        raise UsageError(f"--calibrate fits one chip at a time, found {', '.join(names)}")
    if len(names) != 1 or len(singles) < count:
        return [], ""
    stored = {row for row in find_measurements(source) if HardwareRef.read(row.hardware).label == names[0]}
    total = len(stored.union(singles))
    if not write and total > QUICK:
        return [], words.CAN_CALIBRATE(count=total, hardware=names[0])
    try:
        answer = fit(source, names[0], operators=True, is_dry=not write, beside=singles)
    except JoulemapError as error:
        if write:
            raise
        return [], words.NOT_CALIBRATED(error=error)
    one = answer.calibration
    effect = words.CALIBRATED(one, defaults=1.0 - one.latency_credibility) + (
        words.CALIBRATION_KEPT(answer) if write else words.CALIBRATION_OFFERED
    )
    return forecast(source, [Case(row=row) for row in singles], one), effect
