"""Commands as records, for those who write about them: what `--help` is made of."""

from __future__ import annotations

from typing import Final

import typer
from typer.core import TyperCommand, TyperGroup

from joulemap.cli.app import build
from joulemap.system.record import frozen

EXAMPLES: Final = "\b\n"
"""Begins the paragraph of a command's help that is its examples."""


@frozen(kw_only=True)
class Parameter:
    """An argument or option."""

    names: str
    """With its value, as `-f, --format <table|json>`."""
    meaning: str
    """With its default."""


@frozen(kw_only=True)
class Manual:
    """A command, or a group of commands."""

    path: str
    """As it is called: `joulemap db export`."""
    usage: str
    paragraphs: tuple[str, ...]
    """The first says what it does."""
    examples: tuple[str, ...]
    """Lines for a shell."""
    arguments: tuple[Parameter, ...]
    options: tuple[Parameter, ...]
    """Without those that help hides."""
    commands: tuple[Manual, ...]
    """Of a group."""


def read_manual(name: str) -> Manual:
    """Return a command or group of `list_commands` with all its options."""
    app = typer.main.get_command(build([name]))
    assert isinstance(app, TyperGroup)
    return _read(app.commands[name], f"joulemap {name}")


def _read(command: object, path: str) -> Manual:
    assert isinstance(command, TyperCommand | TyperGroup)
    context = typer.Context(command, info_name=path)
    paragraphs = [" ".join(one.split()) for one in (command.help or "").split("\n\n") if not one.startswith(EXAMPLES)]
    shown = [one.removeprefix(EXAMPLES) for one in (command.help or "").split("\n\n") if one.startswith(EXAMPLES)]
    told: dict[str, list[Parameter]] = {"argument": [], "option": []}
    for parameter in command.params:
        if record := parameter.get_help_record(context):
            told[parameter.param_type_name].append(Parameter(names=record[0], meaning=record[1]))
    inner = command.commands if isinstance(command, TyperGroup) else {}
    return Manual(
        path=path,
        usage=" ".join((path, *command.collect_usage_pieces(context))),
        paragraphs=tuple(paragraphs),
        examples=tuple(line for one in shown for line in one.splitlines()),
        arguments=tuple(told["argument"]),
        options=tuple(told["option"]),
        commands=tuple(_read(one, f"{path} {word}") for word, one in inner.items()),
    )
