"""`joulemap measure`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from joulemap.cli.option import (
    DEFAULT_DATABASE,
    Arguments,
    Batch,
    Calibration,
    Database,
    Device,
    FormatOption,
    Inputs,
    Output,
    ShowSql,
    emit,
    emit_sql,
    open_workspace,
    read_arguments,
)
from joulemap.report.format import Format


def measure(
    model: Annotated[str, typer.Argument(help="A known name, file.py:factory, model.pt2, timm:NAME or hf:NAME.")],
    device: Annotated[Device, typer.Option("--device", help="What of this machine.")] = Device.CPU,
    batch: Batch = None,
    precision: Annotated[str, typer.Option("--precision", help="fp32, bf16 or fp16.")] = "fp32",
    runtime: Annotated[
        str,
        typer.Option("--runtime", help="eager: operator by operator; graph: replay of a captured CUDA graph; "
                     "fused: torch.compile."),
    ] = "eager",
    hardware: Annotated[
        str, typer.Option("--hardware", help="Id, alias or file of what this machine is.", show_default="as detected")
    ] = "",
    inputs: Inputs = None,
    arguments: Arguments = None,
    threads: Annotated[
        int | None, typer.Option("--threads", help="Threads of a CPU.", show_default="torch's choice")
    ] = None,
    seconds: Annotated[float, typer.Option("--seconds", help="Length of the window that is timed.")] = 2.0,
    calibration: Calibration = "auto",
    form: FormatOption = Format.TABLE,
    output: Output = None,
    show_sql: ShowSql = False,
    db: Database = Path(DEFAULT_DATABASE),
) -> None:  # fmt: skip
    """Run a model on this machine and set its latency, energy and memory beside the prediction; both are stored.

    Needs torch. Weights are random, nothing is downloaded. Energy is what the package or board counts, if it may be
    read.

    \b
    joulemap measure resnet18
    joulemap measure mobilenet_v2 --threads 1 --seconds 5
    joulemap measure vit_b_16 --device cuda --precision bf16 --batch 32 --runtime graph
    joulemap measure ./mine.py:net --input 1,3,64,64 --hardware ./this.toml --format json
    """
    answer = open_workspace(db, form).measure(
        model,
        device=device.value,
        batch=batch,
        precision=precision,
        runtime=runtime,
        hardware=hardware or None,
        inputs=inputs or (),
        arguments=read_arguments(arguments),
        threads=threads,
        seconds=seconds,
        calibration=calibration,
    )
    from joulemap.report.measure import render_measurement

    emit(render_measurement(answer, form), output)
    if show_sql:
        emit_sql(answer.answers)
