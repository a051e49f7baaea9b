"""`joulemap edp`."""

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
    split_names,
    unless_auto,
)
from joulemap.present.format import Format
from joulemap.report.level import EdpLevel


def edp(
    model: Annotated[str, typer.Argument(help="A known name, file.py:factory, model.pt2, timm:NAME or hf:NAME.")],
    hardware: Annotated[str, typer.Argument(help=ONE_HARDWARE)],
    level: Annotated[
        EdpLevel, typer.Option("--level", help="The table to show: by subgraph, or by operator.")
    ] = EdpLevel.SUBGRAPH,
    against: Annotated[
        str,
        typer.Option("--against", help="Hardware, comma-separated, to set each subgraph beside.", show_default="none"),
    ] = "",
    power_mode: PowerMode = "",
    batch: Batch = None,
    precision: Precision = "fp32",
    runtime: Runtime = "fused",
    inputs: Inputs = None,
    arguments: Arguments = None,
    retrace: Retrace = False,
    calibration: Calibration = "auto",
    limit: Annotated[int, typer.Option("--limit", min=1, help="Rows to show in a table; json and csv have all.")] = 20,
    form: FormatOption = Format.TABLE,
    output: Output = None,
    show_sql: ShowSql = False,
    db: Database = Path(DEFAULT_DATABASE),
) -> None:
    """Rank what makes up a run's energy-delay product, and bound what could be gained.

    Shares add up to energy x delay exactly. json has both levels, csv the table of one.

    \b
    joulemap edp resnet18 h100_sxm5
    joulemap edp vit_b_16 kpu_t256 --level operator --precision bf16 --batch 8
    joulemap edp resnet50 h100_sxm5 --against tpu_v4,kpu_t256 --format markdown
    joulemap edp attention_head tpu_v4 --model-arg tokens=1024 --format csv
    """
    answer = open_workspace(db, form).edp(
        model,
        hardware,
        against=split_names(against),
        power_mode=power_mode,
        batch=batch,
        precision=precision,
        runtime=runtime,
        inputs=inputs or (),
        arguments=read_arguments(arguments),
        retrace=retrace,
        calibration=calibration,
    )
    from joulemap.report.edp import render_edp

    again = repeat_options(batch=batch, input=inputs, model_arg=arguments, calibration=unless_auto(calibration), db=db)
    emit(render_edp(answer, form, level, limit, again), output)
    if show_sql:
        emit_sql(answer.answers)
