"""`joulemap analyze`."""

from __future__ import annotations

from joulemap.cli.command import command, option, optional
from joulemap.cli.option.hardware import OneHardwareOptions
from joulemap.cli.option.run import Limit, Model, WholeRunOptions
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
        "Table: energy by category, action, subgraph or operator, or the number of each event.",
        shown="action; subgraph with --by or --subgraph",
    ),
    by: EnergyDivision | None = option(
        None,
        "Energy breakdown of each subgraph or operator.",
        shown="no breakdown; action with --subgraph",
    ),
    subgraph: str = optional("One subgraph, by its name in --level subgraph.", "NAME"),
    limit: Limit = 5,
    run: WholeRunOptions,
    output: OutputOptions,
) -> None:
    """Break down the energy and time of one run.

    Shows what limits the run, how busy the units are and whether the model fits in memory. json has every level, csv
    one table.

    \b
    joulemap analyze resnet50 l4 --precision bf16 --batch 8
    joulemap analyze vit_b_16 h100_sxm5 --level operator --precision bf16 --batch 32
    joulemap analyze mobilenet_v2 Jetson-Orin-Nano@7W --level subgraph --precision int8 --runtime engine --format csv
    joulemap analyze resnet50 l4 --level subgraph --by category --precision bf16
    joulemap analyze resnet50 l4 --subgraph layer4.0.conv2 --precision bf16
    joulemap analyze resnet50 l4 --level event --precision bf16
    joulemap analyze mobilenet_v2 ./mychip.toml --precision int8 --format json
    """
    settings, named = run.settings(), hardware.read()
    workspace = output.workspace()
    if by is None and (level == "event" or not subgraph):
        answer = workspace.analyze(model, named, settings, subgraph=subgraph)
        by_level = level or "action"
        output.present(answer, run, by=by_level, limit=limit)
        return
    if output.shows("check"):
        raise UsageError("--show check is for the whole run: leave out --by and --subgraph")
    if level not in (None, "subgraph", "operator"):
        raise UsageError(f"--by and --subgraph look into subgraphs or operators; leave out --level {level}")
    parts = workspace.break_down(
        model, named, settings, level=level or "subgraph", by=by or "action", subgraph=subgraph
    )
    output.present(parts, run, limit=limit, most=limit)
