"""`joulemap calibrate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from joulemap.cli.option import (
    DEFAULT_DATABASE,
    Database,
    FormatOption,
    ShowSql,
    emit,
    emit_sql,
    open_workspace,
    split_names,
)
from joulemap.report.format import Format


def calibrate(
    hardware: Annotated[str, typer.Argument(help="An id, alias or file, without power mode.")],
    precision: Annotated[
        list[str] | None, typer.Option("--precision", help="Only what was measured at these.", show_default="all")
    ] = None,
    model: Annotated[
        list[str] | None, typer.Option("--model", help="Only what was measured of these.", show_default="all")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write the calibration to this file.",
                     show_default="your folder, where --calibration auto finds it"),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Fit and print; write no file.")] = False,
    calibration: Annotated[
        str, typer.Option("--calibration", help="Where the fit begins: none for class defaults, auto, a name or file.")
    ] = "none",
    form: FormatOption = Format.TABLE,
    show_sql: ShowSql = False,
    db: Database = Path(DEFAULT_DATABASE),
) -> None:  # fmt: skip
    """Fit the coefficients of a hardware to what was measured on it, and say how far off it is then.

    Takes every measurement that ships, was imported or made here. Families are left out in turn, so that the errors of
    models which no fit has seen stand beside those of the fit. The file is used from then on, unless --calibration says
    otherwise. One measurement is enough to help.

    \b
    joulemap calibrate h200_sxm --dry-run
    joulemap calibrate RTX-4090 --precision fp16 --precision fp32
    joulemap calibrate ./mychip.toml --output mychip_calibration.toml --format json
    """
    answer = open_workspace(db, form).calibrate(
        hardware,
        precisions=[name for text in precision or () for name in split_names(text)],
        models=[name for text in model or () for name in split_names(text)],
        output=output,
        is_dry=dry_run,
        start=calibration,
    )
    from joulemap.report.calibrate import render_calibration

    emit(render_calibration(answer, form), None)
    if show_sql:
        emit_sql(answer.answers)
