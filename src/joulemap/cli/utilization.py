"""`joulemap utilization`."""

from __future__ import annotations

from typing import Annotated

import typer

from joulemap.cli.command import command
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
    pairing: Annotated[
        bool,
        typer.Option("--pairing", help="Also say which of the hardware suits which size of model, by what is stored."),
    ] = False,
    advice: Annotated[
        bool,
        typer.Option(
            help="Say what would use each hardware better: evaluates other batches, precisions, power modes and "
            "hardware."
        ),
    ] = True,
    grades: Annotated[
        str,
        typer.Option(
            help="Least shares of a peak that are excellent, good, fair and poor, e.g. 0.7,0.5,0.3,0.1.",
            show_default="`joulemap query run utilization.grade`",
        ),
    ] = "",
    min_compute: Annotated[float, typer.Option(help="Flag compute utilization below this, from 0 to 1.")] = 0.2,
    max_bandwidth: Annotated[
        float, typer.Option(help="Flag a share of the sustained bandwidth above this, from 0 to 1.")
    ] = 0.9,
    max_idle: Annotated[float, typer.Option(help="Flag a share of idle units above this, from 0 to 1.")] = 0.8,
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
