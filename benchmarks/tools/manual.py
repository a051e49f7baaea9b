"""Commands as records, for pages and tests that restate `--help all`."""

from __future__ import annotations

from typing import Any

import typer

from joulemap.cli.app import build
from joulemap.cli.help import Entry, describe_parameter, list_usage, split_help
from joulemap.system.record import frozen


@frozen(kw_only=True)
class Manual:
    """Help of a command, or of a group of commands."""

    path: str
    """Words that call the command: `joulemap db export`."""
    usage: str
    paragraphs: tuple[str, ...]
    """Description; the first paragraph is one sentence."""
    examples: tuple[str, ...]
    """Examples as lines for a shell."""
    arguments: tuple[Entry, ...]
    options: tuple[Entry, ...]
    """Visible arguments and options."""
    commands: tuple[Manual, ...]
    """Commands of a group; empty for a command."""


def read_manual(name: str) -> Manual:
    """Return a command or group of `list_commands` with all its options."""
    app: Any = typer.main.get_command(build([name]))
    return _read(app.commands[name], f"joulemap {name}")


def _read(command: Any, path: str) -> Manual:
    context = typer.Context(command, info_name=path)
    paragraphs, examples = split_help(command.help or "")
    described: dict[str, list[Entry]] = {"argument": [], "option": []}
    for parameter in command.params:
        if parameter.expose_value and not parameter.hidden:
            described[parameter.param_type_name].append(describe_parameter(parameter, context))
    inner = getattr(command, "commands", {})
    return Manual(
        path=path,
        usage=f"{path} {list_usage(command)}",
        paragraphs=tuple(paragraphs),
        examples=tuple(examples),
        arguments=tuple(described["argument"]),
        options=tuple(described["option"]),
        commands=tuple(_read(one, f"{path} {word}") for word, one in inner.items()),
    )
