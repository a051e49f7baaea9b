"""Commands by what a person wants to do, and the help of `joulemap` itself, which lists them.

A command of the core is registered here, that of a wing where the wing registers. Modules are named by text, so that
listing imports none of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from joulemap.system.wing import Command, Group, list_wings

if TYPE_CHECKING:
    import typer

GROUPS: Final[Mapping[Group, str]] = {
    "choose": "Choose hardware",
    "understand": "Understand an answer",
    "language_models": "Language models and serving",
    "machine": "Your machine",
    "design": "Design a system",
    "data": "Data",
    "other": "Other commands",
}
"""Group of commands -> its title in help, in the order of help."""

COMMANDS: Final[Mapping[str, Command]] = {
    "compare": Command(
        "joulemap.cli.compare",
        "choose",
        start={
            "Which chip?": 'joulemap compare resnet50 l4 "RTX 4090" --precision fp16',
            "Your own model?": "joulemap compare ./mine.py:net --input 1,3,224,224",
        },
    ),
    "recommend": Command("joulemap.cli.recommend", "choose"),
    "sweep": Command("joulemap.cli.sweep", "choose"),
    "pareto": Command("joulemap.cli.pareto", "choose"),
    "cost": Command("joulemap.cli.cost", "choose"),
    "architectures": Command("joulemap.cli.architectures", merged="compare"),
    "explain": Command("joulemap.cli.explain", "understand"),
    "analyze": Command("joulemap.cli.analyze", "understand"),
    "edp": Command("joulemap.cli.edp", merged="analyze"),
    "utilization": Command("joulemap.cli.utilization", merged="analyze"),
    "fusion": Command("joulemap.cli.fusion", merged="analyze"),
    "sensitivity": Command("joulemap.cli.sensitivity", "understand"),
    "flip": Command("joulemap.cli.flip", merged="sensitivity"),
    "evidence": Command("joulemap.cli.evidence", merged="sensitivity"),
    "diff": Command("joulemap.cli.diff", "understand"),
    "validate": Command("joulemap.cli.validate", "understand"),
    "plot": Command("joulemap.cli.plot", "understand"),
    "report": Command("joulemap.cli.report", "understand"),
    "export": Command("joulemap.cli.export", "understand", is_advanced=True),
    "measure": Command("joulemap.cli.measure", "machine"),
    "calibrate": Command("joulemap.cli.calibrate", "machine"),
    "completion": Command("joulemap.cli.completion", "machine", is_advanced=True),
    "site": Command("joulemap.cli.site", "data", is_advanced=True),
    "hardware": Command("joulemap.cli.hardware", "data"),
    "model": Command("joulemap.cli.model", "data"),
    "sql": Command("joulemap.cli.sql", "data"),
    "extend": Command("joulemap.cli.extend", "data", is_advanced=True),
    "measurements": Command("joulemap.cli.measurements", "data", is_advanced=True),
    "query": Command("joulemap.cli.query", "data", is_advanced=True),
    "db": Command("joulemap.cli.db", "data", is_advanced=True),
    "mcp": Command("joulemap.cli.mcp", "data", is_advanced=True),
}
"""Command or group of the core -> its registration, in the order of help."""

HINT: Final = "For one command: `joulemap COMMAND --help`. For all: `joulemap --help all`."
"""Last line of `--help`."""

INDENT: Final = "  "


@cache
def find_commands() -> Mapping[str, Command]:
    """Return command or group -> its registration, in the order of help.

    Each command is followed by those that are merged into it, which take its group. A command stands alone if the other
    one is not there or is merged itself.
    """
    known = {**COMMANDS, **{name: one for wing in list_wings() for name, one in wing.commands.items()}}
    alone = {name: one for name, one in known.items() if one.merged not in known}
    merged = {name: one for name, one in known.items() if one.merged in alone}
    heads = {name: one._replace(merged="") for name, one in known.items() if name not in merged}
    groups = list(GROUPS)

    def sort_key(name: str) -> tuple[int, bool, bool]:
        one = heads[name]
        group = groups.index(one.group if one.group in groups else "other")
        return group, one.is_advanced, not one.is_first

    commands: dict[str, Command] = {}
    for head in sorted(heads, key=sort_key):
        group = groups[sort_key(head)[0]]
        beside = {name: one for name, one in merged.items() if one.merged == head}
        commands |= {name: one._replace(group=group) for name, one in {head: heads[head], **beside}.items()}
    return commands


def drop_head(words: Sequence[str]) -> list[str]:
    """Return a command line without the command under which help lists another one: `analyze edp` is `edp`."""
    place = next((index for index, word in enumerate(words) if not word.startswith("-")), len(words))
    head, *rest = [word.lower() for word in words[place : place + 2]] or [""]
    is_listed = bool(rest) and rest[0] in find_commands() and find_commands()[rest[0]].merged == head
    return [*words[:place], *words[place + is_listed :]]


def list_commands() -> list[str]:
    """Return the names of all commands and groups, those of wings included, in the order of help."""
    return list(find_commands())


def list_groups(*, is_whole: bool = True) -> Mapping[str, list[str]]:
    """Return the title of each group -> its commands; merged and advanced ones only if `is_whole`."""
    by_title: dict[str, list[str]] = {}
    for name, one in find_commands().items():
        if is_whole or not (one.merged or one.is_advanced):
            by_title.setdefault(GROUPS[one.group], []).append(name)
    return by_title


def list_start() -> Mapping[str, str]:
    """Return the question of a new user -> the command line to type first."""
    return {question: line for one in find_commands().values() for question, line in one.start.items()}


def write_overview(context: typer.Context, formatter: Any, *, is_whole: bool) -> None:
    """Write the help of `joulemap`: what it is, what to type first, and the commands by group.

    Unless `is_whole`, it fits a screen: without merged and advanced commands, options and exit codes.
    """
    command: Any = context.command
    formatter.write_text(command.help)
    formatter.write_paragraph()
    formatter.write("Start here:\n")
    for line in _list_start(formatter.width):
        formatter.write(f"{INDENT}{line}\n")
    known = find_commands()
    groups = list_groups(is_whole=is_whole)
    shown = {name: INDENT * bool(known[name].merged) + name for names in groups.values() for name in names}
    column = max(map(len, shown.values()))
    for title, names in groups.items():
        with formatter.section(title):
            formatter.write_dl([(shown[name].ljust(column), _summarize(command.commands[name])) for name in names])
    if is_whole:
        _write_usage(context, formatter)
    else:
        formatter.write_paragraph()
        formatter.write_text(HINT)


def _list_start(width: int) -> Iterator[str]:
    """Yield the commands to type first, each after its question or, where a line is too short for both, below it."""
    start = list_start()
    column = max(map(len, start)) + len(INDENT)
    is_wide = len(INDENT) + column + max(map(len, start.values())) <= width
    for question, line in start.items():
        yield from (f"{question.ljust(column)}{line}",) if is_wide else (question, INDENT + line)


def _summarize(command: Any) -> str:
    """Return the first paragraph of a command's description, which is one sentence."""
    return " ".join((command.help or "").partition("\n\n")[0].split())


def _write_usage(context: typer.Context, formatter: Any) -> None:
    """Write the usage line, the options and the exit codes."""
    from joulemap.cli.help import describe_parameter, list_usage

    command: Any = context.command
    formatter.write_paragraph()
    formatter.write_usage(context.command_path, list_usage(command))
    entries = [describe_parameter(one, context) for one in command.params if not one.hidden]
    with formatter.section("Options"):
        formatter.write_dl([(one.names, one.meaning) for one in entries])
    command.format_epilog(context, formatter)
