"""Commands as tools of a program: what each takes as a JSON schema, the command line of a call, its answer cut to size.

A tool is a command of this room: its description is the docstring, its arguments are the options with their helps and
values. What says where and how a person reads an answer is left out.
"""

from __future__ import annotations

import inspect
import json
import os
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Final

import attrs
import typer

from joulemap.cli.option.limit import BoundOptions
from joulemap.cli.output import OutputOptions
from joulemap.system.errors import UnknownNameError, UsageError
from joulemap.system.file import FileError, open_regular
from joulemap.system.record import frozen
from joulemap.system.wing import list_wings

TOOLS: Final[dict[str, str]] = {
    "compare": "compare",
    "explain": "explain",
    "recommend": "recommend",
    "hardware": "hardware show",
    "hardware_list": "hardware list",
    "diff": "diff",
    "sql": "sql",
}
"""Tool of the core -> command."""

ALL: Final = TOOLS | {name: command for wing in list_wings() for name, command in wing.tools.items()}
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

MOST_ARGUMENT_CHARACTERS: Final = 100_000
"""Longest argument: Linux takes 131,072 bytes in a word of a command line."""

BREAKS: Final = re.compile(r"[,=@():;\s]")
"""Signs at which commands cut an argument into names, versions, modes and paths."""

MOST_BREAKS: Final = 200
"""Such signs in one argument; each two of them enclose something that may be a path."""

DIGITS: Final = 6
"""Of a number in an answer that is cut to size."""

MOST_PLAIN: Final = 12
"""Entries that lists of texts or numbers keep at least."""

CALLED: Final[Mapping[str, str]] = {"words": "model", "named": "hardware"}
"""Positional parameter -> argument."""

LONG: Final = 200
"""Characters from which on a tool's description takes no further sentence."""

BRIEF: Final = 40
"""Characters of a help in a schema, where a clause ends before: the tool `options` has the whole helps."""

SPOKEN: Final = frozenset(
    {"model", "hardware", "precision", "batch", "runtime", "scenario", "power_budget", "engine", "devices", "prompt"}
    | {"output", "rate", "metric", "level", "objective", "max_power", "max_price"}
)
"""Arguments that every tool describes, however many tools have them."""

SHARED: Final = 2
"""Number of tools with an argument from which on it is described by the tool `options` alone."""

COUNTS: Final = frozenset({"batch", "devices", "output"})
"""Arguments that are one number for some tools and several, comma-separated, for others: all take both."""

MORE: Final = "more"
"""Argument that holds the ones which the schema of a tool does not list."""

OPTIONS: Final = "options"
"""Tool that describes all arguments of another."""


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
        """Description of the tool: first sentences of its command's docstring."""
        sentences = re.split(r"(?<=[.:])\s+", self.help)
        count = next((index for index in range(1, len(sentences)) if len(" ".join(sentences[:index])) > LONG), None)
        return " ".join(sentences[:count])

    @property
    def help(self) -> str:
        """The docstring of its command without the examples, which are lines of a shell."""
        return inspect.cleandoc(self._parsed.help or "").partition("\b\n")[0].strip()

    @cached_property
    def listed(self) -> frozenset[str]:
        """Arguments that its schema lists: those that few tools have, those that it needs and the usual ones."""
        counts = Counter(name for tool in list_tools().values() for name in tool.parameters)
        return frozenset(
            name
            for name, parameter in self.parameters.items()
            if parameter.required or name in SPOKEN or counts[name] < SHARED
        )

    @property
    def schema(self) -> dict[str, Any]:
        """JSON schema of the arguments: those listed, and `more` for all others."""
        found = {name: _describe(one, is_brief=True) for name, one in self.parameters.items() if name in self.listed}
        if len(found) < len(self.parameters):
            told = f"Other arguments by name, described by the tool {OPTIONS}."
            found[MORE] = {"type": "object", "description": told}
        required = [name for name, parameter in self.parameters.items() if parameter.required]
        return {"type": "object", "properties": found, "required": required, "additionalProperties": False}

    @property
    def whole(self) -> dict[str, Any]:
        """The schemas of all arguments by name, with their whole helps."""
        return {name: _describe(one) for name, one in self.parameters.items()}

    def spell(self, given: Mapping[str, Any], more: Sequence[str] = ()) -> list[str]:
        """Return the words of the command with these arguments and `more` options; UsageError for wrong arguments."""
        rest = given.get(MORE) or {}
        if not isinstance(rest, Mapping):
            raise UsageError(f"{MORE} is {rest!r}, expected arguments by name; the tool {OPTIONS} describes them")
        given = {**{name: one for name, one in given.items() if name != MORE}, **rest}
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
                if any(text.startswith("-") for text in texts) and not self.bounds:
                    raise UsageError(f"{name} begins with -: options are arguments of their own")
                words += texts if parameter.nargs == -1 else [" ".join(texts)]
                continue
            for text in texts if parameter.multiple else [",".join(texts)]:
                options += [f"{_option(parameter)}={text}"] if text.startswith("-") else [_option(parameter), text]
        missing = [name for name, one in self.parameters.items() if one.required and not given.get(name)]
        if missing:
            raise UsageError(f"{self.name} needs {missing[0]}: {_describe(self.parameters[missing[0]])['description']}")
        if any(word.startswith("-") for word in words):  # a statement that begins with a comment
            return [*self.command, *options, *more, "--", *words]
        return [*self.command, *words, *options, *more]


@cache
def list_tools() -> dict[str, Tool]:
    """Return every tool of the core and of wings by its name."""
    return {name: Tool(name=name, command=tuple(command.split())) for name, command in ALL.items()}


def describe_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return all arguments of a tool with their whole helps; UnknownNameError for a tool that is not there."""
    name = str(given.get("tool", ""))
    if name not in list_tools():
        raise UnknownNameError("tool", name, list_tools())
    return {"tool": name, "description": list_tools()[name].help, "arguments": list_tools()[name].whole}


OPTIONS_SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {"tool": {"type": "string", "enum": list(ALL)}},
    "required": ["tool"],
    "additionalProperties": False,
}
"""JSON schema of the arguments of the tool `options`."""


def _call(parameter: Any) -> str:
    """Return how a parameter is called as an argument; an option takes the place of a positional one of its name."""
    if parameter.param_type_name == "argument":
        return CALLED.get(parameter.name, str(parameter.name))
    return _option(parameter).strip("-").replace("-", "_")


def _option(parameter: Any) -> str:
    return str(max(parameter.opts, key=len))


def _describe(parameter: Any, *, is_brief: bool = False) -> dict[str, Any]:
    """Return the schema of a parameter: its help, its values, its default; of a brief one the first sentence."""
    usual = parameter.show_default if isinstance(getattr(parameter, "show_default", None), str) else ""
    text = (getattr(parameter, "help", "") or parameter.name).removesuffix(".")
    text, usual = (_shorten(text), "") if is_brief else (text, usual)
    told = {"description": f"{text}. Default: {usual}." if usual else f"{text}."}
    kind = parameter.type.name
    one: dict[str, Any] = {"type": "string"}
    if getattr(parameter, "is_flag", False):
        one = {"type": "boolean"}
    elif kind == "choice":
        one = {"type": "string", "enum": [str(choice) for choice in parameter.type.choices]}
    elif kind.startswith(("int", "float")):
        one = {"type": "integer" if kind.startswith("int") else "number"}
    if _call(parameter) in COUNTS:
        one = {"type": ["integer", "string"]}
    is_several = parameter.nargs == -1 or getattr(parameter, "multiple", False) or _call(parameter) == "hardware"
    return {**({"type": "array", "items": one} if is_several else one), **told}


def _shorten(text: str) -> str:
    """Return the first sentence of a help, to the last clause that ends within `BRIEF` characters."""
    text = re.split(r"(?<!e\.g)\. ", text)[0]
    ends = [found.start() for found in re.finditer(r"; |, |: | \(", text)]
    return text[: max([end for end in ends if end <= BRIEF] or ends[:1])] if len(text) > BRIEF and ends else text


def _spell(name: str, value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise UsageError(f"{name} is {value!r}, expected a text or a number, or a list of them")
    text = str(value)
    if "\0" in text or any("\ud800" <= sign <= "\udfff" for sign in text):
        raise UsageError(f"{name} has a character that is none: a zero, or half of a pair")
    if len(text) > MOST_ARGUMENT_CHARACTERS:
        raise UsageError(f"{name} has {len(text):,} characters, expected at most {MOST_ARGUMENT_CHARACTERS:,}")
    return text


def check_files(values: Iterable[str], folders: Sequence[Path], here: Path, *, runs_code: bool) -> None:
    """Raise UsageError for a value that names code that may not run, or a path outside of these folders.

    Relative paths are from `here`. Every part of a value that stands between two signs at which a command may cut it,
    and the whole of it, is resolved as the command would open it: names of files have spaces and commas too. A file of
    a folder may name no code either, and a file that names others none outside.
    """
    for value in values:
        if CODE.search(value) and not runs_code:
            raise UsageError(f"{value}: it would run code; `joulemap mcp --run-code` allows it")
        for piece in _cut_pieces(value):
            for place in {here / piece, here / os.path.expanduser(piece)}:
                if PATH.search(piece) or CODE.search(piece) or _is_there(place):
                    _check_place(piece, place, folders, here, runs_code=runs_code)


def _cut_pieces(value: str) -> Iterator[str]:
    """Yield every part of a value that begins and ends where a command may cut it; UsageError for too many."""
    breaks = [found.span() for found in BREAKS.finditer(value)]
    if len(breaks) > MOST_BREAKS:
        raise UsageError(f"an argument has {len(breaks)} names, expected at most {MOST_BREAKS}: ask for fewer at once")
    begins = [0, *(end for _, end in breaks)]
    ends = [*(start for start, _ in breaks), len(value)]
    found = {value[begin:end] for at, begin in enumerate(begins) for end in ends[at:]}
    yield from sorted({*found, value, *map(str.strip, found)} - {""})


def _check_place(piece: str, place: Path, folders: Sequence[Path], here: Path, *, runs_code: bool) -> None:
    """Raise UsageError for a path outside of these folders, or a file that names such a one, or code that may not run.

    Only a TOML file names others: what a measured file calls its model is never a path.
    """
    place = Path(os.path.realpath(place))
    if not any(place.is_relative_to(os.path.realpath(folder)) for folder in folders):
        raise UsageError(f"{piece}: it is outside of what `joulemap mcp --allow FOLDER` names")
    if place.suffix == ".duckdb" or not place.is_file():
        return
    try:
        with open_regular(place) as stream:
            text = stream.read(MOST_SCANNED_BYTES).decode(errors="replace")
    except (OSError, FileError) as error:
        raise UsageError(f"{piece}: it cannot be read: {error}") from error
    if runs_code:
        return
    if CODE.search(text):
        raise UsageError(f"{piece}: it names code; `joulemap mcp --run-code` allows that")
    for named in _list_texts(text) if place.suffix == ".toml" else ():
        for one in (named, *re.split(r"[,=@():]", named)):
            target = Path(os.path.realpath(here / os.path.expanduser(one.strip())))
            if PATH.search(one) and not any(target.is_relative_to(os.path.realpath(folder)) for folder in folders):
                raise UsageError(f"{piece}: it names {one[:60]}, outside of what `joulemap mcp --allow FOLDER` names")


def _list_texts(text: str) -> Iterator[str]:
    """Yield the keys and texts of TOML but addresses; nothing of what is no TOML."""
    try:
        waiting: list[Any] = [tomllib.loads(text)]
    except (ValueError, RecursionError):
        return
    while waiting:
        value = waiting.pop()
        if isinstance(value, str) and "\0" not in value and "://" not in value:
            yield value
        elif isinstance(value, dict):
            waiting += [*value, *value.values()]
        elif isinstance(value, list):
            waiting += value


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
    """Return a value with `most` rows of each table, more of plain lists, and nothing beside tables that is empty."""
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
        return [
            {key: _cut(cell, most, f"{place}.{key}", left) for key, cell in one.items()}
            if isinstance(one, Mapping)
            else _cut(one, most, place, left)
            for one in value
        ]
    found = {key: _cut(one, most, f"{place}.{key}".strip("."), left) for key, one in value.items()}
    return {key: one for key, one in found.items() if one not in (None, "", [], {})}
