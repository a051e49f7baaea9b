"""`joulemap calibrate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from joulemap.cli.argument import named_files
from joulemap.cli.command import command, option
from joulemap.cli.complete import complete_hardware
from joulemap.cli.output import OutputOptions, check_suffix
from joulemap.cli.voice import voice
from joulemap.system.config import habit
from joulemap.system.file import check_output
from joulemap.system.name import split_names
from joulemap.system.record import frozen


@frozen(kw_only=True)
class ReportOptions(OutputOptions):
    """Options for the database and the report of a calibration."""

    output: Path | None = option(None, "File for the report, instead of stdout.", "--report")


@command
def calibrate(
    hardware: Annotated[
        str,
        typer.Argument(
            metavar="HARDWARE", help="Chip id, alias or file, without power mode.", autocompletion=complete_hardware
        ),
    ],
    *,
    precision: list[str] | None = option(None, "Precisions of the measurements to use.", metavar="NAME"),
    model: list[str] | None = option(None, "Models of the measurements to use.", metavar="NAME"),
    operators: bool = option(False, "Also fit single operators and blocks."),
    file: Path | None = option(
        None,
        "File for the calibration.",
        "--output",
        "-o",
        shown="$JOULEMAP_CALIBRATION or ~/.local/share/joulemap/calibration, where --calibration auto finds it",
    ),
    dry_run: bool = option(False, "Fit and print without writing a file."),
    calibration: str = option(
        "none", "Start of the fit: none (class defaults), auto, or a name or file.", metavar="NAME"
    ),
    report: ReportOptions,
) -> None:
    """Fit the coefficients of a chip to its measurements.

    Uses all built-in measurements, imported ones and your own, and reports the remaining errors. Each model family is
    also held out in turn. Later commands use the written file unless `--calibration` says otherwise.

    A few measurements change the coefficients only a little; the report states their weight.

    \b
    joulemap calibrate h200_sxm --dry-run
    joulemap calibrate RTX-4090 --precision fp16 --precision fp32
    joulemap calibrate ./mychip.toml --output mychip_calibration.toml --format json
    """
    check_suffix(file, ".toml", "a calibration")
    if file is not None and not dry_run:
        check_output(file, named_files(file))
    answer = report.workspace().calibrate(
        hardware,
        precisions=[name for text in precision or () for name in split_names(text)],
        models=[name for text in model or () for name in split_names(text)],
        operators=operators,
        output=file,
        is_dry=dry_run,
        start=calibration,
        trust=habit("trust"),
    )
    if answer.written_to:
        voice.inform(f"wrote {answer.written_to}")
    report.present(answer)
