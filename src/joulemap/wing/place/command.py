"""`joulemap place`."""

from __future__ import annotations

from typing import Annotated

import typer

from joulemap.cli.command import command, option
from joulemap.cli.option.plot import PageOptions
from joulemap.cli.option.run import GIVEN, Limit, Model, RunOptions, precisions, repeat_options
from joulemap.cli.output import OutputOptions
from joulemap.domain.box import Goal
from joulemap.domain.dimension import ASKED
from joulemap.system.record import frozen


@frozen(kw_only=True)
class PlacedRunOptions(RunOptions):
    """Settings at which a model runs on the devices of a box."""

    precision: str = precisions("fp16", "Precision; a device without it uses its narrowest that holds it.")
    runtime: str = option("engine", "Runtime of all devices: eager, graph, fused or engine.")

    def repeat(self) -> tuple[str, ...]:
        """Return the options that a follow-up command about one device must repeat, except its precision."""
        names = (*(name for name in ASKED if "precision" not in name and name != "runtime"), "batch", *GIVEN)
        return ("--runtime", self.runtime, *repeat_options(self, names))


@command
def place(
    model: Model,
    box: Annotated[str, typer.Argument(help="A box by id or alias, or a file with [[devices]].")] = "",
    *,
    on: list[str] | None = option(
        None, "Devices in place of a box: hardware or classes, or NAME=HARDWARE; comma-separated."
    ),
    link: list[str] | None = option(
        None,
        "Link between devices: 25GB/s, pcie4x16, the name of one that both have, or shared (one memory); "
        "A-B=LINK for two of them. Repeat for several.",
    ),
    goal: Goal = option("latency", "Quantity to optimize."),
    limit: Limit = 12,
    run: PlacedRunOptions,
    page: PageOptions,
    output: OutputOptions,
) -> None:
    """Place a model's subgraphs on the devices of one box, compare with each device alone, and explain which wins.

    Copies between devices take time and energy and are lines of the ledger. A subgraph that one device cannot run goes
    to another.

    \b
    joulemap place resnet50 jetson_agx_orin_module --precision int8 --batch 8 --goal throughput
    joulemap place mobilenet_v2 raspberry_pi_5_hailo --precision int8
    joulemap place resnet50 --on xeon_8490h,l4 --link pcie4x16
    joulemap place vit_b_16 --on cpu,gpu,npu --link cpu-gpu=25GB/s,cpu-npu=pcie3x4
    """
    answer = page.workspace(output).place(
        model, box, settings=run.settings(), on=tuple(on or ()), links=tuple(link or ()), goal=goal
    )
    document = answer.document(limit=limit, repeated=output.repeat(run))
    page.write(document, answer, output, subject="Which part where")
