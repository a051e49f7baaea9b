"""Write CSV: the main table of a document, with every column and the numbers of JSON.

Null is an empty cell and a list is JSON. A text that a spreadsheet would execute as a formula gets a leading
apostrophe, the spreadsheet mark for text. A raw page has the text unchanged.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import attrs

from joulemap.domain.table import Table
from joulemap.show.present.cell import Texts, plain, write_cells
from joulemap.show.present.document import Document
from joulemap.show.present.format import Page
from joulemap.system.record import frozen

ENDS: Final = "\r\n"
"""Characters that readers take as the end of a row; cells that contain them need quotation marks."""

RUNNING: Final = ("=", "+", "-", "@", "\t", "\r")
"""First characters of texts that a spreadsheet would execute as formulas."""


def write(document: Document, page: Page) -> str:
    """Return the main table of a document as CSV."""
    return "".join(write_rows(document.table, (document.table.cells,), page))


def write_rows(head: Table[Any], batches: Iterable[Sequence[tuple[Any, ...]]], page: Page) -> Iterator[str]:
    """Yield CSV text: the headings, then the rows of each batch."""

    def spell(value: Any) -> str:
        cell = _cell(value if page.is_raw else _mark(value))
        # In a table of one column an empty cell is quoted, because readers skip a blank line.
        return _quote(cell) if len(head.columns) == 1 else _quote("", cell)[1:]

    texts = [Texts(lambda value: spell(plain(value))) for _ in head.columns]
    before = ",".join(map(spell, head.names))
    for batch in filter(None, batches):
        yield "\n".join((before, *map(",".join, write_cells(head.columns, batch, texts))))
        before = ""
    yield before


@frozen
class _Rows:
    """File-like buffer that collects the rows from Python's csv writer."""

    texts: list[str] = attrs.field(factory=list)

    def write(self, text: str) -> None:
        self.texts.append(text.removesuffix(ENDS))


_rows: Final = _Rows()
_writer: Final = csv.writer(_rows, lineterminator=ENDS)


def _quote(*cells: Any) -> str:
    _writer.writerow(cells)
    return _rows.texts.pop()


def _mark(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value.startswith(RUNNING) else value


def _cell(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False)
    return repr(value) if isinstance(value, float) else value
