"""`joulemap query`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from joulemap.cli.option import (
    DEFAULT_DATABASE,
    Database,
    Output,
    ShowSql,
    TableFormatOption,
    check_output,
    emit,
    emit_sql,
    emit_table,
    open_workspace,
    split_assignments,
)
from joulemap.report.format import TableFormat

app = typer.Typer(help="Versioned questions: list them, read their SQL, run them.", rich_markup_mode=None)

Name = Annotated[str, typer.Argument(help="topic.name, or topic.name@version.")]
Queries = Annotated[
    Path | None,
    typer.Option(
        "--queries", envvar="JOULEMAP_QUERIES", help="A folder of your own query files: TOPIC/NAME.vN.sql, checked."
    ),
]


@app.command("list")
def list_(
    queries: Queries = None,
    form: TableFormatOption = TableFormat.TABLE,
    output: Output = None,
    db: Database = Path(DEFAULT_DATABASE),
) -> None:
    """List the queries that ship with joulemap, and those of your own folder after a check of every file.

    \b
    joulemap query list
    joulemap query list --queries questions
    """
    from joulemap.domain.table import Column
    from joulemap.store.library import list_queries
    from joulemap.store.query import Answer

    check_output(form, output)
    if queries is not None:
        open_workspace(db).check_queries(queries)
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
        for query in list_queries(queries)
    )
    emit_table(Answer(title="query list", columns=columns, rows=rows, sql="", parameters={}), form, output)


@app.command()
def show(name: Name, queries: Queries = None, output: Output = None) -> None:
    """Print a query file: its header and its SQL.

    \b
    joulemap query show compare.summary
    """
    from joulemap.store.library import find_query

    emit(find_query(name, queries).path.read_text(encoding="utf-8").rstrip(), output)


@app.command()
def run(
    name: Name,
    parameter: Annotated[
        list[str] | None, typer.Option("--parameter", "-p", help="key=value; repeat for several.")
    ] = None,
    queries: Queries = None,
    form: TableFormatOption = TableFormat.TABLE,
    output: Output = None,
    show_sql: ShowSql = False,
    db: Database = Path(DEFAULT_DATABASE),
) -> None:
    """Run a query on the results, read-only.

    \b
    joulemap query run run.list
    joulemap query run edp.distribution@1 -p run_id=1
    joulemap query run compare.winner -p run_ids=1,2,3,4 -p metric=latency --format markdown
    joulemap query run run.list --format parquet -o runs.parquet
    """
    from joulemap.store.library import find_query
    from joulemap.store.query import bind, parse_parameter

    check_output(form, output)
    query = find_query(name, queries)
    declared = {entry.name: entry for entry in query.parameters}
    given = {
        key: parse_parameter(declared[key], value) if key in declared else value
        for key, value in split_assignments(parameter).items()
    }
    bind(query, given)
    answer = open_workspace(db, form).query(name, given, queries=queries)
    emit_table(answer, form, output)
    if show_sql:
        emit_sql((answer,), queries)
