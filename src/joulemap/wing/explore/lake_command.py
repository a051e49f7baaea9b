"""Lakes: folders of points that were evaluated in bulk, which `sql` and `query` read as a database (--db FOLDER)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from joulemap.cli.command import command, option
from joulemap.cli.output import OutputOptions

app = typer.Typer(help=__doc__, rich_markup_mode=None)

Lake = Annotated[Path, typer.Argument(metavar="LAKE", help="The folder.")]


@app.command("list")
@command
def list_(lake: Lake, *, output: OutputOptions) -> None:
    """List the files of a lake: models, hardware, varied constants, points, bytes, and files outside queries.

    \b
    joulemap lake list designs
    joulemap sql "SELECT * FROM runs ORDER BY energy_j LIMIT 5" --db designs
    """
    output.write(output.workspace().shards(lake).document())


@app.command()
@command
def check(lake: Lake, *, output: OutputOptions) -> None:
    """Verify every byte of a lake: exit code 6 where a shard is damaged.

    \b
    joulemap lake check designs
    """
    from joulemap.system.errors import ConservationError

    answer = output.workspace().check_shards(lake)
    output.write(answer.document())
    if damaged := answer.count("damaged"):
        raise ConservationError(
            f"{damaged} of {len(answer.shards)} files are damaged; `joulemap lake clean` names them"
        )


@app.command()
@command
def clean(
    lake: Lake,
    *,
    remove: bool = option(False, "Remove the listed files."),
    output: OutputOptions,
) -> None:
    """List garbage of a lake: shards of other formulas, damaged ones, duplicates, unfinished files.

    \b
    joulemap lake clean designs
    joulemap lake clean designs --remove
    """
    output.write(output.workspace().clean_shards(lake, remove=remove).document())
