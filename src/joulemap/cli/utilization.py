"""`joulemap utilization`."""

from __future__ import annotations

from joulemap.cli.command import command, option
from joulemap.cli.option.hardware import NamedHardwareOptions
from joulemap.cli.option.run import Limit, Model, RunOptions
from joulemap.cli.output import OutputOptions


@command
def utilization(
    model: Model,
    *,
    limit: Limit = 10,
    pairing: bool = option(False, "Run models of each size, and show which chip suits which size."),
    advice: bool = option(
        True,
        "Evaluate and show better batch sizes, precisions, power modes and chips.",
        "--advice/--no-advice",
    ),
    min_compute: float = option(0.2, "Flag compute utilization below this fraction.", metavar="FRACTION"),
    max_bandwidth: float = option(
        0.9, "Flag bandwidth utilization above this fraction of the sustained rate.", metavar="FRACTION"
    ),
    max_idle: float = option(0.8, "Flag idle units above this fraction.", metavar="FRACTION"),
    hardware: NamedHardwareOptions,
    run: RunOptions,
    output: OutputOptions,
) -> None:
    """Show how much of each chip a model uses, on a roofline.

    Flags low utilization. Each remedy is evaluated and listed with its gain. json has every row and sentence, csv the
    table of hardware.

    \b
    joulemap utilization resnet50 --precision bf16 --batch 8
    joulemap utilization vit_b_16 h100_sxm5 tpu_v4 --precision bf16 --batch 32
    joulemap utilization mobilenet_v2 --where deployment=edge --precision int8 --format csv
    joulemap utilization resnet50 --precision bf16 --pairing
    """
    answer = output.workspace().utilization(
        model,
        run.settings(**hardware.keywords()),
        min_compute_fraction=min_compute,
        max_bandwidth_fraction=max_bandwidth,
        max_idle_fraction=max_idle,
        has_advice=advice,
        is_pairing=pairing,
    )
    output.present(answer, run, limit=limit)
