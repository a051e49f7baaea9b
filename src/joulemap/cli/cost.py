"""`joulemap cost`."""

from __future__ import annotations

from joulemap.cli.command import command, option
from joulemap.cli.option.hardware import CandidateHardwareOptions
from joulemap.cli.option.limit import PriceOptions, UsageOptions, UseLimitOptions
from joulemap.cli.option.plot import PlotOptions
from joulemap.cli.option.run import DeployedRunOptions, Limit, Model
from joulemap.cli.output import OutputOptions
from joulemap.domain.name import split_names


@command
def cost(
    model: Model,
    *,
    between: str = option(
        "",
        "Two options for the break-even: A,B, each a hardware with :rented or :bought or without.",
        shown="the cheapest bought, the cheapest rented",
    ),
    limit: Limit = 10,
    hardware: CandidateHardwareOptions,
    run: DeployedRunOptions,
    limits: UseLimitOptions,
    prices: PriceOptions,
    usage: UsageOptions,
    plot: PlotOptions,
    output: OutputOptions,
) -> None:
    """Say what a million inferences cost, rented or bought, with their energy and carbon by grid.

    Every hardware is taken at its cheapest configuration that keeps the limits. What is bought pays for its electricity
    and for a share of a host, which a rent contains; no staff. Rents and purchases are ranked apart unless both are
    asked for. Every assumption is told by --details.

    \b
    joulemap cost resnet18
    joulemap cost resnet50 --precision int8 --batch 8 --between Jetson-Orin-Nano,l4 --busy-hours 5
    joulemap cost vit_b_16 --hardware mi300x --between mi300x:bought,mi300x:rented --grid de --pue 1.2
    joulemap cost resnet50 l4 t4 --max-latency 20ms --price-per-hour l4=0.40USD/h --price-file prices.csv
    joulemap cost mobilenet_v2 --deployment edge --electricity 0.3USD/kWh --grid-gco2-per-kwh 30
    """
    answer = output.workspace().cost(
        model,
        run.settings(**hardware.keywords()),
        between=split_names(between),
        usage=usage.read(),
        limits=limits.read(),
        prices=prices.read(),
    )
    output.write(plot.add(answer.document(limit=limit, repeated=output.repeat(run)), answer, limit=limit))
