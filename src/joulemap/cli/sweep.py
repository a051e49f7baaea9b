"""`joulemap sweep`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from joulemap.cli.option import (
    DEFAULT_DATABASE,
    Arguments,
    Calibration,
    Database,
    FormatOption,
    Output,
    PowerMode,
    ShowSql,
    emit,
    emit_sql,
    read_arguments,
    read_quantity,
    repeat_options,
    split_names,
    unless_auto,
)
from joulemap.report.format import Format
from joulemap.report.level import SweepLevel

DEFAULT_BATCHES: Final = "1,2,4,...,128"


def read_batches(text: str) -> tuple[int, ...]:
    """Return the numbers of `1,2,4` or `1,2,4,...,128`, where the dots continue equal steps or equal factors.

    Raises UsageError for anything else.
    """
    from joulemap.errors import UsageError

    found: list[int] = []
    is_open = False
    for part in (part.strip() for part in text.split(",")):
        if part in ("...", "…"):
            is_open = True
            continue
        try:
            number = int(part)
        except ValueError:
            raise UsageError(f"cannot read the batches {text!r}: write 1,2,4 or 1,2,4,...,128") from None
        if number < 1:
            raise UsageError(f"batch is {number}, expected a whole number from 1")
        if is_open:
            found += _fill(found, number, text)
            is_open = False
        found.append(number)
    if is_open or not found:
        raise UsageError(f"cannot read the batches {text!r}: write 1,2,4 or 1,2,4,...,128")
    return tuple(dict.fromkeys(found))


def _fill(found: list[int], last: int, text: str) -> list[int]:
    """Return what stands between the numbers so far and the last one."""
    from itertools import pairwise

    from joulemap.errors import UsageError

    pairs = list(pairwise(found))
    steps, factors = {b - a for a, b in pairs}, {b / a for a, b in pairs}
    filled, number = [], found[-1] if found else 0
    if len(steps) == 1 and min(steps) > 0:
        filled = list(range(number + min(steps), last, min(steps)))
        number = filled[-1] + min(steps) if filled else number + min(steps)
    elif len(factors) == 1 and min(factors) > 1 and min(factors).is_integer():
        while (number := number * int(min(factors))) < last:
            filled.append(number)
    if number != last:
        raise UsageError(f"the dots in {text!r} do not lead to {last}: write two or more numbers with equal steps or "
                         "factors before them, e.g. 1,2,4,...,128")  # fmt: skip
    return filled


def sweep(
    models: Annotated[
        list[str], typer.Argument(help="Known names, file.py:factory, model.pt2, timm:NAME or hf:NAME; one or several.")
    ],
    batches: Annotated[
        str, typer.Option("--batch", "-b", help="Batches: 1,8,32, or with dots as 1,2,4,...,128.")
    ] = DEFAULT_BATCHES,
    hardware: Annotated[
        str,
        typer.Option("--hardware", help="Ids, aliases, files or folders, comma-separated, each with @MODE or without; "
                     "see `joulemap hardware list`.", show_default="one each of cpu, gpu, tpu, kpu"),
    ] = "",
    architecture: Annotated[
        str, typer.Option("--architecture", help="Only these classes, e.g. cpu,gpu.", show_default="all")
    ] = "",
    deployment: Annotated[
        str, typer.Option("--deployment", help="All hardware for datacenter, edge or embedded.", show_default="any")
    ] = "",
    power_mode: PowerMode = "",
    precision: Annotated[str, typer.Option("--precision", help="One or several, e.g. fp32,bf16,int8.")] = "fp32",
    runtime: Annotated[str, typer.Option("--runtime", help="One or several of eager, graph, fused.")] = "fused",
    max_latency: Annotated[
        str, typer.Option("--max-latency", help="Latency budget of a batch, e.g. 50ms.", show_default="none")
    ] = "",
    level: Annotated[
        SweepLevel,
        typer.Option("--level", help="The table to show: hardware: best batches of each; batch: every run; winner: the "
                     "best hardware at each batch; crossing: pairs whose order turns round."),
    ] = SweepLevel.HARDWARE,
    arguments: Arguments = None,
    calibration: Calibration = "auto",
    form: FormatOption = Format.TABLE,
    output: Output = None,
    show_sql: ShowSql = False,
    db: Database = Path(DEFAULT_DATABASE),
) -> None:  # fmt: skip
    """Run models at many batches: the best batch of each hardware, and from which batch on another one is best.

    What is stored is not evaluated again, so a sweep that was interrupted goes on where it stopped. json has every
    level, csv the table of one.

    \b
    joulemap sweep resnet18
    joulemap sweep resnet50 vit_b_16 --deployment datacenter --precision bf16,int8 --max-latency 50ms
    joulemap sweep mobilenet_v2 --batch 1,2,3,...,16 --hardware Jetson-Orin-Nano@7W,Jetson-Orin-Nano@15W
    joulemap sweep resnet18 --level batch --format csv --output resnet18.csv
    """
    from joulemap.present.progress import watching
    from joulemap.workspace.workspace import Workspace

    sizes = read_batches(batches)
    budget = read_quantity("--max-latency", max_latency, "s")
    with watching() as (say, move):
        answer = Workspace(db, talk=say).sweep(
            models,
            hardware=split_names(hardware),
            architecture=split_names(architecture),
            deployment=split_names(deployment),
            batches=sizes,
            precisions=split_names(precision),
            runtimes=split_names(runtime),
            power_mode=power_mode,
            arguments=read_arguments(arguments),
            calibration=calibration,
            max_latency_s=budget,
            progress=move,
        )
    from joulemap.report.sweep import render_sweep

    asked = {
        "batch": batches if batches != DEFAULT_BATCHES else None,
        "hardware": hardware or None,
        "architecture": architecture or None,
        "deployment": deployment or None,
        "power_mode": power_mode or None,
        "precision": precision if precision != "fp32" else None,
        "runtime": runtime if runtime != "fused" else None,
        "max_latency": max_latency or None,
    }
    again = repeat_options(model_arg=arguments, calibration=unless_auto(calibration), db=db)
    emit(render_sweep(answer, form, level, repeat_options(**asked), again), output)
    if show_sql:
        emit_sql(answer.answers)
