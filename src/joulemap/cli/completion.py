"""`joulemap completion`."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from joulemap.cli.command import command, option
from joulemap.cli.voice import writing_answer


@command
def completion(
    context: typer.Context,
    shell: Annotated[
        Literal["bash", "zsh", "fish", "powershell", "pwsh"],
        typer.Argument(metavar="SHELL", help="Shell: bash, zsh, fish, powershell or pwsh."),
    ],
    *,
    install: bool = option(False, "Install the script and print its path, instead of the script."),
) -> None:
    """Print the completion script of a shell.

    It completes commands, options, models, hardware, queries, metrics and precisions.

    \b
    eval "$(joulemap completion bash)"
    joulemap completion zsh --install
    joulemap completion fish > ~/.config/fish/completions/joulemap.fish
    """
    from typer.completion import install_callback, show_callback

    act = install_callback if install else show_callback
    with writing_answer():
        act(context, context.command.params[0], shell)
