"""`joulemap explore`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from joulemap.cli.command import command
from joulemap.cli.complete import complete_models
from joulemap.cli.option.design import DesignOptions
from joulemap.cli.option.run import MODEL_HELP, Limit, RunOptions
from joulemap.cli.output import OutputOptions
from joulemap.cli.voice import voice


@command
def explore(
    models: Annotated[list[str], typer.Argument(metavar="MODEL...", help=MODEL_HELP, autocompletion=complete_models)],
    *,
    limit: Limit = 12,
    save_as: Annotated[
        Path | None,
        typer.Option(
            "--save-as",
            help="Write the design that is best at the first objective as a hardware file, .toml.",
            show_default="not written",
        ),
    ] = None,
    design: DesignOptions,
    run: RunOptions,
    output: OutputOptions,
) -> None:
    """Find the best of many designs like a chip, and those that cannot be told apart from them.

    What is varied moves what follows from it: peaks follow units and clock, voltage the clock, wires and static power
    the area (--notes lists the rules).

    \b
    joulemap explore mobilenet_v2 --like kpu_t256 --vary units=16:256:*2 --precision int8 --max-power 15W
    joulemap explore resnet50 vit_b_16 --share resnet50=0.7 --like l4 --vary units=x0.5,x1 --vary clock=x0.5:x1.2:8
    joulemap explore "llama-3.1-8b(cached=2176)" --like l4 --vary dram.bandwidth=x1:x4:4 --precision int8
    joulemap explore resnet18 --like tpu_v4 --vary rows=32:256:*2 --random 3 --objective edp,area --precision bf16
    """
    with output.watched_workspace() as workspace:
        answer = workspace.explore(models, run.settings(), **design.keywords())
    if save_as is not None:
        voice.inform(f"wrote {answer.save(save_as, force=output.force)}")
    output.write(answer.document(limit=limit, repeated=output.repeat(run)))
