"""`joulemap fleet`."""

from __future__ import annotations

import attrs

from joulemap.cli.command import command, option
from joulemap.cli.option.fleet import DemandOptions, read_models
from joulemap.cli.option.hardware import CandidateHardwareOptions
from joulemap.cli.option.limit import PriceOptions, UsageOptions
from joulemap.cli.option.plot import PageOptions
from joulemap.cli.option.run import CandidateRunOptions, Model
from joulemap.cli.option.serving import PRECISION, ServedOutputOptions, ServerOptions


@command
def fleet(
    model: Model,
    *,
    demand: DemandOptions,
    limit: int = option(12, "Rows of each table to show; json and csv have all.", min=1),
    hardware: CandidateHardwareOptions,
    serving: ServerOptions,
    run: CandidateRunOptions,
    prices: PriceOptions,
    usage: UsageOptions,
    page: PageOptions,
    output: ServedOutputOptions,
) -> None:
    """Say how many of which hardware serve a demand: the cheapest fleet, how near its promises are, what fails first.

    Requests come by themselves and wait in one queue; a device that is free takes what waits, as a batch. The fewest
    devices that keep the promise are found by stepping through requests.

    \b
    joulemap fleet resnet50 --rate 2000/s --p99 15ms --precision int8
    joulemap fleet resnet50 l4 t4 h100_sxm5 --rate 2000/s --p99 15ms --precision int8 --beside vit_b_16=0.2
    joulemap fleet models.toml --rate 2000/s --p99 15ms --precision int8 --node 8
    joulemap fleet mobilenet_v2 --rates day.csv --p99 50ms --release --objective energy
    joulemap fleet llama-3.1-8b --rate 20/s --prompt 2000 --output 300 --first-token 500ms --between-tokens 30ms
    """
    model, asked = read_models(model, demand.read())
    if asked.is_of_tokens and run.precision == CandidateRunOptions().precision:
        run = attrs.evolve(run, precision=PRECISION)
    answer = page.workspace(output).fleet(
        model,
        run.settings(**hardware.keywords()),
        demand=asked,
        serving=serving.read(),
        usage=usage.read(),
        prices=prices.read(),
    )
    document = answer.document(limit=limit, repeated=output.repeat(run))
    page.write(document, answer, output, subject="How many of which")
