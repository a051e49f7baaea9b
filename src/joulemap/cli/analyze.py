"""`joulemap analyze`."""

from __future__ import annotations

from typing import Annotated

import typer

from joulemap.cli.command import command
from joulemap.cli.output import OutputOptions
from joulemap.cli.record import Model, ModeOptions, OneHardwareOptions, RunOptions
from joulemap.domain.settings import RunDivision


@command
def analyze(
    model: Model,
    *,
    hardware: OneHardwareOptions,
    level: Annotated[
        RunDivision,
        typer.Option(
            help="The table to show: energy by category; as a tree of categories and their actions; by subgraph, with "
            "its allocation; by operator, with what fusing it saves."
        ),
    ] = "action",
    mode: ModeOptions,
    run: RunOptions,
    output: OutputOptions,
) -> None:
    """Take one run apart: where its energy and time go, what bounds it, what its units do, whether it fits.

    Works alike on every class of hardware. json has every level, csv the table of one.

    \b
    joulemap analyze resnet18 xeon_8490h
    joulemap analyze vit_b_16 h100_sxm5 --level operator --precision bf16 --batch 32
    joulemap analyze resnet50 KPU-T64@6W --level subgraph --format csv
    joulemap analyze mobilenet_v2 ./mychip.toml --precision int8 --format json
    """
    answer = output.workspace().analyze(model, hardware.read(), run.settings(**mode.keywords()))
    output.write(answer.document(by=level, repeated=output.repeat(run)))
