"""`joulemap sql`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from joulemap.cli.command import command, option
from joulemap.cli.option.limit import BoundOptions
from joulemap.cli.stream import StreamOptions
from joulemap.cli.value import split_assignments
from joulemap.system.errors import UsageError
from joulemap.system.file import FileError, read_input, read_text

MOST_BYTES: Final = 20_000_000
"""Maximum bytes of a statement in a file."""


@command
def sql(
    statement: Annotated[
        str, typer.Argument(metavar="STATEMENT", help="One SELECT on the views.", show_default=False)
    ] = "",
    *,
    file: Path | None = option(None, "File that holds the SELECT; - is stdin.", allow_dash=True),
    parameter: list[str] | None = option(
        None, "Value of $NAME, as JSON, otherwise as text; repeatable.", "--parameter", "-p", metavar="NAME=VALUE"
    ),
    bound: BoundOptions,
    output: StreamOptions,
) -> None:
    """Run one SQL statement on the results, read-only.

    "SHOW TABLES" lists the stable views, "DESCRIBE runs" the columns of one. The main views are runs, operator_results,
    subgraph_results, energy_ledger, operators, hardware, hardware_facts and energy_reference.

    \b
    joulemap sql "SHOW TABLES"
    joulemap sql "SELECT hardware, energy_j, latency_s FROM runs ORDER BY energy_j"
    joulemap sql "SELECT category, sum(line_energy_j) FROM energy_ledger WHERE run_id = 1 GROUP BY ALL" -f csv
    joulemap sql 'SELECT hardware, energy_j FROM runs WHERE model = $model' -p model=resnet18
    joulemap sql "SELECT * FROM energy_ledger" | head -3
    joulemap sql --file question.sql -p batch=8 --format parquet -o answer.parquet

    Keep your own views in your own database, made with any DuckDB client:

    \b
    ATTACH 'joulemap.duckdb' AS results (READ_ONLY);
    CREATE VIEW light AS
    SELECT hardware, energy_j FROM results.runs WHERE energy_j < 0.1;
    """
    from joulemap.store.query import read_value

    given = {key: read_value(value) for key, value in split_assignments(parameter).items()}
    bounds = bound.read()
    text = _read(statement, file)
    output.write_rows(lambda workspace, path: workspace.stream(text, given, bounds=bounds, output=path), bounds)


def _read(statement: str, file: Path | None) -> str:
    """Return the statement of the argument or of the file."""
    if file is None:
        if not statement.strip():
            raise UsageError("no statement: type a SELECT, or name a file with --file")
        return statement
    if statement:
        raise UsageError("type a statement or name a file, not both")
    try:
        return read_input(MOST_BYTES) if str(file) == "-" else read_text(file, MOST_BYTES)
    except FileError as error:
        raise UsageError(f"cannot read {file}: {error}") from error
