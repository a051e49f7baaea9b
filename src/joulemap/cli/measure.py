"""`joulemap measure`."""

from __future__ import annotations

from typing import Final

from joulemap.cli.command import command, option
from joulemap.cli.option.run import Model, RunOptions, name_options
from joulemap.cli.output import OutputOptions
from joulemap.domain.label import RUNTIME_LABEL
from joulemap.domain.settings import Device
from joulemap.physics.record.runtime import RUNTIMES
from joulemap.system.errors import UsageError
from joulemap.system.name import join_choices
from joulemap.system.record import frozen

HOST: Final = "host"
"""Word that is given as the model to measure kernel launches of this machine."""


MEASURED: Final = join_choices(RUNTIME_LABEL[one.name] for one in RUNTIMES if not one.is_built)
"""Runtimes that PyTorch can run, as a list of choices."""


@frozen(kw_only=True)
class MeasuredRunOptions(RunOptions):
    """Options for running a model on this machine."""

    precision: str = option("fp32", "Numeric precision: fp32, bf16 or fp16.", metavar="NAME")
    runtime: str = option(
        "eager",
        f"Execution mode: {MEASURED}; graph replays a CUDA graph.",
        metavar="MODE",
    )


@command
def measure(
    model: Model = "",
    *,
    device: Device = option("cpu", "Device of this machine."),
    hardware: str = option("", "Chip id, alias or file of this machine.", metavar="NAME", shown="as detected"),
    threads: int | None = option(None, "Number of CPU threads.", shown="torch's choice"),
    parts: bool = option(False, "Measure what the parts of a GPU board draw, instead of a model."),
    seconds: float = option(2.0, "Length of a timed window in seconds.", metavar="SECONDS"),
    run: MeasuredRunOptions,
    output: OutputOptions,
) -> None:
    """Measure a model here and compare it with the prediction.

    Stores latency, energy and memory of both. Needs torch; weights are random and nothing is downloaded. Energy comes
    from the counters of the CPU package or board, if they are readable.

    `host` as MODEL times how long a thread of this machine takes to launch a GPU kernel. Runs in `eager` use the launch
    time of their `--site host`.

    `--parts` measures the power of an NVIDIA board in about forty states, so that `joulemap calibrate` learns what its
    clocks, units and memory draw. Use an idle board; only root may lock its clocks.

    \b
    joulemap measure resnet18
    joulemap measure mobilenet_v2 --threads 1 --seconds 5
    joulemap measure vit_b_16 --device cuda --precision bf16 --batch 32 --runtime graph
    joulemap measure ./mine.py:net --input 1,3,64,64 --hardware ./this.toml --format json
    joulemap measure host
    joulemap measure --parts --seconds 10
    """
    if parts or model == HOST:
        own = {model: parts, "--hardware": hardware and not parts, "--threads": threads is not None}
        if given := [*(name for name, is_given in own.items() if name and is_given), *name_options(run)]:
            raise UsageError(f"this measures the machine, not a model; leave out {', '.join(given)}")
    elif not model:
        raise UsageError("measure needs a MODEL, `host` or --parts")
    if parts:
        table = output.workspace().measure_parts(hardware=hardware or None, seconds=seconds)
        newest = max(table, key=lambda row: row.measurement_id)
        output.write_table(table, "model | power_w", answer=f"Each state was measured for {newest.conditions}.")
        return
    if model == HOST:
        output.present(output.workspace().measure_host(device=device, seconds=seconds))
        return
    answer = output.workspace().measure(
        model, run.settings(), hardware=hardware or None, device=device, threads=threads, seconds=seconds
    )
    output.present(answer)
