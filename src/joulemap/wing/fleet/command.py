"""`joulemap fleet`."""

from __future__ import annotations

import typer

from joulemap.cli import LIMIT_HELP, OUTPUT, Model, PageOptions
from joulemap.cli.command import advanced, command, option
from joulemap.cli.option.hardware import CandidateHardwareOptions
from joulemap.cli.option.run import DeployedRunOptions
from joulemap.system import ExitCode, frozen
from joulemap.wing.fleet.option import DemandOptions, read_models
from joulemap.wing.llm.option import ServedOutputOptions, ServerOptions


@frozen(kw_only=True)
class FleetRunOptions(DeployedRunOptions):
    """Options for running models whose requests wait in a queue and form batches."""

    batch: str = advanced("", "Largest batches.", "--batch", "-b", metavar="N,...", shown="1,2,4,8,16,32,64")


@command
def fleet(
    model: Model,
    *,
    demand: DemandOptions,
    limit: int = option(12, LIMIT_HELP, min=1, panel=OUTPUT),
    hardware: CandidateHardwareOptions,
    serving: ServerOptions,
    run: FleetRunOptions,
    page: PageOptions,
    output: ServedOutputOptions,
) -> None:
    """Find the cheapest fleet that meets a latency target.

    The answer names the first limit to break as load grows. Requests arrive at random (Poisson), in one
    queue. Exits with 4 if no fleet meets its limits.

    A free device takes all waiting requests as a batch. A simulation finds the fewest devices that meet the target.

    \b
    joulemap fleet resnet50 --rate 2000/s --p99 15ms --precision int8
    joulemap fleet resnet50 l4 t4 h100_sxm5 --rate 2000/s --p99 15ms --precision int8 --beside vit_b_16=0.2
    joulemap fleet models.toml --rate 2000/s --p99 15ms --precision int8 --node 8
    joulemap fleet mobilenet_v2 --rates day.csv --p99 50ms --release --objective energy
    joulemap fleet llama-3.1-8b --rate 20/s --prompt 2000 --output 300 --first-token 500ms --between-tokens 30ms
    """
    model, asked = read_models(model, demand.read())
    answer = page.workspace(output).fleet(
        model,
        run.settings(**hardware.keywords()),
        demand=asked,
        serving=serving.read(),
    )
    page.present(answer, output, limit=limit, repeated=(*serving.repeat(), *output.repeat(run)))
    if not answer.is_met:
        raise typer.Exit(ExitCode.UNSUPPORTED)
