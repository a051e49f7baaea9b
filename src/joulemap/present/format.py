"""The formats a document is written in: each is a module of `present.writer`, found by its name.

A writer module has `write(document, page) -> str`.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final

import attrs

if TYPE_CHECKING:
    from joulemap.present.document import Document

TABLE: Final = "table"
"""The format for people."""


@attrs.frozen
class Page:
    """What a document is written on."""

    width: int | None = None
    """Of the terminal; None where there is none."""
    is_raw: bool = False
    """Whether a program reads it that takes no text for a formula."""


def write(document: Document, form: str, width: int | None = None, *, is_raw: bool = False) -> str:
    """Return a document in a format that `list_formats` names; `width` and `is_raw` are those of a `Page`."""
    text: str = import_module(f"joulemap.present.writer.{form}").write(document, Page(width, is_raw))
    return text


@cache
def list_formats() -> tuple[str, ...]:
    """Return the names of all formats, that for people first."""
    names = sorted(path.stem for path in (Path(__file__).parent / "writer").glob("[a-z]*.py"))
    return (TABLE, *(name for name in names if name != TABLE))
