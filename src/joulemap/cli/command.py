"""Option records as options of a command, and the options that every command has."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Annotated, Any, Final, ParamSpec, TypeVar, get_args, get_origin, get_type_hints

import attrs
import typer
from typer.main import get_click_type
from typer.models import ParameterInfo

from joulemap.cli.voice import Quiet, Verbose, voice
from joulemap.system.number import read_real, read_whole
from joulemap.system.wing import list_wings

P = ParamSpec("P")
R = TypeVar("R")


OPTION: Final = "option"
"""Key of what a field says of its option."""


def option(
    default: Any, told: str = "", *names: str, shown: bool | str = True, complete: Any = None, **given: Any
) -> Any:
    """Return a field of an option record, or the default of a command's parameter, that is an option of its name.

    `told` is its help, `shown` what that says of the default, `complete` what completes a word for it; `names` are
    those that it has in place of its own, and `given` is what else Typer takes.
    """
    asked = {"help": told or None, "show_default": shown, "autocompletion": complete, **given}
    return attrs.field(default=default, metadata={OPTION: (default, names, asked)})


def name_option(field: Any) -> str:
    """Return how the option of a field is written."""
    _, names, _ = field.metadata[OPTION]
    return str(names[0]) if names else f"--{field.name.replace('_', '-')}"


def _expect(name: str, default: Any, annotation: Any, metadata: Any) -> inspect.Parameter:
    """Return a parameter as Typer takes it."""
    if OPTION in metadata:
        default, names, asked = metadata[OPTION]
        names = names or (f"--{name.replace('_', '-')}",)
        annotation = Annotated[annotation, typer.Option(*names, **asked)]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _flag(name: str, annotation: object) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=annotation)


QUIET: Final = _flag("quiet", Quiet)
VERBOSE: Final = _flag("verbose", Verbose)


def _read_strictly(annotation: Any) -> None:
    """Have an option of numbers take what people write as one, and not all that Python does: no `nan`, no `1_0`."""
    kind, *metadata = get_args(annotation) if get_origin(annotation) is Annotated else (annotation,)
    plain = next((one for one in (int, float) if kind is one or one in get_args(kind)), None)
    for option in metadata if plain is not None else ():
        if isinstance(option, ParameterInfo) and option.click_type is None:
            read: Callable[[str], float] = read_whole if plain is int else read_real
            option.click_type = made = get_click_type(annotation=plain, parameter_info=option)
            made.convert = _check_first(read, made)  # type: ignore[method-assign]


def _check_first(read: Callable[[str], float], kind: Any) -> Callable[..., Any]:
    """Return how a type of option reads a word that must be a number."""
    convert = kind.convert

    def check(value: Any, *place: Any) -> Any:
        try:
            return convert(value if not isinstance(value, str) else str(read(value)), *place)
        except ValueError as error:
            kind.fail(str(error), *place)

    return check


def name_command(function: Callable[..., Any]) -> str:
    """Return the words of a command: its module or the name that a wing gives it, and in a group the function of it."""
    home, name = function.__module__, function.__name__.rstrip("_")
    named = {module: word for wing in list_wings() for word, module in wing.commands.items()}
    word = named.get(home) or home.rpartition(".")[2]
    return name if name == word else f"{word} {name}"


def command(function: Callable[P, R]) -> Callable[P, R]:
    """Return a function whose options are the fields of those parameters that are records, and --quiet and --verbose.

    A field of a record is annotated as an option of Typer; the function still gets the record. A function with a
    parameter `verbose` of its own tells the voice itself.
    """
    records: dict[str, Any] = {}
    spoken = [flag for flag in (QUIET, VERBOSE) if flag.name not in inspect.signature(function).parameters]
    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(function, eval_str=True).parameters.values():
        if not attrs.has(parameter.annotation):
            metadata = getattr(parameter.default, "metadata", {})
            parameters.append(_expect(parameter.name, parameter.default, parameter.annotation, metadata))
            continue
        records[parameter.name] = parameter.annotation
        hints = get_type_hints(parameter.annotation, include_extras=True)
        parameters += [
            _expect(field.name, field.default, hints[field.name], field.metadata)
            for field in attrs.fields(parameter.annotation)
        ]

    parameters += spoken
    for parameter in parameters:
        _read_strictly(parameter.annotation)

    @functools.wraps(function)
    def call(*_none: P.args, **given: P.kwargs) -> R:
        values: dict[str, Any] = given
        voice.set(**{flag.name: values.pop(flag.name) for flag in spoken})
        voice.command = name_command(function)
        for name, record in records.items():
            values[name] = record(**{field.name: values.pop(field.name) for field in attrs.fields(record)})
        return function(**values)  # type: ignore[call-arg]

    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return call
