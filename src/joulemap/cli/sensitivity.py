"""`joulemap sensitivity`."""

from __future__ import annotations

from joulemap.cli.command import command, option
from joulemap.cli.option.hardware import NamedHardwareOptions
from joulemap.cli.option.limit import UsageOptions
from joulemap.cli.option.plot import PlotOptions
from joulemap.cli.option.run import Limit, Model, RunOptions
from joulemap.cli.output import OutputOptions
from joulemap.domain.metric import VariedMetricName


@command
def sensitivity(
    model: Model,
    *,
    metric: VariedMetricName = option("energy", "What the constants are sorted by."),
    limit: Limit = 10,
    hardware: NamedHardwareOptions,
    run: RunOptions,
    usage: UsageOptions,
    plot: PlotOptions,
    output: OutputOptions,
) -> None:
    """Say how much each constant of a hardware moves energy, latency and throughput, and between which ends.

    Prices per action, static power, clocks, bandwidths, units, efficiencies and every other coefficient that the run
    asks for: what the metric would be at the low and the high end of each, and the percent that it moves for each
    percent of the constant. --details has the names that --set takes.

    \b
    joulemap sensitivity resnet18 h100_sxm5
    joulemap sensitivity vit_b_16 h100_sxm5 tpu_v4 --precision bf16 --metric latency
    joulemap sensitivity resnet50 l4 --precision int8 --metric cost --format csv
    """
    answer = output.workspace().sensitivity(
        model, run.settings(**hardware.keywords()), metric=metric, usage=usage.read()
    )
    output.write(plot.add(answer.document(limit=limit, repeated=output.repeat(run)), answer, limit=limit))
