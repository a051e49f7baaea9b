"""`joulemap measure`."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from joulemap.cli.command import command
from joulemap.cli.option.run import Model, RunOptions, name_options
from joulemap.cli.output import OutputOptions
from joulemap.domain.settings import Device
from joulemap.system.errors import UsageError
from joulemap.system.record import frozen

HOST: Final = "host"
"""In place of a model: this machine as what launches kernels."""


@frozen(kw_only=True)
class MeasuredRunOptions(RunOptions):
    """How a model is run on this machine."""

    precision: Annotated[str, typer.Option("--precision", help="fp32, bf16 or fp16.")] = "fp32"
    runtime: Annotated[
        str,
        typer.Option(
            "--runtime",
            help="eager: operator by operator; graph: replay of a captured CUDA graph; fused: torch.compile.",
        ),
    ] = "eager"


@command
def measure(
    model: Model,
    *,
    device: Annotated[Device, typer.Option(help="What of this machine.")] = "cpu",
    hardware: Annotated[
        str, typer.Option(help="Id, alias or file of what this machine is.", show_default="as detected")
    ] = "",
    threads: Annotated[int | None, typer.Option(help="Threads of a CPU.", show_default="torch's choice")] = None,
    seconds: Annotated[float, typer.Option(help="Length of the window that is timed.")] = 2.0,
    run: MeasuredRunOptions,
    output: OutputOptions,
) -> None:
    """Run a model on this machine and set its latency, energy and memory beside the prediction; both are stored.

    `host` in place of a model times how long a thread of this machine takes to launch a kernel on a GPU, which runs in
    `eager` take from their host.

    Needs torch. Weights are random, nothing is downloaded. Energy is what the package or board counts, if it may be
    read.

    \b
    joulemap measure resnet18
    joulemap measure mobilenet_v2 --threads 1 --seconds 5
    joulemap measure vit_b_16 --device cuda --precision bf16 --batch 32 --runtime graph
    joulemap measure ./mine.py:net --input 1,3,64,64 --hardware ./this.toml --format json
    joulemap measure host
    """
    if model == HOST:
        own = ["--hardware"] * bool(hardware) + ["--threads"] * (threads is not None)
        if given := [*own, *name_options(run)]:
            raise UsageError(f"measure host times this machine, not a model; leave out {', '.join(given)}")
        output.write(output.workspace().measure_host(device=device, seconds=seconds).document())
        return
    answer = output.workspace().measure(
        model, run.settings(), hardware=hardware or None, device=device, threads=threads, seconds=seconds
    )
    output.write(answer.document())
