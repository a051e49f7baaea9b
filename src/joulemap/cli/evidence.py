"""`joulemap evidence`."""

from __future__ import annotations

from joulemap.cli.command import command, option
from joulemap.cli.option.hardware import OneHardwareOptions
from joulemap.cli.option.phase import PassRunOptions
from joulemap.cli.option.run import Limit
from joulemap.cli.output import OutputOptions
from joulemap.domain.metric import VariedMetricName


@command
def evidence(
    *,
    hardware: OneHardwareOptions,
    model: str = option("resnet50", "Model whose result the numbers move."),
    metric: VariedMetricName = option("latency", "Metric that the numbers move."),
    limit: Limit = 12,
    run: PassRunOptions,
    output: OutputOptions,
) -> None:
    """Show what the numbers behind a prediction rest on.

    Lists the numbers that move the result by a tenth or more, their basis, and the sources, boards and models that each
    was fitted to. The first line names the measurement that would narrow the result most.

    \b
    joulemap evidence rtx_5090
    joulemap evidence hailo_8l --model mobilenet_v2
    joulemap evidence h100_sxm5 --model llama-3.1-8b --phase decode --metric energy
    """
    run = run.of_checkpoint(model)
    answer = output.workspace().evidence(run.name(model), run.settings(hardware=(hardware.read(),)), metric=metric)
    output.present(answer, run, limit=limit)
