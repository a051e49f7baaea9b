"""`joulemap utilization`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from joulemap.cli.option import (
    DEFAULT_DATABASE,
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
from joulemap.report.format import Format


def utilization(
    model: Annotated[str, typer.Argument(help="A known name, file.py:factory, model.pt2, timm:NAME or hf:NAME.")],
    hardware: Annotated[
        list[str] | None,
        typer.Argument(help="Ids, aliases, files or folders, each with @MODE or without; see `joulemap hardware list`.",
                       show_default="one each of cpu, gpu, tpu, kpu"),
    ] = None,
    architecture: Annotated[
        str, typer.Option("--architecture", help="Only these classes, e.g. cpu,gpu.", show_default="all")
    ] = "",
    deployment: Annotated[
        str, typer.Option("--deployment", help="All hardware for datacenter, edge or embedded.", show_default="any")
    ] = "",
    power_mode: PowerMode = "",
    batch: Batch = None,
    precision: Precision = "fp32",
    runtime: Runtime = "fused",
    pairing: Annotated[
        bool, typer.Option("--pairing", help="Also ask all stored runs which hardware suits models of this size.")
    ] = False,
    min_compute: Annotated[
        float, typer.Option("--min-compute", help="Flag compute utilization below this, from 0 to 1.")
    ] = 0.2,
    max_bandwidth: Annotated[
        float, typer.Option("--max-bandwidth", help="Flag a share of the sustained bandwidth above this, from 0 to 1.")
    ] = 0.9,
    max_idle: Annotated[
        float, typer.Option("--max-idle", help="Flag a share of idle units above this, from 0 to 1.")
    ] = 0.8,
    inputs: Inputs = None,
    arguments: Arguments = None,
    retrace: Retrace = False,
    calibration: Calibration = "auto",
    form: FormatOption = Format.TABLE,
    output: Output = None,
    show_sql: ShowSql = False,
    db: Database = Path(DEFAULT_DATABASE),
) -> None:  # fmt: skip
    """Show how much of each hardware a model uses, where it stands on the roofline, and what is unhealthy about it.

    json also has the reasons of the flags and the pairing, csv the table of hardware.

    \b
    joulemap utilization resnet18
    joulemap utilization vit_b_16 h100_sxm5 tpu_v4 --precision bf16 --batch 32
    joulemap utilization mobilenet_v2 --deployment edge --precision int8 --format csv
    joulemap utilization resnet50 --pairing
    """
    answer = open_workspace(db, form).utilization(
        model,
        hardware=[name for text in hardware or () for name in split_names(text)],
        architecture=split_names(architecture),
        deployment=split_names(deployment),
        power_mode=power_mode,
        batch=batch,
        precision=precision,
        runtime=runtime,
        min_compute_fraction=min_compute,
        max_bandwidth_fraction=max_bandwidth,
        max_idle_fraction=max_idle,
        is_pairing=pairing,
        inputs=inputs or (),
        arguments=read_arguments(arguments),
        retrace=retrace,
        calibration=calibration,
    )
    from joulemap.report.utilization import render_utilization

    again = repeat_options(batch=batch, input=inputs, model_arg=arguments, calibration=unless_auto(calibration), db=db)
    emit(render_utilization(answer, form, again), output)
    if show_sql:
        emit_sql(answer.answers)
