"""`joulemap calibrate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from joulemap.cli.argument import named_files
from joulemap.cli.command import command, option
from joulemap.cli.complete import complete_hardware
from joulemap.cli.option.run import TrustRows
from joulemap.cli.output import OutputOptions, check_suffix
from joulemap.domain.name import split_names
from joulemap.system.file import check_output
from joulemap.system.record import frozen


@frozen(kw_only=True)
class ReportOptions(OutputOptions):
    """Where results are kept, and how the report of a calibration is written."""

    output: Path | None = option(None, "Write the report to this file, not to stdout.", "--report")


@command
def calibrate(
    hardware: Annotated[
        str, typer.Argument(help="An id, alias or file, without power mode.", autocompletion=complete_hardware)
    ],
    *,
    precision: list[str] | None = option(None, "Only what was measured at these.", shown="all"),
    model: list[str] | None = option(None, "Only what was measured of these.", shown="all"),
    operators: bool = option(False, "Count single operators and blocks beside whole models."),
    place: Path | None = option(
        None,
        "Write the calibration to this file.",
        "--output",
        "-o",
        shown="your folder, where --calibration auto finds it",
    ),
    dry_run: bool = option(False, "Fit and print; write no file."),
    calibration: str = option("none", "Where the fit begins: none for class defaults, auto, a name or file."),
    trust: TrustRows = False,
    report: ReportOptions,
) -> None:
    """Fit the coefficients of a hardware to what was measured on it, and say how far off it is then.

    Takes every measurement that ships, was imported or made here. Families are left out in turn, so that the errors of
    models which no fit has seen stand beside those of the fit. The file is used from then on, unless --calibration says
    otherwise. Few measurements move little; how much they count is told.

    \b
    joulemap calibrate h200_sxm --dry-run
    joulemap calibrate RTX-4090 --precision fp16 --precision fp32
    joulemap calibrate ./mychip.toml --output mychip_calibration.toml --format json
    """
    check_suffix(place, ".toml", "a calibration")
    if place is not None and not dry_run:
        check_output(place, named_files(place), force=report.force)
    answer = report.workspace().calibrate(
        hardware,
        precisions=[name for text in precision or () for name in split_names(text)],
        models=[name for text in model or () for name in split_names(text)],
        operators=operators,
        output=place,
        is_dry=dry_run,
        start=calibration,
        trust=trust,
        force=report.force,
    )
    report.write(answer.document())
