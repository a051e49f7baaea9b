"""`joulemap flip`."""

from __future__ import annotations

from joulemap.cli.command import command, option
from joulemap.cli.option.hardware import TwoHardwareOptions
from joulemap.cli.option.phase import PassRunOptions
from joulemap.cli.option.run import Limit, Model
from joulemap.cli.output import OutputOptions
from joulemap.domain.metric import VariedMetricName


@command
def flip(
    model: Model,
    *,
    hardware: TwoHardwareOptions,
    metric: VariedMetricName = option("energy", "Metric in which one chip wins."),
    limit: Limit = 6,
    run: PassRunOptions,
    output: OutputOptions,
) -> None:
    """Find the changes of constants that would reverse a ranking.

    Shows the break-even value of each constant of A and B, and the probability that it is reached. Also shows the
    confidence in the winner and the most useful measurement. `--show details` lists the names for `--set`.

    \b
    joulemap flip resnet18 h100_sxm5 tpu_v4 --precision bf16 --metric energy
    joulemap flip vit_b_16 l4 t4 --precision int8 --metric edp
    joulemap flip resnet50 l4 h100_sxm5 --precision bf16 --metric cost --site electricity=0.3USD/kWh
    joulemap flip llama-3.1-8b h100_sxm5 h200_sxm --phase decode
    """
    run = run.of_checkpoint(model)
    answer = output.workspace().flip(run.name(model), *hardware.read_both(), run.settings(), metric=metric)
    output.present(answer, run, limit=limit, most=limit)
