"""List, check and clean lakes of evaluated designs.

A lake is a folder of results of `explore`. `sql` and `query` read it as a database (`--db FOLDER`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from joulemap.cli import OutputOptions, group
from joulemap.cli.command import command, option

app = group(__doc__)

Lake = Annotated[Path, typer.Argument(metavar="LAKE", help="Folder of the lake.")]


@app.command("list")
@command
def list_(lake: Lake, *, output: OutputOptions) -> None:
    """List the files of a lake.

    Shows models, hardware, varied constants, designs and bytes, and the files that queries skip.

    \b
    joulemap lake list designs
    joulemap sql "SELECT * FROM runs ORDER BY energy_j LIMIT 5" --db designs
    """
    output.present(output.workspace().shards(lake))


@app.command()
@command
def check(lake: Lake, *, output: OutputOptions) -> None:
    """Check every byte of a lake.

    Exits with 6 if a file has changed since it was written.

    \b
    joulemap lake check designs
    """
    from joulemap.system.errors import ConservationError

    answer = output.workspace().check_shards(lake)
    output.present(answer)
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
    """List or remove the garbage of a lake.

    Garbage is files of outdated formulas, and damaged, duplicate or unfinished files.

    \b
    joulemap lake clean designs
    joulemap lake clean designs --remove
    """
    output.present(output.workspace().clean_shards(lake, remove=remove))
