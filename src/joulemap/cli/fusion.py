"""`joulemap fusion`."""

from __future__ import annotations

from joulemap.cli.command import command, option
from joulemap.cli.option.hardware import OneHardwareOptions
from joulemap.cli.option.run import Limit, Model, WholeRunOptions
from joulemap.cli.output import OutputOptions
from joulemap.domain.settings import FusionDivision


@command
def fusion(
    model: Model,
    *,
    hardware: OneHardwareOptions,
    level: FusionDivision = option(
        "pattern", "Table of savings: by fusion pattern, subgraph or operator; `run` prints only the totals."
    ),
    limit: Limit = 6,
    run: WholeRunOptions,
    output: OutputOptions,
) -> None:
    """Show what operator fusion saves or costs on one chip.

    Compares the run with one that has a kernel per operator, in energy, latency, EDP and bytes moved. Each level adds
    up to the run exactly. With `--runtime eager` or `graph`, the other run is the same model in fused mode.

    \b
    joulemap fusion resnet18 h100_sxm5 --precision bf16
    joulemap fusion vit_b_16 tpu_v4 --level subgraph --precision bf16 --batch 8
    joulemap fusion mobilenet_v2 xeon_8490h --runtime eager
    joulemap fusion conv_block rtx_4090 --level operator --precision fp16 --format csv
    """
    answer = output.workspace().fusion(model, hardware.read(), run.settings())
    output.present(answer, run, by=level, limit=limit)
