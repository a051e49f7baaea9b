"""Inspect, check, move and repair the results database."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from joulemap.cli.command import command, option
from joulemap.cli.output import DatabaseOptions, OutputOptions, emit_line
from joulemap.cli.panel import OUTPUT
from joulemap.cli.usage import group
from joulemap.domain.settings import ArchiveFormat
from joulemap.system.errors import ConservationError

app = group(__doc__)


@app.command()
@command
def info(*, output: OutputOptions) -> None:
    """Show the schema version, size and views of the database.

    `--show details` adds the internal tables.

    \b
    joulemap db info
    """
    answer = output.workspace().info()
    output.present(answer)


@app.command()
@command
def migrate(*, database: DatabaseOptions) -> None:
    """Update the database to the current schema, or create it.

    \b
    joulemap db migrate --db results.duckdb
    """
    emit_line(f"{database.db}: schema {database.open().migrate()}")


@app.command()
@command
def diff(
    run_a: Annotated[int, typer.Argument(metavar="A", help="Run id; `joulemap query run run.list` lists them.")],
    run_b: Annotated[int, typer.Argument(metavar="B", help="Run id of the other run.")],
    *,
    limit: int = option(20, "Maximum rows per table; json has all rows.", min=1, panel=OUTPUT),
    output: OutputOptions,
) -> None:
    """Show the differences between two stored runs.

    Compares settings, versions, constants and the contribution of each action.

    \b
    joulemap db diff 1 5
    joulemap db diff 1 5 --format json
    """
    answer = output.workspace().difference(run_a, run_b)
    output.present(answer, limit=limit)


@app.command()
@command
def export(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="New or empty folder.")],
    run: list[int] | None = option(None, "Run id; repeatable.", metavar="ID", shown="all runs"),
    form: ArchiveFormat = option(
        "parquet", "Format: parquet (complete, for import), or json or csv (views only).", "--format", "-f"
    ),
    *,
    database: DatabaseOptions,
) -> None:
    """Export runs to a folder.

    Includes their workloads, hardware, calibrations, versions and digests.

    \b
    joulemap db export results
    joulemap db export two --run 1 --run 5
    joulemap db export views --run 1 --format json
    """
    count = database.open().export_runs(folder, run or (), form=form)
    emit_line(f"{folder}: {count} {'run' if count == 1 else 'runs'}")


@app.command("import")
@command
def import_(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder that `db export` wrote as parquet.")],
    *,
    database: DatabaseOptions,
) -> None:
    """Import exported runs into a database.

    Creates the database if there is none. Runs that are already stored stay unchanged.

    \b
    joulemap db import results --db new.duckdb
    """
    fresh, known = database.open().import_runs(folder)
    emit_line(f"{database.db}: {fresh} new, {known} already stored")


@app.command()
@command
def recover(
    path: Annotated[Path, typer.Argument(metavar="NEW", help="New database file.")],
    *,
    database: DatabaseOptions,
) -> None:
    """Copy the readable data of a damaged database to a new one.

    A sound database is copied as it is. Prints a line for each loss. Exits with 6 if anything is lost.

    \b
    joulemap db recover sound.duckdb --db damaged.duckdb
    """
    recovery = database.open().recover(path)
    runs = f"{recovery.run_count} {'run' if recovery.run_count == 1 else 'runs'}"
    emit_line(f"{path}: {runs}{f'; {database.db} is sound, and was copied as it is' if recovery.is_copy else ''}")
    for line in recovery.lost:
        emit_line(f"lost: {line}")
    if recovery.lost:
        raise ConservationError(f"{len(recovery.lost)} items could not be recovered from {database.db}")


@app.command()
@command
def check(*, output: OutputOptions) -> None:
    """Check the database for damage, changes and wrong sums.

    Reads every byte. Prints a row for each broken rule, and exits with 6 if there is one.

    \b
    joulemap db check
    """
    answer = output.workspace().check()
    output.present(answer)
    if answer.findings.rows:
        raise ConservationError(f"{len(answer.findings)} rows break a rule")
