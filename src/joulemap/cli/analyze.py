"""`joulemap analyze`."""

from __future__ import annotations

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
    PowerMode,
    Precision,
    Retrace,
    Runtime,
    ShowSql,
    emit,
    emit_sql,
    open_workspace,
    read_arguments,
    repeat_options,
    unless_auto,
)
from joulemap.report.format import Format
from joulemap.report.level import Level


def analyze(
    model: Annotated[str, typer.Argument(help="A known name, file.py:factory, model.pt2, timm:NAME or hf:NAME.")],
    hardware: Annotated[
        str, typer.Argument(help=ONE_HARDWARE)
    ],
    level: Annotated[
        Level,
        typer.Option("--level", help="The table to show: energy by category; as a tree of categories and their "
                     "actions; by subgraph, with its allocation; by operator, with what fusing it saves."),
    ] = Level.ACTION,
    power_mode: PowerMode = "",
    batch: Batch = None,
    precision: Precision = "fp32",
    runtime: Runtime = "fused",
    inputs: Inputs = None,
    arguments: Arguments = None,
    retrace: Retrace = False,
    calibration: Calibration = "auto",
    form: FormatOption = Format.TABLE,
    output: Output = None,
    show_sql: ShowSql = False,
    db: Database = Path(DEFAULT_DATABASE),
) -> None:  # fmt: skip
    """Take one run apart: where its energy and time go, what bounds it, what its units do, whether it fits.

    Works alike on every class of hardware. json has every level, csv the table of one.

    \b
    joulemap analyze resnet18 xeon_8490h
    joulemap analyze vit_b_16 h100_sxm5 --level operator --precision bf16 --batch 32
    joulemap analyze resnet50 KPU-T64@6W --level subgraph --format csv
    joulemap analyze mobilenet_v2 ./mychip.toml --precision int8 --format json
    """
    answer = open_workspace(db, form).analyze(
        model,
        hardware,
        power_mode=power_mode,
        batch=batch,
        precision=precision,
        runtime=runtime,
        inputs=inputs or (),
        arguments=read_arguments(arguments),
        retrace=retrace,
        calibration=calibration,
    )
    from joulemap.report.analyze import render_analysis

    again = repeat_options(batch=batch, input=inputs, model_arg=arguments, calibration=unless_auto(calibration), db=db)
    emit(render_analysis(answer, form, level, again), output)
    if show_sql:
        emit_sql(answer.answers)
