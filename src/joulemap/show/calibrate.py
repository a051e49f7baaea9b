"""Page of a fitted calibration: its errors, coefficients and what the data do not determine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from joulemap.ask.calibrate import CalibrateAnswer
from joulemap.ask.setting import find_few
from joulemap.domain.column import Col
from joulemap.generated.calibration import CalibrationErrorRow, FittedNumber
from joulemap.physics.record.calibration import DETERMINED
from joulemap.show.caveat import describe_values
from joulemap.show.column import alter, show_table
from joulemap.show.page import Asked, Page, compose
from joulemap.show.present.cell import show_quantity
from joulemap.show.present.document import Document, Section
from joulemap.show.present.template import Template

TITLE: Final = Template(
    "calibration {label} of {hardware}, fitted to {row_count:n measurement} ({latency_count} of latency, "
    "{energy_count} of energy) of {families:n family|families}"
)
FITTED: Final = Template(
    "median {quantity} error {fitted_median_fraction:%} fitted, {uncalibrated_median_fraction:%} with class defaults"
    "[, {cross_validated_median_fraction:%} with the family held out]"
)
ALL: Final = "all"

PARTED: Final = "one family: a tenth of its models is held out at a time, so errors on other families are unknown"
WHOLE: Final = "one family and too few models to hold any out, so errors on other models are unknown"
UNDETERMINED: Final = Template(
    "the data do not determine {count} of {moved:n changed number} (weight of the data below {least:set %}); their "
    "basis is unchanged"
)
LEFT_OUT: Final = Template("left out: {line}")
WRITTEN: Final = Template("written to {written_to}; `--calibration none` disables it")


def describe_errors(answer: CalibrateAnswer) -> str:
    """Return the median error of each quantity over all measurements."""
    totals = (row for row in answer.errors if not (row.runtime or row.precision or row.batch or row.family))
    return "; ".join(map(FITTED, totals))


def show_errors(answer: CalibrateAnswer, title: str, *, is_family: bool) -> list[Section]:
    """Return the errors by model family, or by runtime, precision and batch size."""
    of = CalibrationErrorRow
    settings: tuple[Col[CalibrationErrorRow], ...] = (
        of.runtime.by(lambda row: row.runtime or ALL).kept,
        of.precision.by(lambda row: row.precision or ALL).kept,
        of.batch.headed("batch size").by(lambda row: str(row.batch or ALL)).kept,
    )
    correlation = of.rank_correlation.headed("rank correlation").by(
        lambda row: "" if row.rank_correlation is None else f"{row.rank_correlation:.3f}"
    )
    rows = answer.errors.with_rows(row for row in answer.errors if (row.family is not None) is is_family)
    named = (of.family.kept,) if is_family else settings
    return show_table(answer, title, rows, (of.quantity, *named, *alter(of.table, correlation)))


def _show_amount(value: float, unit: str) -> str:
    return f"{value:.4g}" if unit == "1" else show_quantity(value, unit)


def list_notes(answer: CalibrateAnswer) -> Iterator[str]:
    """Yield notes on the measurements that were fitted, held out or left out, and on the file."""
    if len(answer.calibration.families) == 1:
        is_parted = any(row.cross_validated_mean_fraction is not None for row in answer.errors)
        yield PARTED if is_parted else WHOLE
    yield from (describe_values(one.kind, one.values) for one in find_few(answer.summary))
    if count := answer.summary.moved_count - answer.summary.determined_count:
        yield UNDETERMINED(count=count, moved=answer.summary.moved_count, least=DETERMINED)
    yield from answer.warnings
    yield from (LEFT_OUT(line=line) for line in answer.left_out)
    yield WRITTEN(answer) if answer.written_to else "a dry run: nothing was written"


def draw_calibration(answer: CalibrateAnswer, _asked: Asked) -> Document:
    """Return the document of a fitted calibration."""
    of = FittedNumber
    amounts = (
        of.default_value.by(lambda row: _show_amount(row.default_value, row.unit)),
        of.value.by(lambda row: _show_amount(row.value, row.unit)).kept,
    )
    return compose(
        answer,
        show_errors(answer, "Errors", is_family=False),
        answer.errors,
        title=TITLE(answer.calibration, families=len(answer.calibration.families)),
        headline=describe_errors(answer),
        details=[
            *show_errors(answer, "By model family", is_family=True),
            *show_table(answer, "Coefficients", answer.coefficients, alter(of.table, *amounts)),
        ],
        notes=list_notes(answer),
    )


PAGES: Final = {CalibrateAnswer: Page[CalibrateAnswer](draw=draw_calibration)}
