"""`--help` with the options that most people need, in panels, and `--help all` with every option of a command.

This module is imported only to print help. Options state their panels where they are declared, see
`joulemap.cli.command.option`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Final, NamedTuple

import typer

from joulemap.cli.panel import (
    COST,
    GENERAL,
    HARDWARE,
    LIMITS,
    OPTIONS,
    OUTPUT,
    WORKLOAD,
    find_annotation,
    find_kind,
    find_position,
)
from joulemap.show.present.text import wrap_command

ARGUMENTS: Final = "Arguments"
FIRST: Final = (ARGUMENTS, OPTIONS)
LAST: Final = (WORKLOAD, HARDWARE, LIMITS, COST, OUTPUT, GENERAL)
"""Panels that help lists last, in order; panels of wings come before them."""

PARAGRAPHS: Final = 1
"""Maximum paragraphs of a command's description that `--help` prints."""

EXAMPLES: Final = 2
"""Maximum examples that `--help` prints; those that fit on a line go first."""

MARK: Final = "\b\n"
"""Start of a paragraph that contains examples or other lines that must not be wrapped."""

FEW: Final = 12
"""Largest number of options that `--help` lists completely."""

COLUMN: Final = 27
"""Maximum characters of an option's name that has its description on the same line."""


class Entry(NamedTuple):
    """Names and description of one argument or option, as help prints them."""

    names: str
    """Names and metavar, e.g. `-f, --format FORMAT`."""
    meaning: str
    """Description, with choices that the metavar does not list, and the default."""
    panel: str = ""
    is_advanced: bool = False


def split_help(text: str) -> tuple[list[str], list[str]]:
    """Return the paragraphs of a command's description, each as one line, and the lines of its examples."""
    parts = text.split("\n\n")
    paragraphs = [" ".join(part.split()) for part in parts if not part.startswith(MARK)]
    return paragraphs, [
        line for part in parts if part.startswith(MARK) for line in part.removeprefix(MARK).splitlines()
    ]


def describe_parameter(parameter: Any, context: typer.Context) -> Entry:
    """Return the names and the description of an argument or option."""
    meaning = parameter.help or ""
    names = name_argument(parameter)
    if parameter.param_type_name == "option":
        *others, longest = sorted(parameter.opts, key=len)
        names = ", ".join([*(one for one in others if not one.startswith("--")), longest])  # a further word is an alias
        if parameter.secondary_opts:
            names += f", {', '.join(parameter.secondary_opts)}"
        if not parameter.is_flag:
            kind = find_kind(find_annotation(context.command, parameter))
            value = parameter.metavar or METAVARS.get(kind.type, "TEXT")
            if kind.choices and parameter.metavar is None:
                value = f"<{'|'.join(kind.choices)}>"
                if len(names) + len(value) >= COLUMN:
                    value = _name_value(parameter)
                    listed = all(re.search(rf"\b{re.escape(one)}\b", meaning) for one in kind.choices)
                    meaning += "" if listed else f" One of: {', '.join(kind.choices)}."
            names += f" {value}"
    default, variable = _show_default(parameter, context), getattr(parameter, "envvar", None)
    further = [*([f"default: {default}"] if default else []), *([f"or ${variable}"] if variable else [])]
    if further:
        meaning += f" [{'; '.join(further)}]"
    return Entry(names, meaning.strip())


METAVARS: Final[Mapping[type, str]] = {int: "N", float: "NUMBER", Path: "FILE"}
"""Type of an option without its own metavar -> the metavar; that of any other type is TEXT."""


def name_argument(parameter: Any) -> str:
    """Return the name of an argument in help."""
    return str(parameter.metavar or parameter.name)


def list_usage(command: Any) -> str:
    """Return the arguments of a command as its usage line has them: `[OPTIONS] {MODEL} [HARDWARE]`."""
    pieces = [command.options_metavar]
    for parameter in command.params:
        if parameter.param_type_name == "argument":
            name = name_argument(parameter)
            bracketed = f"{{{name}}}" if parameter.required else f"[{name}]"
            pieces.append(name if name.startswith("[") else bracketed)
    return " ".join([*pieces, command.subcommand_metavar] if hasattr(command, "commands") else pieces)


def _name_value(parameter: Any) -> str:
    """Return the metavar of an option without one: its longest name in upper case."""
    return str(max(parameter.opts, key=len)).strip("-").replace("-", "_").upper()


def _show_default(parameter: Any, context: typer.Context) -> str:
    """Return the default of an option as help shows it; empty if there is none."""
    if isinstance(parameter.show_default, str):
        return str(parameter.show_default)
    value = parameter.get_default(context, call=False) if parameter.show_default else None
    if getattr(parameter, "is_flag", False):
        return str(parameter.opts[0] if value else parameter.secondary_opts[0]) if parameter.secondary_opts else ""
    if isinstance(value, float):
        return f"{value:g}"
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else "" if value is None else str(value)


def write_help(command: Any, context: typer.Context, formatter: Any, *, is_whole: bool) -> None:
    """Write the help of a command.

    Unless `is_whole`, it has the first paragraphs and examples, and no advanced options.
    """
    formatter.write_usage(context.command_path, list_usage(command))
    text = command.help or ""
    paragraphs, examples = split_help(text)
    width = formatter.width - formatter.indent_increment
    if not is_whole:
        examples.sort(key=lambda line: len(line) > width)
    some = examples if is_whole else examples[:EXAMPLES]
    lines = [MARK + "\n".join(wrap_command(line, width) for line in some)] if some else []
    text = "\n\n".join([*paragraphs[: None if is_whole else PARAGRAPHS], *lines])
    _write_paragraph(formatter, text, is_indented=True)
    entries = list(_list_entries(command, context))
    _write_panels(formatter, [one for one in entries if is_whole or not one.is_advanced])
    command.format_epilog(context, formatter)
    if not is_whole:
        counts = {
            "option": sum(one.is_advanced for one in entries),
            "example": max(len(examples) - EXAMPLES, 0),
        }
        more = " and ".join(f"{count} more {noun}{'s' * (count > 1)}" for noun, count in counts.items() if count)
        _write_paragraph(formatter, f"`{context.command_path} --help all` shows {more}." if more else "")


def _write_paragraph(formatter: Any, text: str, *, is_indented: bool = False) -> None:
    if text:
        formatter.write_paragraph()
        with formatter.indentation() if is_indented else nullcontext():
            formatter.write_text(text)


def _write_panels(formatter: Any, entries: Sequence[Entry]) -> None:
    """Write the arguments, then the options panel by panel, all descriptions of options in one column."""
    panels: dict[str, list[Entry]] = {}
    for entry in entries:
        panels.setdefault(entry.panel, []).append(entry)
    widths = [len(one.names) for one in entries if one.panel != ARGUMENTS]
    most = min(COLUMN, formatter.width // 3 + 1)
    column = max([one for one in widths if one <= most], default=0)
    others = [title for title in panels if title not in (*FIRST, *LAST)]
    for title in (title for title in (*FIRST, *others, *LAST) if title in panels):
        width = max(len(one.names) for one in panels[title]) if title == ARGUMENTS else column
        with formatter.section(title):
            rows = [(_fold(one.names, formatter.width).ljust(width), one.meaning) for one in panels[title]]
            formatter.write_dl(rows, col_max=width)


def _fold(names: str, width: int) -> str:
    """Return the names of an option with its metavar on a line of its own, if a line is too short for both."""
    return names if len(names) <= width else "\n      ".join(names.rsplit(" ", 1))


def _list_entries(command: Any, context: typer.Context) -> Iterator[Entry]:
    """Yield the arguments, then the options, that are not hidden."""
    shown = [one for one in command.params if not one.hidden]
    options = [one for one in shown if one.param_type_name == "option"]
    for parameter in shown:
        if parameter not in options:
            yield describe_parameter(parameter, context)._replace(panel=ARGUMENTS)
    for parameter in options:
        position = find_position(find_annotation(command, parameter))
        is_advanced = position.is_advanced and len(options) > FEW
        yield describe_parameter(parameter, context)._replace(panel=position.panel, is_advanced=is_advanced)
