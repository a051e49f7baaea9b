"""The names of modules that are in a program's memory and nowhere else."""

from __future__ import annotations

import re
from typing import Final

_MODULE: Final = re.compile(r"[^\W\d]\w*#[0-9a-f]{8}")


def name_module(class_name: str, digest: str) -> str:
    """Return the name of a module that is in a program's memory and nowhere else."""
    return f"{class_name}#{digest[:8]}"


def is_module_name(name: str) -> bool:
    """Return whether a model has such a name, which no command knows."""
    return _MODULE.fullmatch(name) is not None
