"""`joulemap analyze`."""

from __future__ import annotations

from joulemap.cli.command import command, option
from joulemap.cli.option.hardware import ModeOptions, OneHardwareOptions
from joulemap.cli.option.plot import PlotOptions
from joulemap.cli.option.run import Model, RunOptions
from joulemap.cli.output import OutputOptions
from joulemap.domain.settings import EnergyDivision, RunDivision
from joulemap.system.errors import UsageError


@command
def analyze(
    model: Model,
    *,
    hardware: OneHardwareOptions,
    level: RunDivision | None = option(
        None,
        "The table to show: energy by category; as a tree of categories and their actions; by subgraph, with "
        "its allocation; by operator, with what fusing it saves; or how often each event happens.",
        shown="action; subgraph with --by or --subgraph",
    ),
    by: EnergyDivision | None = option(
        None,
        "With --level subgraph or operator: what each spends its energy on.",
        shown="no breakdown; action with --subgraph",
    ),
    subgraph: str = option("", "Look inside this subgraph, as --level subgraph names it.", shown="all"),
    limit: int = option(8, "Actions, subgraphs or operators to show, the largest; json and csv have all.", min=1),
    mode: ModeOptions,
    run: RunOptions,
    plot: PlotOptions,
    output: OutputOptions,
) -> None:
    """Take one run apart: where its energy and time go, what bounds it, what its units do, whether it fits.

    Works alike on every class of hardware. json has every level, csv the table of one.

    \b
    joulemap analyze resnet18 xeon_8490h
    joulemap analyze vit_b_16 h100_sxm5 --level operator --precision bf16 --batch 32
    joulemap analyze resnet50 KPU-T64@6W --level subgraph --format csv
    joulemap analyze resnet50 l4 --level subgraph --by category
    joulemap analyze resnet50 l4 --subgraph layer4.0.conv2
    joulemap analyze resnet50 l4 --level event
    joulemap analyze mobilenet_v2 ./mychip.toml --precision int8 --format json
    """
    settings, named = run.settings(**mode.keywords()), hardware.read()
    workspace, repeated = output.workspace(), output.repeat(run)
    if by is None and (level == "event" or not subgraph):
        answer = workspace.analyze(model, named, settings, subgraph=subgraph)
        by_level = level or "action"
        output.write(plot.add(answer.document(by=by_level, limit=limit, repeated=repeated), answer, by=by_level))
        return
    if level not in (None, "subgraph", "operator"):
        raise UsageError(f"--by and --subgraph look into subgraphs or operators; leave out --level {level}")
    parts = workspace.break_down(
        model, named, settings, level=level or "subgraph", by=by or "action", subgraph=subgraph
    )
    output.write(plot.add(parts.document(limit=limit, repeated=repeated), parts, limit=limit))
