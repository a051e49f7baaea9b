"""Errors of a model file: each names the file and the part that was being read."""

from __future__ import annotations

from pathlib import PurePath
from types import TracebackType
from typing import Final

import attrs

from joulemap.system.errors import JoulemapError, ModelError

MOST_REASON: Final = 160
"""Maximum characters of another library's error in a message."""


class ContradictionError(ModelError):
    """Part of a file that broke the code which reads it; `__cause__` is the exception.

    Checks that name the fault come first. This error is what is left: it shows a missing check if the file is broken,
    and a fault of joulemap if the file is sound.
    """


@attrs.define
class Reading:
    """Context in which any exception becomes an error that names a file and the part that was being read.

    Text of a ModelError is kept, and gets the name of the file. Other errors of joulemap, such as UsageError, pass.
    """

    file: str
    part: object = ""
    """Operator or header that is being read; its text is for the error."""

    def __enter__(self) -> Reading:
        """Return this context, so that the caller can name the part."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Raise the error that names the file, for an exception in the context."""
        if isinstance(error, ModelError):
            if type(error) is ModelError and PurePath(self.file).name not in str(error):
                raise ModelError(f"{self.file}: {error}") from error
        elif isinstance(error, Exception) and not isinstance(error, JoulemapError):
            raise ContradictionError(f"{self.file}: {self.part or 'it'} cannot be read: {_explain(error)}") from error


def _explain(error: Exception) -> str:
    """Return why a part cannot be read, from the exception of the code that reads it."""
    if isinstance(error, MemoryError):
        return "it needs more memory than there is"
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    if isinstance(error, KeyError):
        return f"it lacks {error.args[0]!r:.60}" if error.args else "it lacks a part"
    lines = str(error).strip().splitlines() or [""]
    return f"its sizes or attributes contradict each other ({type(error).__name__}: {lines[-1][:MOST_REASON]})"
