"""`joulemap share`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from joulemap.cli import read_as
from joulemap.cli.command import command, option, optional
from joulemap.cli.output import DatabaseOptions, check_suffix, emit_pieces
from joulemap.cli.voice import voice
from joulemap.plan import Source
from joulemap.system import frozen
from joulemap.wing.verify import FactOptions

Files = Annotated[
    list[Path] | None,
    typer.Argument(metavar="[FILE]...", help="Files of other tools; without any, the measurements in the database."),
]

Output = Annotated[Path | None, typer.Option("--output-file", "-o", help="CSV file to write, instead of stdout.")]

PANEL: Final = "Statements"


@frozen(kw_only=True)
class StatementOptions:
    """Options for what the person who measured states."""

    panel = PANEL
    power: str = optional("How power was read, and of what; none without power.", "TEXT")
    machine: str = optional("Machine: host, cooling, power limits.", "TEXT")
    software: str = optional("Versions of driver, framework and engine.", "TEXT")
    date: str = optional("Day of measurements without one, as 2026-05-17.", "DATE")
    person: str = optional("Source: your name, or the address of the log.", "TEXT")


@command
def share(
    files: Files = None,
    *,
    facts: FactOptions,
    statement: StatementOptions,
    served: bool = option(False, "Share served language models from the database, not single runs."),
    output: Output = None,
    database: DatabaseOptions,
) -> None:
    """Write measurements of your machine as one file for a project.

    The table has the columns of `measurements import`, and states source, day, machine, software versions and how power
    was read. Numbers that the hardware cannot reach are refused, and the table is read back before it is written.
    Nothing is sent anywhere: attach the file to a pull request or an issue.

    \b
    joulemap measure resnet50
    joulemap share --power "NVML energy counter, board" --date 2026-05-17 -o mine.csv
    joulemap share llama_bench.json --hardware rtx_4090 --power none --machine "RTX 4090, 450 W" --software "b6700" \
        --person "J. Doe" -o rtx_4090.csv
    """
    from joulemap.wing.record.share import Statement, share_measurements

    check_suffix(output, ".csv", "a table of measurements")
    text = share_measurements(
        Source(path=database.db),
        files or [],
        facts.keywords(),
        read_as(Statement, statement),
        served=served,
        note=lambda text: voice.inform(f"joulemap: {text}"),
    )
    emit_pieces((text,), output)
