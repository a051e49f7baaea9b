"""`joulemap cost`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from joulemap.cli.choice import (
    DEFAULT_PRECISION_TEXT,
    MODEL_HELP,
    AnyHardware,
    AnyPowerMode,
    Architecture,
    Batches,
    Deployment,
    Electricity,
    Grid,
    GridIntensity,
    Hours,
    Lifetime,
    Limit,
    Precisions,
    Pue,
    Utilization,
    read_candidates,
    read_usage,
)
from joulemap.cli.option import (
    DEFAULT_DATABASE,
    Arguments,
    Calibration,
    Database,
    FormatOption,
    Inputs,
    Output,
    Retrace,
    Runtime,
    ShowSql,
    emit,
    emit_sql,
    open_workspace,
    repeat_options,
    split_names,
    unless_auto,
)
from joulemap.report.format import Format


def cost(
    model: Annotated[str, typer.Argument(help=MODEL_HELP)],
    between: Annotated[
        str,
        typer.Option("--between", help="Two options for the break-even: A,B, each a hardware with :cloud or :purchase "
                     "or without.", show_default="the cheapest bought, the cheapest rented"),
    ] = "",
    hardware: AnyHardware = "",
    architecture: Architecture = "",
    deployment: Deployment = "",
    power_mode: AnyPowerMode = "",
    precision: Precisions = DEFAULT_PRECISION_TEXT,
    batch: Batches = "",
    runtime: Runtime = "fused",
    inputs: Inputs = None,
    arguments: Arguments = None,
    retrace: Retrace = False,
    calibration: Calibration = "auto",
    utilization: Utilization = None,
    lifetime: Lifetime = None,
    hours: Hours = None,
    pue: Pue = None,
    electricity: Electricity = "",
    grid: Grid = "",
    grid_gco2_per_kwh: GridIntensity = None,
    limit: Limit = 20,
    form: FormatOption = Format.TABLE,
    output: Output = None,
    show_sql: ShowSql = False,
    db: Database = Path(DEFAULT_DATABASE),
) -> None:  # fmt: skip
    """Say what a million inferences cost, rented or bought, with their energy and carbon by grid.

    Every hardware is taken at its cheapest configuration. Only the chip, board or kit that the catalogue has a price of
    is counted, and electricity where it is bought: no host, no staff. Every assumption is printed.

    \b
    joulemap cost resnet18
    joulemap cost resnet50 --precision int8 --batch 8 --between Jetson-Orin-Nano,l4 --utilization 0.2
    joulemap cost vit_b_16 --hardware mi300x --between mi300x:purchase,mi300x:cloud --grid de --pue 1.2
    joulemap cost mobilenet_v2 --deployment edge --electricity 0.3USD/kWh --grid-gco2-per-kwh 30
    """
    answer = open_workspace(db, form).cost(
        model,
        between=split_names(between),
        candidates=read_candidates(
            hardware=hardware,
            architecture=architecture,
            deployment=deployment,
            power_mode=power_mode,
            precision=precision,
            batch=batch,
            runtime=runtime,
            inputs=inputs,
            arguments=arguments,
            retrace=retrace,
            calibration=calibration,
        ),
        usage=read_usage(
            utilization=utilization,
            lifetime=lifetime,
            hours=hours,
            pue=pue,
            electricity=electricity,
            grid=grid,
            grid_gco2_per_kwh=grid_gco2_per_kwh,
        ),
    )
    from joulemap.report.cost import render_cost

    emit(
        render_cost(
            answer,
            form,
            limit,
            repeat_options(input=inputs, model_arg=arguments, calibration=unless_auto(calibration), db=db),
        ),
        output,
    )
    if show_sql:
        emit_sql(answer.answers)
