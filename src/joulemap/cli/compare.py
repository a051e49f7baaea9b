"""`joulemap compare`."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from joulemap.cli.command import command
from joulemap.cli.complete import complete_hardware
from joulemap.cli.option.hardware import HardwareOptions
from joulemap.cli.option.run import Models, RunOptions
from joulemap.cli.output import OutputOptions
from joulemap.domain.metric import PartMetricName, RankMetricName
from joulemap.domain.settings import EnergyDivision
from joulemap.errors import UsageError


@command
def compare(
    words: Models,
    *,
    level: Annotated[
        Literal["summary", "detailed", "subgraph", "operator"],
        typer.Option(
            help="summary: a row per hardware, or models against hardware; detailed: each run with the tree of its "
            "energy; subgraph, operator: who wins each."
        ),
    ] = "summary",
    metric: Annotated[
        PartMetricName,
        typer.Option(
            help="Who wins a subgraph, operator or model. Of a part, memory is bytes moved off chip and edp its share "
            "of the run's."
        ),
    ] = "energy",
    by: Annotated[
        EnergyDivision | None,
        typer.Option(
            help="With --level subgraph or operator: what each spends its energy on, by the categories that all "
            "architectures share or by action.",
            show_default="no breakdown",
        ),
    ] = None,
    subgraph: Annotated[str, typer.Option(help="With --by: look inside this subgraph.", show_default="all")] = "",
    baseline: Annotated[
        str,
        typer.Option(
            help="Hardware that ratios are relative to.", show_default="the first", autocompletion=complete_hardware
        ),
    ] = "",
    sort: Annotated[
        RankMetricName | None, typer.Option(help="Rank the hardware by this.", show_default="no ranking")
    ] = None,
    details: Annotated[
        bool,
        typer.Option(
            "--details", help="With the ranking: microarchitecture, geometry, memory, power, utilization, bottlenecks."
        ),
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="With the ranking: every subgraph, its units and what bounds it.")
    ] = False,
    limit: Annotated[
        int, typer.Option(min=1, help="Subgraphs or operators to show in a table; json and csv have all.")
    ] = 60,
    hardware: HardwareOptions,
    run: RunOptions,
    output: OutputOptions,
) -> None:
    """Compare models on several hardware: energy, latency, memory, utilization, and what to choose.

    Models by name ship traced; any other is traced the first time (a few seconds). Answers are stored.

    \b
    joulemap compare resnet18
    joulemap compare resnet18 H100 "RTX 4090" cpu
    joulemap compare resnet18 --hardware xeon_8490h --level detailed
    joulemap compare vit_b_16 --hardware h100_sxm5,tpu_v4 --level subgraph --metric latency --precision bf16
    joulemap compare resnet18 --hardware l4,tpu_v4 --level subgraph --by category --precision int8
    joulemap compare resnet18 mobilenet_v2 --hardware h100_sxm5,kpu_t256 --metric edp
    joulemap compare mobilenet_v2 --deployment edge --precision int8 --sort efficiency --details
    joulemap compare resnet18 --scenario robot --precision int8 --sort efficiency
    joulemap compare resnet50 --hardware Jetson-Orin-Nano@7W,Jetson-Orin-Nano@15W,./mychip.toml
    joulemap compare ./mine.py:net --input 1,3,64,64 --model-arg width=32 --format json
    joulemap compare attention_head --model-arg tokens=1024
    """
    from joulemap.answer.name import split_models

    model, named = split_models(words)
    is_ranked = sort is not None or details or verbose
    is_summary = level == "summary" and len(set(model)) == 1
    if baseline and (is_ranked or not is_summary):
        raise UsageError("--baseline is for the summary of one model; leave it out")
    if is_ranked and not is_summary:
        raise UsageError("--sort, --details and --verbose rank the hardware for one model at --level summary")
    if (by or subgraph) and level not in ("subgraph", "operator"):
        raise UsageError("--by and --subgraph look into subgraphs or operators: add --level subgraph")
    if by and metric != "energy":
        raise UsageError("--by divides energy; leave out --metric")
    if subgraph and not by:
        raise UsageError("--subgraph looks inside one: add --by category or --by action")
    workspace = output.workspace()
    settings = run.settings(**hardware.keywords(named))
    repeated = output.repeat(run)
    if is_ranked:
        ranking = workspace.rank_hardware(
            model[0], settings, sort=sort or "efficiency", has_details=details, has_subgraphs=verbose
        )
        document = ranking.document(limit=limit, repeated=repeated)
    elif is_summary:
        document = workspace.compare(model[0], settings, baseline=baseline).document(metric=metric, repeated=repeated)
    elif level == "summary":
        document = workspace.compare_models(model, settings, metric=metric).document(repeated=repeated)
    elif level == "detailed":
        document = workspace.compare_runs(model, settings).document(repeated=repeated)
    elif by:
        parts = workspace.compare_breakdowns(model, settings, level=level, by=by, subgraph=subgraph)
        document = parts.document(limit=limit, repeated=repeated)
    else:
        contest = workspace.compare_parts(model, settings, by=level, metric=metric)
        document = contest.document(limit=limit, repeated=repeated)
    output.write(document)
