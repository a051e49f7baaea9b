"""List, show and run the SQL queries behind the answers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from joulemap.cli.command import command, option
from joulemap.cli.complete import complete_queries
from joulemap.cli.option.limit import BoundOptions
from joulemap.cli.output import OutputOptions, check_suffix, emit
from joulemap.cli.panel import OUTPUT
from joulemap.cli.stream import StreamOptions
from joulemap.cli.usage import group
from joulemap.cli.value import split_assignments

app = group(__doc__)

Name = Annotated[
    str,
    typer.Argument(
        metavar="QUERY", help="Name of a query: topic.name or topic.name@version.", autocompletion=complete_queries
    ),
]
Queries = Annotated[
    Path | None,
    typer.Option(
        "--queries",
        envvar="JOULEMAP_QUERIES",
        metavar="FOLDER",
        help="Folder of your own query files, TOPIC/NAME.vN.sql.",
    ),
]


@app.command("list")
@command
def list_(*, queries: Queries = None, output: OutputOptions) -> None:
    """List the built-in queries, and those of your own folder.

    Every file of `--queries` is checked. A terminal shows the parameters only with `--show wide`; `joulemap query show`
    shows them too.

    \b
    joulemap query list
    joulemap query list --queries questions
    """
    columns = "" if output.row_width is None else "query | summary"
    output.write_table(output.workspace().list_queries(queries), columns)


@app.command()
@command
def show(
    name: Name,
    *,
    queries: Queries = None,
    output: Path | None = option(None, "File to write, instead of stdout.", "--output", "-o", panel=OUTPUT),
) -> None:
    """Show the header and the SQL of a query.

    The header describes every parameter and column.

    \b
    joulemap query show compare.summary
    """
    from joulemap.cli.argument import named_files
    from joulemap.show.present.text import make_visible
    from joulemap.store.contract import write_query
    from joulemap.store.library import find_query, ships
    from joulemap.system.file import read_text

    check_suffix(output, ".sql", "a query file")
    query = find_query(name, queries)
    text = write_query(query) if ships(query) else read_text(query.path).rstrip()
    shown = text if output else make_visible(text, keep="\n\t")
    emit(shown, output, (query.path, *(() if output is None else named_files(output))))


@app.command()
@command
def run(
    name: Name,
    *,
    parameter: list[str] | None = option(
        None, "Value of a query parameter; repeatable.", "--parameter", "-p", metavar="NAME=VALUE"
    ),
    queries: Queries = None,
    bound: BoundOptions,
    output: StreamOptions,
) -> None:
    """Run a query on the results, read-only.

    \b
    joulemap query run run.list
    joulemap query run edp.distribution@1 -p run_id=1
    joulemap query run compare.part -p run_ids=1,2 -p metric=latency --format markdown
    joulemap query run run.list --format parquet -o runs.parquet
    """
    from joulemap.store.library import find_query
    from joulemap.store.query import bind, parse_parameter

    query = find_query(name, queries)
    declared = {entry.name: entry for entry in query.parameters}
    given = {
        key: parse_parameter(declared[key], value) if key in declared else value
        for key, value in split_assignments(parameter).items()
    }
    bind(query, given)
    bounds = bound.read()
    output.write_rows(
        lambda workspace, path: workspace.stream_query(name, given, queries=queries, bounds=bounds, output=path),
        bounds,
        queries,
    )
