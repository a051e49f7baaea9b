"""`joulemap cost`."""

from __future__ import annotations

from joulemap.cli.command import command, option
from joulemap.cli.option.hardware import CandidateHardwareOptions
from joulemap.cli.option.limit import UseLimitOptions
from joulemap.cli.option.run import DeployedRunOptions, Limit, Model
from joulemap.cli.output import OutputOptions
from joulemap.system.name import split_names


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
    hardware: CandidateHardwareOptions,
    run: DeployedRunOptions,
    limits: UseLimitOptions,
    output: OutputOptions,
) -> None:
    """Compute cost, energy and carbon of a million inferences.

    Each chip runs in its cheapest configuration within the limits. `--show details` lists every assumption.

    A purchased chip also pays for electricity and for part of a host; a rental price includes both. Staff is not
    counted. Rented and purchased chips are ranked separately unless `--site pay=both` is given.

    \b
    joulemap cost resnet18
    joulemap cost resnet50 --precision int8 --batch 8 --between Jetson-Orin-Nano,l4 --site busy-hours=5
    joulemap cost vit_b_16 --hardware mi300x --between mi300x:bought,mi300x:rented --site grid=de --site pue=1.2
    joulemap cost resnet50 l4 t4 --max-latency 20ms --site price-per-hour.l4=0.40USD/h --site prices.toml
    joulemap cost mobilenet_v2 --where deployment=edge --site electricity=0.3USD/kWh
    """
    answer = output.workspace().cost(
        model,
        run.settings(**hardware.keywords()),
        between=split_names(between),
        limits=limits.read(),
    )
    output.present(answer, run, limit=limit, most=limit)
