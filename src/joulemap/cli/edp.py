"""`joulemap edp`."""

from __future__ import annotations

from joulemap.cli.command import command, option
from joulemap.cli.option.hardware import OneHardwareOptions
from joulemap.cli.option.phase import PassRunOptions
from joulemap.cli.option.run import Limit, Model
from joulemap.cli.output import OutputOptions
from joulemap.domain.settings import ModelDivision


@command
def edp(
    model: Model,
    *,
    hardware: OneHardwareOptions,
    level: ModelDivision = option("subgraph", "Parts to rank."),
    limit: Limit = 6,
    run: PassRunOptions,
    output: OutputOptions,
) -> None:
    """Rank the parts of a run by energy-delay product (EDP).

    Shows the maximum gain from each part. The shares add up to energy x delay exactly. json has both levels, csv one
    table.

    \b
    joulemap edp resnet50 l4 --precision bf16
    joulemap edp vit_b_16 rtx_4090 --level operator --precision bf16 --batch 8
    joulemap edp resnet50 h100_sxm5 --precision bf16 --format markdown
    joulemap edp attention_head tpu_v4 --model-arg tokens=1024 --format csv
    joulemap edp llama-3.1-8b h100_sxm5 --phase decode
    """
    run = run.of_checkpoint(model)
    settings = run.settings()
    answer = output.workspace().edp(run.name(model), hardware.read(), settings)
    output.present(answer, run, by=level, limit=limit)
