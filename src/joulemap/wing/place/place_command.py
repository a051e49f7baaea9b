"""`joulemap place`."""

from __future__ import annotations

from typing import Annotated, Any, Final

import attrs
import typer

from joulemap.cli import GIVEN, Limit, Model, OutputOptions, PageOptions, RunOptions, precisions, repeat_options
from joulemap.cli.command import command, option
from joulemap.cli.option.run import RUNTIME_HELP
from joulemap.cli.panel import HARDWARE
from joulemap.domain import Settings
from joulemap.domain.dimension import ASKED
from joulemap.physics import DEPLOYED_RUNTIME, Precision
from joulemap.system import frozen
from joulemap.wing.place.record import Goal

PRECISION: Final[tuple[Precision, ...]] = ("fp16",)
"""Precision of placements of models whose file states none."""


@frozen(kw_only=True)
class PlacedRunOptions(RunOptions):
    """Options for running a model on the devices of a box."""

    precision: str = precisions(
        "",
        "Numeric precision; a device that lacks it uses its next wider one.",
        shown="fp16, or that of the model file",
    )
    runtime: str = option(DEPLOYED_RUNTIME, RUNTIME_HELP, metavar="MODE")
    link: str = option("", "", "--chip-link", hidden=True)

    def settings(self, **keywords: Any) -> Settings:
        """Return the settings of these options; the precision is that of placements if none is given."""
        made = super().settings(**keywords)
        return made if self.precision else attrs.evolve(made, precision=PRECISION)

    def repeat(self) -> tuple[str, ...]:
        """Return the options that a command for one of the devices repeats; the precision is not among them."""
        names = (*(name for name in ASKED if "precision" not in name and name != "runtime"), "batch", *GIVEN)
        return ("--runtime", self.runtime, *repeat_options(self, names))


@command
def place(
    model: Model,
    box: Annotated[str, typer.Argument(metavar="BOX", help="Box id or alias, or a file with [[devices]].")] = "",
    *,
    on: list[str] | None = option(
        None,
        "Devices instead of a box: hardware, classes or NAME=HARDWARE, comma-separated.",
        metavar="NAME,...",
        panel=HARDWARE,
    ),
    links: list[str] | None = option(
        None,
        "Link between devices, e.g. 25GB/s, pcie4x16, a link name, shared (one memory) or A-B=LINK; repeatable.",
        "--link",
        metavar="LINK",
        panel=HARDWARE,
    ),
    goal: Goal = option("latency", "Metric to optimize."),
    limit: Limit = 12,
    run: PlacedRunOptions,
    page: PageOptions,
    output: OutputOptions,
) -> None:
    """Place a model's subgraphs on the devices of one box.

    Compares the best placement with each device alone, and explains the difference. Copies between devices take time
    and energy. Operators that a device cannot run go to another.

    \b
    joulemap place resnet50 jetson_agx_orin_module --precision int8 --batch 8 --goal throughput
    joulemap place mobilenet_v2 raspberry_pi_5_hailo --precision int8
    joulemap place resnet50 --on xeon_8490h,l4 --link pcie4x16
    joulemap place vit_b_16 --on cpu,gpu,npu --link cpu-gpu=25GB/s,cpu-npu=pcie3x4
    """
    answer = page.workspace(output).place(
        model, box, settings=run.settings(), on=tuple(on or ()), links=tuple(links or ()), goal=goal
    )
    page.present(answer, output, run, limit=limit)
