"""`joulemap utilization`."""

from __future__ import annotations

from joulemap.cli.command import command, option
from joulemap.cli.option.hardware import NamedHardwareOptions
from joulemap.cli.option.plot import PlotOptions
from joulemap.cli.option.run import Limit, Model, RunOptions
from joulemap.cli.output import OutputOptions
from joulemap.cli.value import read_fractions


@command
def utilization(
    model: Model,
    *,
    limit: Limit = 10,
    pairing: bool = option(False, "Also say which of the hardware suits which size of model, by what is stored."),
    advice: bool = option(
        True,
        "Say what would use each hardware better: evaluates other batches, precisions, power modes and hardware.",
        "--advice/--no-advice",
    ),
    grades: str = option(
        "",
        "Least shares of a peak that are excellent, good, fair and poor, e.g. 0.7,0.5,0.3,0.1.",
        shown="`joulemap query run utilization.grade`",
    ),
    min_compute: float = option(0.2, "Flag compute utilization below this, from 0 to 1."),
    max_bandwidth: float = option(0.9, "Flag a share of the sustained bandwidth above this, from 0 to 1."),
    max_idle: float = option(0.8, "Flag a share of idle units above this, from 0 to 1."),
    hardware: NamedHardwareOptions,
    run: RunOptions,
    plot: PlotOptions,
    output: OutputOptions,
) -> None:
    """Show how much of each hardware a model uses, where it stands on the roofline, and what is unhealthy about it.

    What would be better is evaluated, never a rule of thumb: each remedy has its gain. json has every row and sentence,
    csv the table of hardware.

    \b
    joulemap utilization resnet18
    joulemap utilization vit_b_16 h100_sxm5 tpu_v4 --precision bf16 --batch 32
    joulemap utilization mobilenet_v2 --deployment edge --precision int8 --format csv
    joulemap utilization resnet50 --pairing
    """
    answer = output.workspace().utilization(
        model,
        run.settings(**hardware.keywords()),
        min_compute_fraction=min_compute,
        max_bandwidth_fraction=max_bandwidth,
        max_idle_fraction=max_idle,
        grades=read_fractions("--grades", grades),
        has_advice=advice,
        is_pairing=pairing,
    )
    output.write(plot.add(answer.document(limit=limit, repeated=output.repeat(run)), answer))
