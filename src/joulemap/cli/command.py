"""Commands whose options are the fields of records, and the options that every command has."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Annotated, Any, Final, ParamSpec, TypeVar, get_type_hints

import attrs
import typer

from joulemap.cli.panel import ANNOTATIONS, HIDDEN, OPTIONS, HelpPosition, find_kind
from joulemap.cli.usage import Help
from joulemap.cli.voice import voice
from joulemap.system.config import habit
from joulemap.system.name import split_names
from joulemap.system.number import read_real, read_whole
from joulemap.system.wing import list_wings

P = ParamSpec("P")
R = TypeVar("R")


OPTION: Final = "option"
"""Metadata key of a field's default, names and arguments for Typer."""

ABSENT: Final = "absent"
"""Metadata key of the mark of a field without an option."""

POSITION: Final = "position"
"""Metadata key of a field's position in help."""


DETAILS: Final = "details"
"""Word of `--show` that shows every table with all rows."""

EVERY: Final = 1_000_000_000
"""Limit of the rows of a table that `--show details` shows, unless `--limit` is given."""


def option(
    default: Any,
    description: str = "",
    *names: str,
    shown: bool | str = True,
    complete: Any = None,
    panel: str = "",
    is_advanced: bool = False,
    is_absent: bool = False,
    **given: Any,
) -> Any:
    """Declare an option: as a field of an option record or as the default of a command's parameter.

    `names` replace the name of the field. `shown` is the text that help prints as the default. `complete` completes a
    word in a shell. An option that `is_advanced` is listed by `--help all` only. Its `panel` defaults to the class
    attribute `panel` of its record. One that `is_absent` is no option of a command, although the record that its
    record extends has it. Typer receives all other arguments.
    """
    typed = {"help": description or None, "show_default": shown, "autocompletion": complete, **given}
    return attrs.field(
        default=default,
        metadata={
            OPTION: (default, names, typed),
            POSITION: HelpPosition(panel, is_advanced),
            ABSENT: is_absent,
        },
    )


def optional(description: str, metavar: str, *names: str, **given: Any) -> Any:
    """Declare an option for a text that is empty, and asks for nothing, by default."""
    return option("", description, *names, metavar=metavar, **given)


def advanced(default: Any, description: str, *names: str, **given: Any) -> Any:
    """Declare an option that only `--help all` lists."""
    return option(default, description, *names, is_advanced=True, **given)


def _list_options(record: Any) -> list[Any]:
    return [field for field in attrs.fields(record) if not field.metadata.get(ABSENT)]


def name_option(field: Any) -> str:
    """Return the name of a field's option on the command line."""
    _, names, _ = field.metadata.get(OPTION, (None, (), None))
    return str(names[0]) if names else f"--{field.name.replace('_', '-')}"


def _declare(name: str, default: Any, annotation: Any, metadata: Any, panel: str = OPTIONS) -> inspect.Parameter:
    """Return a parameter in Typer's form, with its position in help."""
    if OPTION in metadata:
        default, names, typed = metadata[OPTION]
        names = names or (f"--{name.replace('_', '-')}",)
        position = metadata[POSITION]
        annotation = Annotated[
            annotation, typer.Option(*names, **typed), position._replace(panel=position.panel or panel)
        ]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _flag(name: str, annotation: object) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=annotation)


HELP: Final = _flag("help", Annotated[Help, HIDDEN])


def _read_strictly(annotation: Any) -> None:
    """Make a numeric option refuse what only Python reads as a number: `nan`, `1_0`."""
    kind = find_kind(annotation).type
    for declared in getattr(annotation, "__metadata__", ()) if kind in (int, float) else ():
        if getattr(declared, "parser", declared) is None:
            declared.parser = _make_parser(read_whole if kind is int else read_real, declared.min, declared.max)


def _make_parser(
    read: Callable[[str], float], least: float | None, most: float | None
) -> Callable[[str | float], float]:
    """Return a function that reads a number from `least` to `most`, or checks a default."""

    def parse(value: str | float) -> float:
        try:
            number = read(value) if isinstance(value, str) else value
        except ValueError as error:
            is_option = isinstance(value, str) and value.startswith("--")
            told = f"it needs a number, and the option {value} follows" if is_option else str(error)
            raise typer.BadParameter(told) from error
        if (least is not None and number < least) or (most is not None and number > most):
            bounds = f"x>={least}" if most is None else f"x<={most}" if least is None else f"{least}<=x<={most}"
            raise typer.BadParameter(f"{number} is not in the range {bounds}.")
        return number

    return parse


def name_command(function: Callable[..., Any]) -> str:
    """Return the words that call a command: the name of the module or wing, and in a group that of the function."""
    home, name = function.__module__, function.__name__.rstrip("_")
    named = {one.home: word for wing in list_wings() for word, one in wing.commands.items()}
    word = named.get(home) or home.rpartition(".")[2]
    return name if name == word else f"{word} {name}"


def command(function: Callable[P, R]) -> Callable[P, R]:
    """Return a function with an option for each field of its record parameters, and with those of every command.

    Typer sees the options; the function still gets the records.
    """
    records: dict[str, Any] = {}
    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(function, eval_str=True).parameters.values():
        if not attrs.has(parameter.annotation):
            metadata = getattr(parameter.default, "metadata", {})
            parameters.append(_declare(parameter.name, parameter.default, parameter.annotation, metadata))
            continue
        records[parameter.name] = parameter.annotation
        hints = get_type_hints(parameter.annotation, include_extras=True)
        panel = getattr(parameter.annotation, "panel", OPTIONS)
        parameters += [
            _declare(field.name, field.default, hints[field.name], field.metadata, panel)
            for field in _list_options(parameter.annotation)
        ]

    parameters.append(HELP)
    for parameter in parameters:
        _read_strictly(parameter.annotation)

    usual_limit = next((one.default for one in parameters if one.name == "limit"), None)

    @functools.wraps(function)
    def call(*_none: P.args, **given: P.kwargs) -> R:
        values: dict[str, Any] = given
        values.pop(HELP.name, None)
        voice.command = name_command(function)
        is_usual = usual_limit is not None and values["limit"] == (habit("limit") or usual_limit)
        if is_usual and DETAILS in split_names(",".join(values.get("show") or ())):
            values["limit"] = EVERY
        for name, record in records.items():
            values[name] = record(**{field.name: values.pop(field.name) for field in _list_options(record)})
        return function(**values)  # type: ignore[call-arg]

    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    setattr(call, ANNOTATIONS, call.__annotations__)
    return call
