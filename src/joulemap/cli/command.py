"""Option records as options of a command, and the options that every command has."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, Final, ParamSpec, TypeVar, get_type_hints

import attrs

from joulemap.cli.voice import Quiet, Talking, Verbose, voice

P = ParamSpec("P")
R = TypeVar("R")


def _flag(name: str, annotation: object) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=annotation)


QUIET: Final = _flag("quiet", Quiet)
VERBOSE: Final = _flag("verbose", Verbose)
TALKING: Final = _flag("talking", Talking)


def command(function: Callable[P, R]) -> Callable[P, R]:
    """Return a function whose options are the fields of those parameters that are records, and --quiet and --verbose.

    A field of a record is annotated as an option of Typer; the function still gets the record. One that has a --verbose
    of its own says as much with it, and with -v alone.
    """
    records: dict[str, Any] = {}
    has_verbose = "verbose" in inspect.signature(function).parameters
    spoken = (QUIET, TALKING) if has_verbose else (QUIET, VERBOSE)
    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(function, eval_str=True).parameters.values():
        if not attrs.has(parameter.annotation):
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))
            continue
        records[parameter.name] = parameter.annotation
        hints = get_type_hints(parameter.annotation, include_extras=True)
        parameters += [
            inspect.Parameter(
                field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=hints[field.name]
            )
            for field in attrs.fields(parameter.annotation)
        ]

    parameters += spoken

    @functools.wraps(function)
    def call(*_none: P.args, **given: P.kwargs) -> R:
        values: dict[str, Any] = given
        is_talking = any(values.get(name) for name in ("talking", "verbose"))
        voice.set(quiet=values["quiet"], verbose=is_talking)
        for parameter in spoken:
            del values[parameter.name]
        for name, record in records.items():
            values[name] = record(**{field.name: values.pop(field.name) for field in attrs.fields(record)})
        return function(**values)  # type: ignore[call-arg]

    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return call
