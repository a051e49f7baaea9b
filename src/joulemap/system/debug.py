"""Tracebacks for developers, on demand."""

from __future__ import annotations

import os
import sys
from functools import cache
from typing import Final

VARIABLE: Final = "JOULEMAP_DEBUG"
"""Environment variable that asks for tracebacks."""


def is_debugging() -> bool:
    """Return whether tracebacks are wanted."""
    return bool(os.environ.get(VARIABLE))


def show_traceback(error: BaseException) -> None:
    """Write the traceback of an error to stderr if tracebacks are wanted; equal ones are written once."""
    if is_debugging():
        import traceback

        _show("".join(traceback.format_exception(error)))


@cache
def _show(text: str) -> None:
    sys.stderr.write(text)
