"""`joulemap sensitivity`."""

from __future__ import annotations

from joulemap.cli.command import command, option
from joulemap.cli.option.hardware import NamedHardwareOptions
from joulemap.cli.option.run import Limit, Model, RunOptions
from joulemap.cli.output import OutputOptions
from joulemap.domain.metric import VariedMetricName


@command
def sensitivity(
    model: Model,
    *,
    metric: VariedMetricName = option("energy", "Metric to rank the constants by."),
    limit: Limit = 6,
    hardware: NamedHardwareOptions,
    run: RunOptions,
    output: OutputOptions,
) -> None:
    """Rank the constants of a chip by their effect on a metric.

    Shows the metric at both ends of the range of each constant, and its change per percent of the constant. Constants
    include energies per action, static power, clocks and bandwidths. `--show details` lists the names for `--set`.

    \b
    joulemap sensitivity resnet18 h100_sxm5 --precision bf16
    joulemap sensitivity vit_b_16 h100_sxm5 tpu_v4 --precision bf16 --metric latency
    joulemap sensitivity resnet50 l4 --precision int8 --metric cost --format csv
    """
    answer = output.workspace().sensitivity(model, run.settings(**hardware.keywords()), metric=metric)
    output.present(answer, run, limit=limit, most=limit)
