"""Page of a fitted calibration: its errors, coefficients and what the data do not determine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from joulemap.ask.calibrate import CalibrateAnswer
from joulemap.ask.setting import find_few
from joulemap.physics.record.calibration import DETERMINED
from joulemap.show.caveat import describe_values
from joulemap.show.page import lay_rows
from joulemap.show.present.cell import show_quantity
from joulemap.show.present.document import Grid
from joulemap.show.present.template import Template
from joulemap.show.shape import Part
from joulemap.show.sheet import Sheet

TITLE: Final = Template(
    "calibration {label} of {hardware}, fitted to {row_count:n measurement} ({latency_count} of latency, "
    "{energy_count} of energy) of {families:n family|families}"
)
FITTED: Final = Template(
    "median {quantity} error {fitted_median_fraction:%} fitted, {uncalibrated_median_fraction:%} with class defaults"
    "[, {cross_validated_median_fraction:%} with the family held out]"
)
SHARES: Final = (
    "*measurements measurement_count | class defaults mean uncalibrated_mean_fraction | "
    "class defaults median uncalibrated_median_fraction | *fitted mean fitted_mean_fraction | "
    "fitted median fitted_median_fraction | *held-out mean cross_validated_mean_fraction | "
    "held-out median cross_validated_median_fraction | held-out worst cross_validated_worst_fraction | "
    "rank correlation rank_correlation"
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


def lay_errors(answer: CalibrateAnswer, columns: str, *, is_family: bool) -> Grid:
    """Return the errors by model family, or by runtime, precision and batch size."""
    return lay_rows(
        answer,
        answer.errors.with_rows(row for row in answer.errors if (row.family is not None) is is_family),
        f"{columns} | {SHARES}",
        runtime=lambda row: row.runtime or ALL,
        precision=lambda row: row.precision or ALL,
        batch=lambda row: str(row.batch or ALL),
        rank_correlation=lambda row: "" if row.rank_correlation is None else f"{row.rank_correlation:.3f}",
    )


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


PAGES: Final = {
    CalibrateAnswer: Sheet(
        title=lambda answer: TITLE(answer.calibration, families=len(answer.calibration.families)),
        first=describe_errors,
        notes=list_notes,
        csv="errors",
        parts=(
            Part(
                title="Errors",
                table="errors",
                make=lambda answer, _: lay_errors(
                    answer, "quantity | *runtime | *precision | *batch size batch", is_family=False
                ),
            ),
            Part(
                title="By model family",
                table="errors",
                make=lambda answer, _: lay_errors(answer, "quantity | *family", is_family=True),
            ),
            Part(
                title="Coefficients",
                table="coefficients",
                columns="part | *name | default_value | *value | *ratio | data_weight_fraction | meaning",
                lay={
                    "default_value": lambda row: _show_amount(row.default_value, row.unit),
                    "value": lambda row: _show_amount(row.value, row.unit),
                },
            ),
        ),
    )
}
