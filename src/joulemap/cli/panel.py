"""Panels of help: the position of each option, and the values that it accepts."""

from __future__ import annotations

from types import NoneType
from typing import Any, Final, Literal, NamedTuple, get_args, get_origin

OPTIONS: Final = "Options"
"""Default help panel: options of a single command."""

WORKLOAD: Final = "What to run"
HARDWARE: Final = "Hardware"
LIMITS: Final = "Limits"
COST: Final = "Prices and use"
OUTPUT: Final = "Output"
GENERAL: Final = "General"

ANNOTATIONS: Final = "annotations"
"""Attribute of a command's function with the annotation of each parameter."""


class HelpPosition(NamedTuple):
    """Position of an option in help."""

    panel: str
    """Title of the option's panel; empty for its record's."""
    is_advanced: bool = False
    """True if only `--help all` lists the option."""


HIDDEN: Final = HelpPosition(GENERAL, is_advanced=True)


class Kind(NamedTuple):
    """Values that a parameter accepts."""

    type: type = str
    """Python type of one value."""
    choices: tuple[str, ...] = ()
    """All accepted values; empty if others are accepted too."""


def find_annotation(command: Any, parameter: Any) -> Any:
    """Return the annotation of a command's parameter; `str` for a function that `command` did not make."""
    return getattr(command.callback, ANNOTATIONS, {}).get(parameter.name, str)


def find_position(annotation: object) -> HelpPosition:
    """Return the position that an annotation states; the panel "Options" if it states none."""
    return next((one for one in get_args(annotation) if isinstance(one, HelpPosition)), HelpPosition(OPTIONS))


def find_kind(annotation: Any) -> Kind:
    """Return the kind of one value of a parameter: that of `int | None` and of `list[int]` is `int`."""
    arguments = [one for one in get_args(annotation) if one is not NoneType]
    if get_origin(annotation) is Literal:
        return Kind(choices=tuple(arguments))
    return find_kind(arguments[0]) if arguments else Kind(annotation)
