"""The formats a document is written in: each is a module of `present.writer`, found by its name.

A writer module has `write(document, width) -> str`; `width` is that of the terminal, None where there is none.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from joulemap.present.document import Document

TABLE: Final = "table"
"""The format for people."""


def write(document: Document, form: str, width: int | None = None) -> str:
    """Return a document in a format that `list_formats` names."""
    text: str = import_module(f"joulemap.present.writer.{form}").write(document, width)
    return text


@cache
def list_formats() -> tuple[str, ...]:
    """Return the names of all formats, that for people first."""
    names = sorted(path.stem for path in (Path(__file__).parent / "writer").glob("[a-z]*.py"))
    return (TABLE, *(name for name in names if name != TABLE))
