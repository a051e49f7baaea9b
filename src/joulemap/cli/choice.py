"""Options of the commands that choose among configurations: what to choose from, and how a chip is used."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Final

import typer

from joulemap.cli.option import read_arguments, split_names

if TYPE_CHECKING:
    from joulemap.domain.choice import Candidates, Usage

MODEL_HELP: Final = "A known name, file.py:factory, model.pt2, timm:NAME or hf:NAME."

AnyHardware = Annotated[
    str,
    typer.Option(
        "--hardware",
        help="Ids, aliases, files or folders, comma-separated, each with @MODE or without; "
        "see `joulemap hardware list`.",
        show_default="the whole catalogue",
    ),
]
Architecture = Annotated[
    str, typer.Option("--architecture", help="Only these classes, e.g. cpu,gpu.", show_default="all")
]
Deployment = Annotated[
    str, typer.Option("--deployment", help="Only hardware for datacenter, edge or embedded.", show_default="any")
]
AnyPowerMode = Annotated[
    str,
    typer.Option(
        "--power-mode",
        help="Operating point of hardware named without one, e.g. 15W; default for the chip's own.",
        show_default="every one that it has",
    ),
]
Precisions = Annotated[
    str,
    typer.Option(
        "--precision", help="Comma-separated: fp64, fp32, tf32, fp16, bf16, fp8, fp4, int8, int4.",
    ),
]  # fmt: skip
Batches = Annotated[
    str,
    typer.Option(
        "--batch", "-b", help="Samples in one input, comma-separated.", show_default="1,8,32, or the input's own"
    ),
]
Limit = Annotated[int, typer.Option("--limit", min=1, help="Rows of each table to show; json and csv have all.")]
Utilization = Annotated[
    float | None,
    typer.Option("--utilization", help="Part of the powered or rented hours that a chip works, above 0, at most 1.",
                 show_default="the catalogue's"),
]  # fmt: skip
Lifetime = Annotated[
    float | None, typer.Option("--lifetime", help="Years that a bought chip serves.", show_default="the catalogue's")
]
Hours = Annotated[
    float | None,
    typer.Option("--hours", help="Hours that a bought chip is powered in a year.", show_default="the catalogue's"),
]
Pue = Annotated[
    float | None,
    typer.Option(
        "--pue", help="Power usage effectiveness of data centres, from 1; 1 elsewhere.", show_default="the catalogue's"
    ),
]
Electricity = Annotated[
    str, typer.Option("--electricity", help="Its price, e.g. 0.12USD/kWh.", show_default="the catalogue's")
]
Grid = Annotated[
    str, typer.Option("--grid", help="Where electricity comes from, e.g. us, de or Norway.", show_default="world")
]
GridIntensity = Annotated[
    float | None,
    typer.Option("--grid-gco2-per-kwh", help="Grams of CO2 per kWh in place of a grid's.", show_default="the grid's"),
]

DEFAULT_PRECISION_TEXT: Final = "fp32,fp16,bf16,int8"


def read_candidates(
    *,
    hardware: str,
    architecture: str,
    deployment: str,
    power_mode: str,
    precision: str,
    batch: str,
    runtime: str,
    inputs: Sequence[str] | None,
    arguments: Sequence[str] | None,
    retrace: bool,
    calibration: str,
) -> Candidates:
    """Return what is chosen from, as written on the command line; UsageError for a batch that is no number."""
    from joulemap.domain.choice import Candidates

    return Candidates(
        hardware=split_names(hardware),
        architecture=split_names(architecture),
        deployment=split_names(deployment),
        power_mode=power_mode,
        precisions=split_names(precision),
        batches=tuple(_read_batch(text) for text in split_names(batch)),
        runtime=runtime,
        inputs=tuple(inputs or ()),
        arguments=read_arguments(arguments),
        retrace=retrace,
        calibration=calibration,
    )


def _read_batch(text: str) -> int:
    from joulemap.errors import UsageError

    try:
        return int(text)
    except ValueError as error:
        raise UsageError(f"--batch: {text!r} is not a whole number; write 1,8,32") from error


def read_usage(
    *,
    utilization: float | None,
    lifetime: float | None,
    hours: float | None,
    pue: float | None,
    electricity: str,
    grid: str,
    grid_gco2_per_kwh: float | None,
) -> Usage:
    """Return how a chip is used, as written on the command line; UsageError names what is out of range."""
    from joulemap.domain.choice import Usage
    from joulemap.errors import UsageError
    from joulemap.units import parse_si

    try:
        usd_per_kwh = parse_si(electricity, "USD/kWh") if electricity else None
    except ValueError as error:
        raise UsageError(f"--electricity: {error}") from error
    return Usage(
        utilization=utilization,
        lifetime_years=lifetime,
        hours_per_year=hours,
        pue=pue,
        usd_per_kwh=usd_per_kwh,
        region=grid,
        gco2_per_kwh=grid_gco2_per_kwh,
    )
