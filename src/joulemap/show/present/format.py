"""Write documents in any output format; each format is a module of `present.writer`.

A writer module has `write(document, page) -> str` and `write_rows(head, batches, page)`. The latter yields the text of
a table of any length in pieces: `head` has the columns, and each batch has the next rows.
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
    from joulemap.show.present.document import Document

TABLE: Final = "table"
"""Name of the default format, for display."""

SCHEMA_VERSION: Final = 4
"""Version of the JSON Schema of documents; `docs/json.md` states when it changes."""


LEAST_WIDTH: Final = 20
LEAST_HEIGHT: Final = 5
MOST_PAGE: Final = 10_000
"""Maximum width and height of a page, in columns and lines."""


def _fit_width(columns: int | None) -> int | None:
    return None if columns is None else min(max(columns, LEAST_WIDTH), MOST_PAGE)


def _fit_height(lines: int | None) -> int | None:
    return None if lines is None else min(max(lines, LEAST_HEIGHT), MOST_PAGE)


@frozen
class Page:
    """Properties of the page that a document is written for."""

    width: int | None = attrs.field(default=None, converter=_fit_width)
    """Terminal width in columns; None without a terminal."""
    is_raw: bool = False
    """True if the reader is a program that does not execute formulas."""
    height: int | None = attrs.field(default=None, converter=_fit_height)
    """Terminal height in lines; None without a terminal."""
    has_colour: bool = False
    """True if drawings may contain colour escape sequences."""
    is_whole: bool = False
    """True if the text is a file of its own, not a part of another page."""


def write(
    document: Document,
    form: str,
    width: int | None = None,
    *,
    is_raw: bool = False,
    height: int | None = None,
    has_colour: bool = False,
    is_whole: bool = False,
) -> str:
    """Return a document in one of the formats of `list_formats`; the other arguments are those of `Page`."""
    page = Page(width, is_raw, height, has_colour, is_whole)
    text: str = import_module(f"joulemap.show.present.writer.{form}").write(document, page)
    return text


def write_rows(
    head: Table[Any],
    batches: Iterable[Sequence[tuple[Any, ...]]],
    form: str,
    width: int | None = None,
    *,
    is_raw: bool = False,
    is_whole: bool = False,
) -> Iterator[str]:
    """Yield the text of a table in pieces, from the columns of `head` and the rows of all batches.

    Joined, the pieces equal the text that `write` returns, apart from the layout of a page of HTML. An error in a batch
    is raised before any of its text is yielded; for the first batch, before any text at all.
    """
    pieces: Iterator[str] = import_module(f"joulemap.show.present.writer.{form}").write_rows(
        head, batches, Page(width, is_raw, is_whole=is_whole)
    )
    return pieces


@cache
def list_formats() -> tuple[str, ...]:
    """Return the names of all formats, the default first."""
    names = sorted(path.stem for path in (Path(__file__).parent / "writer").glob("[a-z]*.py"))
    return (TABLE, *(name for name in names if name != TABLE))
