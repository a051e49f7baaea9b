"""`joulemap validate`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from joulemap.cli.option import (
    DEFAULT_DATABASE,
    Calibration,
    Database,
    Output,
    ShowSql,
    TableFormatOption,
    check_output,
    emit_sql,
    emit_table,
    open_workspace,
)
from joulemap.report.format import TableFormat


class By(StrEnum):
    """What divides a hardware's measurements."""

    RUNTIME = "runtime"
    FAMILY = "family"
    MODEL = "model"
    BATCH = "batch"
    PRECISION = "precision"
    SPLIT = "split"
    OPERATOR = "operator"


SCORED = ("quantity", "hardware", "part", "measurement_count", "mean_error_fraction", "median_error_fraction",
          "bias_fraction", "worst_error_fraction", "worst_case", "rank_correlation", "seen_fraction",
          "calibration")  # fmt: skip

OPERATORS = ("hardware", "kind", "group_count", "device_time_s", "share_fraction", "time_bias_fraction",
             "time_weighted_error_fraction", "scored_count", "mean_error_fraction", "median_error_fraction",
             "bias_fraction", "worst_error_fraction", "worst_case", "seen_fraction")  # fmt: skip


def validate(
    hardware: Annotated[
        str, typer.Option("--hardware", help="Only this hardware.", show_default="all that was measured")
    ] = "",
    model: Annotated[str, typer.Option("--model", help="Only this model.", show_default="all")] = "",
    precision: Annotated[str, typer.Option("--precision", help="Only this precision.", show_default="all")] = "",
    by: Annotated[By, typer.Option("--by", help="What divides a hardware's rows.")] = By.RUNTIME,
    calibration: Calibration = "auto",
    form: TableFormatOption = TableFormat.TABLE,
    output: Output = None,
    show_sql: ShowSql = False,
    db: Database = Path(DEFAULT_DATABASE),
) -> None:
    """Score predictions against measurements: errors, bias, worst case, rank correlation.

    Every measured configuration that is not stored is evaluated first (half a minute for all that ships). `seen` is the
    part of the rows that coefficients of the model were chosen with in view: those score no prediction; `--by split`
    separates them. `--by operator` scores device times inside models, by kind of operator.

    \b
    joulemap validate --hardware h200_sxm
    joulemap validate --hardware A100-40GB --by model
    joulemap validate --by batch --format json
    joulemap validate --hardware h200_sxm --by operator --precision fp16
    """
    check_output(form, output)
    answer = open_workspace(db, form).validate(
        hardware, model, precision=precision, by=by.value, calibration=calibration
    )
    emit_table(answer, form, output, OPERATORS if by is By.OPERATOR else SCORED)
    if show_sql:
        emit_sql((answer,))
