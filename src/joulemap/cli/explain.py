"""`joulemap explain`."""

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
from joulemap.report.level import ExplainLevel, Metric


def explain(
    model: Annotated[str, typer.Argument(help="A known name, file.py:factory, model.pt2, timm:NAME or hf:NAME.")],
    hardware_a: Annotated[str, typer.Argument(metavar="A", help=ONE_HARDWARE)],
    hardware_b: Annotated[str, typer.Argument(metavar="B", help=ONE_HARDWARE)],
    metric: Annotated[
        Metric, typer.Option("--metric", help="What to explain; memory is the peak, weights and activations.")
    ] = Metric.ENERGY,
    level: Annotated[
        ExplainLevel, typer.Option("--level", help="The table to show: terms, energy by category, or subgraphs.")
    ] = ExplainLevel.TERM,
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
    """Explain why B needs more or less than A: sentences, and terms that sum to the difference exactly.

    A term of the energy is an action that only one side has, a shared action that happens more often (count) or costs
    more each time (price), or static energy; a term of the latency is likewise of what bounds each subgraph. json has
    every level, csv the table of one.

    \b
    joulemap explain resnet18 h100_sxm5 tpu_v4 --metric energy
    joulemap explain resnet18 xeon_8490h h100_sxm5 --metric latency
    joulemap explain vit_b_16 h100_sxm5 tpu_v4 --precision bf16 --metric edp --level subgraph
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

    again = repeat_options(batch=batch, input=inputs, model_arg=arguments, calibration=unless_auto(calibration), db=db)
    emit(render_explanation(answer, form, limit, level, again), output)
    if show_sql:
        emit_sql(answer.answers)
