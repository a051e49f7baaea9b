"""`joulemap db`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from joulemap.cli.command import command
from joulemap.cli.option import (
    DEFAULT_DATABASE,
    Database,
    FormatOption,
    Output,
    emit,
    emit_answer,
    open_workspace,
)
from joulemap.cli.output import OutputOptions
from joulemap.cli.record import Limit
from joulemap.report.format import ArchiveFormat, Format

app = typer.Typer(help="The results database: what it holds, its version, its health.", rich_markup_mode=None)


@app.command()
def info(form: FormatOption = Format.TABLE, output: Output = None, db: Database = Path(DEFAULT_DATABASE)) -> None:
    """Show file, schema version, size and tables.

    \b
    joulemap db info
    """
    from joulemap.present.cell import show
    from joulemap.report.render import render_answer, write_json

    known = open_workspace(db, form).info()
    if form is Format.JSON:
        emit(
            write_json(
                {
                    "path": known.path,
                    "schema_version": known.schema_version,
                    "size_bytes": known.size_bytes,
                    "tables": known.content.records(),
                }
            ),
            output,
        )
        return
    text = render_answer(known.content, form)
    if form is not Format.CSV:
        size = show(known.size_bytes, "size_bytes", "B")
        text = f"{known.path}: schema {known.schema_version}, {size}\n\n{text}"
    emit(text, output)


@app.command()
def migrate(db: Database = Path(DEFAULT_DATABASE)) -> None:
    """Bring the database to this version's schema; make it if there is none.

    \b
    joulemap db migrate --db results.duckdb
    """
    version = open_workspace(db).migrate()
    emit(f"{db}: schema {version}", None)


@app.command()
@command
def diff(
    run_a: Annotated[int, typer.Argument(metavar="A", help="Run id; see `joulemap query run run.list`.")],
    run_b: Annotated[int, typer.Argument(metavar="B", help="Run id.")],
    *,
    limit: Limit = 20,
    output: OutputOptions,
) -> None:
    """Show what changed from run A to run B: settings, versions, constants, and what each action moved.

    \b
    joulemap db diff 1 5
    joulemap db diff 1 5 --format json
    """
    answer = output.workspace().difference(run_a, run_b)
    output.write(answer.document(limit=limit), answer.tables)


@app.command()
def export(
    folder: Annotated[Path, typer.Argument(help="A folder that is not there yet, or is empty.")],
    run: Annotated[
        list[int] | None,
        typer.Option("--run", help="Run id; repeat for several.", show_default="every run"),
    ] = None,
    form: Annotated[
        ArchiveFormat,
        typer.Option("--format", "-f", help="parquet: whole, to be imported; json or csv: the views of these runs."),
    ] = ArchiveFormat.PARQUET,
    db: Database = Path(DEFAULT_DATABASE),
) -> None:
    """Write runs to a folder, with their workloads, hardware, calibrations, versions and digests.

    \b
    joulemap db export results
    joulemap db export results --run 1 --run 5
    joulemap db export results --run 1 --format json
    """
    count = open_workspace(db).export_runs(folder, run or (), form=form.value)
    emit(f"{folder}: {count} {'run' if count == 1 else 'runs'}", None)


@app.command("import")
def import_(
    folder: Annotated[Path, typer.Argument(help="What `joulemap db export` wrote as Parquet.")],
    db: Database = Path(DEFAULT_DATABASE),
) -> None:
    """Read exported runs into a database, made if there is none; runs that it has are left as they are.

    \b
    joulemap db import results --db new.duckdb
    """
    fresh, known = open_workspace(db).import_runs(folder)
    emit(f"{db}: {fresh} new, {known} stored already", None)


@app.command()
def check(form: FormatOption = Format.TABLE, output: Output = None, db: Database = Path(DEFAULT_DATABASE)) -> None:
    """Prove that the parts add up to their wholes; exit code 6 and a row for each rule that is broken.

    \b
    joulemap db check
    """
    from joulemap.errors import ConservationError

    workspace = open_workspace(db, form)
    workspace.scan()
    answer = workspace.query("audit.conservation")
    if answer.rows or form is not Format.TABLE:
        emit_answer(answer, form, output)
    else:
        emit("ok: every part adds up", output)
    if answer.rows:
        raise ConservationError(f"{len(answer.rows)} rows break a rule")
