"""`joulemap compare`."""

from __future__ import annotations

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
from joulemap.report.level import CompareLevel, Metric, Sort

if TYPE_CHECKING:
    from collections.abc import Sequence

    from joulemap.store.query import Answer
    from joulemap.workspace.settings import Settings
    from joulemap.workspace.workspace import Workspace


def compare(
    model: Annotated[
        list[str], typer.Argument(help="Known names, file.py:factory, model.pt2, timm:NAME or hf:NAME; one or several.")
    ],
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
        CompareLevel,
        typer.Option("--level", help="summary: a row per hardware, or models against hardware; detailed: each run with "
                     "the tree of its energy; subgraph, operator: who wins each."),
    ] = CompareLevel.SUMMARY,
    metric: Annotated[
        Metric, typer.Option("--metric", help="Who wins a subgraph, operator or model. Of a part, memory is bytes "
                             "moved off chip and edp its share of the run's."),
    ] = Metric.ENERGY,
    sort: Annotated[
        Sort | None, typer.Option("--sort", help="Rank the hardware by this.", show_default="no ranking")
    ] = None,
    details: Annotated[
        bool, typer.Option("--details", help="With the ranking: geometry, memory, power, utilization, bottlenecks.")
    ] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="With the ranking: every subgraph.")] = False,
    limit: Annotated[
        int, typer.Option("--limit", min=1, help="Subgraphs or operators to show in a table; json and csv have all.")
    ] = 60,
    form: FormatOption = Format.TABLE,
    output: Output = None,
    show_sql: ShowSql = False,
    db: Database = Path(DEFAULT_DATABASE),
) -> None:  # fmt: skip
    """Compare models on several hardware: energy, latency, memory, utilization, and what to choose.

    Models by name ship traced; any other is traced the first time (a few seconds). Answers are stored.

    \b
    joulemap compare resnet18
    joulemap compare resnet18 --hardware xeon_8490h --level detailed
    joulemap compare vit_b_16 --hardware h100_sxm5,tpu_v4 --level subgraph --metric latency --precision bf16
    joulemap compare resnet18 mobilenet_v2 --hardware h100_sxm5,kpu_t256 --metric edp
    joulemap compare mobilenet_v2 --deployment edge --precision int8 --sort efficiency --details
    joulemap compare resnet50 --hardware Jetson-Orin-Nano@7W,Jetson-Orin-Nano@15W,./mychip.toml
    joulemap compare ./mine.py:net --input 1,3,64,64 --model-arg width=32 --format json
    joulemap compare attention_head --model-arg tokens=1024
    """
    workspace = open_workspace(db, form)
    settings: Settings = {
        "hardware": split_names(hardware),
        "architecture": split_names(architecture),
        "deployment": split_names(deployment),
        "power_mode": power_mode,
        "batch": batch,
        "precision": precision,
        "runtime": runtime,
        "inputs": inputs or (),
        "arguments": read_arguments(arguments),
        "retrace": retrace,
        "calibration": calibration,
    }
    again = repeat_options(batch=batch, input=inputs, model_arg=arguments, calibration=unless_auto(calibration), db=db)
    is_ranked = sort is not None or details or verbose
    _check(model, level, baseline, is_ranked)
    if is_ranked:
        text, answers = _rank(
            workspace, model[0], sort or Sort.EFFICIENCY, details, verbose, settings, form, limit, again
        )
    elif level is not CompareLevel.SUMMARY or len(set(model)) > 1:
        text, answers = _compare_in_depth(workspace, model, level, metric, settings, form, limit, again)
    else:
        from joulemap.report.compare import render_comparison

        answer = workspace.compare(model[0], baseline=baseline, **settings)
        text, answers = render_comparison(answer, form, again, metric.value), answer.answers
    emit(text, output)
    if show_sql:
        emit_sql(answers)


def _check(models: Sequence[str], level: CompareLevel, baseline: str, is_ranked: bool) -> None:
    """Raise UsageError for options that do not go together."""
    from joulemap.errors import UsageError

    is_summary = level is CompareLevel.SUMMARY and len(set(models)) == 1
    if baseline and (is_ranked or not is_summary):
        raise UsageError("--baseline is for the summary of one model; leave it out")
    if is_ranked and not is_summary:
        raise UsageError("--sort, --details and --verbose rank the hardware for one model at --level summary")


def _rank(
    workspace: Workspace,
    model: str,
    sort: Sort,
    details: bool,
    verbose: bool,
    settings: Settings,
    form: Format,
    limit: int,
    again: Sequence[str],
) -> tuple[str, tuple[Answer, ...]]:
    answer = workspace.rank_hardware(model, sort=sort.value, has_details=details, has_parts=verbose, **settings)
    from joulemap.report.ranking import render_ranking

    return render_ranking(answer, form, limit, again), answer.answers


def _compare_in_depth(
    workspace: Workspace,
    models: Sequence[str],
    level: CompareLevel,
    metric: Metric,
    settings: Settings,
    form: Format,
    limit: int,
    again: Sequence[str],
) -> tuple[str, tuple[Answer, ...]]:
    if level is CompareLevel.SUMMARY:
        matrix = workspace.compare_models(models, metric=metric.value, **settings)
        from joulemap.report.matrix import render_matrix

        return render_matrix(matrix, form, again), matrix.answers
    if level is CompareLevel.DETAILED:
        detail = workspace.compare_runs(models, **settings)
        from joulemap.report.detail import render_details

        return render_details(detail, form, again), detail.answers
    part = workspace.compare_parts(models, level=level.value, metric=metric.value, **settings)
    from joulemap.report.part import render_parts

    return render_parts(part, form, limit, again), part.answers
