"""`joulemap compare`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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

if TYPE_CHECKING:
    from joulemap.query import Answer


class Level(StrEnum):
    """How deep a comparison goes."""

    SUMMARY = "summary"
    SUBGRAPH = "subgraph"


def compare(
    model: Annotated[str, typer.Argument(help="A known name, file.py:factory, model.pt2, timm:NAME or hf:NAME.")],
    hardware: Annotated[
        str,
        typer.Option("--hardware", help="Ids, aliases, files or folders, comma-separated, each with @MODE or without; "
                     "see `joulemap hardware list`.", show_default="one each of cpu, gpu, tpu, kpu"),
    ] = "",
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
    baseline: Annotated[
        str, typer.Option("--baseline", help="Hardware that ratios are relative to.", show_default="the first")
    ] = "",
    inputs: Inputs = None,
    arguments: Arguments = None,
    retrace: Retrace = False,
    calibration: Calibration = "auto",
    level: Annotated[
        Level, typer.Option("--level", help="summary: one row per hardware; subgraph: who wins each subgraph.")
    ] = Level.SUMMARY,
    form: FormatOption = Format.TABLE,
    output: Output = None,
    show_sql: ShowSql = False,
    db: Database = Path(DEFAULT_DATABASE),
) -> None:  # fmt: skip
    """Compare a model on several hardware: energy, latency, memory, utilization, and what to choose.

    Models by name ship traced; any other is traced the first time (a few seconds). Answers are stored.

    \b
    joulemap compare resnet18
    joulemap compare vit_b_16 --hardware h100_sxm5,tpu_v4 --precision bf16 --batch 32
    joulemap compare mobilenet_v2 --deployment edge --precision int8
    joulemap compare resnet50 --hardware Jetson-Orin-Nano@7W,Jetson-Orin-Nano@15W,./mychip.toml
    joulemap compare ./mine.py:net --input 1,3,64,64 --model-arg width=32 --format json
    joulemap compare attention_head --model-arg tokens=1024
    """
    workspace = open_workspace(db, form)
    answer = workspace.compare(
        model,
        hardware=split_names(hardware),
        architecture=split_names(architecture),
        deployment=split_names(deployment),
        power_mode=power_mode,
        batch=batch,
        precision=precision,
        runtime=runtime,
        baseline=baseline,
        inputs=inputs or (),
        arguments=read_arguments(arguments),
        retrace=retrace,
        calibration=calibration,
    )
    if level is Level.SUBGRAPH:
        from joulemap.report.render import render_answer

        winners = workspace.query("compare.winner", {"run_ids": list(answer.run_ids)})
        emit(render_answer(winners, form), output)
        answers: tuple[Answer, ...] = (winners,)
    else:
        from joulemap.report.compare import render_comparison

        again = repeat_options(
            batch=batch, input=inputs, model_arg=arguments, calibration=unless_auto(calibration), db=db
        )
        emit(render_comparison(answer, form, again), output)
        answers = answer.answers
    if show_sql:
        emit_sql(answers)
