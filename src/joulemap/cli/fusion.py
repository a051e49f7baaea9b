"""`joulemap fusion`."""

from __future__ import annotations

from joulemap.cli.command import command, option
from joulemap.cli.option.hardware import ModeOptions, OneHardwareOptions
from joulemap.cli.option.run import Limit, Model, RunOptions
from joulemap.cli.output import OutputOptions
from joulemap.domain.settings import FusionDivision


@command
def fusion(
    model: Model,
    *,
    hardware: OneHardwareOptions,
    level: FusionDivision = option(
        "pattern", "The table to show below the run: by fusion pattern, subgraph or operator; none for run."
    ),
    limit: Limit = 12,
    mode: ModeOptions,
    run: RunOptions,
    output: OutputOptions,
) -> None:
    """Show what fusing operators saves, or costs, beside each operator as a kernel of its own on the same hardware.

    Energy, latency, energy x delay, bytes off chip and bytes moved; each level adds up to the run exactly. With
    --runtime eager or graph, where nothing is fused, that run stands beside the same in fused.

    \b
    joulemap fusion resnet18 h100_sxm5
    joulemap fusion vit_b_16 tpu_v4 --level subgraph --precision bf16 --batch 8
    joulemap fusion mobilenet_v2 xeon_8490h --runtime eager
    joulemap fusion conv_block kpu_t256 --level operator --format csv
    """
    answer = output.workspace().fusion(model, hardware.read(), run.settings(**mode.keywords()))
    output.write(answer.document(by=level, limit=limit, repeated=output.repeat(run)))
