"""`joulemap query`."""

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
    emit,
    emit_answer,
    emit_sql,
    open_workspace,
)
from joulemap.report.format import Format

app = typer.Typer(help="Versioned questions: list them, read their SQL, run them.", rich_markup_mode=None)


@app.command("list")
def list_(form: FormatOption = Format.TABLE, output: Output = None) -> None:
    """List the queries that ship with joulemap.

    \b
    joulemap query list
    """
    from joulemap.query import Answer, Column, list_queries

    columns = (
        Column(name="query", type="VARCHAR", meaning="name@version"),
        Column(name="parameters", type="VARCHAR", meaning="what it takes"),
        Column(name="summary", type="VARCHAR", meaning="what it answers"),
    )
    rows = tuple(
        (
            query.title,
            " ".join(
                parameter.name if parameter.is_required else f"[{parameter.name}]" for parameter in query.parameters
            ),
            query.summary,
        )
        for query in list_queries()
    )
    emit_answer(Answer(title="query list", columns=columns, rows=rows, sql="", parameters={}), form, output)


@app.command()
def show(
    name: Annotated[str, typer.Argument(help="topic.name, or topic.name@version.")], output: Output = None
) -> None:
    """Print a query file: its header and its SQL.

    \b
    joulemap query show compare.summary
    """
    from joulemap.query import find_query

    emit(find_query(name).path.read_text(encoding="utf-8").rstrip(), output)


@app.command()
def run(
    name: Annotated[str, typer.Argument(help="topic.name, or topic.name@version.")],
    parameter: Annotated[
        list[str] | None, typer.Option("--parameter", "-p", help="key=value; repeat for several.")
    ] = None,
    form: FormatOption = Format.TABLE,
    output: Output = None,
    show_sql: ShowSql = False,
    db: Database = Path(DEFAULT_DATABASE),
) -> None:
    """Run a query on the results, read-only.

    \b
    joulemap query run run.list
    joulemap query run edp.distribution -p run_id=1
    joulemap query run compare.winner -p run_ids=1,2,3,4 -p metric=latency --format markdown
    """
    from joulemap.errors import UsageError
    from joulemap.query import find_query
    from joulemap.query.run import bind, parse_parameter

    query = find_query(name)
    written: dict[str, str] = {}
    for item in parameter or []:
        key, separator, value = item.partition("=")
        if not separator:
            raise UsageError(f"parameter {item!r} is not of the form key=value")
        written[key] = value
    declared = {entry.name: entry for entry in query.parameters}
    given = {key: parse_parameter(declared[key], value) if key in declared else value for key, value in written.items()}
    bind(query, given)
    answer = open_workspace(db, form).query(name, given)
    emit_answer(answer, form, output)
    if show_sql:
        emit_sql((answer,))
