"""`--help` and `--help all` of every command and group."""

from __future__ import annotations

import shutil
from typing import Annotated, Final

import typer

from joulemap.cli.argument import asks_all
from joulemap.cli.voice import print_text

LEAST: Final = 30
MOST: Final = 100
"""Minimum and maximum columns of help."""

MARGIN: Final = 2
"""Columns at the end of a line that help leaves blank."""


def show_help(context: typer.Context, value: bool) -> None:
    """Print the help of the command or group and end it, if its option is given."""
    if value and not context.resilient_parsing:
        print_help(context, is_whole=asks_all())
        raise typer.Exit


def print_help(context: typer.Context, *, is_whole: bool = False) -> None:
    """Print the help of a command, of a group, or of `joulemap` itself."""
    formatter = context.make_formatter()
    if not hasattr(context.command, "commands"):
        from joulemap.cli.help import write_help

        write_help(context.command, context, formatter, is_whole=is_whole)
    elif context.parent is None:
        from joulemap.cli.overview import write_overview

        write_overview(context, formatter, is_whole=is_whole)
    else:
        context.command.format_help(context, formatter)
    print_text(formatter.getvalue().rstrip())


def find_width() -> int:
    """Return the columns that help fills: those of the terminal, within bounds, without a margin."""
    return max(LEAST, min(shutil.get_terminal_size().columns, MOST)) - MARGIN


Help = Annotated[
    bool,
    typer.Option(
        "-h",
        "--help",
        callback=show_help,
        is_eager=True,
        expose_value=False,
        help="Show this message and exit; `--help all` shows every option and example.",
    ),
]


def group(description: str | None) -> typer.Typer:
    """Return a group of commands with the options that every group has."""
    app = typer.Typer(help=description, rich_markup_mode=None)
    app.callback()(_read_group)
    return app


def _read_group(_help: Help = False) -> None: ...
