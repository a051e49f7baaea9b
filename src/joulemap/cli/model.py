"""`joulemap model`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from joulemap.cli.option import (
    DEFAULT_DATABASE,
    Arguments,
    Batch,
    Database,
    FormatOption,
    Inputs,
    Output,
    Retrace,
    ShowSql,
    TableFormatOption,
    check_output,
    emit,
    emit_sql,
    emit_table,
    open_workspace,
    read_arguments,
)
from joulemap.report.format import Format, TableFormat

app = typer.Typer(help="Models: which there are, what they consist of.", rich_markup_mode=None)

Model = Annotated[str, typer.Argument(help="A known name, file.py:factory, model.pt2, timm:NAME or hf:NAME.")]


@app.command("list")
def list_(
    form: TableFormatOption = TableFormat.TABLE,
    output: Output = None,
    show_sql: ShowSql = False,
    db: Database = Path(DEFAULT_DATABASE),
) -> None:
    """List the models known by name. Needs no torch.

    \b
    joulemap model list
    joulemap model list --format csv
    """
    check_output(form, output)
    answer = open_workspace(db, form).describe("model.list")
    emit_table(answer, form, output)
    if show_sql:
        emit_sql((answer,))


@app.command()
def show(
    model: Model,
    batch: Batch = None,
    inputs: Inputs = None,
    arguments: Arguments = None,
    retrace: Retrace = False,
    form: FormatOption = Format.TABLE,
    output: Output = None,
    show_sql: ShowSql = False,
    db: Database = Path(DEFAULT_DATABASE),
) -> None:
    """Show a model's profile: MACs, bytes, arithmetic intensity, operation mix, activation peak, fusion patterns.

    It depends on no hardware.

    \b
    joulemap model show vit_b_16
    joulemap model show attention_head --model-arg tokens=1024 --format json
    """
    answer = open_workspace(db, form).profile(
        model, batch=batch, inputs=inputs or (), arguments=read_arguments(arguments), retrace=retrace
    )
    from joulemap.report.profile import render_profile

    emit(render_profile(answer, form), output)
    if show_sql:
        emit_sql(answer.answers)


@app.command()
def trace(
    model: Model,
    batch: Batch = None,
    inputs: Inputs = None,
    arguments: Arguments = None,
    retrace: Retrace = False,
    form: TableFormatOption = TableFormat.TABLE,
    output: Output = None,
    show_sql: ShowSql = False,
    db: Database = Path(DEFAULT_DATABASE),
) -> None:
    """Show a model's operators in execution order, with shapes, counts, bytes and subgraphs.

    \b
    joulemap model trace resnet18
    joulemap model trace ./mine.py:net --input 1,3,64,64 --format csv
    """
    check_output(form, output)
    answer = open_workspace(db, form).operators(
        model, batch=batch, inputs=inputs or (), arguments=read_arguments(arguments), retrace=retrace
    )
    columns = ("name", "operation", "output_shape", "mac_count", "input_bytes", "weight_bytes", "output_bytes",
               "subgraph_index", "fusion_pattern", "is_counted")  # fmt: skip
    emit_table(answer, form, output, columns)
    if show_sql:
        emit_sql((answer,))
