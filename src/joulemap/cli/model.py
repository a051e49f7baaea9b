"""`joulemap model`."""

from __future__ import annotations

from pathlib import Path

import typer

from joulemap.cli.option import (
    DEFAULT_DATABASE,
    Database,
    Form,
    FormatOption,
    Output,
    ShowSql,
    emit_answer,
    emit_sql,
    open_workspace,
)

app = typer.Typer(help="The models that can be asked for by name.", rich_markup_mode=None)


@app.callback()
def group() -> None:
    """Show the models that can be asked for by name."""


@app.command("list")
def list_(
    form: FormatOption = Form.TABLE,
    output: Output = None,
    show_sql: ShowSql = False,
    db: Database = Path(DEFAULT_DATABASE),
) -> None:
    """List the models, with the reason where one cannot be traced. Needs no torch.

    \b
    joulemap model list
    joulemap model list --format csv
    """
    answer = open_workspace(db).describe("model.list")
    emit_answer(answer, form, output)
    if show_sql:
        emit_sql((answer,))
