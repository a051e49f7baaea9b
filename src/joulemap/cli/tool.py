"""Commands as tools of the Model Context Protocol: JSON schemas, command lines of calls, and answers cut to size.

A tool is a command. Its description comes from the docstring, and its arguments come from the options. Options for the
database and the layout of an answer are omitted.
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
from joulemap.cli.panel import Kind, find_annotation, find_kind
from joulemap.system.errors import UnknownNameError, UsageError
from joulemap.system.file import SOURCES, FileError, is_there, open_regular
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
"""Tool of the core -> words of its command."""

ALL: Final = TOOLS | {name: command for wing in list_wings() for name, command in wing.tools.items()}
"""Tool of the core or of a wing -> words of its command."""

KEPT: Final = frozenset(
    {*(field.name for field in attrs.fields(OutputOptions)), "quiet", "verbose", "talking", "plot", "report", "limit"}
    | {"file", "trust", "calibrate", "fail_above"}
)
"""Parameters of commands that are not tool arguments, because the server sets them or only people need them."""

CODE: Final = re.compile(r"\.(?:py|pt2)\b", re.IGNORECASE)
"""Pattern of a model's name that makes a command run code."""

PATH: Final = re.compile(r"(?:^|/)\.\.?(?:/|$)|^[/~]|\.(?:toml|json|csv|sql|duckdb|parquet)$", re.IGNORECASE)
"""Pattern of a text that is a path even if no file exists."""

BESIDE: Final = SOURCES | {".safetensors", ".gguf", ".onnx", ".tflite", ".parquet"}
"""Suffixes of files that a command may read because a file beside them, or their folder, is named."""

MOST_SCANNED_BYTES: Final = 10_000_000
"""Maximum bytes read from a file that may name code."""

MOST_ARGUMENT_CHARACTERS: Final = 100_000
"""Maximum characters of an argument; Linux accepts 131,072 bytes per word of a command line."""

BREAKS: Final = re.compile(r"[,=@():;\s]")
"""Characters at which commands split an argument into names, versions, modes and paths."""

MOST_BREAKS: Final = 200
"""Maximum number of BREAKS in an argument; the text between any two may be a path."""

DIGITS: Final = 6
"""Significant digits of a number in an answer that is cut to size."""

MOST_PLAIN: Final = 12
"""Number of entries that a list of texts or numbers keeps at least when an answer is cut."""

CALLED: Final[Mapping[str, str]] = {"words": "model", "named": "hardware"}
"""Name of a positional parameter -> name of the tool's argument."""

LONG: Final = 200
"""Number of characters beyond which a tool's description gets no further sentence."""

BRIEF: Final = 40
"""Maximum characters of a description in a schema if it can end after a clause; the tool `options` has the full text.
"""

COMMON: Final = frozenset(
    {"model", "hardware", "precision", "batch", "runtime", "where", "engine", "devices", "prompt"}
    | {"output", "rate", "metric", "level", "objective", "max_power", "max_price"}
)
"""Arguments that every schema lists, even if many tools share them."""

SHARED: Final = 2
"""Minimum number of tools with an argument at which schemas omit it; the tool `options` describes it."""

COUNTS: Final = frozenset({"batch", "devices", "output"})
"""Arguments that are one number in some tools and a comma-separated list in others; all schemas accept both."""

MORE: Final = "more"
"""Argument that contains all arguments missing in the schema."""

OPTIONS: Final = "options"
"""Name of the tool that describes all arguments of another tool."""


@frozen(kw_only=True)
class Tool:
    """Command that programs call over the Model Context Protocol."""

    name: str
    command: tuple[str, ...]
    """Words that call the command."""

    @cached_property
    def _parsed(self) -> Any:
        from joulemap.cli.app import build

        parsed = typer.main.get_command(build(self.command))
        for word in self.command:
            parsed = parsed.commands[word]  # type: ignore[attr-defined]
        return parsed

    @cached_property
    def parameters(self) -> dict[str, Any]:
        """Argument -> parameter of the command; named like the option, with `_` for `-`."""
        bounds = {field.name for field in attrs.fields(BoundOptions)}
        known = {parameter.name: parameter for parameter in self._parsed.params}
        hidden = KEPT | (bounds if bounds <= known.keys() else set())
        shown = [one for name, one in known.items() if name not in hidden and one.expose_value and not one.hidden]
        shown.sort(key=lambda one: one.param_type_name != "argument")  # an option replaces an argument of its name
        return {_call(parameter): parameter for parameter in shown}

    def _find_kind(self, parameter: Any) -> Kind:
        return find_kind(find_annotation(self._parsed, parameter))

    @property
    def bounds(self) -> bool:
        """True if the command has options that limit a query, such as `timeout`."""
        return any(parameter.name == "timeout" for parameter in self._parsed.params)

    @property
    def description(self) -> str:
        """First sentences of the command's docstring."""
        sentences = re.split(r"(?<=[.:])\s+", self.help)
        count = next((index for index in range(1, len(sentences)) if len(" ".join(sentences[:index])) > LONG), None)
        return " ".join(sentences[:count])

    @property
    def help(self) -> str:
        """Docstring of the command without its examples."""
        return inspect.cleandoc(self._parsed.help or "").partition("\b\n")[0].strip()

    @cached_property
    def listed(self) -> frozenset[str]:
        """Arguments that the schema lists: required ones, common ones, and arguments of few tools."""
        counts = Counter(name for tool in list_tools().values() for name in tool.parameters)
        return frozenset(
            name
            for name, parameter in self.parameters.items()
            if parameter.required or name in COMMON or counts[name] < SHARED
        )

    @property
    def schema(self) -> dict[str, Any]:
        """JSON schema of the listed arguments, with `more` for all others."""
        properties = {
            name: _describe(one, self._find_kind(one), is_brief=True)
            for name, one in self.parameters.items()
            if name in self.listed
        }
        if len(properties) < len(self.parameters):
            description = f"Other arguments by name, described by the tool {OPTIONS}."
            properties[MORE] = {"type": "object", "description": description}
        required = [name for name, parameter in self.parameters.items() if parameter.required]
        return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}

    @property
    def whole(self) -> dict[str, Any]:
        """Argument -> schema with the full description, for all arguments."""
        return {name: _describe(one, self._find_kind(one)) for name, one in self.parameters.items()}

    def spell(self, given: Mapping[str, Any], more: Sequence[str] = ()) -> list[str]:
        """Return the command line for these arguments and `more` options; UsageError for a wrong argument."""
        rest = given.get(MORE) or {}
        if not isinstance(rest, Mapping):
            raise UsageError(f"{MORE} is {rest!r}, expected an object of arguments; the tool {OPTIONS} describes them")
        given = {**{name: one for name, one in given.items() if name != MORE}, **rest}
        words: list[str] = []
        options: list[str] = []
        for name in given:
            if name not in self.parameters:
                raise UnknownNameError(f"argument of {self.name}", name, self.parameters)
        for name, parameter in self.parameters.items():
            value = given.get(name)
            if value is None or value is False or value in ("", []):
                continue
            if getattr(parameter, "is_flag", False):
                options.append(_option(parameter))
                continue
            texts = [_spell(name, one) for one in value] if isinstance(value, list) else [_spell(name, value)]
            if parameter.param_type_name == "argument":
                if any(text.startswith("-") for text in texts) and not self.bounds:
                    raise UsageError(f"{name} begins with -: pass an option as a separate argument")
                words += texts if parameter.nargs == -1 else [" ".join(texts)]
                continue
            for text in texts if parameter.multiple else [",".join(texts)]:
                options += [f"{_option(parameter)}={text}"] if text.startswith("-") else [_option(parameter), text]
        missing = [name for name, one in self.parameters.items() if one.required and given.get(name) in (None, "", [])]
        if missing:
            raise UsageError(f"{self.name} needs {missing[0]}: {self.whole[missing[0]]['description']}")
        if any(word.startswith("-") for word in words):  # a statement that begins with a comment
            return [*self.command, *options, *more, "--", *words]
        return [*self.command, *words, *options, *more]


@cache
def list_tools() -> dict[str, Tool]:
    """Return name -> tool, for the core and the wings."""
    return {name: Tool(name=name, command=tuple(command.split())) for name, command in ALL.items()}


def describe_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return all arguments of a tool with full descriptions; UnknownNameError for an unknown tool."""
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
    """Return the tool argument of a command's parameter: the name of its option, with `_` for `-`."""
    if parameter.param_type_name == "argument":
        return CALLED.get(parameter.name, str(parameter.name))
    return _option(parameter).strip("-").replace("-", "_")


def _option(parameter: Any) -> str:
    return str(max(parameter.opts, key=len))


def _describe(parameter: Any, kind: Kind, *, is_brief: bool = False) -> dict[str, Any]:
    """Return the schema of a parameter: description, values and default, or a brief description without default."""
    usual = parameter.show_default if isinstance(getattr(parameter, "show_default", None), str) else ""
    text = (getattr(parameter, "help", "") or parameter.name).removesuffix(".")
    text, usual = (_shorten(text), "") if is_brief else (text, usual)
    described = {"description": f"{text}. Default: {usual}." if usual else f"{text}."}
    one: dict[str, Any] = {"type": "string"}
    if getattr(parameter, "is_flag", False):
        one = {"type": "boolean"}
    elif kind.choices:
        one = {"type": "string", "enum": list(kind.choices)}
    elif kind.type in (int, float):
        one = {"type": "integer" if kind.type is int else "number"}
    if _call(parameter) in COUNTS:
        one = {"type": ["integer", "string"]}
    is_several = parameter.nargs == -1 or getattr(parameter, "multiple", False) or _call(parameter) == "hardware"
    return {**({"type": "array", "items": one} if is_several else one), **described}


def _shorten(text: str) -> str:
    """Return the first sentence of a description, up to the last clause that ends within `BRIEF` characters."""
    text = re.split(r"(?<!e\.g)\. ", text)[0]
    ends = [match.start() for match in re.finditer(r"; |, |: | \(", text)]
    return text[: max([end for end in ends if end <= BRIEF] or ends[:1])] if len(text) > BRIEF and ends else text


def _spell(name: str, value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise UsageError(f"{name} is {value!r}, expected a string, a number, or a list of them")
    text = str(value)
    if "\0" in text or any("\ud800" <= sign <= "\udfff" for sign in text):
        raise UsageError(f"{name} has an invalid character: NUL, or half of a surrogate pair")
    if len(text) > MOST_ARGUMENT_CHARACTERS:
        raise UsageError(f"{name} has {len(text):,} characters, expected at most {MOST_ARGUMENT_CHARACTERS:,}")
    return text


def check_files(values: Iterable[str], folders: Sequence[Path], here: Path, *, runs_code: bool) -> None:
    """Raise UsageError for a value that names forbidden code, or a path outside these folders.

    Relative paths start at `here`. A file name may contain spaces and commas. So the whole value, and every part of it
    between characters of `BREAKS`, is resolved as the command would open it. The same rules hold for code and paths
    that a file names.
    """
    for value in values:
        if CODE.search(value) and not runs_code:
            raise UsageError(f"{value} runs code, which needs `joulemap mcp --run-code`")
        for piece in _cut_pieces(value):
            for path in {here / piece, here / os.path.expanduser(piece)}:
                if PATH.search(piece) or CODE.search(piece) or is_there(path):
                    _check_path(piece, path, folders, here, runs_code=runs_code)


def _cut_pieces(value: str) -> Iterator[str]:
    """Yield every part of a value between two characters of `BREAKS`; UsageError for too many of them."""
    breaks = [match.span() for match in BREAKS.finditer(value)]
    if len(breaks) > MOST_BREAKS:
        raise UsageError(f"an argument has {len(breaks)} names, expected at most {MOST_BREAKS}")
    begins = [0, *(end for _, end in breaks)]
    ends = [*(start for start, _ in breaks), len(value)]
    pieces = {value[begin:end] for at, begin in enumerate(begins) for end in ends[at:]}
    yield from sorted({*pieces, value, *map(str.strip, pieces)} - {""})


def _check_path(piece: str, path: Path, folders: Sequence[Path], here: Path, *, runs_code: bool) -> None:
    """Raise UsageError for a path outside these folders, or a file that names such a path or forbidden code.

    Only TOML files name other files; the model of a measurement file is never a path.
    """
    path = Path(os.path.realpath(path))
    if not any(path.is_relative_to(os.path.realpath(folder)) for folder in folders):
        raise UsageError(f"{piece} is outside of the folders of `joulemap mcp --allow`")
    if path.suffix == ".duckdb" or not (path.is_file() or path.is_dir()):
        return
    _check_links(piece, path if path.is_dir() else path.parent, folders)
    if path.is_dir():
        return
    try:
        with open_regular(path) as stream:
            text = stream.read(MOST_SCANNED_BYTES).decode(errors="replace")
    except (OSError, FileError) as error:
        raise UsageError(f"cannot read {piece}: {error}") from error
    if runs_code:
        return
    if CODE.search(text):
        raise UsageError(f"{piece} names code, which needs `joulemap mcp --run-code`")
    for named in _list_texts(text) if path.suffix == ".toml" else ():
        for one in (named, *re.split(r"[,=@():]", named)):
            target = Path(os.path.realpath(here / os.path.expanduser(one.strip())))
            if PATH.search(one) and not any(target.is_relative_to(os.path.realpath(folder)) for folder in folders):
                raise UsageError(f"{piece} names {one[:60]}, outside of the folders of `joulemap mcp --allow`")


def _check_links(piece: str, directory: Path, folders: Sequence[Path]) -> None:
    """Raise UsageError for a folder with a link to a file outside of the allowed ones, which a command might read.

    A command that reads one file of a model also reads others beside it, such as its configuration and its parts.
    """
    try:
        with os.scandir(directory) as entries:
            links = [one.path for one in entries if one.is_symlink() and Path(one.name).suffix.lower() in BESIDE]
    except OSError as error:
        raise UsageError(f"cannot read {piece}: {error.strerror or error}") from error
    roots = [os.path.realpath(folder) for folder in folders]
    for link in sorted(links):
        if not any(Path(os.path.realpath(link)).is_relative_to(root) for root in roots):
            raise UsageError(f"{piece}: {os.path.basename(link)[:80]} is a link to a file outside of the folders of "
                             "`joulemap mcp --allow`")  # fmt: skip


def _list_texts(text: str) -> Iterator[str]:
    """Yield the keys and strings of a TOML text, except URLs; nothing if it is not TOML."""
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


def cut(answer: Any, most_rows: int, most_characters: int) -> tuple[Any, str]:
    """Return an answer with as many rows per table as fit and six-digit numbers, and a text on the omitted rows."""
    for most in [one for one in (most_rows, 100, 50, 20, 10, 5, 3, 2, 1, 0) if one <= most_rows]:
        left: list[str] = []
        kept = _cut(answer, most, "", left)
        if len(json.dumps(kept, ensure_ascii=False)) <= most_characters:
            return kept, "; ".join(left)
    return {}, "the whole answer, which is longer than the limit"


def _cut(value: Any, most: int, path: str, left: list[str]) -> Any:
    """Return a value with at most `most` rows per table, more entries of plain lists, and no empty entries."""
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if not isinstance(value, Mapping | list):
        return value
    parts = list(value.values() if isinstance(value, Mapping) else value)
    is_table = bool(parts) and all(isinstance(one, Mapping | list) for one in parts)
    kept = most if is_table and isinstance(value, list) else max(most, MOST_PLAIN)
    if len(parts) > kept and (is_table or isinstance(value, list)):
        left.append(f"{path or 'rows'}: {kept} of {len(parts)}")
        value = dict(list(value.items())[:kept]) if isinstance(value, Mapping) else value[:kept]
    if isinstance(value, list):
        return [
            {key: _cut(cell, most, f"{path}.{key}", left) for key, cell in one.items()}
            if isinstance(one, Mapping)
            else _cut(one, most, path, left)
            for one in value
        ]
    cells = {key: _cut(one, most, f"{path}.{key}".strip("."), left) for key, one in value.items()}
    return {key: one for key, one in cells.items() if one not in (None, "", [], {})}
