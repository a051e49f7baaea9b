"""`joulemap sweep`."""

from __future__ import annotations

from joulemap.cli.command import command, option, optional
from joulemap.cli.complete import complete_runtimes
from joulemap.cli.option.hardware import HardwareOptions
from joulemap.cli.option.run import (
    GIVEN,
    PRECISIONS_HELP,
    Limit,
    ManyRunOptions,
    Models,
    precisions,
    repeat_options,
)
from joulemap.cli.output import OutputOptions
from joulemap.cli.panel import LIMITS
from joulemap.cli.value import read_quantity
from joulemap.domain.dimension import ASKED
from joulemap.domain.settings import SweepDivision
from joulemap.physics.record.runtime import DEPLOYED_RUNTIME, RUNTIME_NAMES, USUAL_RUNTIME
from joulemap.system.name import join_choices
from joulemap.system.record import frozen


@frozen(kw_only=True)
class SweepRunOptions(ManyRunOptions):
    """Options for running models in every combination of precision, batch and runtime."""

    batch: str = option(
        "",
        "Batch sizes, e.g. 1,8,32 or 1,2,4,...,128.",
        "--batch",
        "-b",
        metavar="N,...",
        shown="1,2,4,...,128",
    )
    precision: str = precisions("", PRECISIONS_HELP, shown="fp32, or that of a quantized file", is_list=True)
    runtime: str = option(
        "",
        f"Execution modes to try: {join_choices(RUNTIME_NAMES)}.",
        metavar="MODE,...",
        complete=complete_runtimes,
        shown=f"{USUAL_RUNTIME}; {DEPLOYED_RUNTIME} with a deployment or scenario",
    )


@command
def sweep(
    words: Models,
    *,
    max_latency: str = optional("Maximum latency of a batch, e.g. 50ms.", "TIME", panel=LIMITS),
    level: SweepDivision = option(
        "hardware",
        "Table: best batch size per chip, every batch, winner per batch, or crossing (where the ranking reverses).",
    ),
    limit: Limit = 4,
    hardware: HardwareOptions,
    run: SweepRunOptions,
    output: OutputOptions,
) -> None:
    """Find the best batch size of each chip.

    Also shows the batch sizes at which another chip becomes best. An interrupted sweep continues where it stopped. json
    has every level, csv one table.

    \b
    joulemap sweep resnet50 l4 rtx_4090 --precision fp16 --runtime engine
    joulemap sweep resnet50 vit_b_16 --where deployment=datacenter --precision bf16,int8 --max-latency 50ms
    joulemap sweep mobilenet_v2 Jetson-Orin-Nano@7W Jetson-Orin-Nano@15W --batch 1,2,3,...,16 --precision int8
    joulemap sweep resnet18 --level batch --format csv --output resnet18.csv
    """
    from joulemap.ask.subject import split_models

    models, named = split_models(words)
    settings = run.settings(**hardware.keywords(named))
    budget = read_quantity("--max-latency", max_latency, "s") or 0.0
    answer = output.workspace().sweep(models, settings, max_latency_s=budget)
    again = (
        *named,
        *repeat_options(run, ("batch", *ASKED)),
        *hardware.repeat(),
        *(("--max-latency", max_latency) if max_latency else ()),
    )
    repeated = (
        *repeat_options(run, GIVEN),
        *output.repeat_database(),
    )
    output.present(answer, by=level, limit=limit, again=again, repeated=repeated)
