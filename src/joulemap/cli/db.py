"""The results database: what it holds, its version, its health."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from joulemap.cli.command import command, option
from joulemap.cli.output import DatabaseOptions, OutputOptions, emit_line
from joulemap.domain.settings import ArchiveFormat

app = typer.Typer(help=__doc__, rich_markup_mode=None)


@app.command()
@command
def info(*, output: OutputOptions) -> None:
    """Show file, schema version, size and the views that statements read; --details adds the internal tables.

    \b
    joulemap db info
    """
    answer = output.workspace().info()
    output.write(answer.document())


@app.command()
@command
def migrate(*, database: DatabaseOptions) -> None:
    """Bring the database to this version's schema; make it if there is none.

    \b
    joulemap db migrate --db results.duckdb
    """
    emit_line(f"{database.db}: schema {database.open().migrate()}")


@app.command()
@command
def diff(
    run_a: Annotated[int, typer.Argument(metavar="A", help="Run id; see `joulemap query run run.list`.")],
    run_b: Annotated[int, typer.Argument(metavar="B", help="Run id.")],
    *,
    limit: int = option(20, "Rows to show in a table; json has all.", min=1),
    output: OutputOptions,
) -> None:
    """Show what changed from run A to run B: settings, versions, constants, and what each action moved.

    \b
    joulemap db diff 1 5
    joulemap db diff 1 5 --format json
    """
    answer = output.workspace().difference(run_a, run_b)
    output.write(answer.document(limit=limit))


@app.command()
@command
def export(
    folder: Annotated[Path, typer.Argument(help="A folder that is not there yet, or is empty.")],
    run: list[int] | None = option(None, "Run id; repeat for several.", shown="every run"),
    form: ArchiveFormat = option(
        "parquet", "parquet: whole, to be imported; json or csv: the views of these runs.", "--format", "-f"
    ),
    *,
    database: DatabaseOptions,
) -> None:
    """Write runs to a folder, with their workloads, hardware, calibrations, versions and digests.

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
    folder: Annotated[Path, typer.Argument(help="What `joulemap db export` wrote as Parquet.")],
    *,
    database: DatabaseOptions,
) -> None:
    """Read exported runs into a database, made if there is none; runs that it has are left as they are.

    \b
    joulemap db import results --db new.duckdb
    """
    fresh, known = database.open().import_runs(folder)
    emit_line(f"{database.db}: {fresh} new, {known} stored already")


@app.command()
@command
def recover(
    path: Annotated[Path, typer.Argument(metavar="NEW", help="A database that is not there yet.")],
    *,
    database: DatabaseOptions,
) -> None:
    """Put what can be read of a damaged database into a new one; exit code 6 and a line for each thing that is lost.

    \b
    joulemap db recover sound.duckdb --db damaged.duckdb
    """
    from joulemap.system.errors import ConservationError

    recovery = database.open().recover(path)
    runs = f"{recovery.run_count} {'run' if recovery.run_count == 1 else 'runs'}"
    emit_line(f"{path}: {runs}")
    for line in recovery.lost:
        emit_line(f"lost: {line}")
    if recovery.lost:
        raise ConservationError(f"{len(recovery.lost)} things could not be recovered from {database.db}")


@app.command()
@command
def check(*, output: OutputOptions) -> None:
    """Read all of it: nothing was damaged or changed, every part adds up; exit code 6 and a row for each broken rule.

    \b
    joulemap db check
    """
    from joulemap.system.errors import ConservationError

    answer = output.workspace().check()
    output.write(answer.document())
    if answer.findings.rows:
        raise ConservationError(f"{len(answer.findings)} rows break a rule")
