"""Commands as tools of a program: what each takes as a JSON schema, the command line of a call, its answer cut to size.

A tool is a command of this room: its description is the docstring, its arguments are the options with their helps and
values. What says where and how a person reads an answer is left out.
"""

from __future__ import annotations

import inspect
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import attrs
import typer

from joulemap.cli.option.limit import BoundOptions
from joulemap.cli.output import OutputOptions
from joulemap.system.errors import UnknownNameError, UsageError
from joulemap.system.record import frozen

TOOLS: Final[Mapping[str, str]] = {
    "compare": "compare",
    "explain": "explain",
    "llm": "llm",
    "fleet": "fleet",
    "recommend": "recommend",
    "hardware": "hardware show",
    "hardware_list": "hardware list",
    "verify": "verify",
    "diff": "diff",
    "sql": "sql",
}
"""Tool -> command."""

KEPT: Final = frozenset(
    {*(field.name for field in attrs.fields(OutputOptions)), "quiet", "verbose", "talking", "plot", "report", "limit"}
    | {"file", "trust", "retrace", "build_memory", "calibrate", "fail_above"}
)
"""Parameters that are the server's or a person's to choose."""

CODE: Final = re.compile(r"\.(?:py|pt2)\b", re.IGNORECASE)
"""What stands in the name of a model whose code is run."""

PATH: Final = re.compile(r"(?:^|/)\.\.?(?:/|$)|^[/~]|\.(?:toml|json|csv|sql|duckdb|parquet)$", re.IGNORECASE)
"""What is a path whether there is something or not."""

MOST_SCANNED_BYTES: Final = 10_000_000
"""Of a file that may name code."""

DIGITS: Final = 6
"""Of a number in an answer that is cut to size."""

MOST_PLAIN: Final = 12
"""Entries that lists of texts or numbers keep at least."""

CALLED: Final[Mapping[str, str]] = {"words": "models", "named": "hardware"}
"""Positional parameter -> argument."""


@frozen(kw_only=True)
class Tool:
    """A command as a program calls it."""

    name: str
    command: tuple[str, ...]
    """Its words."""

    @cached_property
    def _parsed(self) -> Any:
        from joulemap.cli.app import build

        found = typer.main.get_command(build(self.command))
        for word in self.command:
            found = found.commands[word]  # type: ignore[attr-defined]
        return found

    @cached_property
    def parameters(self) -> dict[str, Any]:
        """Argument -> parameter of the command; options are called as a person writes them, with `_`."""
        bounds = {field.name for field in attrs.fields(BoundOptions)}
        known = {parameter.name: parameter for parameter in self._parsed.params}
        hidden = KEPT | (bounds if bounds <= known.keys() else set())
        shown = [one for name, one in known.items() if name not in hidden and not getattr(one, "hidden", False)]
        shown.sort(key=lambda one: one.param_type_name != "argument")  # an option takes the place of its like
        return {_call(parameter): parameter for parameter in shown}

    @property
    def bounds(self) -> bool:
        """Whether it takes the bounds of a query."""
        return any(parameter.name == "timeout" for parameter in self._parsed.params)

    @property
    def description(self) -> str:
        """What it does: the docstring of its command."""
        return inspect.cleandoc(self._parsed.help or "").replace("\b\n", "")

    @property
    def schema(self) -> dict[str, Any]:
        """What it takes, as a JSON schema."""
        found = {name: _describe(parameter) for name, parameter in self.parameters.items()}
        required = [name for name, parameter in self.parameters.items() if parameter.required]
        return {"type": "object", "properties": found, "required": required, "additionalProperties": False}

    def spell(self, given: Mapping[str, Any]) -> list[str]:
        """Return the words of the command with these arguments; UsageError for what it does not take."""
        words: list[str] = []
        options: list[str] = []
        for name in given:
            if name not in self.parameters:
                raise UnknownNameError(f"argument of {self.name}", name, self.parameters)
        for name, parameter in self.parameters.items():
            value = given.get(name)
            if value in (None, "", [], False):
                continue
            if getattr(parameter, "is_flag", False):
                options.append(_option(parameter))
                continue
            texts = [_spell(name, one) for one in value] if isinstance(value, list) else [_spell(name, value)]
            if parameter.param_type_name == "argument":
                if any(text.startswith("-") for text in texts):
                    raise UsageError(f"{name} begins with -: options are arguments of their own")
                words += texts if parameter.nargs == -1 else [" ".join(texts)]
                continue
            for text in texts if parameter.multiple else [",".join(texts)]:
                options += [f"{_option(parameter)}={text}"] if text.startswith("-") else [_option(parameter), text]
        missing = [name for name, one in self.parameters.items() if one.required and not given.get(name)]
        if missing:
            raise UsageError(f"{self.name} needs {missing[0]}: {_describe(self.parameters[missing[0]])['description']}")
        return [*self.command, *words, *options]


def list_tools() -> dict[str, Tool]:
    """Return every tool by its name."""
    return {name: Tool(name=name, command=tuple(command.split())) for name, command in TOOLS.items()}


def _call(parameter: Any) -> str:
    """Return how a parameter is called as an argument; an option takes the place of a positional one of its name."""
    if parameter.param_type_name == "argument":
        return CALLED.get(parameter.name, str(parameter.name))
    return _option(parameter).strip("-").replace("-", "_")


def _option(parameter: Any) -> str:
    return str(max(parameter.opts, key=len))


def _describe(parameter: Any) -> dict[str, Any]:
    """Return the schema of a parameter: its help, its values, what it is where nothing is said."""
    usual = parameter.show_default if isinstance(getattr(parameter, "show_default", None), str) else ""
    text = (getattr(parameter, "help", "") or parameter.name).removesuffix(".")
    told = {"description": f"{text}. Default: {usual}." if usual else f"{text}."}
    kind = parameter.type.name
    one: dict[str, Any] = {"type": "string"}
    if getattr(parameter, "is_flag", False):
        one = {"type": "boolean"}
    elif kind == "choice":
        one = {"type": "string", "enum": [str(choice) for choice in parameter.type.choices]}
    elif kind.startswith(("int", "float")):
        one = {"type": "integer" if kind.startswith("int") else "number"}
    is_several = parameter.nargs == -1 or getattr(parameter, "multiple", False)
    return {**({"type": "array", "items": one} if is_several else one), **told}


def _spell(name: str, value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise UsageError(f"{name} is {value!r}, expected a text or a number, or a list of them")
    return str(value)


def check_files(values: Iterable[str], folders: Sequence[Path], here: Path, *, runs_code: bool) -> None:
    """Raise UsageError for a value that names code that may not run, or a path outside of these folders.

    Relative paths are from `here`. A file of a folder may name no code either.
    """
    for value in values:
        if CODE.search(value) and not runs_code:
            raise UsageError(f"{value}: it would run code; `joulemap mcp --run-code` allows it")
        for piece in re.split(r"[,=@():\s]", value):
            place = Path(os.path.realpath(here / os.path.expanduser(piece)))
            if not piece or not (PATH.search(piece) or CODE.search(piece) or _is_there(here / piece)):
                continue
            if not any(place.is_relative_to(os.path.realpath(folder)) for folder in folders):
                raise UsageError(f"{piece}: it is outside of what `joulemap mcp --allow FOLDER` names")
            if not runs_code and place.is_file() and place.suffix != ".duckdb":
                with place.open("rb") as stream:
                    if CODE.search(stream.read(MOST_SCANNED_BYTES).decode(errors="replace")):
                        raise UsageError(f"{piece}: it names code; `joulemap mcp --run-code` allows that")


def _is_there(place: Path) -> bool:
    try:
        return os.path.lexists(place)
    except ValueError:  # no path at all
        return False


def cut(answer: Any, most_rows: int, most_characters: int) -> tuple[Any, str]:
    """Return an answer with as many rows of each table as fit, numbers to six digits, and what was left out."""
    for most in [one for one in (most_rows, 100, 50, 20, 10, 5, 3, 2, 1, 0) if one <= most_rows]:
        left: list[str] = []
        found = _cut(answer, most, "", left)
        if len(json.dumps(found, ensure_ascii=False)) <= most_characters:
            return found, "; ".join(left)
    return {}, "all of it, which is longer than an answer may be"


def _cut(value: Any, most: int, place: str, left: list[str]) -> Any:
    """Return a value with `most` rows of each table, more of plain lists, and nothing that is empty."""
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if not isinstance(value, Mapping | list):
        return value
    parts = list(value.values() if isinstance(value, Mapping) else value)
    is_table = bool(parts) and all(isinstance(one, Mapping | list) for one in parts)
    kept = most if is_table and isinstance(value, list) else max(most, MOST_PLAIN)
    if len(parts) > kept and (is_table or isinstance(value, list)):
        left.append(f"{place or 'rows'}: {kept} of {len(parts)}")
        value = dict(list(value.items())[:kept]) if isinstance(value, Mapping) else value[:kept]
    if isinstance(value, list):
        return [_cut(one, most, place, left) for one in value]
    found = {key: _cut(one, most, f"{place}.{key}".strip("."), left) for key, one in value.items()}
    return {key: one for key, one in found.items() if one not in (None, "", [], {})}
