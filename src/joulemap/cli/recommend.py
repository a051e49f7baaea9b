"""`joulemap recommend`."""

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
    read_quantity,
    repeat_options,
    unless_auto,
)
from joulemap.report.format import Format


class Objective(StrEnum):
    """What a recommendation is best in."""

    ENERGY_PER_INFERENCE = "energy_per_inference"
    ENERGY = "energy"
    LATENCY = "latency"
    THROUGHPUT = "throughput"
    EDP = "edp"
    EDP_PER_INFERENCE = "edp_per_inference"
    COST = "cost"
    CARBON = "carbon"


def recommend(
    model: Annotated[str, typer.Argument(help=MODEL_HELP)],
    max_latency: Annotated[
        str, typer.Option("--max-latency", help="At most this latency of a batch, e.g. 50ms.", show_default="any")
    ] = "",
    max_energy: Annotated[
        str, typer.Option("--max-energy", help="At most this energy of one inference, e.g. 100mJ.", show_default="any")
    ] = "",
    max_memory: Annotated[
        str,
        typer.Option("--max-memory", help="At most this memory for weights and activations of a batch, e.g. 512MB.",
                     show_default="any"),
    ] = "",
    max_power: Annotated[
        str, typer.Option("--max-power", help="At most this power while it runs, e.g. 15W.", show_default="any")
    ] = "",
    min_throughput: Annotated[
        str, typer.Option("--min-throughput", help="At least so many inferences, e.g. 30/s.", show_default="any")
    ] = "",
    max_price: Annotated[
        str,
        typer.Option("--max-price", help="At most this price of a chip: rented, e.g. 2USD/h, or bought, e.g. 500USD.",
                     show_default="any"),
    ] = "",
    objective: Annotated[
        Objective, typer.Option("--objective", help="What to be best in.")
    ] = Objective.ENERGY_PER_INFERENCE,
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
    limit: Limit = 10,
    form: FormatOption = Format.TABLE,
    output: Output = None,
    show_sql: ShowSql = False,
    db: Database = Path(DEFAULT_DATABASE),
) -> None:  # fmt: skip
    """Recommend a configuration within limits, and say what the others miss and by how much.

    Hardware, power modes, precisions and batches are all combined. Where nothing keeps every limit, the nearest miss is
    the one whose largest relative violation is the smallest. What is not stored is evaluated.

    \b
    joulemap recommend resnet18 --max-latency 50ms --max-power 15W
    joulemap recommend mobilenet_v2 --deployment edge --min-throughput 30/s --max-price 300USD
    joulemap recommend vit_b_16 --objective cost --max-latency 20ms --max-price 2USD/h --precision bf16,int8
    """
    from joulemap.domain.choice import Limits

    price_usd_per_hour, purchase_usd = _read_price(max_price)
    limits = Limits(
        max_latency_s=read_quantity("--max-latency", max_latency, "s") or None,
        max_energy_per_inference_j=read_quantity("--max-energy", max_energy, "J") or None,
        max_memory_bytes=read_quantity("--max-memory", max_memory, "B") or None,
        max_power_w=read_quantity("--max-power", max_power, "W") or None,
        min_throughput_per_s=read_quantity("--min-throughput", min_throughput, "1/s") or None,
        max_price_usd_per_hour=price_usd_per_hour,
        max_purchase_usd=purchase_usd,
    )
    answer = open_workspace(db, form).recommend(
        model,
        objective=objective.value,
        limits=limits,
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
    from joulemap.report.recommend import render_recommendation

    again = repeat_options(input=inputs, model_arg=arguments, calibration=unless_auto(calibration), db=db)
    emit(render_recommendation(answer, form, limit, again), output)
    if show_sql:
        emit_sql(answer.answers)


def _read_price(text: str) -> tuple[float | None, float | None]:
    """Return the most that a rented chip may cost in USD/h, and a bought one in USD; None for what is not limited."""
    if not text:
        return None, None
    if "/" in text:
        return read_quantity("--max-price", text, "USD/h"), None
    if text.strip().replace(".", "", 1).isdigit():
        from joulemap.errors import UsageError

        raise UsageError(f"--max-price: {text!r} has no unit: write {text}USD/h to rent a chip, {text}USD to buy one")
    return None, read_quantity("--max-price", text, "USD")
