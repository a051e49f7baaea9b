"""`joulemap completion`."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from joulemap.cli.command import command, option


@command
def completion(
    context: typer.Context,
    shell: Annotated[Literal["bash", "zsh", "fish", "powershell", "pwsh"], typer.Argument(help="Which shell.")],
    *,
    install: bool = option(False, "Write it where the shell reads it, and say where; else print it."),
) -> None:
    """Print what makes a shell complete commands, options, models, hardware, queries, metrics and precisions.

    \b
    eval "$(joulemap completion bash)"
    joulemap completion zsh --install
    joulemap completion fish > ~/.config/fish/completions/joulemap.fish
    """
    from typer.completion import install_callback, show_callback

    act = install_callback if install else show_callback
    act(context, context.command.params[0], shell)
