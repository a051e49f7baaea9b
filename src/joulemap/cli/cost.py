"""`joulemap cost`."""

from __future__ import annotations

from joulemap.cli.command import command, option
from joulemap.cli.option.hardware import CandidateHardwareOptions
from joulemap.cli.option.limit import UsageOptions, UseLimitOptions, pay_option, rent_option
from joulemap.cli.option.plot import PlotOptions
from joulemap.cli.option.run import Check, DeployedRunOptions, Limit, Model
from joulemap.cli.output import OutputOptions
from joulemap.system.name import split_names
from joulemap.system.record import frozen


@frozen(kw_only=True)
class PayOptions(UsageOptions):
    """Payment, use and power of a chip, in a command about cost."""

    price_per_hour: list[str] | None = rent_option(is_advanced=False)
    pay: str = pay_option(is_advanced=False)


@command
def cost(
    model: Model,
    *,
    between: str = option(
        "",
        "Two chips whose break-even is printed, each with or without :rented or :bought.",
        metavar="A,B",
        shown="cheapest rented and cheapest bought",
    ),
    limit: Limit = 6,
    check: Check = False,
    hardware: CandidateHardwareOptions,
    run: DeployedRunOptions,
    limits: UseLimitOptions,
    usage: PayOptions,
    plot: PlotOptions,
    output: OutputOptions,
) -> None:
    """Compute cost, energy and carbon of a million inferences.

    Each chip runs in its cheapest configuration within the limits. `--details` lists every assumption.

    A purchased chip also pays for electricity and for part of a host; a rental price includes both. Staff is not
    counted. Rented and purchased chips are ranked separately unless `--pay both` is given.

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
    )
    document = plot.add(answer.document(limit=limit, repeated=output.repeat(run)), answer, limit=limit)
    output.write(document, answer if check else None)
