"""CSV: the one table of a document, every column, with the numbers that JSON would show.

Null is an empty cell, a list is JSON. A text that a spreadsheet would run as a formula has an apostrophe before it, as
spreadsheets mark a text; a raw page has it as it is.
"""

from __future__ import annotations

import csv
import json
from typing import Any, Final

import attrs

from joulemap.present.cell import plain
from joulemap.present.document import Document
from joulemap.present.format import Page

ENDS: Final = "\r\n"
"""Characters that put a cell between quotation marks: either ends a row for who reads it."""

RUNNING: Final = ("=", "+", "-", "@", "\t", "\r")
"""How a text begins that a spreadsheet runs."""


def write(document: Document, page: Page) -> str:
    """Return the table of a document."""
    mark = _keep if page.is_raw else _mark
    rows = _Rows()
    writer = csv.writer(rows, lineterminator=ENDS)
    writer.writerow(map(mark, document.table.names))
    for cells in document.table.cells:
        writer.writerow([_cell(mark(plain(value))) for value in cells])
    return "\n".join(rows.texts)


@attrs.frozen
class _Rows:
    """What is written, row by row."""

    texts: list[str] = attrs.field(factory=list)

    def write(self, text: str) -> None:
        self.texts.append(text.removesuffix(ENDS))


def _mark(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value.startswith(RUNNING) else value


def _keep(value: Any) -> Any:
    return value


def _cell(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False)
    return repr(value) if isinstance(value, float) else value
