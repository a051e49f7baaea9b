"""The formats a document is written in: each is a module of `present.writer`, found by its name.

A writer module has `write(document, page) -> str`, and `write_rows(head, batches, page)` which yields the text of a
table of any length in pieces: `head` has its columns, each batch the next of its rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import attrs

from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.domain.table import Table
    from joulemap.present.document import Document

TABLE: Final = "table"
"""The format for people."""

SCHEMA_VERSION: Final = 1
"""Version of the JSON Schema that documents follow; `docs/json.md` says what a new one is for."""


LEAST_WIDTH: Final = 20
LEAST_HEIGHT: Final = 5
MOST_PAGE: Final = 10_000
"""Columns and lines of a page: a terminal of fewer breaks lines itself, and none has more."""


def _fit_width(columns: int | None) -> int | None:
    return None if columns is None else min(max(columns, LEAST_WIDTH), MOST_PAGE)


def _fit_height(lines: int | None) -> int | None:
    return None if lines is None else min(max(lines, LEAST_HEIGHT), MOST_PAGE)


@frozen
class Page:
    """What a document is written on."""

    width: int | None = attrs.field(default=None, converter=_fit_width)
    """Of the terminal; None where there is none."""
    is_raw: bool = False
    """Whether a program reads it that takes no text for a formula."""
    height: int | None = attrs.field(default=None, converter=_fit_height)
    """Of the terminal; None where there is none."""
    has_colour: bool = False
    """Whether what is drawn may have colours, as escape sequences."""


def write(
    document: Document,
    form: str,
    width: int | None = None,
    *,
    is_raw: bool = False,
    height: int | None = None,
    has_colour: bool = False,
) -> str:
    """Return a document in a format that `list_formats` names; the rest is as of a `Page`."""
    page = Page(width, is_raw, height, has_colour)
    text: str = import_module(f"joulemap.present.writer.{form}").write(document, page)
    return text


def write_rows(
    head: Table[Any],
    batches: Iterable[Sequence[tuple[Any, ...]]],
    form: str,
    width: int | None = None,
    *,
    is_raw: bool = False,
) -> Iterator[str]:
    """Yield, piece by piece, what `write` returns of a table with the columns of `head` and the rows of all batches.

    What a batch raises is raised before anything of it is yielded, and of the first one before anything at all.
    """
    pieces: Iterator[str] = import_module(f"joulemap.present.writer.{form}").write_rows(
        head, batches, Page(width, is_raw)
    )
    return pieces


@cache
def list_formats() -> tuple[str, ...]:
    """Return the names of all formats, that for people first."""
    names = sorted(path.stem for path in (Path(__file__).parent / "writer").glob("[a-z]*.py"))
    return (TABLE, *(name for name in names if name != TABLE))
