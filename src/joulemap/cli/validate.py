"""`joulemap validate`."""

from __future__ import annotations

from typing import Any, Final, Literal, cast

from joulemap.cli.command import command, option
from joulemap.cli.complete import complete_hardware, complete_models
from joulemap.cli.option.run import CALIBRATION_HELP, TrustRows
from joulemap.cli.output import OutputOptions
from joulemap.domain.settings import ScoreDivision

SCORES: Final = (
    "quantity", "hardware", "part", "measurement_count", "mean_error_fraction", "median_error_fraction",
    "bias_fraction", "worst_error_fraction", "worst_case", "rank_correlation", "covered_fraction", "exceeded_count",
    "seen_fraction", "calibration",
)  # fmt: skip

OPERATORS: Final = (
    "hardware", "kind", "group_count", "device_time_s", "share_fraction", "time_bias_fraction",
    "time_weighted_error_fraction", "scored_count", "mean_error_fraction", "median_error_fraction", "bias_fraction",
    "worst_error_fraction", "worst_case", "seen_fraction",
)  # fmt: skip

KEPT: Final = ("hardware", "kind", "part", "mean_error_fraction", "median_error_fraction", "measurement_count")

KEPT_TOGETHER: Final = ("part", "measurement_count", "mean_error_fraction", "bias_fraction", "covered_fraction")

SOURCES: Final = 2
"""Of each quantity, those with the most rows, that a screen has."""


@command
def validate(
    *,
    hardware: str = option("", "Only this hardware.", shown="all that was measured", complete=complete_hardware),
    model: str = option("", "Only this model or kind of operator.", shown="all", complete=complete_models),
    precision: str = option("", "Only this precision.", shown="all"),
    by: Literal[ScoreDivision, "operator"] = option("runtime", "What divides a hardware's rows."),
    source: str = option("", "Only measurements whose source holds this text.", shown="all"),
    calibration: str = option("auto", CALIBRATION_HELP),
    trust: TrustRows = False,
    output: OutputOptions,
) -> None:
    """Score predictions against measurements: errors, bias, worst case, rank correlation.

    The first line says how many measurements are scored, and how many quantities of them.

    Every measured configuration that is not stored is evaluated first (half a minute for all that ships). `seen` is the
    part of the rows that coefficients of the model were chosen with in view: those score no prediction; `--by split`
    separates them. `covered` is the part of the rows whose 80 % interval holds what was measured. A rate is scored
    against the predicted rate, never against 1 / latency. Wall power is that of a system over its boards: `exceeded`
    counts the rows where a board would draw more. Single operators that were measured alone stand apart from models:
    `--by kind` divides them by what they are. `--by operator` scores device times inside models, by kind of operator.
    Language models as they are served have a score for each quantity measured; what cannot be predicted of them is
    counted below, with the reason. `--by source` and `--by quantity` take all hardware together.

    \b
    joulemap validate --hardware h200_sxm
    joulemap validate --hardware A100-40GB --by model
    joulemap validate --by batch --format json
    joulemap validate --by hardware --source MLPerf
    joulemap validate --by source --model llama
    joulemap validate --hardware h200_sxm --by operator --precision fp16
    """
    workspace, chosen = output.workspace(), cast("Any", precision)
    if by == "operator":
        operators = workspace.validate_operators(
            hardware, model, precision=chosen, calibration=calibration, trust=trust
        )
        output.write_table(operators, OPERATORS, keep=KEPT)
        return
    scores = workspace.validate(
        hardware, model, precision=chosen, by=by, source=source, calibration=calibration, trust=trust
    )
    is_together = by in ("source", "quantity") and not hardware
    columns = [column for column in SCORES if column != "hardware" or not is_together]
    most = SOURCES if by == "source" else None
    from joulemap.answer.validate import describe_total

    kept, total = KEPT_TOGETHER if is_together else KEPT, describe_total(scores)
    output.write_table(scores, columns, keep=kept, most=most, most_of="quantity", answer=total)
