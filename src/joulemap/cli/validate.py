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
    FormatOption,
    Output,
    ShowSql,
    emit_answer,
    emit_sql,
    open_workspace,
)
from joulemap.report.format import Format


class By(StrEnum):
    """What divides a hardware's measurements."""

    RUNTIME = "runtime"
    FAMILY = "family"
    MODEL = "model"
    BATCH = "batch"
    PRECISION = "precision"


SCORED = ("quantity", "hardware", "part", "measurement_count", "mean_error_fraction", "median_error_fraction",
          "bias_fraction", "worst_error_fraction", "worst_case", "rank_correlation", "seen_fraction",
          "calibration")  # fmt: skip


def validate(
    hardware: Annotated[
        str, typer.Option("--hardware", help="Only this hardware.", show_default="all that was measured")
    ] = "",
    model: Annotated[str, typer.Option("--model", help="Only this model.", show_default="all")] = "",
    by: Annotated[By, typer.Option("--by", help="What divides a hardware's rows.")] = By.RUNTIME,
    calibration: Calibration = "auto",
    form: FormatOption = Format.TABLE,
    output: Output = None,
    show_sql: ShowSql = False,
    db: Database = Path(DEFAULT_DATABASE),
) -> None:
    """Score predictions against measurements: errors, bias, worst case, rank correlation.

    Every measured configuration that is not stored is evaluated first (half a minute for all that ships). `seen` is the
    part of the rows that coefficients of the model were chosen with in view: those score no prediction.

    \b
    joulemap validate --hardware h200_sxm
    joulemap validate --hardware A100-40GB --by model
    joulemap validate --by batch --format json
    """
    answer = open_workspace(db, form).validate(hardware, model, by=by.value, calibration=calibration)
    emit_answer(answer, form, output, SCORED)
    if show_sql:
        emit_sql((answer,))
