"""`--help` and `--help-all` of every command and group."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from joulemap.cli.voice import print_text

ALL: Final = "--help-all"


def show_help(context: typer.Context, parameter: typer.CallbackParam, value: bool) -> None:
    """Print the help of the command or group and end it, if its option is given."""
    if not value or context.resilient_parsing:
        return
    if hasattr(context.command, "commands"):
        text = context.get_help()
    else:
        from joulemap.cli.help import write_help

        formatter = context.make_formatter()
        write_help(context.command, context, formatter, is_whole=ALL in parameter.opts)
        text = formatter.getvalue().rstrip()
    print_text(text)
    raise typer.Exit


Help = Annotated[
    bool,
    typer.Option(
        "-h", "--help", callback=show_help, is_eager=True, expose_value=False, help="Show this message and exit."
    ),
]
HelpAll = Annotated[
    bool,
    typer.Option(
        ALL, callback=show_help, is_eager=True, expose_value=False, help="Show every option and example, and exit."
    ),
]
HiddenHelpAll = Annotated[bool, typer.Option(ALL, callback=show_help, is_eager=True, expose_value=False, hidden=True)]
"""Option of a group, whose `--help` lists every option."""


def group(description: str | None) -> typer.Typer:
    """Return a group of commands with the options that every group has."""
    app = typer.Typer(help=description, rich_markup_mode=None)
    app.callback()(_read_group)
    return app


def _read_group(_help: Help = False, _all: HiddenHelpAll = False) -> None: ...
