"""Names of models that exist only in a program's memory."""

from __future__ import annotations

import re
from typing import Final

_MODULE: Final = re.compile(r"[^\W\d]\w*#[0-9a-f]{8}")


def name_module(class_name: str, digest: str) -> str:
    """Return the name of a model that exists only in a program's memory."""
    return f"{class_name}#{digest[:8]}"


def is_module_name(name: str) -> bool:
    """Return True if a model exists only in a program's memory, so that no command can load it."""
    return _MODULE.fullmatch(name) is not None
