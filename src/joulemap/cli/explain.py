"""`joulemap explain`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from joulemap.cli.option import (
    DEFAULT_DATABASE,
    ONE_HARDWARE,
    Arguments,
    Batch,
    Calibration,
    Database,
    FormatOption,
    Inputs,
    Output,
    Precision,
    Retrace,
    Runtime,
    ShowSql,
    emit,
    emit_sql,
    open_workspace,
    read_arguments,
)
from joulemap.report.format import Format


class Metric(StrEnum):
    """What is explained."""

    ENERGY = "energy"


def explain(
    model: Annotated[str, typer.Argument(help="A known name, file.py:factory, model.pt2, timm:NAME or hf:NAME.")],
    hardware_a: Annotated[str, typer.Argument(metavar="A", help=ONE_HARDWARE)],
    hardware_b: Annotated[str, typer.Argument(metavar="B", help=ONE_HARDWARE)],
    metric: Annotated[Metric, typer.Option("--metric", help="What to explain.")] = Metric.ENERGY,
    batch: Batch = None,
    precision: Precision = "fp32",
    runtime: Runtime = "fused",
    inputs: Inputs = None,
    arguments: Arguments = None,
    retrace: Retrace = False,
    calibration: Calibration = "auto",
    limit: Annotated[int, typer.Option("--limit", min=1, help="Terms to show in a table; json and csv have all.")] = 20,
    form: FormatOption = Format.TABLE,
    output: Output = None,
    show_sql: ShowSql = False,
    db: Database = Path(DEFAULT_DATABASE),
) -> None:
    """Explain why B uses more or less energy than A: terms that sum to the difference exactly.

    A term is an action that only one side has, a shared action that happens more often (count) or costs more each
    time (price), or static energy.

    \b
    joulemap explain resnet18 h100_sxm5 tpu_v4 --metric energy
    joulemap explain mobilenet_v2 xeon_8490h kpu_t256 --batch 8 --format csv
    """
    answer = open_workspace(db, form).explain(
        model,
        hardware_a,
        hardware_b,
        metric=metric.value,
        batch=batch,
        precision=precision,
        runtime=runtime,
        inputs=inputs or (),
        arguments=read_arguments(arguments),
        retrace=retrace,
        calibration=calibration,
    )
    from joulemap.report.explain import render_explanation

    emit(render_explanation(answer, form, limit), output)
    if show_sql:
        emit_sql(answer.answers)
