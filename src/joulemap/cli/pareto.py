"""`joulemap pareto`."""

from __future__ import annotations

from enum import StrEnum
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
    unless_auto,
)
from joulemap.report.format import Format


class Metric(StrEnum):
    """What configurations are compared in."""

    LATENCY = "latency"
    ENERGY_PER_INFERENCE = "energy_per_inference"
    ENERGY = "energy"
    THROUGHPUT = "throughput"
    POWER = "power"
    MEMORY = "memory"
    EDP = "edp"
    EDP_PER_INFERENCE = "edp_per_inference"
    PRICE = "price"
    PURCHASE = "purchase"
    COST = "cost"
    CARBON = "carbon"


def pareto(
    model: Annotated[str, typer.Argument(help=MODEL_HELP)],
    x: Annotated[Metric, typer.Option("--x", help="One metric.")] = Metric.LATENCY,
    y: Annotated[Metric, typer.Option("--y", help="The other one.")] = Metric.ENERGY_PER_INFERENCE,
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
) -> None:
    """Find the configurations that no other beats in two metrics at once, and who beats the rest.

    Hardware, power modes, precisions and batches are all combined. Latency and memory are of a batch, energy, cost and
    carbon of one inference. What is not stored is evaluated.

    \b
    joulemap pareto resnet18
    joulemap pareto vit_b_16 --x throughput --y power --deployment datacenter --precision bf16
    joulemap pareto mobilenet_v2 --x cost --y latency --hardware l4,t4,Jetson-Orin-Nano --batch 1,4,16
    """
    answer = open_workspace(db, form).pareto(
        model,
        x=x.value,
        y=y.value,
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
    from joulemap.report.pareto import render_front

    emit(
        render_front(
            answer,
            form,
            limit,
            repeat_options(input=inputs, model_arg=arguments, calibration=unless_auto(calibration), db=db),
        ),
        output,
    )
    if show_sql:
        emit_sql(answer.answers)
