"""`joulemap measure`."""

from __future__ import annotations

from typing import Final

from joulemap.cli.command import command, option
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

    precision: str = option("fp32", "fp32, bf16 or fp16.")
    runtime: str = option(
        "eager", "eager: operator by operator; graph: replay of a captured CUDA graph; fused: torch.compile."
    )


@command
def measure(
    model: Model,
    *,
    device: Device = option("cpu", "What of this machine."),
    hardware: str = option("", "Id, alias or file of what this machine is.", shown="as detected"),
    threads: int | None = option(None, "Threads of a CPU.", shown="torch's choice"),
    seconds: float = option(2.0, "Length of the window that is timed."),
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
