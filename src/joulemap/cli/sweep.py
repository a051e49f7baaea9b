"""`joulemap sweep`."""

from __future__ import annotations

from joulemap.cli.command import command, option
from joulemap.cli.complete import complete_runtimes
from joulemap.cli.option.hardware import HardwareOptions
from joulemap.cli.option.plot import PlotOptions
from joulemap.cli.option.run import Limit, Models, RunOptions, precisions, repeat_options
from joulemap.cli.output import OutputOptions
from joulemap.cli.value import read_quantity
from joulemap.domain.dimension import ASKED
from joulemap.domain.settings import SweepDivision
from joulemap.system.record import frozen


@frozen(kw_only=True)
class SweepRunOptions(RunOptions):
    """How models are run, each way with each other."""

    batch: str = option("", "Batches: 1,8,32, or with dots as 1,2,4,...,128.", "--batch", "-b", shown="1,2,4,...,128")
    precision: str = precisions("fp32", "One or several, e.g. fp32,bf16,int8.")
    runtime: str = option(
        "",
        "One or several of eager, graph, fused, engine.",
        complete=complete_runtimes,
        shown="engine with --deployment or --scenario, else fused",
    )


@command
def sweep(
    words: Models,
    *,
    max_latency: str = option("", "Latency budget of a batch, e.g. 50ms.", shown="none"),
    level: SweepDivision = option(
        "hardware",
        "The table to show: hardware: best batches of each; batch: every run; winner: the best hardware at "
        "each batch; crossing: pairs whose order reverses.",
    ),
    limit: Limit = 12,
    hardware: HardwareOptions,
    run: SweepRunOptions,
    plot: PlotOptions,
    output: OutputOptions,
) -> None:
    """Run models at many batches: the best batch of each hardware, and from which batch on another one is best.

    What is stored is not evaluated again, so a sweep that was interrupted goes on where it stopped. json has every
    level, csv the table of one.

    \b
    joulemap sweep resnet18
    joulemap sweep resnet50 vit_b_16 --deployment datacenter --precision bf16,int8 --max-latency 50ms
    joulemap sweep mobilenet_v2 --batch 1,2,3,...,16 --hardware Jetson-Orin-Nano@7W,Jetson-Orin-Nano@15W
    joulemap sweep resnet18 --level batch --format csv --output resnet18.csv
    """
    from joulemap.answer.name import split_models

    models, named = split_models(words)
    settings = run.settings(**hardware.keywords(named))
    budget = read_quantity("--max-latency", max_latency, "s") or 0.0
    with output.watched_workspace() as workspace:
        answer = workspace.sweep(models, settings, max_latency_s=budget)
    again = (
        *named,
        *repeat_options(run, ("batch", *ASKED)),
        *repeat_options(hardware, ("hardware", "architecture", "deployment", "scenario", "power_budget", "power_mode")),
        *(("--max-latency", max_latency) if max_latency else ()),
    )
    repeated = (
        *repeat_options(run, ("inputs", "arguments", "config", "calibration", "host", "boundary", "tf32")),
        *output.repeat_database(),
    )
    output.write(plot.add(answer.document(by=level, limit=limit, again=again, repeated=repeated), answer))
