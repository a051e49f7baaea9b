"""`joulemap hardware`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from joulemap.cli.option import (
    DEFAULT_DATABASE,
    Database,
    FormatOption,
    Output,
    ShowSql,
    emit_answer,
    emit_sql,
    open_workspace,
)
from joulemap.report.format import Format

app = typer.Typer(help="The hardware that joulemap knows.", rich_markup_mode=None)


@app.command("list")
def list_(
    architecture: Annotated[
        str,
        typer.Option(
            "--architecture", help="Only this class: cpu, gpu, tpu, kpu, dsp, npu, dpu or cgra.", show_default="all"
        ),
    ] = "",
    form: FormatOption = Format.TABLE,
    output: Output = None,
    show_sql: ShowSql = False,
    db: Database = Path(DEFAULT_DATABASE),
) -> None:
    """List the hardware targets.

    \b
    joulemap hardware list
    joulemap hardware list --architecture gpu --format json
    """
    answer = open_workspace(db).describe("hardware.list", {"architecture": architecture})
    if architecture and not answer.rows:
        from joulemap.errors import UnknownNameError

        known = open_workspace(db).describe("hardware.list").records()
        raise UnknownNameError("architecture", architecture, {row["architecture"] for row in known})
    emit_answer(answer, form, output)
    if show_sql:
        emit_sql((answer,))


@app.command()
def show(
    hardware: Annotated[str, typer.Argument(help="Hardware id.")],
    energy: Annotated[
        bool, typer.Option("--energy", help="The energy reference table instead of the other numbers.")
    ] = False,
    form: FormatOption = Format.TABLE,
    output: Output = None,
    show_sql: ShowSql = False,
    db: Database = Path(DEFAULT_DATABASE),
) -> None:
    """Print every number of a hardware with unit, basis and source.

    \b
    joulemap hardware show h100_sxm5
    joulemap hardware show tpu_v4 --energy --format csv
    """
    from joulemap.errors import UnknownNameError

    workspace = open_workspace(db)
    answer = workspace.describe("hardware.energy" if energy else "hardware.fact", {"hardware": hardware})
    if not answer.rows:
        known = [row["hardware"] for row in workspace.describe("hardware.list").records()]
        raise UnknownNameError("hardware", hardware, known, "see `joulemap hardware list`")
    columns = (
        ("category", "component", "action", "energy_per_action_j", "per", "basis", "source")
        if energy
        else ("quantity", "value", "unit", "basis", "source", "note")
    )
    emit_answer(answer, form, output, columns)
    if show_sql:
        emit_sql((answer,))
